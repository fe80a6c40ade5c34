#ifndef SOFTLOOKUP_CORE_MEMORY_RUNNING_MEMORY_H_
#define SOFTLOOKUP_CORE_MEMORY_RUNNING_MEMORY_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "softlookup/memory.h"

namespace softlookup {

// The state of one memory after some rows. A row with key k and value v makes m_new = f((k, v), m).
// The bits of the state depend on the rows and their order alone: a copy that is given the same
// further rows ends in the same state.
//
// docs/concepts.md, "Adding a kind", lists what a new kind of memory needs.
class RunningMemory {
 public:
  virtual ~RunningMemory() = default;

  virtual std::unique_ptr<RunningMemory> Clone() const = 0;

  // Adds one row. Component i of its key is key[i * key_stride].
  virtual void Add(const float* key, std::int64_t key_stride, const float* value) = 0;

  // Returns the contents of the memory.
  virtual MemoryValue Read() const = 0;

  // Returns whether ReadSince() may be called.
  virtual bool has_windows() const { return false; }
  // Returns the contents as if the memory had seen only the rows since `earlier`. `earlier` must be
  // a former state of this memory. Aborts unless has_windows().
  virtual MemoryValue ReadSince(const RunningMemory& earlier) const;

  // Returns the bytes that the memory takes, without the bytes that all its copies share.
  virtual std::int64_t bytes() const = 0;

  // Save() adds the memory's numbers to the end of `state`. Restore() reads them from the front of
  // `state` and removes them there. Restore() returns false if `state` has too few numbers.
  void Save(std::vector<double>& state) const;
  bool Restore(absl::Span<const double>& state);

 protected:
  // Spans of all numbers of the memory's state. Their order is part of the storage format.
  using Parts = std::vector<absl::Span<double>>;
  virtual Parts parts() = 0;
};

// Makes a memory that has seen no row. `spec` must be valid.
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
  // Returns the bytes that the set takes, including the object itself, as std::make_shared
  // allocates it.
  std::int64_t bytes() const;

  // Save() and Restore() handle all memories, in order. Restore() returns false unless `state` has
  // exactly as many numbers as all memories together.
  std::vector<double> Save() const;
  bool Restore(absl::Span<const double> state);

 private:
  std::vector<std::unique_ptr<RunningMemory>> memories_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_RUNNING_MEMORY_H_
