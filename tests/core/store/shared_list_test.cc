#include "core/store/shared_list.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace softlookup {
namespace {

std::vector<int> Counting(int begin, int count) {
  std::vector<int> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), begin);
  return values;
}

void ExpectCounts(const SharedList<int>& list, int count) {
  ASSERT_EQ(list.size(), count);
  for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(list[i], i);
}

TEST(SharedListTest, AppendsAcrossChunksAndLeavesCopiesAsTheyAre) {
  SharedList<int> list;
  int size = 0;
  std::vector<std::pair<SharedList<int>, int>> copies;
  for (const int count : {0, 1, 254, 1, 1, 255, 256, 700, 0, 3}) {
    copies.emplace_back(list, size);
    std::vector<int> values = Counting(size, count);
    list.Append(absl::MakeSpan(values));
    ExpectCounts(list, size += count);
  }
  for (const auto& [copy, copied_size] : copies) ExpectCounts(copy, copied_size);
}

TEST(SharedListTest, TakesAsMuchMemoryHoweverItGrew) {
  SharedList<int> at_once, one_by_one;
  std::vector<int> values = Counting(0, 600);
  for (const int value : values) one_by_one.push_back(value);
  at_once.Append(absl::MakeSpan(values));
  ExpectCounts(one_by_one, 600);
  EXPECT_EQ(at_once.bytes(), one_by_one.bytes());
}

}  // namespace
}  // namespace softlookup
