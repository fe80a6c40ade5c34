#include "server/base/single_task.h"

#include <gtest/gtest.h>

#include <optional>

#include "absl/synchronization/notification.h"

namespace softlookup::server {
namespace {

TEST(SingleTaskTest, TheNextMayBeClaimedOnceTheWorkIsDone) {
  absl::Notification go_on, finished;
  bool in_finish = false;
  SingleTask task;
  ASSERT_TRUE(task.Claim());
  EXPECT_FALSE(task.Claim()) << "claimed, but not run yet";
  task.Run([&]() -> SingleTask::Finish {
    go_on.WaitForNotification();
    return [&] {
      in_finish = task.Claim();
      finished.Notify();
    };
  });
  EXPECT_FALSE(task.Claim()) << "the work is in progress";
  go_on.Notify();
  finished.WaitForNotification();
  ASSERT_TRUE(in_finish);
  absl::Notification second;
  task.Run([&]() -> SingleTask::Finish { return [&] { second.Notify(); }; });
  second.WaitForNotification();
}

TEST(SingleTaskTest, ItsEndWaitsForTheTaskInProgress) {
  absl::Notification begun;
  bool has_ended = false;
  std::optional<SingleTask> task(std::in_place);
  ASSERT_TRUE(task->Claim());
  task->Run([&]() -> SingleTask::Finish {
    begun.Notify();
    return [&] { has_ended = true; };
  });
  begun.WaitForNotification();
  task.reset();
  EXPECT_TRUE(has_ended);
}

TEST(SingleTaskTest, EndsWithoutATask) { SingleTask task; }

}  // namespace
}  // namespace softlookup::server
