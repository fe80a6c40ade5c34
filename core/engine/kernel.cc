#include "softlookup/kernel.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/attention/attend.h"
#include "core/base/steady_time.h"
#include "core/engine/tile_unit.h"
#include "core/parallel/fork_join_pool.h"
#include "core/store/store_editor.h"

namespace softlookup {
namespace {

// The kernels that an operator may choose.
constexpr std::array<std::pair<absl::string_view, Kernel>, 3> kNames = {
    {{"auto", Kernel::kAuto}, {"amx", Kernel::kAmx}, {"simd", Kernel::kSimd}}};

// Returns `count` pseudo-random numbers in [-1, 1).
std::vector<float> SomeFloats(std::int64_t count) {
  std::vector<float> floats(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (float& x : floats) {
    state = state * 1'664'525 + 1'013'904'223;
    x = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-31f;
  }
  return floats;
}

// Returns whether `tiles` scan 1,024 rows for 64 queries more than kMargin times as fast as vector
// registers.
bool TilesAreFaster(kernels::TileUnit tiles) {
  constexpr std::int64_t kRows = 1024, kDim = 128, kQueries = 64;
  constexpr int kTrials = 3;
  constexpr double kMargin = 1.2;  // Makes a decision by noise unlikely.
  const std::vector<float> keys = SomeFloats(kRows * kDim), queries = SomeFloats(kQueries * kDim);
  const MatrixView rows{.data = keys.data(), .rows = kRows, .cols = kDim};
  StoreEditor store({.name = "trial", .key_dim = kDim, .value_dim = kDim},
                    StoreEditor::Memories::kNone);
  const auto snapshot = store.Append({.keys = rows, .values = rows})->snapshot;
  const Snapshot::Blocks blocks = snapshot->BlocksOf(0, kRows);
  AttentionTask task{.queries = {.data = queries.data(), .rows = kQueries, .cols = kDim},
                     .key_dim = kDim,
                     .value_dim = kDim,
                     .blocks = blocks,
                     .end = kRows,
                     .age_end = kRows,
                     .answer_bytes_max = std::numeric_limits<std::int64_t>::max()};
  ForkJoinPool pool(1, 1);
  const CancelToken cancel;
  const auto best_time = [&](std::optional<kernels::TileUnit> unit) {
    task.tiles = unit;
    absl::Duration best = absl::InfiniteDuration();
    for (int i = 0; i < kTrials; ++i) {
      const absl::Time begin = SteadyNow();
      Attend(task, pool, cancel).IgnoreError();
      best = std::min(best, SteadyNow() - begin);
    }
    return best;
  };
  const absl::Duration vectors = best_time(std::nullopt);
  return best_time(tiles) * kMargin < vectors;
}

KernelChoice Fastest() {
  if (const char* why = kernels::WhyNotAmx()) return {Kernel::kSimd, why};
  if (!kernels::AmxPassesSelfCheck()) return {Kernel::kSimd, "AMX failed its self-check"};
  if (!TilesAreFaster(kernels::TileUnit::kAmx)) return {Kernel::kSimd, "AMX was slower in a trial"};
  return {Kernel::kAmx, "AMX was faster in a trial"};
}

}  // namespace

absl::string_view NameOf(Kernel kernel) {
  for (const auto& [name, named] : kNames) {
    if (named == kernel) return name;
  }
  return "portable tiles";
}

std::optional<Kernel> KernelOfName(absl::string_view name) {
  for (const auto& [known, kernel] : kNames) {
    if (known == name) return kernel;
  }
  return std::nullopt;
}

std::vector<std::string> KernelNames() {
  std::vector<std::string> names;
  names.reserve(std::size(kNames));
  for (const auto& [name, kernel] : kNames) names.emplace_back(name);
  return names;
}

absl::StatusOr<KernelChoice> ChooseKernel(Kernel wanted) {
  if (wanted == Kernel::kAuto) {
    static const auto* const fastest = new KernelChoice(Fastest());
    return *fastest;
  }
  if (wanted == Kernel::kAmx) {
    if (const char* why = kernels::WhyNotAmx()) {
      return absl::FailedPreconditionError(absl::StrCat("kernel amx: ", why));
    }
    if (!kernels::AmxPassesSelfCheck()) {
      return absl::FailedPreconditionError("kernel amx: gives wrong results on this machine");
    }
  }
  return KernelChoice{wanted, "as asked for"};
}

std::optional<kernels::TileUnit> TileUnitOf(Kernel kernel) {
  if (kernel == Kernel::kAmx) return kernels::TileUnit::kAmx;
  if (kernel == Kernel::kPortableTiles) return kernels::TileUnit::kPortable;
  return std::nullopt;
}

}  // namespace softlookup
