#ifndef SOFTLOOKUP_CLIENT_RECALL_WORD_RECALL_H_
#define SOFTLOOKUP_CLIENT_RECALL_WORD_RECALL_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "softlookup/client.h"
#include "softlookup/similarity.h"

namespace softlookup::recall {

// Words to remember, and the cue that asks for one of them. WordEncoder turns the words and the cue
// into vectors.
struct WordDesign {
  std::vector<std::string> words;  // Word j is row j of the store. At least one.
  std::string cue;
  std::uint32_t dim = 64;  // In [1, 65536].
  double noise = 0;        // Length of the noise that is added to the cue, at least 0.
  Similarity similarity = Similarity::Cosine();
  std::uint64_t seed = 1;  // Of the noise.
  std::uint32_t top = 10;  // How many of the largest weights to return. In [1, 1024].
};

// The answer to the cue at one temperature.
struct WordRecall {
  double temperature = 0;
  std::vector<float> context;  // The weighted sum of the words' encodings.
  v1::QueryStats stats;
  v1::QueryWeights weights;

  // Returns exp(entropy). This many equal weights would have the same entropy.
  double perplexity() const;
};

// Looks up the cue with its noise in a scratch store of the words, with one lookup per temperature.
// Returns the answers in the order of `temperatures`. Cancelled if `interrupted` is set meanwhile.
absl::StatusOr<std::vector<WordRecall>> RecallWords(const WordDesign& design,
                                                    absl::Span<const double> temperatures,
                                                    Client* client,
                                                    const std::atomic<bool>& interrupted);

struct RecalledWord {
  std::string word;
  double similarity = 0;  // Between the context and the encoding of `word`.
};

// Returns the word whose encoding is most similar to `context`. Of equally similar words, returns
// the first.
RecalledWord NearestWord(const WordDesign& design, absl::Span<const float> context);

}  // namespace softlookup::recall

#endif  // SOFTLOOKUP_CLIENT_RECALL_WORD_RECALL_H_
