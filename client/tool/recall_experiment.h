#ifndef SOFTLOOKUP_CLIENT_TOOL_RECALL_EXPERIMENT_H_
#define SOFTLOOKUP_CLIENT_TOOL_RECALL_EXPERIMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "softlookup/client.h"
#include "softlookup/similarity.h"

namespace softlookup::tool {

// (a + weight * b) / |a + weight * b|, or `a` if that norm is 0. The vectors have one size. The
// same bits on every machine: sums and products in order, one root, one division a component.
std::vector<float> Blend(absl::Span<const float> a, double weight, absl::Span<const float> b);

// Posner's cueing paradigm, for memory. A target is to be recalled from a noisy probe of it, while
// a cue leads attention to the target (valid) or to another memory (invalid):
//   probe = Blend(target, noise, a random unit vector)
//   query = Blend(probe, cue_strength, the cued memory)
struct PosnerDesign {
  std::uint32_t memory_count = 20;  // N, at least 2.
  std::uint32_t dim = 64;           // In [1, 65536].
  std::uint32_t trial_count = 400;  // Of each cue kind. At least 1.
  double noise = 1.5;               // At least 0; 1 is as long as the memory itself.
  double cue_strength = 0.5;        // At least 0.
  Similarity similarity = Similarity::Cosine();
  std::uint64_t seed = 1;
};

// The design carried out. Trial t has the same target and the same noise for both cue kinds, so
// they differ by the cue alone. Random vectors are WordEncoder's encodings of names such as
// "posner/SEED/noise/t"; targets and wrong cues take turns, each as often as the others.
struct PosnerTrials {
  FloatMatrix memories;                // [N x dim], unit rows.
  std::vector<std::uint32_t> targets;  // By trial, in [0, N).
  std::vector<std::uint32_t> lures;    // Likewise: what the invalid cue leads to.
  FloatMatrix valid_queries;           // [trial_count x dim], unit rows.
  FloatMatrix invalid_queries;         // Likewise.
};
PosnerTrials MakePosnerTrials(const PosnerDesign& design);

// Means over the trials of one cue kind at one temperature.
struct CueOutcome {
  double accuracy = 0;  // The weight on the target: the chance of recalling it, if what is recalled
                        // is drawn by the weights. N equal weights would give 1 / N.
  double entropy = 0;   // Of the weights, in nats.
};

struct PosnerPoint {
  double temperature = 0;
  CueOutcome valid;
  CueOutcome invalid;
};

// Runs the design's trials on a scratch store, all of one temperature and cue kind in one lookup.
// Points are in the order of `temperatures`.
absl::StatusOr<std::vector<PosnerPoint>> RunPosner(const PosnerDesign& design,
                                                   absl::Span<const double> temperatures,
                                                   Client* client);

// Accuracy against temperature for both cue kinds, as an SVG document; the chance level is dashed.
// `points` in ascending order of temperature, at least one.
std::string PosnerSvg(const PosnerDesign& design, absl::Span<const PosnerPoint> points);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_RECALL_EXPERIMENT_H_
