#include "tests/exactness/kept_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/exactness/long_sum.h"

namespace softlookup::exactness {
namespace {

template <typename List, typename Item>
bool Has(const List& list, const Item& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Adds up one part of a memory: the keys or the values.
class Recurrence {
 public:
  explicit Recurrence(std::int64_t dim) : sums_(dim) {}

  void Step(long double keep, const float* components) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      if (keep != 1) sums_[i].Multiply(keep);
      sums_[i].Add(components[i]);
      size_ = std::max(size_, std::abs(static_cast<long double>(components[i])));
    }
  }
  std::vector<long double> Over(long double divisor) const {
    std::vector<long double> quotients;
    for (const LongSum& sum : sums_) quotients.push_back(sum.value() / divisor);
    return quotients;
  }
  long double size() const { return size_; }

 private:
  std::vector<LongSum> sums_;
  long double size_ = 0;
};

}  // namespace

int QuantumOf(const float* components, std::int64_t count) {
  int quantum = 1000;
  for (std::int64_t i = 0; i < count; ++i) {
    if (components[i] == 0) continue;
    int exponent = 0;
    // 24 bits hold the mantissa as a whole number.
    auto mantissa =
        static_cast<std::int64_t>(std::ldexp(std::frexp(std::abs(components[i]), &exponent), 24));
    exponent -= 24;
    while (mantissa % 2 == 0) {
      mantissa /= 2;
      ++exponent;
    }
    quantum = std::min(quantum, exponent);
  }
  return quantum;
}

std::uint64_t KeptStore::RowCountAt(std::uint64_t revision) const {
  const auto end = std::partition_point(rows_.begin(), rows_.end(), [revision](const KeptRow& row) {
    return row.appended_at <= revision;
  });
  return static_cast<std::uint64_t>(end - rows_.begin());
}

std::optional<std::uint64_t> KeptStore::PositionOf(std::uint64_t id) const {
  const auto found = live_ids_.find(id);
  if (found == live_ids_.end()) return std::nullopt;
  return found->second;
}

std::pair<std::uint64_t, std::uint64_t> KeptStore::RangeOf(const v1::RowFilter& filter,
                                                           std::uint64_t revision) const {
  const std::uint64_t end = filter.has_end() ? filter.end() : RowCountAt(revision);
  std::uint64_t begin = filter.has_begin() ? filter.begin() : 0;
  if (filter.has_last() && filter.last() < end - begin) begin = end - filter.last();
  return {begin, end};
}

bool KeptStore::Passes(const v1::RowFilter& filter, std::uint64_t position,
                       std::uint64_t revision) const {
  const KeptRow& row = rows_[position];
  if (row.appended_at > revision || row.deleted_at <= revision) return false;
  const auto has_label = [&row](const std::string& label) { return Has(row.labels, label); };
  const auto& any = filter.any_labels();
  const auto& no = filter.no_labels();
  if (!any.empty() && std::none_of(any.begin(), any.end(), has_label)) return false;
  if (std::any_of(no.begin(), no.end(), has_label)) return false;
  if (!filter.ids().empty() && !(row.id && Has(filter.ids(), *row.id))) return false;
  return !(row.id && Has(filter.exclude_ids(), *row.id));
}

void KeptStore::Append(KeptRow row, const std::vector<float>& key,
                       const std::vector<float>& value) {
  row.quantum = QuantumOf(key.data(), key_dim());
  if (row.id) live_ids_[*row.id] = rows_.size();
  keys_.insert(keys_.end(), key.begin(), key.end());
  values_.insert(values_.end(), value.begin(), value.end());
  rows_.push_back(std::move(row));
}

void KeptStore::Delete(std::uint64_t position, std::uint64_t revision) {
  KeptRow& row = rows_[position];
  row.deleted_at = revision;
  if (row.id) live_ids_.erase(*row.id);
}

KeptMemory KeptStore::MemoryOf(const std::string& name, std::uint64_t begin,
                               std::uint64_t end) const {
  v1::MemorySpec spec;
  spec.set_kind(v1::MEMORY_KIND_AVERAGE);
  for (const v1::MemorySpec& declared : config_.memories()) {
    if (declared.name() == name) spec = declared;
  }
  const bool is_decayed =
      spec.kind() == v1::MEMORY_KIND_DECAYED_SUM || spec.kind() == v1::MEMORY_KIND_DECAYED_AVERAGE;
  const bool is_gated =
      spec.kind() == v1::MEMORY_KIND_GATED || spec.kind() == v1::MEMORY_KIND_GATED_AVERAGE;
  std::vector<float> gate(spec.gate().data().size() / sizeof(float));
  if (!gate.empty()) std::memcpy(gate.data(), spec.gate().data().data(), spec.gate().data().size());
  Recurrence keys(key_dim()), values(value_dim());
  KeptMemory memory;
  long double gate_size = 0;
  for (std::uint64_t position = begin; position < end; ++position) {
    long double keep = 1;
    if (is_decayed) keep = spec.decay();
    if (is_gated) {
      long double sum = gate[0], sizes = std::abs(gate[0]);
      for (std::int64_t i = 0; i < key_dim(); ++i) {
        const long double product = static_cast<long double>(gate[i + 1]) * key(position)[i];
        sum += product;
        sizes += std::abs(product);
      }
      gate_size = std::max(gate_size, sizes * static_cast<long double>(key_dim()));
      keep = 1 / (1 + std::exp(-sum));
    }
    keys.Step(keep, key(position));
    values.Step(keep, value(position));
    memory.weight = keep * memory.weight + 1;
  }
  const bool is_sum =
      spec.kind() == v1::MEMORY_KIND_DECAYED_SUM || spec.kind() == v1::MEMORY_KIND_GATED;
  const long double divisor = is_sum || memory.weight == 0 ? 1 : memory.weight;
  memory.key = keys.Over(divisor);
  memory.value = values.Over(divisor);
  // A rounding in one step is carried on to the next ones.
  const bool is_average = !is_decayed && !is_gated;
  long double terms = 1 + gate_size;
  if (!is_average) terms *= memory.weight * memory.weight / divisor;
  memory.key_size = keys.size() * terms;
  memory.value_size = values.size() * terms;
  return memory;
}

}  // namespace softlookup::exactness
