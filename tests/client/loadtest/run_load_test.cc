// Runs against a server whose answers the test writes.
#include "client/loadtest/run_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/loadtest/find_max.h"
#include "tests/client/scripted_service.h"

namespace softlookup::loadtest {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

class RunLoadTest : public ::testing::Test {
 protected:
  RunLoadTest() {
    service_.lookup = [](grpc::ServerContext*, const v1::LookupRequest&, v1::LookupResponse*) {
      return grpc::Status::OK;
    };
    service_.append = [](grpc::ServerContext*, const v1::AppendRequest&, v1::AppendResponse*) {
      return grpc::Status::OK;
    };
    options_.arrivals = Arrivals::kConstant;
    options_.concurrency = 2;
    options_.duration = absl::Milliseconds(400);
  }

  LoadResult Run() {
    if (!connections_.has_value()) {
      connections_.emplace(*Connections::Open(service_.address(), 2, absl::Seconds(10)));
    }
    const Traffic traffic = *Traffic::Make(traffic_options_, RowSource(4, 4, 1), {"a", "b"});
    return RunLoad(options_, {.connections = &*connections_,
                              .traffic = &traffic,
                              .evidence = evidence_,
                              .answers_to_keep = 1000,
                              .writer_prefix = "w-",
                              .interrupted = &interrupted_});
  }

  // Every lookup that comes within a second from `first_calls` on waits until it is over.
  void StallForASecondAfter(int first_calls) {
    service_.lookup = [this, first_calls](auto*, const v1::LookupRequest&, v1::LookupResponse*) {
      if (calls_++ < first_calls) return grpc::Status::OK;
      absl::Time end;
      {
        const absl::MutexLock lock(&mutex_);
        if (!stall_end_.has_value()) stall_end_ = absl::Now() + absl::Seconds(1);
        end = *stall_end_;
      }
      never_.WaitForNotificationWithDeadline(end);
      return grpc::Status::OK;
    };
  }

