#include "softlookup/kernel.h"

#include <array>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/engine/tile_unit.h"

namespace softlookup {
namespace {

// The kernels that an operator may choose.
constexpr std::array<std::pair<absl::string_view, Kernel>, 3> kNames = {
    {{"auto", Kernel::kAuto}, {"amx", Kernel::kAmx}, {"simd", Kernel::kSimd}}};

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
  if (wanted == Kernel::kAuto) return KernelChoice{Kernel::kSimd, "the default"};
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
