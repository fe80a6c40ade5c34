// What a store has to hold, told by the answers to writes and by ReadRows alone.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_KEPT_STORE_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_KEPT_STORE_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "softlookup/v1/soft_lookup.pb.h"

namespace softlookup::exactness {

inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

struct KeptRow {
  std::optional<std::uint64_t> id;
  std::vector<std::string> labels;
  std::uint64_t appended_at = 0;      // The revision that has the row first.
  std::uint64_t deleted_at = kNever;  // The revision that has it no more.
  int quantum = 0;                    // Every component of the key is a multiple of 2^quantum.
};

// The largest power of two, as an exponent, that all components are multiples of.
int QuantumOf(const float* components, std::int64_t count);

// A memory as of an append index: its pair and its normaliser.
struct KeptMemory {
  std::vector<long double> key, value;
  long double weight = 0;
  // The largest sizes of the terms that were added up, for bounds on roundings.
  long double key_size = 0, value_size = 0;
};

class KeptStore {
 public:
  KeptStore(v1::Store config, std::string description)
      : config_(std::move(config)), description_(std::move(description)) {}

  const std::string& name() const { return config_.name(); }
  const v1::Store& config() const { return config_; }
  const std::string& description() const { return description_; }
  std::int64_t key_dim() const { return config_.key_dim(); }
  std::int64_t value_dim() const { return config_.value_dim(); }
  std::int64_t num_heads() const { return config_.num_heads(); }
  std::uint64_t revision() const { return revision_; }
  std::uint64_t row_count() const { return rows_.size(); }
  // The number of rows that a snapshot has.
  std::uint64_t RowCountAt(std::uint64_t revision) const;
  const KeptRow& row(std::uint64_t position) const { return rows_[position]; }
  const float* key(std::uint64_t position) const { return &keys_[position * key_dim()]; }
  const float* value(std::uint64_t position) const { return &values_[position * value_dim()]; }

  // The live row of an id, if there is one.
  std::optional<std::uint64_t> PositionOf(std::uint64_t id) const;
  // The positions [begin, end) of a filter in a snapshot.
  std::pair<std::uint64_t, std::uint64_t> RangeOf(const v1::RowFilter& filter,
                                                  std::uint64_t revision) const;
  // Whether a row is live in a snapshot and passes the filter's labels and ids.
  bool Passes(const v1::RowFilter& filter, std::uint64_t position, std::uint64_t revision) const;

  // One write each. The row has its key and value as the server keeps them.
  void Append(KeptRow row, const std::vector<float>& key, const std::vector<float>& value);
  void Delete(std::uint64_t position, std::uint64_t revision);
  void set_revision(std::uint64_t revision) { revision_ = revision; }

  // The memory of this name over the rows [begin, end). "" is `average`.
  KeptMemory MemoryOf(const std::string& name, std::uint64_t begin, std::uint64_t end) const;

 private:
  v1::Store config_;
  std::string description_;
  std::uint64_t revision_ = 1;
  std::vector<float> keys_, values_;
  std::vector<KeptRow> rows_;
  std::map<std::uint64_t, std::uint64_t> live_ids_;
};

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_KEPT_STORE_H_
