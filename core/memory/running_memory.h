#ifndef SOFTLOOKUP_CORE_MEMORY_RUNNING_MEMORY_H_
#define SOFTLOOKUP_CORE_MEMORY_RUNNING_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "softlookup/memory.h"

namespace softlookup {

// The state of one memory after some rows: the recurrence m_new = f((k, v), m). It depends on the
// sequence of rows alone, bit for bit, so a copy that is fed the same rows later ends the same.
//
// A new kind is one file that derives from this, an enumerator, and a line in MakeRunningMemory.
class RunningMemory {
 public:
  virtual ~RunningMemory() = default;

  virtual std::unique_ptr<RunningMemory> Clone() const = 0;

  // One step: the row's key, whose component i is key[i * key_stride], and its value.
  virtual void Add(const float* key, std::int64_t key_stride, const float* value) = 0;

  // What the memory holds now.
  virtual MemoryValue Read() const = 0;

  // Whether ReadSince may be called.
  virtual bool has_windows() const { return false; }
  // What it would hold had it begun after `earlier`, a former state of this memory.
  virtual MemoryValue ReadSince(const RunningMemory& earlier) const;

  // Memory that it takes, but for what all its copies share.
  virtual std::int64_t bytes() const = 0;

  // Appends all that it holds to `state`, and takes it from the front of what was saved. Restore
  // returns false if that is too short.
  void Save(std::vector<double>& state) const;
  bool Restore(absl::Span<const double>& state);

 protected:
  // All the numbers that it holds. Their order is part of the storage format.
  using Parts = std::vector<absl::Span<double>>;
  virtual Parts parts() = 0;
};

// A memory that has seen no row. `spec` is valid.
std::unique_ptr<RunningMemory> MakeRunningMemory(const MemorySpec& spec, std::int64_t key_dim,
                                                 std::int64_t value_dim);

// The memories of a store, in the order of their specs.
class MemorySet {
 public:
  MemorySet(const std::vector<MemorySpec>& specs, std::int64_t key_dim, std::int64_t value_dim);
  MemorySet(const MemorySet& other);
  MemorySet& operator=(const MemorySet&) = delete;

  void Add(const float* key, std::int64_t key_stride, const float* value);
  const RunningMemory& operator[](std::size_t index) const { return *memories_[index]; }
  // Memory that it takes, itself included.
  std::int64_t bytes() const;

  // As those of each memory, in order. Restore wants all of `state` and no more.
  std::vector<double> Save() const;
  bool Restore(absl::Span<const double> state);

 private:
  std::vector<std::unique_ptr<RunningMemory>> memories_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_RUNNING_MEMORY_H_
