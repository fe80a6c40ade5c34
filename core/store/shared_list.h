#ifndef SOFTLOOKUP_CORE_STORE_SHARED_LIST_H_
#define SOFTLOOKUP_CORE_STORE_SHARED_LIST_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/memory/heap_bytes.h"

namespace softlookup {

// A list that is cheap to copy. Copies share their elements, and changing one copy does not change
// the others. Elements lie in chunks of 256. Appending copies at most one chunk, and a pointer to
// each other chunk. Not thread-safe, but different threads may use different copies.
template <typename T>
class SharedList {
 public:
  std::int64_t size() const { return size_; }
  const T& operator[](std::int64_t index) const {
    SOFTLOOKUP_DCHECK(index >= 0 && index < size_) << "element " << index << " of " << size_;
    return (*(*chunks_)[index / kChunkSize])[index % kChunkSize];
  }
  const T& back() const { return (*this)[size_ - 1]; }

  // Returns the heap bytes of the list, without the object itself and without what its elements
  // allocate.
  std::int64_t bytes() const {
    if (size_ == 0) return 0;
    const std::int64_t full = size_ / kChunkSize, rest = size_ % kChunkSize;
    std::int64_t bytes = SharedBytes<Chunks>() + HeapBytes(*chunks_);
    bytes += full * (SharedBytes<Chunk>() + HeapBytes(kChunkSize * sizeof(T)));
    return rest == 0 ? bytes : bytes + SharedBytes<Chunk>() + HeapBytes(rest * sizeof(T));
  }

  // Returns the heap bytes that only this list holds, if `later` was made from a copy of it. Calls
  // bytes_of(element, other) for each element that the two do not share, and adds what it returns.
  // `other` is the element of `later` at the same index, or null.
  template <typename BytesOf>
  std::int64_t BytesNotIn(const SharedList& later, const BytesOf& bytes_of) const {
    if (size_ == 0 || chunks_ == later.chunks_) return 0;
    std::int64_t bytes = SharedBytes<Chunks>() + HeapBytes(*chunks_);
    for (std::int64_t begin = 0; begin < size_; begin += kChunkSize) {
      const auto& chunk = (*chunks_)[begin / kChunkSize];
      if (begin < later.size_ && (*later.chunks_)[begin / kChunkSize] == chunk) continue;
      bytes += SharedBytes<Chunk>() + HeapBytes(*chunk);
      for (std::int64_t index = begin; index < std::min(begin + kChunkSize, size_); ++index) {
        bytes += bytes_of((*this)[index], index < later.size_ ? &later[index] : nullptr);
      }
    }
    return bytes;
  }

  // Copies all elements and calls change(index, element) on each new element, in order. Other lists
  // keep the old elements.
  template <typename Change>
  void Transform(const Change& change) {
    if (size_ == 0) return;
    auto chunks = std::make_shared<Chunks>();
    chunks->reserve(chunks_->size());
    std::int64_t index = 0;
    for (const auto& old_chunk : *chunks_) {
      auto chunk = std::make_shared<Chunk>(*old_chunk);
      for (T& element : *chunk) change(index++, element);
      chunks->push_back(std::move(chunk));
    }
    chunks_ = std::move(chunks);
  }

  // Replaces one element. Copies one chunk, and a pointer to each other chunk.
  void Set(std::int64_t index, T value) {
    SOFTLOOKUP_CHECK(index >= 0 && index < size_) << "element " << index << " of " << size_;
    auto chunks = std::make_shared<Chunks>(*chunks_);
    auto chunk = std::make_shared<Chunk>(*(*chunks)[index / kChunkSize]);
    (*chunk)[index % kChunkSize] = std::move(value);
    (*chunks)[index / kChunkSize] = std::move(chunk);
    chunks_ = std::move(chunks);
  }

  void push_back(T value) { Append(absl::MakeSpan(&value, 1)); }

  // Moves `values` behind the last element. Copies as much as one push_back does.
  void Append(absl::Span<T> values) {
    if (values.empty()) return;
    // Chunks have exactly the capacity that they need, as bytes() assumes.
    auto chunks = std::make_shared<Chunks>();
    const std::int64_t size = size_ + static_cast<std::int64_t>(values.size());
    chunks->reserve((size + kChunkSize - 1) / kChunkSize);
    if (chunks_ != nullptr) *chunks = *chunks_;
    for (auto next = values.begin(); size_ < size;) {
      const std::int64_t kept = size_ % kChunkSize;
      const std::int64_t count = std::min(size - size_, kChunkSize - kept);
      auto chunk = std::make_shared<Chunk>();
      chunk->reserve(kept + count);
      if (kept == 0) {
        chunks->emplace_back();
      } else {
        *chunk = *chunks->back();
      }
      std::move(next, next + count, std::back_inserter(*chunk));
      chunks->back() = std::move(chunk);
      next += count;
      size_ += count;
    }
    chunks_ = std::move(chunks);
  }

 private:
  static constexpr std::int64_t kChunkSize = 256;
  using Chunk = std::vector<T>;
  using Chunks = std::vector<std::shared_ptr<const Chunk>>;

  std::int64_t size_ = 0;
  std::shared_ptr<const Chunks> chunks_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_STORE_SHARED_LIST_H_
