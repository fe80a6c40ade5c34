#include "server/rpc/weak_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Le;

TEST(WeakListTest, HasTheLivingObjectsInTheirOrder) {
  WeakList<int> list;
  EXPECT_THAT(list.Living(), IsEmpty());
  const auto first = std::make_shared<int>(1), third = std::make_shared<int>(3);
  auto second = std::make_shared<int>(2);
  for (const auto& object : {first, second, third}) list.Add(object);
  EXPECT_THAT(list.Living(), ElementsAre(first, second, third));
  second.reset();
  EXPECT_THAT(list.Living(), ElementsAre(first, third));
}

TEST(WeakListTest, KeepsNoObjectAlive) {
  WeakList<int> list;
  auto object = std::make_shared<int>(1);
  const std::weak_ptr<int> weak = object;
  list.Add(object);
  auto living = list.Living();
  object.reset();
  EXPECT_FALSE(weak.expired()) << "the result keeps it";
  living.clear();
  EXPECT_TRUE(weak.expired());
}

TEST(WeakListTest, StaysAsShortAsFewObjectsLive) {
  WeakList<int> list;
  const auto lasting = std::make_shared<int>(0);
  list.Add(lasting);
  for (int i = 0; i < 10'000; ++i) {
    list.Add(std::make_shared<int>(i));
    ASSERT_THAT(list.size(), Le(std::size_t{18})) << "after " << i;
  }
  EXPECT_THAT(list.Living(), ElementsAre(lasting));
}

TEST(WeakListTest, RemovesNoLivingObject) {
  WeakList<int> list;
  std::vector<std::shared_ptr<int>> objects;
  for (int i = 0; i < 1000; ++i) {
    objects.push_back(std::make_shared<int>(i));
    list.Add(objects.back());
    list.Add(std::make_shared<int>(-1));  // Ends at once.
  }
  EXPECT_EQ(list.Living(), objects);
}

}  // namespace
}  // namespace softlookup::server
