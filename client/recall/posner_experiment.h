#ifndef SOFTLOOKUP_CLIENT_RECALL_POSNER_EXPERIMENT_H_
#define SOFTLOOKUP_CLIENT_RECALL_POSNER_EXPERIMENT_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "softlookup/client.h"
#include "softlookup/similarity.h"

namespace softlookup::recall {

// Posner's cueing paradigm, applied to recall. The store holds N random items. Each trial recalls a
// target item from a probe, which is the target with noise. A valid cue draws attention to the
// target, an invalid cue to another item, the lure. See Blend():
//   probe = Blend(target, noise, a random unit vector)
//   query = Blend(probe, cue_strength, the cued item)
struct PosnerDesign {
  std::uint32_t item_count = 20;    // N, at least 2.
  std::uint32_t dim = 64;           // In [1, 65536].
  std::uint32_t trial_count = 400;  // Per cue kind. In [1, 4096], the most queries of a lookup.
  double noise = 1.5;               // Length of the noise, at least 0. An item has length 1.
  double cue_strength = 0.5;        // At least 0.
  Similarity similarity = Similarity::Cosine();
  std::uint64_t seed = 1;
};

// The trials of a design. Trial t has the same target and the same noise for both cue kinds, so the
// kinds differ by the cue alone. Random vectors are WordEncoder's encodings of names such as
// "posner/SEED/noise/t". Items take turns as targets and as lures, so the counts of any two items
// differ by at most 1.
struct PosnerTrials {
  FloatMatrix items;                   // [N x dim], unit rows.
  std::vector<std::uint32_t> targets;  // By trial, in [0, N).
  std::vector<std::uint32_t> lures;    // By trial, in [0, N): the item that the invalid cue names.
  FloatMatrix valid_queries;           // [trial_count x dim], unit rows.
  FloatMatrix invalid_queries;         // [trial_count x dim], unit rows.
};
PosnerTrials MakePosnerTrials(const PosnerDesign& design);

// Means over the trials of one cue kind at one temperature.
struct CueOutcome {
  // Weight on the target. If an item is drawn at random by the weights, this is the probability
  // that the target is drawn. N equal weights would give 1 / N.
  double accuracy = 0;
  double entropy = 0;  // Of the weights, in nats.
};

// The outcomes at one temperature.
struct PosnerPoint {
  double temperature = 0;
  CueOutcome valid;
  CueOutcome invalid;
};

// Runs the design's trials on a scratch store, with one lookup per temperature and cue kind.
// Returns the points in the order of `temperatures`. Cancelled if `interrupted` is set meanwhile.
absl::StatusOr<std::vector<PosnerPoint>> RunPosner(const PosnerDesign& design,
                                                   absl::Span<const double> temperatures,
                                                   Client* client,
                                                   const std::atomic<bool>& interrupted);

// Draws accuracy against temperature for both cue kinds, as an SVG document. A dashed line shows
// the accuracy of equal weights, 1 / N. `points` must not be empty, and must be in ascending order
// of temperature.
std::string PosnerSvg(const PosnerDesign& design, absl::Span<const PosnerPoint> points);

}  // namespace softlookup::recall

#endif  // SOFTLOOKUP_CLIENT_RECALL_POSNER_EXPERIMENT_H_
