#include "server/cluster/task_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/synchronization/notification.h"

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;

TEST(TaskThreadTest, TasksRunInTheirOrderAlsoThoseThatTasksPost) {
  std::vector<int> ran;
  absl::Notification done;
  TaskThread thread([] {}, absl::Hours(1));
  thread.Post([&] {
    ran.push_back(1);
    thread.Post([&] {
      ran.push_back(3);
      done.Notify();
    });
    ran.push_back(2);
  });
  done.WaitForNotification();
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
}

TEST(TaskThreadTest, TheTickIsRepeated) {
  absl::Notification done;
  int ticks = 0;
  const TaskThread thread(
      [&] {
        if (++ticks == 3) done.Notify();
      },
      absl::Milliseconds(1));
  done.WaitForNotification();
}

TEST(TaskThreadTest, WhatWasPostedRunsBeforeTheEnd) {
  bool ran = false;
  {
    TaskThread thread([] {}, absl::Hours(1));
    thread.Post([&] { ran = true; });
  }
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace softlookup::server
