#ifndef SOFTLOOKUP_TESTS_TESTING_KERNELS_H_
#define SOFTLOOKUP_TESTS_TESTING_KERNELS_H_

#include <string>
#include <vector>

#include "softlookup/kernel.h"

namespace softlookup::testing {

// All that can be used here. What AMX does is also done in plain loops, where there is none.
inline std::vector<Kernel> KernelsHere() {
  std::vector<Kernel> kernels = {Kernel::kSimd, Kernel::kPortableTiles};
  if (ChooseKernel(Kernel::kAmx).ok()) kernels.push_back(Kernel::kAmx);
  return kernels;
}

// As tests are named.
inline std::string TestNameOf(Kernel kernel) {
  return kernel == Kernel::kSimd ? "Simd" : kernel == Kernel::kAmx ? "Amx" : "PortableTiles";
}

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_KERNELS_H_
