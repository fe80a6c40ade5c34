#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_KERNEL_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_KERNEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace softlookup {

// What scores rows and adds up values. All keep the same bound on errors, and may differ in an
// answer's last bits; those of one never depend on what else is asked.
enum class Kernel {
  kAuto,  // kAmx where it is there, gives the right bits and is the faster one, else kSimd.
  kAmx,   // Tiles of integers in the CPU's matrix unit, where scores are products; vectors
          // elsewhere.
  kSimd,  // Vectors, by the widest instructions that the CPU has.
  // What kAmx does, in plain loops: for tests, as it is slow.
  kPortableTiles,
};

absl::string_view NameOf(Kernel kernel);
// Of the three that people choose from: "auto", "amx", "simd".
std::optional<Kernel> KernelOfName(absl::string_view name);
std::vector<std::string> KernelNames();

struct KernelChoice {
  Kernel kernel = Kernel::kSimd;  // Never kAuto.
  std::string why;                // For the log.
};

// What `wanted` comes to on this machine. FAILED_PRECONDITION, with the reason, if that is kAmx and
// it is not there. With kAuto where AMX is there, takes some milliseconds, the first time.
// Thread-safe.
absl::StatusOr<KernelChoice> ChooseKernel(Kernel wanted);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_KERNEL_H_
