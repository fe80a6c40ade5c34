#include "core/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/cost.h"
#include "core/base/error.h"
#include "tests/testing/told_clock.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ToldClock;
using ::testing::UnorderedElementsAre;

// What became of jobs, in the order in which they ended.
class Endings {
 public:
  void Add(std::string ending) {
    absl::MutexLock lock(&mutex_);
    endings_.push_back(std::move(ending));
  }
  std::vector<std::string> all() const {
    absl::MutexLock lock(&mutex_);
    return endings_;
  }
  std::vector<std::string> Await(std::size_t count) const {
    const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return endings_.size() >= count;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&are_there));
    return endings_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> endings_ ABSL_GUARDED_BY(mutex_);
};

// a job that attends to no rows, or has no pass at all.
class TestJob final : public Job {
 public:
  TestJob(std::string name, Endings& endings) : name_(std::move(name)), endings_(endings) {}

  std::function<absl::Status()> prepare = [] { return absl::OkStatus(); };
  std::function<void()> on_finish = [] {};
  bool has_task = true;
  CancelToken token;

  void Refuse(absl::Status status) override { endings_.Add(Ending("refused", status)); }
  absl::Status Prepare() override { return prepare(); }
  const AttentionTask* task() const override { return has_task ? &task_ : nullptr; }
  const CancelToken& cancel() const override { return token; }
  void Finish(absl::StatusOr<AttentionAnswer> answer, const JobTimes& times) override {
    times_ = times;
    on_finish();
    endings_.Add(answer.ok() ? name_ : Ending("failed", answer.status()));
  }

  const JobTimes& times() const { return times_; }

 private:
  std::string Ending(const char* what, const absl::Status& status) const {
    return name_ + " " + what + ": " + std::string(absl::StatusCodeToString(status.code()));
  }

  const std::string name_;
  Endings& endings_;
  const AttentionTask task_{};  // Without queries.
  JobTimes times_;
};

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
  std::optional<Scheduler> scheduler_{
      std::in_place,
      SchedulerOptions{.thread_count = 1,
                       .waiting_jobs_max = 3,
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

TEST_F(SchedulerTest, PassesOverStoresAreCountedAndOtherJobsAreNot) {
  SubmitGated("first");
  Submit(Make("second"));
  Submit(Make("third"));
  auto other = Make("without a pass");
  other->has_task = false;
  Submit(std::move(other), kNoStore);
  gate_.Notify();
  endings_.Await(4);
  const HistogramCounts jobs = scheduler_->counters().jobs_per_pass.counts();
  EXPECT_EQ(jobs.sum, 3);
  EXPECT_EQ(jobs.counts[0], 1u) << "a pass of one job";
  EXPECT_EQ(jobs.counts[1], 1u) << "a pass of two";
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

TEST_F(SchedulerTest, AJobThatFailsToPrepareDoesNotHarmItsBatch) {
  SubmitGated("first");
  auto bad = Make("bad");
  bad->prepare = [] { return absl::InvalidArgumentError("inputs"); };
  Submit(std::move(bad));
  Submit(Make("good"));
  gate_.Notify();
  EXPECT_THAT(endings_.Await(3), ElementsAre("first", "bad failed: INVALID_ARGUMENT", "good"));
}

TEST_F(SchedulerTest, ACancelledJobIsNotPrepared) {
  SubmitGated("first");
  auto cancelled = Make("cancelled");
  cancelled->prepare = [] {
    ADD_FAILURE();
    return absl::OkStatus();
  };
  cancelled->token.Cancel();
  Submit(std::move(cancelled));
  gate_.Notify();
  EXPECT_THAT(endings_.Await(2), ElementsAre("first", "cancelled failed: CANCELLED"));
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
