// The calls about rows and memories that stream, and what goes with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "softlookup/client.h"
#include "tests/client/canned_answers.h"
#include "tests/client/scripted_service.h"
#include "tests/testing/patient_options.h"

namespace softlookup {
namespace {

using ::softlookup::testing::CannedAnswers;
using ::softlookup::testing::PatientOptions;
using ::softlookup::testing::ScriptedService;
using ::testing::ElementsAre;

const grpc::Status kNotYet(grpc::StatusCode::UNAVAILABLE, "not yet");

class ClientRowsTest : public ::testing::Test {
 protected:
  ClientRowsTest() { canned_.Serve(&service_); }

  Client Connect() {
    ClientOptions options = PatientOptions();
    options.retry.backoff_min = absl::Milliseconds(1);
    options.retry.backoff_max = absl::Milliseconds(1);
    return *Client::Connect(service_.address(), options);
  }

  // Two pages of two rows, at revision 7.
  void FillPages() {
    for (std::uint64_t position = 0; position < 4; ++position) {
      if (position % 2 == 0) canned_.pages.emplace_back().set_revision(7);
      canned_.pages.back().add_rows()->set_position(position);
    }
  }

  CannedAnswers canned_;
  ScriptedService service_;
};

TEST_F(ClientRowsTest, ReadRowsSendsItsOptionsAndHandsOverEveryPage) {
  FillPages();
  v1::RowFilter filter;
  filter.add_any_labels("red");
  std::vector<std::uint64_t> positions;
  const absl::Status status =
      Connect().ReadRows("people", filter,
                         [&](const v1::ReadRowsResponse& page) {
                           EXPECT_EQ(page.revision(), 7u);
                           for (const v1::Row& row : page.rows())
                             positions.push_back(row.position());
                           return true;
                         },
                         {.read_mask = {"position", "key"}, .page_rows = 2});
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(positions, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(canned_.read_rows.store(), "people");
  EXPECT_EQ(canned_.read_rows.page_rows(), 2u);
  EXPECT_THAT(canned_.read_rows.filter().any_labels(), ElementsAre("red"));
  EXPECT_THAT(canned_.read_rows.read_mask().paths(), ElementsAre("position", "key"));
}

TEST_F(ClientRowsTest, ReadRowsEndsWithOkWhenThePageSaysSo) {
  FillPages();
  int pages = 0;
  EXPECT_TRUE(Connect()
                  .ReadRows("people", {},
                            [&](const v1::ReadRowsResponse&) {
                              ++pages;
                              return false;
                            })
                  .ok());
  EXPECT_EQ(pages, 1);
}

TEST_F(ClientRowsTest, ReadRowsReturnsTheFailureBehindTheRowsAndIsSentOnce) {
  FillPages();
  canned_.results = {kNotYet};
  int pages = 0;
  const absl::Status status =
      Connect().ReadRows("people", {}, [&](const v1::ReadRowsResponse&) { return ++pages > 0; });
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(pages, 2);
  EXPECT_EQ(canned_.calls, 1u);
}

TEST_F(ClientRowsTest, DeleteRowsIsSentOnce) {
  canned_.results = {kNotYet};
  canned_.deleted.set_deleted_count(3);
  v1::RowFilter filter;
  filter.add_ids(9);
  Client client = Connect();
  EXPECT_TRUE(absl::IsUnavailable(client.DeleteRows("people", filter).status()));
  EXPECT_EQ(canned_.calls, 1u);
  const auto deleted = client.DeleteRows("people", filter);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_EQ(deleted->deleted_count(), 3u);
  EXPECT_EQ(canned_.delete_rows.store(), "people");
  EXPECT_THAT(canned_.delete_rows.filter().ids(), ElementsAre(9));
}

TEST_F(ClientRowsTest, AttendIsRetried) {
  canned_.results = {kNotYet};
  canned_.attended.mutable_values()->set_rows(5);
  for (int query = 0; query < 5; ++query) canned_.attended.add_stats();
  v1::AttendRequest request;
  request.set_self(true);
  request.mutable_inputs()->set_rows(5);
  const auto answer = Connect().Attend(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->values().rows(), 5u);
  EXPECT_TRUE(canned_.attend.self());
  EXPECT_EQ(canned_.calls, 2u);
}

TEST_F(ClientRowsTest, WatchMemoryEndsWhenItsCallerHasSeenEnough) {
  canned_.memories.resize(3);
  for (int i = 0; i < 3; ++i) canned_.memories[i].set_end(i);
  std::vector<std::uint64_t> ends;
  const absl::Status status = Connect().WatchMemory("people", "slow",
                                                    [&](const v1::Memory& memory) {
                                                      ends.push_back(memory.end());
                                                      return memory.end() < 1;
                                                    },
                                                    {.min_interval = absl::Milliseconds(20)});
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_THAT(ends, ElementsAre(0, 1));
  EXPECT_EQ(canned_.watch_memory.name(), "slow");
  EXPECT_EQ(canned_.watch_memory.min_interval_ms(), 20u);
}

TEST_F(ClientRowsTest, WatchMemoryReturnsWhatEndedIt) {
  canned_.memories.resize(1);
  canned_.results = {{grpc::StatusCode::NOT_FOUND, "deleted"}};
  EXPECT_TRUE(absl::IsNotFound(
      Connect().WatchMemory("people", "", [](const v1::Memory&) { return true; })));
}

TEST_F(ClientRowsTest, StreamOptionsOutOfRangeAreRefusedBeforeAnythingIsSent) {
  Client client = Connect();
  const auto memory = [](const v1::Memory&) { return true; };
  const auto page = [](const v1::ReadRowsResponse&) { return true; };
  EXPECT_TRUE(absl::IsInvalidArgument(
      client.ReadRows("people", {}, page, {.deadline = absl::ZeroDuration()})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      client.WatchMemory("people", "", memory, {.min_interval = -absl::Seconds(1)})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      client.WatchMemory("people", "", memory, {.min_interval = absl::InfiniteDuration()})));
  EXPECT_EQ(canned_.calls, 0u);
}

TEST_F(ClientRowsTest, LookupSendsInputsWhereItsOptionsSaySo) {
  const FloatMatrix inputs{.rows = 1, .cols = 3, .data = {1, 2, 3}};
  canned_.answer.mutable_values()->set_rows(1);
  canned_.answer.add_stats();
  LookupOptions options;
  options.queries_are_inputs = true;
  EXPECT_TRUE(Connect().Lookup("people", inputs, options).ok());
  EXPECT_FALSE(canned_.lookup.has_queries());
  EXPECT_EQ(canned_.lookup.inputs().cols(), 3u);
}

}  // namespace
}  // namespace softlookup
