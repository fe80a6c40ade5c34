#ifndef SOFTLOOKUP_TESTS_CORE_KERNELS_EVERY_TARGET_H_
#define SOFTLOOKUP_TESTS_CORE_KERNELS_EVERY_TARGET_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "hwy/targets.h"

namespace softlookup::kernels {

// A test of kernels on one of Highway's targets, its parameter. For INSTANTIATE_TEST_SUITE_P with
// EveryTarget() and TargetName.
class TargetTest : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

// All that this machine has.
inline auto EveryTarget() { return ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()); }

inline std::string TargetName(const ::testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_TESTS_CORE_KERNELS_EVERY_TARGET_H_
