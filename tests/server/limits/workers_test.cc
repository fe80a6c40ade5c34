#include "server/limits/workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "tests/testing/status_matchers.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::StatusIs;
using ::testing::ElementsAre;

// Keeps the one thread of `workers` busy until it goes.
class Gate {
 public:
  explicit Gate(Workers& workers) {
    EXPECT_THAT(workers.Post("gate",
                             [events = events_] {
                               events->entered.Notify();
                               events->open.WaitForNotification();
                             }),
                IsOk());
    events_->entered.WaitForNotification();
  }
  void Open() { events_->open.Notify(); }

 private:
  struct Events {
    absl::Notification entered, open;
  };
  // Shared with the thread, which may see that the gate is open only after the gate's end.
  const std::shared_ptr<Events> events_ = std::make_shared<Events>();
};

TEST(WorkersTest, CallersTakeTurns) {
  std::vector<std::string> order;
  {
    Workers workers(1, 100, 100);
    Gate gate(workers);
    for (const char* caller : {"a", "a", "a", "b", "c", "b"}) {
      EXPECT_THAT(workers.Post(caller, [&order, caller] { order.push_back(caller); }), IsOk());
    }
    gate.Open();
  }
  EXPECT_THAT(order, ElementsAre("a", "b", "c", "a", "b", "a"));
}

TEST(WorkersTest, OneCallerMayHaveSoManyWaiting) {
  Workers workers(1, 100, 2);
  Gate gate(workers);
  EXPECT_THAT(workers.Post("a", [] {}), IsOk());
  EXPECT_THAT(workers.Post("a", [] {}), IsOk());
  const absl::Status refused = workers.Post("a", [] {});
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, ""));
  EXPECT_EQ(ReasonOf(refused), "QUEUE_FULL");
  EXPECT_TRUE(RetryAfterOf(refused).has_value());
  EXPECT_THAT(workers.Post("b", [] {}), IsOk());
  gate.Open();
}

TEST(WorkersTest, AllTogetherMayHaveSoManyWaiting) {
  Workers workers(1, 2, 100);
  Gate gate(workers);
  EXPECT_THAT(workers.Post("a", [] {}), IsOk());
  EXPECT_THAT(workers.Post("b", [] {}), IsOk());
  EXPECT_FALSE(workers.Post("c", [] {}).ok());
  int ran = 0;
  workers.PostNext("d", [&] { ++ran; });  // It was let in before.
  gate.Open();
  absl::Notification done;
  workers.PostNext("d", [&] { done.Notify(); });
  done.WaitForNotification();
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace softlookup::server
