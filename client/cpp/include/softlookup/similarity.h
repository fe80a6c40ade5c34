#ifndef SOFTLOOKUP_SIMILARITY_H_
#define SOFTLOOKUP_SIMILARITY_H_

#include "absl/types/span.h"
#include "softlookup/v1/attention.pb.h"

namespace softlookup {

// Scores how alike a query and a key are; larger is more alike. The client computes the score
// itself, in float64, by the formula of the server's score of the same name:
//   Cosine      <q, k> / (|q| |k|), in [-1, 1]; 0 if either norm is 0.
//   Euclidean   -|q - k|, at most 0.
//
// Immutable, so thread-safe.
class Similarity {
 public:
  static constexpr Similarity Cosine() { return Similarity(v1::SCORE_COSINE); }
  static constexpr Similarity Euclidean() { return Similarity(v1::SCORE_EUCLIDEAN); }

  // The value that makes a store or a lookup use this score.
  constexpr v1::Score score() const { return score_; }

  // Returns the score. The vectors must be finite. Aborts if their sizes differ.
  double operator()(absl::Span<const float> query, absl::Span<const float> key) const;

 private:
  explicit constexpr Similarity(v1::Score score) : score_(score) {}

  v1::Score score_;
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_SIMILARITY_H_
