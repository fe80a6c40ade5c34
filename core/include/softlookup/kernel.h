#ifndef SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_KERNEL_H_
#define SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_KERNEL_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace softlookup {

// The arithmetic that scores rows and adds up values. All kernels keep the same bound on errors,
// but may differ in an answer's last bits. With one kernel, the bits of an answer never depend on
// other requests.
enum class Kernel {
  // The same as kSimd on every machine. A choice by measured speed could differ from start to
  // start, and change the bits of answers.
  kAuto,
  // Integer tiles in the CPU's matrix unit for soft lookups by DOT or SCALED_DOT, without top_k and
  // min_score, where the bound on errors allows it. Vector instructions for all else.
  kAmx,
  // Vector instructions alone, the widest that the CPU has.
  kSimd,
  // The arithmetic of kAmx in plain loops. Slow; for tests.
  kPortableTiles,
};

absl::string_view NameOf(Kernel kernel);
// Returns the kernel that an operator may choose by `name`: "auto", "amx" or "simd". Returns
// nothing for other names.
std::optional<Kernel> KernelOfName(absl::string_view name);
// Returns the names that KernelOfName knows.
std::vector<std::string> KernelNames();

struct KernelChoice {
  Kernel kernel = Kernel::kSimd;  // Never kAuto.
  std::string why;                // The reason, for people to read.
};

// Returns the kernel that this machine runs for `wanted`. FAILED_PRECONDITION with the reason if
// `wanted` is kAmx and AMX is missing or fails its self-check. Thread-safe.
absl::StatusOr<KernelChoice> ChooseKernel(Kernel wanted);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_INCLUDE_SOFTLOOKUP_KERNEL_H_
