#ifndef SOFTLOOKUP_CLIENT_LOADTEST_ROW_SOURCE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_ROW_SOURCE_H_

#include <cstdint>

#include "softlookup/float_matrix.h"

namespace softlookup::loadtest {

// Rows and queries that follow from a seed, so that nobody needs to keep them. Components are
// uniform, of mean 0 and variance 1. The same ones on every machine.
class RowSource {
 public:
  RowSource(std::uint32_t key_dim, std::uint32_t value_dim, std::uint64_t seed)
      : key_dim_(key_dim), value_dim_(value_dim), seed_(seed) {}

  std::uint32_t key_dim() const { return key_dim_; }
  std::uint32_t value_dim() const { return value_dim_; }

  // `count` rows from position `first` on of those that the `store`-th store is filled with.
  struct Rows {
    FloatMatrix keys;    // [count x key_dim].
    FloatMatrix values;  // [count x value_dim].
  };
  Rows FilledRows(std::uint32_t store, std::uint64_t first, std::uint32_t count) const;

  // The rows of the `batch`-th append, for any store.
  Rows AppendedRows(std::uint32_t batch, std::uint32_t count) const;

  // [count x key_dim], the `set`-th ones.
  FloatMatrix Queries(std::uint32_t set, std::uint32_t count) const;

 private:
  const std::uint32_t key_dim_;
  const std::uint32_t value_dim_;
  const std::uint64_t seed_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_ROW_SOURCE_H_
