#ifndef SOFTLOOKUP_CORE_MEMORY_HEAP_BYTES_H_
#define SOFTLOOKUP_CORE_MEMORY_HEAP_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace softlookup {

// Returns the heap bytes of an allocation of `size` bytes: what the allocator takes for it. The
// allocator adds a word of 8 bytes, rounds up to a multiple of 16, and takes at least 32. Small
// allocations therefore take far more bytes than their sizes. Returns 0 for a size of 0, which is
// not allocated.
constexpr std::int64_t HeapBytes(std::size_t size) {
  if (size == 0) return 0;
  return std::max<std::int64_t>(32, static_cast<std::int64_t>((size + 8 + 15) / 16 * 16));
}

// Returns the heap bytes of a vector's elements, without those of what the elements have allocated.
template <typename T>
std::int64_t HeapBytes(const std::vector<T>& elements) {
  return HeapBytes(elements.capacity() * sizeof(T));
}

// Returns the heap bytes of a string: 0 for a short one, which lies in the object itself.
inline std::int64_t HeapBytes(const std::string& text) {
  return text.capacity() < sizeof(std::string) / 2 ? 0 : HeapBytes(text.capacity() + 1);
}

// Returns the heap bytes of what std::make_shared<T> allocates: 16 bytes with the reference counts,
// then the object.
template <typename T>
constexpr std::int64_t SharedBytes() {
  return HeapBytes(sizeof(T) + 16);
}

// Returns the heap bytes of an Abseil hash table with `capacity` slots of `slot_bytes`. The table
// adds one byte per slot and 16 bytes at the end.
constexpr std::int64_t HashTableBytes(std::size_t capacity, std::size_t slot_bytes) {
  return capacity == 0 ? 0 : HeapBytes(capacity * (slot_bytes + 1) + 16);
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_HEAP_BYTES_H_
