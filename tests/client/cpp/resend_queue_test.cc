#include "client/cpp/resend_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <random>
#include <vector>

namespace softlookup::client_internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::AppendRequest Rows(std::uint32_t rows) {
  v1::AppendRequest request;
  request.mutable_keys()->set_rows(rows);
  return request;
}

v1::AppendResponse Answer(std::uint64_t sequence, std::uint32_t appended_count) {
  v1::AppendResponse response;
  response.set_sequence(sequence);
  response.set_appended_count(appended_count);
  response.set_row_count(1000 + sequence);
  response.set_revision(2000 + sequence);
  response.set_duplicate(appended_count == 0);
  return response;
}

class ResendQueueTest : public ::testing::Test {
 protected:
  void Push(const std::vector<std::uint32_t>& rows) {
    for (const std::uint32_t count : rows) ASSERT_TRUE(queue_.Push(Rows(count)).ok());
  }
  // Sends all there is to send; returns the sequences.
  std::vector<std::uint64_t> Send() {
    std::vector<std::uint64_t> sequences;
    while (const auto request = queue_.NextToSend()) sequences.push_back(request->sequence());
    return sequences;
  }

  ResendQueue queue_{100};
};

TEST_F(ResendQueueTest, SequencesCountTheWritersRows) {
  Push({10, 1});
  v1::AppendRequest inputs;
  inputs.mutable_inputs()->set_rows(7);
  ASSERT_TRUE(queue_.Push(inputs).ok());
  EXPECT_THAT(Send(), ElementsAre(110, 111, 118));
  EXPECT_THAT(Send(), IsEmpty());
  EXPECT_TRUE(queue_.all_sent());
}

TEST_F(ResendQueueTest, SequencesAscendWhereARequestHasNoRows) {
  Push({0, 0});
  EXPECT_THAT(Send(), ElementsAre(101, 102));
}

TEST_F(ResendQueueTest, SequencesDoNotStartAgainAtTheirEnd) {
  ResendQueue queue(std::numeric_limits<std::uint64_t>::max() - 5);
  EXPECT_TRUE(absl::IsOutOfRange(queue.Push(Rows(6))));
  EXPECT_TRUE(queue.Push(Rows(5)).ok());
  EXPECT_TRUE(absl::IsOutOfRange(queue.Push(Rows(1))));
  EXPECT_EQ(queue.size(), 1u);
}

TEST_F(ResendQueueTest, AcknowledgedRequestsLeaveAndCount) {
  Push({10, 20});
  const std::int64_t both = queue_.bytes();
  Send();
  ASSERT_TRUE(queue_.Acknowledge(Answer(110, 10)).ok());
  EXPECT_EQ(queue_.size(), 1u);
  EXPECT_LT(queue_.bytes(), both);
  ASSERT_TRUE(queue_.Acknowledge(Answer(130, 15)).ok());  // ON_CONFLICT_SKIP left out five.
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.bytes(), 0);
  EXPECT_EQ(queue_.acknowledged().acknowledged_requests, 2u);
  EXPECT_EQ(queue_.acknowledged().acknowledged_rows, 25u);
  EXPECT_EQ(queue_.acknowledged().row_count, 1130u);
  EXPECT_EQ(queue_.acknowledged().revision, 2130u);
}

TEST_F(ResendQueueTest, AnswerToWhatWasNotSentOrOutOfOrderIsRefused) {
  Push({10, 10});
  EXPECT_TRUE(absl::IsInternal(queue_.Acknowledge(Answer(110, 10))));
  queue_.NextToSend();
  EXPECT_TRUE(absl::IsInternal(queue_.Acknowledge(Answer(120, 10))));
  ASSERT_TRUE(queue_.Acknowledge(Answer(110, 10)).ok());
  EXPECT_TRUE(absl::IsInternal(queue_.Acknowledge(Answer(120, 10))));
  EXPECT_EQ(queue_.acknowledged().acknowledged_requests, 1u);
}

TEST_F(ResendQueueTest, RewindDropsAndCountsWhatTheServerHasAndResendsTheRest) {
  Push({10, 10, 10});
  Send();
  Push({10});
  ASSERT_TRUE(queue_.Rewind(120).ok());
  EXPECT_EQ(queue_.acknowledged().acknowledged_rows, 20u);
  EXPECT_EQ(queue_.acknowledged().acknowledged_requests, 2u);
  EXPECT_FALSE(queue_.all_sent());
  EXPECT_THAT(Send(), ElementsAre(130, 140));
}

TEST_F(ResendQueueTest, RewindResendsARequestThatTheServerHasNotWhole) {
  Push({10, 10});
  Send();
  ASSERT_TRUE(queue_.Rewind(115).ok());  // As if another cut of the same rows had ended there.
  EXPECT_THAT(Send(), ElementsAre(120));
}

TEST_F(ResendQueueTest, RewindWithNothingWrittenResendsAll) {
  Push({10, 10});
  queue_.NextToSend();
  ASSERT_TRUE(queue_.Rewind(100).ok());
  EXPECT_THAT(Send(), ElementsAre(110, 120));
  EXPECT_EQ(queue_.acknowledged().acknowledged_rows, 0u);
}

