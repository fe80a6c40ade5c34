#ifndef SOFTLOOKUP_CLIENT_LOADTEST_ROW_SOURCE_H_
#define SOFTLOOKUP_CLIENT_LOADTEST_ROW_SOURCE_H_

#include <cstdint>

#include "softlookup/float_matrix.h"

namespace softlookup::loadtest {

// Generates rows and queries from a seed. Verify() generates the same ones again, so they need not
// be kept. The components are uniformly distributed, with mean 0 and variance 1. They are the same
// on every machine.
class RowSource {
 public:
  RowSource(std::uint32_t key_dim, std::uint32_t value_dim, std::uint64_t seed)
      : key_dim_(key_dim), value_dim_(value_dim), seed_(seed) {}

  std::uint32_t key_dim() const { return key_dim_; }
  std::uint32_t value_dim() const { return value_dim_; }

  struct Rows {
    FloatMatrix keys;    // [count x key_dim].
    FloatMatrix values;  // [count x value_dim].
  };
  // Returns `count` of the rows that fill store number `store`, from position `first` on.
  Rows FilledRows(std::uint32_t store, std::uint64_t first, std::uint32_t count) const;

  // Returns the `count` rows of batch number `batch`, which may be appended to any store.
  Rows AppendedRows(std::uint32_t batch, std::uint32_t count) const;

  // Returns set number `set` of queries, [count x key_dim].
  FloatMatrix Queries(std::uint32_t set, std::uint32_t count) const;

 private:
  const std::uint32_t key_dim_;
  const std::uint32_t value_dim_;
  const std::uint64_t seed_;
};

}  // namespace softlookup::loadtest

#endif  // SOFTLOOKUP_CLIENT_LOADTEST_ROW_SOURCE_H_
