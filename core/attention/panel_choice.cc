#include "core/attention/panel_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <vector>

#include "core/attention/block_scan.h"
#include "core/kernels/bound_search.h"
#include "core/kernels/panel.h"
#include "core/kernels/panel_bounds.h"

namespace softlookup {
namespace {

// Bounds on masses are sorted into bins by their exponent and the first bits of their mantissa.
constexpr int kMantissaBits = 4;
constexpr int kDroppedMantissaBits = 23 - kMantissaBits;
constexpr std::size_t kBinCount = std::size_t{1} << (8 + kMantissaBits);

// ChooseByMass passes over this many bounds at once if all of them are tiny.
constexpr std::size_t kBoundsPerChunk = 64;

// The bound of a panel of which nothing is known.
constexpr float kUnknownMass = std::numeric_limits<float>::infinity();

std::size_t BinOf(float mass) { return std::bit_cast<std::uint32_t>(mass) >> kDroppedMantissaBits; }

// Bounds on masses below this prove nothing about a panel, because BoundPanels raises the smallest
// exponentials to about 2^-126.
constexpr float kProvingMassMin = 0x1p-100f;

// Returns the smallest mass in the bin.
float EdgeOf(std::size_t bin) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bin << kDroppedMantissaBits));
}

// Returns the count-th largest of the bounds that are finite and at least `least`. Returns nothing
// if there are fewer.
std::optional<float> BoundOfRank(absl::Span<const float> bounds, std::int64_t count, float least) {
  std::vector<float> known;
  for (const float bound : bounds) {
    if (bound >= least && bound < kInfiniteLogit) known.push_back(bound);
  }
  if (count > std::ssize(known)) return std::nullopt;
  std::nth_element(known.begin(), known.begin() + (count - 1), known.end(), std::greater<>());
  return known[static_cast<std::size_t>(count - 1)];
}

}  // namespace

MassChoice ChooseByMass(absl::Span<const float> bounds, double proved, double mass_known,
                        double part, double coarse_part, double kept_mass, double left_out) {
  // Most panels are tiny: their bounds are below tiny_max. All of these together have at most a
  // quarter of `part` of the mass. They are left out, and get no bin. `bounds` also has zeros, for
  // blocks that only other tasks of the pass attend to. So the choice must not depend on the number
  // of bounds, or on where a panel stands among them.
  const std::int64_t panel_count = kernels::CountBoundsFrom(bounds, kAllMasses);
  const double tiny = part * mass_known / static_cast<double>(4 * panel_count + 1);
  const float tiny_max = tiny < kProvingMassMin ? 0 : static_cast<float>(std::min(tiny, 1e30));
  // The sum of the bounds in each bin. Between calls, all bins are 0.
  thread_local std::vector<double> sums(kBinCount);
  // The first and the last bin that a panel falls into.
  std::size_t first = kBinCount, last = 0;
  for (std::size_t begin = 0; begin < bounds.size(); begin += kBoundsPerChunk) {
    const absl::Span<const float> chunk = bounds.subspan(begin, kBoundsPerChunk);
    if (kernels::CountBoundsFrom(chunk, tiny_max) == 0) continue;
    for (const float bound : chunk) {
      if (bound < tiny_max || bound == 0 || bound == kUnknownMass) continue;
      const std::size_t bin = BinOf(bound);
      sums[bin] += bound;
      first = std::min(first, bin);
      last = std::max(last, bin);
    }
  }
  if (tiny_max > 0) {
    // A sum of integers does not depend on the order of the bounds, or on zeros among them.
    constexpr float kUnitsInTinyMax = 1 << 20;
    const auto units = static_cast<double>(
        kernels::SumOfBoundsBelow(bounds, tiny_max, kUnitsInTinyMax / tiny_max));
    left_out += units * (tiny_max / kUnitsInTinyMax) * (1 + 0x1p-20);
  }
  double sum = 0;
  for (std::size_t bin = std::max(first, BinOf(kProvingMassMin)); bin <= last; ++bin) {
    sum += sums[bin];
  }
  MassChoice choice{.left_out = left_out, .mass = std::max(mass_known, proved * sum)};
  // Goes through the bins from `bin` on, and adds each to `skipped` as long as `skipped` stays
  // within mass_max. Returns the first bin that was not added. Returns the bin of unknown masses if
  // all were added.
  const auto skip = [&](std::size_t bin, double mass_max, double& skipped) {
    if (skipped > mass_max) return bin;
    bin = std::max(bin, first);
    while (bin <= last && skipped + sums[bin] <= mass_max) skipped += sums[bin++];
    return bin <= last ? bin : BinOf(kUnknownMass);
  };
  const std::size_t first_kept = skip(0, part * choice.mass, choice.left_out);
  double coarse = 0;
  choice.fine_cut = EdgeOf(skip(first_kept, coarse_part * choice.mass, coarse));
  // Panels of which no row counts are never kept.
  choice.cut = std::max(std::min(EdgeOf(first_kept), static_cast<float>(kept_mass)), kAllMasses);
  choice.kept = kernels::CountBoundsFrom(bounds, choice.cut);
  if (first <= last) std::fill(&sums[first], &sums[last] + 1, 0.0);
  return choice;
}

RankChoice ChooseByRank(absl::Span<const float> bounds, absl::FunctionRef<double(double)> lower_of,
                        std::int64_t rank_count, LogitThreshold threshold) {
  double cut = threshold.none_below;
  if (const auto ranked = BoundOfRank(bounds, rank_count, std::numeric_limits<float>::lowest())) {
    // Each of the rank_count panels with the largest finite bounds has a row that reaches the logit
    // `reached`.
    const double reached = lower_of(*ranked);
    if (reached >= threshold.all_from) cut = reached;
  }
  RankChoice choice;
  choice.cut = std::max(choice.cut, static_cast<float>(cut - std::abs(cut) * 0x1p-23));
  choice.kept = kernels::CountBoundsFrom(bounds, choice.cut);
  return choice;
}

float RankCutOfMasses(absl::Span<const float> bounds, double reference,
                      absl::FunctionRef<double(double)> lower_of, std::int64_t rank_count) {
  const std::optional<float> ranked = BoundOfRank(bounds, rank_count, kProvingMassMin);
  if (!ranked) return kAllMasses;
  // A panel whose bound on its mass is S has a row whose bound on its logit is at least
  // reference + ln(S / kMassPerBestRowMax).
  constexpr double kMassPerBestRowMax = kernels::kPanelRows * kernels::kMassExcess;
  const double reached = lower_of(reference + std::log(*ranked / kMassPerBestRowMax));
  // A panel with a row that reaches the logit `reached` has a bound of at least `cut`. The 1e-3
  // nats are for roundings.
  const auto cut = static_cast<float>(std::exp(reached - reference - 1e-3));
  return cut >= kProvingMassMin ? cut : kAllMasses;
}

}  // namespace softlookup
