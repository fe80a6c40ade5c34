#ifndef SOFTLOOKUP_CORE_MEMORY_HEAP_BYTES_H_
#define SOFTLOOKUP_CORE_MEMORY_HEAP_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace softlookup {

// What the allocator takes for `size` bytes: a word of its own, in steps of 16 bytes. Many small
// things take far more than their own size. 0: nothing was allocated.
constexpr std::int64_t HeapBytes(std::size_t size) {
  if (size == 0) return 0;
  return std::max<std::int64_t>(32, static_cast<std::int64_t>((size + 8 + 15) / 16 * 16));
}

// What a vector has allocated for its elements, not what these have.
template <typename T>
std::int64_t HeapBytes(const std::vector<T>& elements) {
  return HeapBytes(elements.capacity() * sizeof(T));
}

// Of a string: the short ones lie in the object itself.
inline std::int64_t HeapBytes(const std::string& text) {
  return text.capacity() < sizeof(std::string) / 2 ? 0 : HeapBytes(text.capacity() + 1);
}

// What std::make_shared<T> takes: the object behind its counts.
template <typename T>
constexpr std::int64_t SharedBytes() {
  return HeapBytes(sizeof(T) + 16);
}

// Of a hash table with slots of `slot_bytes`: one more byte a slot, and some at its end.
constexpr std::int64_t HashTableBytes(std::size_t capacity, std::size_t slot_bytes) {
  return capacity == 0 ? 0 : HeapBytes(capacity * (slot_bytes + 1) + 16);
}

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_MEMORY_HEAP_BYTES_H_
