#include "server/rpc/stream_pipeline.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_join.h"

namespace softlookup::server {
namespace {

class StreamPipelineTest : public ::testing::Test {
 protected:
  // Returns what the stream does next, such as "read, write a".
  std::string Next(bool may_read = true) {
    const StreamPipeline::Step step = pipeline_.Next(may_read);
    std::vector<std::string> parts;
    if (step.reads) parts.push_back("read");
    if (step.response != nullptr) parts.push_back("write " + TextOf(*step.response));
    if (step.ends) parts.push_back("end");
    return absl::StrJoin(parts, ", ");
  }
  // The read in progress has brought a request, which is handled at once.
  std::uint64_t Read() {
    const std::uint64_t number = pipeline_.OnRequest(/*request_bytes=*/10);
    pipeline_.OnHandled();
    return number;
  }
  void Answer(std::uint64_t number, const std::string& response) {
    const grpc::Slice slice(response);
    pipeline_.Answer(number, grpc::ByteBuffer(&slice, 1));
  }
  static std::string TextOf(const grpc::ByteBuffer& response) {
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(response.Dump(&slices).ok());
    std::string text;
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return text;
  }

  StreamPipeline pipeline_{/*count_max=*/2, /*bytes_max=*/1000};
};

TEST_F(StreamPipelineTest, ReadsAheadOfTheResponsesWithinItsBudget) {
  EXPECT_EQ(Next(), "read");
  EXPECT_EQ(Next(), "") << "one read is in progress";
  EXPECT_EQ(Read(), 0u);
  EXPECT_EQ(Next(), "read");
  EXPECT_EQ(Read(), 1u);
  EXPECT_EQ(Next(), "") << "two requests have no response yet";
  Answer(0, "a");
  EXPECT_EQ(Next(), "write a");
  EXPECT_EQ(Next(), "") << "the client has not taken it";
  pipeline_.OnWritten();
  EXPECT_EQ(Next(), "read");
}

TEST_F(StreamPipelineTest, WritesResponsesInTheOrderOfTheirRequests) {
  Next();
  Read();
  Next();
  Read();
  Answer(1, "b");
  EXPECT_EQ(Next(), "");
  Answer(0, "a");
  EXPECT_EQ(Next(), "write a");
  pipeline_.OnWritten();
  EXPECT_EQ(Next(), "read, write b");
}

TEST_F(StreamPipelineTest, AStreamThatMayNotReadYetWrites) {
  Next();
  Read();
  Answer(0, "a");
  EXPECT_EQ(Next(/*may_read=*/false), "write a");
  EXPECT_EQ(Next(), "read");
}

TEST_F(StreamPipelineTest, EndsOnceTheLastResponseIsWritten) {
  Next();
  Read();
  Next();
  pipeline_.OnLastReadOver();
  EXPECT_EQ(Next(), "");
  Answer(0, "a");
  EXPECT_EQ(Next(), "write a");
  EXPECT_FALSE(pipeline_.has_ended());
  pipeline_.OnWritten();
  EXPECT_EQ(Next(), "end");
  EXPECT_TRUE(pipeline_.has_ended());
  EXPECT_EQ(Next(), "") << "it ends once";
}

TEST_F(StreamPipelineTest, ARequestWithoutAResponseHoldsUpNoOther) {
  Next();
  Read();
  Next();
  Read();
  Answer(1, "b");
  pipeline_.Drop(0);
  EXPECT_EQ(Next(), "read, write b");
  pipeline_.OnLastReadOver();
  pipeline_.OnWritten();
  EXPECT_EQ(Next(), "end");
}

TEST_F(StreamPipelineTest, WaitsForTheReadInProgressBeforeItEnds) {
  EXPECT_EQ(Next(), "read");
  pipeline_.Break();
  EXPECT_EQ(Next(), "");
  pipeline_.OnLastReadOver();
  EXPECT_EQ(Next(), "end");
}

// A worker may handle a request for long. Whatever happens meanwhile, the call must not end under
// it.
TEST_F(StreamPipelineTest, NeitherReadsNorEndsWhileARequestIsHandled) {
  EXPECT_EQ(Next(), "read");
  EXPECT_EQ(pipeline_.OnRequest(10), 0u);
  EXPECT_EQ(Next(), "");
  pipeline_.Drop(0);  // Its answer can come before its handling returns.
  EXPECT_EQ(Next(), "");
  pipeline_.EndWith(absl::UnavailableError("the server stops"));
  EXPECT_EQ(Next(), "");
  pipeline_.Break();
  EXPECT_EQ(Next(), "");
  pipeline_.OnHandled();
  EXPECT_EQ(Next(), "end");
}

TEST_F(StreamPipelineTest, AFailedRequestEndsTheStreamThoughTheNextIsBeingRead) {
  Next();
  Read();
  EXPECT_EQ(Next(), "read");
  pipeline_.Drop(0);
  pipeline_.EndWith(absl::NotFoundError("the store is gone"));
  EXPECT_EQ(Next(), "end");
  pipeline_.OnLastReadOver();
  EXPECT_EQ(Next(), "");
}

TEST_F(StreamPipelineTest, ABrokenStreamDropsResponsesAndEndsOnceAllAreAnswered) {
  Next();
  Read();
  Next();
  Read();
  Answer(0, "a");
  pipeline_.Break();
  EXPECT_EQ(Next(), "");
  Answer(1, "b");
  EXPECT_EQ(Next(), "end");
}

TEST_F(StreamPipelineTest, AStreamThatBreaksDuringAWriteEndsAfterTheWrite) {
  Next();
  Read();
  Answer(0, "a");
  EXPECT_EQ(Next(/*may_read=*/false), "write a");
  pipeline_.Break();
  EXPECT_EQ(Next(), "");
  pipeline_.OnWritten();
  EXPECT_EQ(Next(), "end");
}

TEST_F(StreamPipelineTest, AStreamThatIsCutAnswersWhatItHasReadAndLeavesTheRest) {
  Next();
  Read();
  EXPECT_EQ(Next(), "read");
  pipeline_.EndWith(absl::UnavailableError("first"));
  pipeline_.EndWith(absl::UnavailableError("second"));
  EXPECT_EQ(Next(), "");
  Answer(0, "a");
  EXPECT_EQ(Next(), "write a");
  pipeline_.OnWritten();
  EXPECT_EQ(Next(), "end") << "the read in progress ends with the call";
  EXPECT_EQ(pipeline_.error().message(), "first");
  pipeline_.OnLastReadOver();
  EXPECT_EQ(Next(), "");
}

}  // namespace
}  // namespace softlookup::server