  testing::ScriptedService service_;
  LoadOptions options_;
  TrafficOptions traffic_options_;
  std::optional<Connections> connections_;
  Evidence* evidence_ = nullptr;
  std::atomic<bool> interrupted_ = false;
  std::atomic<int> calls_ = 0;
  absl::Notification never_;
  absl::Mutex mutex_;
  std::optional<absl::Time> stall_end_;
};

TEST_F(RunLoadTest, AnOpenLoopSendsEveryCallThatIsDue) {
  options_.rate = 500;
  options_.senders = 2;
  const LoadResult result = Run();
  const Tally::OfMethod calls = result.tally.sum();
  EXPECT_EQ(calls.ok(), 200u);
  EXPECT_EQ(calls.latency.count(), 200u);
  EXPECT_EQ(calls.errors() + calls.rejected + calls.overflow, 0u);
  EXPECT_EQ(result.tally.lateness.count(), 200u);
  EXPECT_DOUBLE_EQ(result.measured_s, 0.4);
  EXPECT_DOUBLE_EQ(result.offered_rate(), 500);
  std::uint64_t in_timeline = 0;
  for (const TimelinePoint& point : result.timeline) in_timeline += point.ok;
  // But for those whose answers came after the time was over.
  EXPECT_LE(in_timeline, 200u);
  EXPECT_GT(in_timeline, 100u);
}

TEST_F(RunLoadTest, RampAndWarmUpAreNotMeasured) {
  options_.rate = 500;
  options_.ramp = absl::Milliseconds(200);
  options_.warm_up = absl::Milliseconds(100);
  const LoadResult result = Run();
  EXPECT_EQ(result.tally.sum().ok(), 200u);
  EXPECT_EQ(result.tally.all_ok, 300u);
}

TEST_F(RunLoadTest, AClosedLoopHasSoManyCallsInFlight) {
  std::atomic<int> running = 0, most = 0;
  service_.lookup = [&](auto*, const v1::LookupRequest&, v1::LookupResponse*) {
    const int now = ++running;
    for (int known = most; now > known && !most.compare_exchange_weak(known, now);) continue;
    never_.WaitForNotificationWithTimeout(absl::Milliseconds(5));
    --running;
    return grpc::Status::OK;
  };
  options_.concurrency = 3;
  const LoadResult result = Run();
  EXPECT_EQ(most, 3);
  EXPECT_THAT(result.tally.sum().ok(), AllOf(Ge(10u), Le(3 * 400 / 5 + 3)));
  EXPECT_GT(result.tally.sum().latency.min(), 0.0045);
}

TEST_F(RunLoadTest, AStallOfASecondCannotHideFromAnOpenLoop) {
  StallForASecondAfter(100);
  options_.rate = 200;
  options_.duration = absl::Seconds(2);
  const LatencyHistogram latency = Run().tally.sum().latency;
  // The 200 calls that were due meanwhile waited 0.5 s on average.
  EXPECT_EQ(latency.count(), 400u);
  EXPECT_GT(latency.Percentile(99), 0.9);
  EXPECT_GT(latency.Percentile(80), 0.3);
}

TEST_F(RunLoadTest, AStallOfASecondDoesHideFromAClosedLoop) {
  StallForASecondAfter(100);
  options_.concurrency = 1;
  options_.duration = absl::Seconds(2);
  const LatencyHistogram latency = Run().tally.sum().latency;
  EXPECT_GT(latency.max(), 0.9);
  EXPECT_LT(latency.Percentile(99), 0.5);
}

TEST_F(RunLoadTest, WhatIsDueBeyondTheBoundInFlightIsCountedAsOverflow) {
  StallForASecondAfter(0);
  options_.rate = 100;
  options_.in_flight_max = 10;
  options_.duration = absl::Milliseconds(500);
  const LoadResult result = Run();
  EXPECT_EQ(result.tally.sum().finished(), 10u);
  EXPECT_EQ(result.tally.sum().overflow, 40u);
  EXPECT_DOUBLE_EQ(result.offered_rate(), 100);
  EXPECT_GT(result.tally.sum().latency.min(), 0.4);
  EXPECT_THAT(result.invalid, Contains(HasSubstr("40 calls that were due were not sent")));
}

TEST_F(RunLoadTest, AServerThatRefusesQuicklyLeavesTheRunValid) {
  // Every other call, as at twice what it holds.
  service_.lookup = [this](auto*, const v1::LookupRequest&, v1::LookupResponse*) -> grpc::Status {
    if (calls_++ % 2 == 0) return grpc::Status::OK;
    return testing::DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL");
  };
  options_.rate = 500;
  options_.in_flight_max = 1000;  // More than there are calls.
  const LoadResult result = Run();
  EXPECT_EQ(result.tally.sum().rejected, 100u);
  // A machine that is busy with other tests may be late.
  EXPECT_THAT(result.invalid, Not(Contains(HasSubstr("not sent"))));
}

TEST_F(RunLoadTest, FailuresAreToldApart) {
  service_.lookup = [this](auto*, const v1::LookupRequest&, v1::LookupResponse*) -> grpc::Status {
    switch (calls_++ % 5) {
      case 0:
        return {grpc::StatusCode::INTERNAL, "broken"};
      case 1:
        return testing::DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "full", "QUEUE_FULL");
      case 2:
        return testing::DetailedStatus(grpc::StatusCode::UNAVAILABLE, "bye", "SHUTTING_DOWN");
      case 3:
        return {grpc::StatusCode::UNAVAILABLE, "who are you"};
      default:
        return grpc::Status::OK;
    }
  };
  options_.rate = 500;
  const LoadResult result = Run();
  const Tally::OfMethod calls = result.tally.sum();
  EXPECT_EQ(calls.finished(), 200u);
  EXPECT_EQ(calls.ok(), 40u);
  EXPECT_EQ(calls.errors(), 80u);
  EXPECT_EQ(calls.rejected, 80u);
  EXPECT_EQ(calls.codes[grpc::StatusCode::INTERNAL], 40u);
  EXPECT_EQ(calls.latency.count(), 40u);
  EXPECT_EQ(result.tally.rejection.count(), 80u);
  EXPECT_EQ(result.messages.at(grpc::StatusCode::RESOURCE_EXHAUSTED), "QUEUE_FULL: full");
  EXPECT_EQ(result.tally.retries, 0u);
}

TEST_F(RunLoadTest, ACallThatTimesOutIsAnErrorAndALongLatency) {
  StallForASecondAfter(0);
  options_.rate = 100;
  options_.duration = absl::Milliseconds(100);
  options_.timeout = absl::Milliseconds(200);
  const LoadResult result = Run();
  EXPECT_EQ(result.tally.sum().codes[grpc::StatusCode::DEADLINE_EXCEEDED], 10u);
  EXPECT_EQ(result.tally.sum().errors(), 10u);
  EXPECT_GE(result.tally.sum().latency.min(), 0.19);
}

