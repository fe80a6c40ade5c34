#include "core/scheduler/batch_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/core/scheduler/test_job.h"
#include "tests/testing/told_clock.h"

namespace softlookup {
namespace {

using ::testing::ElementsAre;
using testing::ToldClock;
using ::testing::UnorderedElementsAre;

class BatchRunnerTest : public ::testing::Test {
 protected:
  // Adds a job to the next batch. The reference is valid until Run().
  TestJob& Add(std::string name, std::uint64_t store = 1, double cost = 1) {
    auto job = std::make_unique<TestJob>(std::move(name), endings_);
    TestJob& added = *job;
    QueuedJob queued{.store = store, .cost = cost, .queued_at = clock_.Now()};
    queued.job = std::move(job);
    jobs_.push_back(std::move(queued));
    return added;
  }

  // Runs the jobs that were added, and returns the part of their cost that was done.
  double Run() {
    std::vector<QueuedJob> jobs = std::exchange(jobs_, {});
    return runner_.Run(absl::MakeSpan(jobs), clock_.Now(), [this](std::int64_t answered_count) {
      endings_.Add("answers: " + std::to_string(answered_count));
    });
  }

  ToldClock clock_;
  ForkJoinPool pool_{1, /*waiting_tasks_max=*/1};
  BatchRunner runner_{pool_, clock_};
  Endings endings_;
  std::vector<QueuedJob> jobs_;
};

TEST_F(BatchRunnerTest, TheAnswersAreAnnouncedBeforeThePassesJobsFinish) {
  Add("a");
  Add("b");
  EXPECT_EQ(Run(), 1);
  EXPECT_THAT(endings_.all(), UnorderedElementsAre("answers: 2", "a", "b"));
  EXPECT_EQ(endings_.all().front(), "answers: 2");
}

TEST_F(BatchRunnerTest, PassesOverStoresAreCountedAndOtherJobsAreNot) {
  Add("first");
  Run();
  Add("second");
  Add("third");
  Run();
  Add("without a pass", kNoStore).has_task = false;
  Run();
  Add("without a store", kNoStore);
  Run();
  const HistogramCounts jobs = runner_.counters().jobs_per_pass.counts();
  EXPECT_EQ(jobs.sum, 3);
  EXPECT_EQ(jobs.counts[0], 1u) << "a pass of one job";
  EXPECT_EQ(jobs.counts[1], 1u) << "a pass of two";
}

TEST_F(BatchRunnerTest, AJobThatFailsToPrepareDoesNotHarmItsBatch) {
  Add("bad", /*store=*/1, /*cost=*/3).prepare = [] { return absl::InvalidArgumentError("inputs"); };
  Add("good", /*store=*/1, /*cost=*/1);
  EXPECT_EQ(Run(), 0.25) << "the part that was done";
  EXPECT_THAT(endings_.all(), ElementsAre("bad failed: INVALID_ARGUMENT", "answers: 1", "good"));
}

TEST_F(BatchRunnerTest, ACancelledJobIsNotPrepared) {
  TestJob& cancelled = Add("cancelled");
  cancelled.prepare = [] {
    ADD_FAILURE();
    return absl::OkStatus();
  };
  cancelled.token.Cancel();
  EXPECT_EQ(Run(), 0);
  EXPECT_THAT(endings_.all(), ElementsAre("cancelled failed: CANCELLED", "answers: 0"));
}

}  // namespace
}  // namespace softlookup
