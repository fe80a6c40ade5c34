#ifndef SOFTLOOKUP_CORE_ATTENTION_BLOCK_SET_H_
#define SOFTLOOKUP_CORE_ATTENTION_BLOCK_SET_H_

#include <cstdint>
#include <vector>

#include "core/base/check.h"

namespace softlookup {

// A set of the blocks of a pass, by their indices. Keeps a bit for each block of the pass.
class BlockSet {
 public:
  // A set for a pass of 0 blocks.
  BlockSet() = default;
  // An empty set for a pass of block_count blocks.
  explicit BlockSet(std::int64_t block_count)
      : words_(static_cast<std::size_t>((block_count + 63) / 64)) {}

  void Add(std::int64_t block) {
    words_[static_cast<std::size_t>(block / 64)] |= std::uint64_t{1} << (block % 64);
  }
  // Adds all blocks of `other`, which must be for the same pass.
  void AddAll(const BlockSet& other) {
    SOFTLOOKUP_CHECK(words_.size() == other.words_.size())
        << words_.size() << " words and " << other.words_.size();
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool Has(std::int64_t block) const {
    return (words_[static_cast<std::size_t>(block / 64)] >> (block % 64) & 1) != 0;
  }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_BLOCK_SET_H_
