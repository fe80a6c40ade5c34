#include "core/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "core/base/cost.h"
#include "core/base/error.h"
#include "tests/core/scheduler/test_job.h"
#include "tests/testing/told_clock.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ToldClock;
using ::testing::UnorderedElementsAre;

class SchedulerTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kStore = 1;
  static constexpr double kLarge = 2 * kInlineCostMax;

  std::unique_ptr<TestJob> Make(std::string name) {
    return std::make_unique<TestJob>(std::move(name), endings_);
  }
  void Submit(std::unique_ptr<TestJob> job, std::uint64_t store = kStore, double cost = kLarge,
              Scheduler::Admission admission = Scheduler::Admission::kBounded) {
    QueuedJob queued{.store = store, .cost = cost};
    queued.job = std::move(job);
    scheduler_->Submit(std::move(queued), admission);
  }
  // Submits a job that is in Prepare when this returns, and stays there until gate_.
  void SubmitGated(std::string name, std::uint64_t store = kStore) {
    absl::Notification begun;
    auto job = Make(std::move(name));
    job->prepare = [this, &begun] {
      begun.Notify();
      gate_.WaitForNotification();
      return absl::OkStatus();
    };
    Submit(std::move(job), store);
    begun.WaitForNotification();
  }

  ToldClock clock_;
  Endings endings_;
  absl::Notification gate_;
  ForkJoinPool pool_{1, std::numeric_limits<std::int64_t>::max()};
  std::optional<Scheduler> scheduler_{
      std::in_place, pool_,
      SchedulerOptions{.waiting_jobs_max = 3,
                       .queue = {.queries_max = 8, .wait_max = absl::Seconds(1)}},
      clock_};
};

TEST_F(SchedulerTest, ASmallJobRunsBeforeSubmitReturns) {
  std::thread::id thread;
  auto job = Make("small");
  job->on_finish = [&] { thread = std::this_thread::get_id(); };
  Submit(std::move(job), kStore, kInlineCostMax);
  EXPECT_EQ(thread, std::this_thread::get_id());
  EXPECT_THAT(endings_.all(), ElementsAre("small"));
}

TEST_F(SchedulerTest, AnAdmittedJobDoesNotRunOnTheCallersThread) {
  std::thread::id thread;
  auto job = Make("small");
  job->on_finish = [&] { thread = std::this_thread::get_id(); };
  Submit(std::move(job), kStore, /*cost=*/0, Scheduler::Admission::kAdmitted);
  endings_.Await(1);
  EXPECT_NE(thread, std::this_thread::get_id());
}

TEST_F(SchedulerTest, WhatComesWhileItsStoreIsBusyIsOneBatch) {
  SubmitGated("first");
  Submit(Make("second"));
  Submit(Make("third"));
  EXPECT_EQ(scheduler_->waiting_jobs(), 2);
  gate_.Notify();
  EXPECT_THAT(endings_.Await(3), UnorderedElementsAre("first", "second", "third"));
  scheduler_.reset();
  EXPECT_THAT(endings_.all().front(), "first");
}

