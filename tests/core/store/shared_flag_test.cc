#include "core/store/shared_flag.h"

#include <gtest/gtest.h>

#include <memory>

namespace softlookup {
namespace {

struct SharedCounter {
  std::shared_ptr<int> count;
  SharedFlag is_shared;

  int& Edit() {
    return Unshare(count, is_shared, [] { return std::make_shared<int>(0); });
  }
};

TEST(SharedFlagTest, AnObjectThatNobodySharesIsMadeOnceAndChangedInPlace) {
  SharedCounter counter;
  const int* made = &counter.Edit();
  EXPECT_EQ(*made, 0);
  EXPECT_EQ(&counter.Edit(), made);
}

TEST(SharedFlagTest, ACopyAndItsOriginalDoNotSeeEachOthersChanges) {
  SharedCounter counter;
  counter.Edit() = 1;
  SharedCounter savepoint = counter;
  EXPECT_EQ(counter.count, savepoint.count);
  counter.Edit() = 2;
  EXPECT_EQ(*savepoint.count, 1);
  counter = savepoint;
  savepoint.Edit() = 3;
  EXPECT_EQ(*counter.count, 1);
  counter.Edit() = 4;
  EXPECT_EQ(*savepoint.count, 3);
}

TEST(SharedFlagTest, WhatIsMarkedAsSharedIsCopiedOnce) {
  SharedCounter counter;
  counter.Edit() = 1;
  const std::shared_ptr<const int> view = counter.count;
  counter.is_shared.Set();
  const int* copied = &counter.Edit();
  EXPECT_NE(copied, view.get());
  EXPECT_EQ(*copied, 1);
  EXPECT_EQ(&counter.Edit(), copied);
}

}  // namespace
}  // namespace softlookup