TEST_F(ResendQueueTest, WhereTheServerHasAllTheLastIsResentForTheStoresRowCount) {
  Push({10, 10});
  Send();
  ASSERT_TRUE(queue_.Rewind(120).ok());
  EXPECT_EQ(queue_.acknowledged().acknowledged_rows, 10u);
  EXPECT_THAT(Send(), ElementsAre(120));
  ASSERT_TRUE(queue_.Acknowledge(Answer(120, 0)).ok());
  EXPECT_EQ(queue_.acknowledged().acknowledged_rows, 20u);
  EXPECT_EQ(queue_.acknowledged().acknowledged_requests, 2u);
  EXPECT_EQ(queue_.acknowledged().row_count, 1120u);
}

TEST_F(ResendQueueTest, RequestInHandOutlivesItsAcknowledgement) {
  Push({10});
  const ResendQueue::Request request = queue_.NextToSend();
  ASSERT_TRUE(queue_.Acknowledge(Answer(110, 10)).ok());
  EXPECT_EQ(request->keys().rows(), 10u);
}

TEST_F(ResendQueueTest, ServerThatLostWhatItHadAcknowledgedIsFoundOut) {
  EXPECT_TRUE(absl::IsDataLoss(queue_.Rewind(99)));
  Push({10, 10});
  Send();
  ASSERT_TRUE(queue_.Acknowledge(Answer(110, 10)).ok());
  EXPECT_TRUE(absl::IsDataLoss(queue_.Rewind(100)));
  EXPECT_TRUE(queue_.Rewind(110).ok());
}

TEST_F(ResendQueueTest, AnotherStreamOfTheSameWriterIsFoundOut) {
  Push({10, 10});
  EXPECT_TRUE(absl::IsFailedPrecondition(queue_.Rewind(110))) << "it has not been sent";
  queue_.NextToSend();
  EXPECT_TRUE(absl::IsFailedPrecondition(queue_.Rewind(111)));
  EXPECT_TRUE(queue_.Rewind(110).ok());
}

TEST_F(ResendQueueTest, ADuplicateOfARequestThatWasSentOnceIsAnotherSenders) {
  Push({10, 10});
  Send();
  ASSERT_TRUE(queue_.Acknowledge(Answer(110, 10)).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(queue_.Acknowledge(Answer(120, 0))));
  EXPECT_EQ(queue_.acknowledged().acknowledged_rows, 10u);
  EXPECT_EQ(queue_.size(), 1u);
}

TEST_F(ResendQueueTest, ADuplicateIsAnotherSendersAlsoOnALaterConnection) {
  Push({10, 10});
  queue_.NextToSend();
  ASSERT_TRUE(queue_.Rewind(100).ok());
  Send();
  ASSERT_TRUE(queue_.Acknowledge(Answer(110, 0)).ok()) << "it was sent before";
  EXPECT_TRUE(absl::IsFailedPrecondition(queue_.Acknowledge(Answer(120, 0))));
}

// A server as the queue sees it: each connection hands over a run of what was sent on it, at any
// time, and answers some of that.
TEST_F(ResendQueueTest, AnyCutsAndAnyDelaysLeaveEachRowOnceAndInOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 generator(seed);
    const auto draw = [&](std::uint64_t end) { return generator() % end; };
    constexpr std::uint64_t kRows = 300;
    ResendQueue queue(0);
    using Pipe = std::deque<ResendQueue::Request>;  // Sent and not arrived.
    std::vector<Pipe> old_pipes;
    Pipe pipe;
    std::deque<v1::AppendResponse> answers;
    std::uint64_t pushed = 0, stored = 0;  // Rows. The server's last sequence is `stored`.
    const auto arrive = [&](Pipe* from, bool answer) {
      if (from->empty()) return;
      const ResendQueue::Request request = from->front();
      from->pop_front();
      const bool duplicate = request->sequence() <= stored;
      if (!duplicate) {
        ASSERT_EQ(request->sequence() - request->keys().rows(), stored) << "a gap or an overlap";
        stored = request->sequence();
      }
      if (!answer) return;
      answers.push_back(Answer(request->sequence(), duplicate ? 0 : request->keys().rows()));
    };
    while (pushed < kRows || !queue.empty()) {
      const std::uint64_t step = draw(10);
      if (step < 2 && pushed < kRows) {
        const auto rows = static_cast<std::uint32_t>(1 + draw(5));
        ASSERT_TRUE(queue.Push(Rows(rows)).ok());
        pushed += rows;
      } else if (step < 4) {
        if (auto request = queue.NextToSend()) pipe.push_back(std::move(request));
      } else if (step < 6) {
        arrive(&pipe, true);
      } else if (step < 8 && !answers.empty()) {
        ASSERT_TRUE(queue.Acknowledge(answers.front()).ok());
        answers.pop_front();
      } else if (step == 8 && draw(4) == 0) {  // A cut: what was sent may still arrive.
        old_pipes.push_back(std::move(pipe));
        pipe.clear();
        answers.clear();
        const std::uint64_t told = stored;
        if (draw(2) == 0) arrive(&old_pipes[draw(old_pipes.size())], false);
        ASSERT_TRUE(queue.Rewind(told).ok());
      } else if (!old_pipes.empty()) {
        arrive(&old_pipes[draw(old_pipes.size())], false);
      }
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(stored, pushed);
    EXPECT_EQ(queue.acknowledged().acknowledged_rows, pushed);
  }
}

}  // namespace
}  // namespace softlookup::client_internal