TEST_F(SchedulerTest, TooManyAreRefusedButNotThoseAdmittedBefore) {
  SubmitGated("running");
  for (const char* name : {"a", "b", "c"}) Submit(Make(name));
  const QueuedJob large{.store = kStore, .cost = kLarge}, small{.store = kStore, .cost = 1};
  EXPECT_EQ(scheduler_->CheckRoom(large).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(scheduler_->CheckRoom(small).ok());
  Submit(Make("d"));
  EXPECT_THAT(endings_.all(), ElementsAre("d refused: RESOURCE_EXHAUSTED"));
  Submit(Make("admitted"), kStore, kLarge, Scheduler::Admission::kAdmitted);
  EXPECT_EQ(scheduler_->waiting_jobs(), 4);
  gate_.Notify();
  endings_.Await(6);
  EXPECT_EQ(scheduler_->waiting_jobs(), 0);
  EXPECT_TRUE(scheduler_->CheckRoom(large).ok());
}

TEST_F(SchedulerTest, AJobThatWouldWaitTooLongIsRefused) {
  SubmitGated("running");
  Submit(Make("before"), kStore, 1000 * kLarge);
  QueuedJob job{.store = kStore, .cost = kLarge, .answer_time_max = absl::Milliseconds(1)};
  EXPECT_EQ(scheduler_->CheckRoom(job).code(), absl::StatusCode::kResourceExhausted);
  job.job = Make("late");
  scheduler_->Submit(std::move(job), Scheduler::Admission::kBounded);
  EXPECT_THAT(endings_.all(), ElementsAre("late refused: RESOURCE_EXHAUSTED"));
  gate_.Notify();
}

// The rate of work so far decides what is too long. At first, work of 1e10 is assumed to be done in
// a second.
TEST_F(SchedulerTest, AJobIsRefusedThatWouldWaitTooLongAtTheRateOfTheBatchesSoFar) {
  std::size_t count = 0;
  const auto run_for_a_second = [&](double cost, absl::Status status) {
    auto job = Make("slow");
    job->prepare = [this, status] {
      clock_.Advance(absl::Seconds(1));
      return status;
    };
    Submit(std::move(job), kStore, cost);
    endings_.Await(++count);
  };
  for (int i = 0; i < 8; ++i) run_for_a_second(kLarge, absl::OkStatus());
  // Nothing shows that more work was done in the seconds of these, which fail.
  for (int i = 0; i < 8; ++i) run_for_a_second(10'000 * kLarge, absl::CancelledError());

  SubmitGated("running");
  Submit(Make("before"), kStore, 10 * kLarge);
  // The answer takes 11 s. At the rate assumed at first it would take 2.2 ms, and about 1 ms if the
  // failed work counted as done.
  const QueuedJob late{.store = kStore, .cost = kLarge, .answer_time_max = absl::Seconds(1)};
  EXPECT_EQ(scheduler_->CheckRoom(late).code(), absl::StatusCode::kResourceExhausted);
  // The rate is not lower than it was, either.
  const QueuedJob soon{.store = kStore, .cost = kLarge, .answer_time_max = absl::Seconds(12)};
  EXPECT_TRUE(scheduler_->CheckRoom(soon).ok());
  gate_.Notify();
}

TEST_F(SchedulerTest, AJobHearsWhatItWaitedAndWhatItsScanTook) {
  JobTimes times;
  SubmitGated("first");
  auto job = Make("timed");
  TestJob* const timed = job.get();
  job->prepare = [&] {
    clock_.Advance(absl::Milliseconds(5));
    return absl::OkStatus();
  };
  job->on_finish = [&] { times = timed->times(); };
  Submit(std::move(job));
  clock_.Advance(absl::Milliseconds(3));
  gate_.Notify();
  endings_.Await(2);
  EXPECT_EQ(times.queue, std::chrono::milliseconds(3));
  EXPECT_EQ(times.compute, std::chrono::milliseconds(5));
}

// The next batch waits for clients that returned before, and the clock ends the wait.
TEST_F(SchedulerTest, ABatchWaitsForReturningClientsUntilItsTimeIsOver) {
  // Each answered client submits again from Finish, as two clients in a loop do.
  int rounds = 0;
  const auto submit = [this](std::string name, std::function<void()> on_finish) {
    auto job = Make(std::move(name));
    job->prepare = [this] {
      clock_.Advance(absl::Milliseconds(10));
      return absl::OkStatus();
    };
    job->on_finish = std::move(on_finish);
    QueuedJob queued{.store = kStore, .cost = kLarge, .reading_cost = 8 * kLarge};
    queued.job = std::move(job);
    scheduler_->Submit(std::move(queued), Scheduler::Admission::kAdmitted);
  };
  std::function<void()> again = [&] {
    if (++rounds == 1) {
      // Both clients return.
      submit("a", again);
      submit("b", again);
    }
  };
  submit("first", again);
  endings_.Await(1);
  EXPECT_THAT(endings_.Await(3), ElementsAre("first", "a", "b"));
  // After "first", two jobs came back for one answered; so two are expected after "a" and "b".
  submit("alone", [] {});
  clock_.AwaitWaits(1);
  EXPECT_EQ(endings_.all().size(), 3u) << "it waits for the other client";
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(endings_.Await(4).back(), "alone");
}

TEST_F(SchedulerTest, RunsWhatWaitsBeforeItGoes) {
  SubmitGated("first");
  Submit(Make("second"));
  Submit(Make("third"), /*store=*/2);
  EXPECT_THAT(endings_.all(), IsEmpty());
  gate_.Notify();
  scheduler_.reset();
  EXPECT_EQ(endings_.all().size(), 3u);
}

}  // namespace
}  // namespace softlookup
