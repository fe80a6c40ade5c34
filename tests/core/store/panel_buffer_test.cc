#include "core/store/panel_buffer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <vector>

namespace softlookup {
namespace {

constexpr std::int64_t kLargePageBytes = std::int64_t{2} << 20;

// Bytes of addresses that this process has mapped.
std::int64_t MappedBytes() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * sysconf(_SC_PAGESIZE);
}

TEST(PanelRegionTest, BeginsAtALargePageAndLeavesNothingMapped) {
  constexpr int kRegions = 64;
  PanelRegion::Make(1);  // Whatever the first one allocates for good.
  const std::int64_t before = MappedBytes();
  {
    std::vector<std::shared_ptr<PanelRegion>> regions;
    for (int i = 0; i < kRegions; ++i) {
      regions.push_back(PanelRegion::Make(3 * kLargePageBytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(regions.back()->at(0)) % kLargePageBytes, 0u);
    }
    EXPECT_LT(MappedBytes() - before, kRegions * 3 * kLargePageBytes + 2 * kLargePageBytes);
  }
  EXPECT_LT(MappedBytes() - before, 2 * kLargePageBytes);
}

}  // namespace
}  // namespace softlookup
