#ifndef SOFTLOOKUP_CORE_ATTENTION_PANEL_CHOICE_H_
#define SOFTLOOKUP_CORE_ATTENTION_PANEL_CHOICE_H_

#include <cstdint>
#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace softlookup {

// Choices of the panels that a second look scans: those whose bound is at least `cut`.

// The mass of a row is exp(logit - reference), for a reference that the caller chooses. The mass of
// a panel is the sum over its rows that count. The cut kAllMasses chooses all panels except those
// of which no row counts.
inline constexpr float kAllMasses = std::numeric_limits<float>::denorm_min();

struct MassChoice {
  float cut = 0;
  // Chosen panels with bounds below `fine_cut` may be scored in the fastest arithmetic: together
  // they have at most the part `coarse_part` of the mass. Panels that are chosen only because of
  // `kept_mass` do not count toward this part. Both are arguments of ChooseByMass.
  float fine_cut = 0;
  std::int64_t kept = 0;  // The number of chosen panels.
  double left_out = 0;    // An upper bound on the mass of all rows that are left out.
  double mass = 0;        // A lower bound on the mass of all rows.
};

// Chooses panels to scan. The rows of all other panels, and the rows that the caller has left out
// already, together have at most the fraction `part` of the mass of all rows.
//
// `bounds[p]` is an upper bound on the mass of panel p: 0 if none of its rows counts, infinity if
// nothing is known. If the bound is finite and at least 2^-100, the mass of the panel must be at
// least `proved` times the bound. `mass_known` is a lower bound on the mass of all rows.
// `coarse_part` is the fraction of the mass of all rows that those chosen panels may have whose
// bounds are below the result's fine_cut. Panels with bounds of at least `kept_mass` are chosen in
// any case. `left_out` is an upper bound on the mass of the rows that the caller has left out.
MassChoice ChooseByMass(absl::Span<const float> bounds, double proved, double mass_known,
                        double part, double coarse_part,
                        double kept_mass = std::numeric_limits<double>::infinity(),
                        double left_out = 0);

// Rows with logits below `none_below` do not count. Rows with logits of at least `all_from` do
// count. Whether a row in between counts is not known.
struct LogitThreshold {
  double none_below = -std::numeric_limits<double>::infinity();
  double all_from = -std::numeric_limits<double>::infinity();
};

struct RankChoice {
  float cut = std::numeric_limits<float>::lowest();
  std::int64_t kept = 0;  // The number of chosen panels.
};

// Chooses panels to scan. Of the rows that count, the chosen panels contain the rank_count rows of
// the largest logits. They also contain all rows that tie with the last of these. `bounds` has an
// upper bound on the logits of each panel: -infinity if none of its rows counts, infinity if
// nothing is known. lower_of(b) is a logit that some row of a panel with the bound b reaches.
RankChoice ChooseByRank(absl::Span<const float> bounds, absl::FunctionRef<double(double)> lower_of,
                        std::int64_t rank_count, LogitThreshold threshold = {});

// Makes the choice of ChooseByRank without a threshold, but from upper bounds on the masses of
// panels, as BoundPanels makes them with `reference`. Returns the cut. The cut is kAllMasses, which
// chooses all panels with rows that count, if fewer than rank_count bounds are finite and large
// enough to prove a logit.
float RankCutOfMasses(absl::Span<const float> bounds, double reference,
                      absl::FunctionRef<double(double)> lower_of, std::int64_t rank_count);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_PANEL_CHOICE_H_