TEST_F(RunLoadTest, RetriesAreOnlyMadeWhenAskedForAndAppendsAreAppliedOnce) {
  std::set<std::string> failed;
  std::map<std::string, std::set<std::uint64_t>> sequences;
  service_.append = [&](auto*, const v1::AppendRequest& request,
                        v1::AppendResponse*) -> grpc::Status {
    const absl::MutexLock lock(&mutex_);
    sequences[request.writer()].insert(request.sequence());
    const std::string call = request.writer() + "/" + std::to_string(request.sequence());
    if (failed.insert(call).second) {
      return testing::DetailedStatus(grpc::StatusCode::UNAVAILABLE, "later", "SHUTTING_DOWN");
    }
    return grpc::Status::OK;
  };
  traffic_options_.mix = *RequestMix::Parse("append=1");
  options_.rate = 100;
  EXPECT_GE(Run().tally.sum().rejected, 1u);
  EXPECT_THAT(sequences, ElementsAre(Pair("", ElementsAre(0))));
  sequences.clear();
  failed.clear();
  options_.attempts_max = 3;
  const LoadResult result = Run();
  EXPECT_EQ(result.tally.sum().ok(), 40u);
  EXPECT_EQ(result.tally.retries, 40u);
  std::size_t count = 0;
  for (const auto& [writer, numbers] : sequences) {
    EXPECT_THAT(writer, StartsWith("w-"));
    count += numbers.size();
  }
  EXPECT_EQ(count, 40u);
}

TEST_F(RunLoadTest, EveryStoreAndMethodIsAsked) {
  std::map<std::string, int> calls;
  const auto count = [&](const std::string& what) {
    const absl::MutexLock lock(&mutex_);
    ++calls[what];
    return grpc::Status::OK;
  };
  service_.lookup = [&](auto*, const v1::LookupRequest& request, v1::LookupResponse*) {
    EXPECT_EQ(request.queries().rows(), 3u);
    EXPECT_EQ(request.queries().data().size(), 3u * 4 * 4);
    EXPECT_EQ(request.options().weights(), v1::WEIGHTS_MODE_TOP);
    return count("lookup " + request.store());
  };
  service_.append = [&](auto*, const v1::AppendRequest& request, v1::AppendResponse*) {
    EXPECT_EQ(request.keys().rows(), 2u);
    EXPECT_EQ(request.values().rows(), 2u);
    return count("append " + request.store());
  };
  traffic_options_.mix = *RequestMix::Parse("lookup=1,append=1");
  traffic_options_.queries = 3;
  traffic_options_.append_rows = 2;
  traffic_options_.attention.set_weights(v1::WEIGHTS_MODE_TOP);
  options_.rate = 1000;
  Run();
  for (const std::string what : {"lookup a", "lookup b", "append a", "append b"}) {
    EXPECT_GT(calls[what], 50) << what;
  }
}

TEST_F(RunLoadTest, AnInterruptionEndsItWithWhatWasMeasured) {
  service_.lookup = [this](auto*, const v1::LookupRequest&, v1::LookupResponse*) {
    if (++calls_ == 100) interrupted_ = true;
    return grpc::Status::OK;
  };
  for (const std::optional<double> rate : {std::optional<double>(500), std::optional<double>()}) {
    calls_ = 0;
    interrupted_ = false;
    options_.rate = rate;
    options_.duration = absl::Minutes(5);
    const LoadResult result = Run();
    EXPECT_TRUE(result.interrupted);
    EXPECT_LT(result.measured_s, 60);
    EXPECT_GE(result.tally.sum().ok(), 99u);
    EXPECT_EQ(result.tally.sum().errors(), 0u);
  }
}

TEST_F(RunLoadTest, AnInterruptionDoesNotWaitForAServerThatHangs) {
  service_.lookup = [&](grpc::ServerContext* context, const v1::LookupRequest&,
                        v1::LookupResponse*) {
    if (++calls_ == 2) interrupted_ = true;
    while (!context->IsCancelled()) {
      never_.WaitForNotificationWithTimeout(absl::Milliseconds(10));
    }
    return grpc::Status::OK;
  };
  options_.timeout = absl::Minutes(5);
  options_.duration = absl::Minutes(5);
  const LoadResult result = Run();
  EXPECT_EQ(result.tally.all_unfinished, 2u);
  EXPECT_EQ(result.tally.sum().finished(), 0u);
}

