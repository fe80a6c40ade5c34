#ifndef SOFTLOOKUP_CORE_STORE_SHARED_LIST_H_
#define SOFTLOOKUP_CORE_STORE_SHARED_LIST_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace softlookup {

// A list that is cheap to copy: copies share their elements, and changing one leaves the others as
// they are. Appending costs a copy of at most 256 elements and of a pointer for every 256. Not
// thread-safe; its copies may be used by different threads.
template <typename T>
class SharedList {
 public:
  std::int64_t size() const { return size_; }
  const T& operator[](std::int64_t index) const {
    return (*(*chunks_)[index / kChunkSize])[index % kChunkSize];
  }
  const T& back() const { return (*this)[size_ - 1]; }

  // Calls change(index, element) for every element of the copies that this list goes on with; other
  // lists keep theirs. Costs a copy of the list.
  template <typename Change>
  void Transform(const Change& change) {
    if (size_ == 0) return;
    auto chunks = std::make_shared<Chunks>();
    std::int64_t index = 0;
    for (const auto& old_chunk : *chunks_) {
      auto chunk = std::make_shared<Chunk>(*old_chunk);
      for (T& element : *chunk) change(index++, element);
      chunks->push_back(std::move(chunk));
    }
    chunks_ = std::move(chunks);
  }

  // Replaces one element, for the price of push_back.
  void Set(std::int64_t index, T value) {
    auto chunks = std::make_shared<Chunks>(*chunks_);
    auto chunk = std::make_shared<Chunk>(*(*chunks)[index / kChunkSize]);
    (*chunk)[index % kChunkSize] = std::move(value);
    (*chunks)[index / kChunkSize] = std::move(chunk);
    chunks_ = std::move(chunks);
  }

  void push_back(T value) {
    auto chunks =
        chunks_ == nullptr ? std::make_shared<Chunks>() : std::make_shared<Chunks>(*chunks_);
    auto chunk = std::make_shared<Chunk>();
    if (size_ % kChunkSize == 0) {
      chunks->emplace_back();
    } else {
      *chunk = *chunks->back();
    }
    chunk->push_back(std::move(value));
    chunks->back() = std::move(chunk);
    chunks_ = std::move(chunks);
    ++size_;
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