TEST_F(RunLoadTest, AnAnswerIsKeptWithTheRowsThatWereAcknowledgedBefore) {
  std::map<std::string, std::uint64_t> rows;
  service_.append = [&](auto*, const v1::AppendRequest& request, v1::AppendResponse* response) {
    const absl::MutexLock lock(&mutex_);
    std::uint64_t& count = rows[request.store()];
    response->set_first_position(count);
    response->set_appended_count(request.keys().rows());
    count += request.keys().rows();
    return grpc::Status::OK;
  };
  service_.lookup = [&](auto*, const v1::LookupRequest& request, v1::LookupResponse* response) {
    const absl::MutexLock lock(&mutex_);
    response->set_row_count(rows[request.store()]);
    return grpc::Status::OK;
  };
  Evidence evidence(2);
  evidence_ = &evidence;
  traffic_options_.mix = *RequestMix::Parse("lookup=1,append=1");
  traffic_options_.append_rows = 3;
  options_.concurrency = 1;  // So the rows that there are have all been acknowledged.
  Run();
  const std::vector<Evidence::Answer> answers = evidence.TakeAnswers();
  ASSERT_GT(answers.size(), 5u);
  for (const Evidence::Answer& answer : answers) {
    v1::LookupResponse response;
    ASSERT_TRUE(Parse(answer.bytes, &response));
    EXPECT_EQ(answer.rows_min, response.row_count());
  }
  EXPECT_GT(answers.back().rows_min, 0u);
}

// A search over lookups of one store.
class FindMaxTest : public RunLoadTest {
 protected:
  FindMaxTest() { options_.duration = absl::Milliseconds(200); }

  FindMaxResult Search(const std::string& objectives) {
    const Connections connections = *Connections::Open(service_.address(), 1, absl::Seconds(10));
    const Traffic traffic = *Traffic::Make(traffic_options_, RowSource(4, 4, 1), {"a"});
    return FindMax(options_, {.connections = &connections, .traffic = &traffic},
                   *ParseObjectives(objectives), [this](const FindMaxStep&) { calls_ = 0; });
  }
};

TEST_F(FindMaxTest, TheSearchEndsAtWhatTheServerHolds) {
  // Up to 41 calls a step of 0.2 s: 200/s are 40, and 206.25/s, the next rate, are 42. This counts
  // calls and no time, so a busy machine finds the same.
  service_.lookup = [this](auto*, const v1::LookupRequest&, v1::LookupResponse*) -> grpc::Status {
    if (++calls_ <= 41) return grpc::Status::OK;
    return {grpc::StatusCode::INTERNAL, "too many"};
  };
  options_.rate = 50;
  const FindMaxResult found = Search("p99=9s");
  std::vector<double> rates;
  for (const FindMaxStep& step : found.steps) {
    rates.push_back(step.rate);
    EXPECT_EQ(step.held, step.rate <= 200) << step.rate;
    EXPECT_EQ(absl::StrContains(step.why, " error"), !step.held) << step.why;
  }
  EXPECT_THAT(rates, ElementsAre(50, 100, 200, 400, 300, 250, 225, 212.5, 206.25));
  ASSERT_TRUE(found.best.has_value());
  EXPECT_EQ(*found.best, 2u);
}

TEST_F(FindMaxTest, ABoundInFlightThatIsTooSmallIsTheClientsLimit) {
  service_.lookup = [this](auto*, const v1::LookupRequest&, v1::LookupResponse*) {
    never_.WaitForNotificationWithTimeout(absl::Milliseconds(30));
    return grpc::Status::OK;
  };
  options_.rate = 100;
  options_.in_flight_max = 1;
  const FindMaxResult found = Search("p99=9s");
  EXPECT_THAT(found.steps.front().why, HasSubstr("not sent, too many in flight"));
  EXPECT_TRUE(found.steps.front().limited_by_client);
  EXPECT_TRUE(found.limited_by_client);
}

TEST(WhyNotHeldTest, NamesWhatIsMissed) {
  const std::vector<Condition> objectives = *ParseObjectives("p99=20ms");
  LoadResult result;
  auto& calls = result.tally.methods[0];
  calls.codes[grpc::StatusCode::OK] = 1;
  calls.latency.Record(std::chrono::milliseconds(19));
  EXPECT_EQ(WhyNotHeld(result, objectives), "");
  calls.latency.Record(std::chrono::milliseconds(40));
  EXPECT_THAT(WhyNotHeld(result, objectives), StartsWith("p99 is 40"));
  calls.overflow = 3;
  EXPECT_THAT(WhyNotHeld(result, objectives), StartsWith("3 not sent"));
  calls.rejected = calls.codes[grpc::StatusCode::RESOURCE_EXHAUSTED] = 2;
  EXPECT_EQ(WhyNotHeld(result, objectives), "2 rejected");
  calls.codes[grpc::StatusCode::INTERNAL] = 1;
  EXPECT_EQ(WhyNotHeld(result, objectives), "1 error");
}

}  // namespace
}  // namespace softlookup::loadtest
