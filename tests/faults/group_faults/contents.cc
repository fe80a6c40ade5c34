#include "tests/faults/group_faults/contents.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/faults/group_faults/client.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

// Returns the rows and the memories of all stores at a node, bit for bit; "" if it does not answer.
std::string Show(v1::SoftLookup::Stub& stub) {
  std::string shown;
  for (const char* const store : {Traffic::kLog, Traffic::kBank, Traffic::kBatches}) {
    std::uint64_t revision = 0;
    const auto append = [&](const v1::ReadRowsResponse& response) {
      for (const v1::Row& row : response.rows()) shown += row.SerializeAsString();
      revision = response.revision();
    };
    if (!ReadStore(stub, store, append)) return "";
    absl::StrAppend(&shown, "@", revision);
    grpc::ClientContext context;
    SetDeadline(30, context);
    v1::GetMemoryRequest request;
    request.set_store(store);
    v1::Memory average;
    if (!stub.GetMemory(&context, request, &average).ok()) return "";
    shown += average.SerializeAsString();
  }
  return shown;
}

}  // namespace

bool Answers(v1::SoftLookup::Stub& stub) {
  grpc::ClientContext context;
  SetDeadline(5, context);
  v1::LookupRequest request;
  request.set_store(Traffic::kBank);
  request.mutable_queries()->set_rows(1);
  request.mutable_queries()->set_cols(1);
  request.mutable_queries()->add_values(0);
  v1::LookupResponse response;
  return stub.Lookup(&context, request, &response).ok();
}

bool AllAnswer(const Group& group) {
  for (int i = 0; i < Group::kNodes; ++i) {
    if (!Answers(*group.node(i).NewStub())) return false;
  }
  return Answers(*group.router().NewStub());
}

bool AwaitEqual(Group& group, Traffic& traffic, absl::Duration time) {
  Client client(group);
  traffic.Pause();
  const bool are_equal = AwaitThat(
      [&] {
        group.StartMissing();
        const std::string first = Show(client.node(0));
        if (first.empty()) return false;
        for (int i = 1; i < Group::kNodes; ++i) {
          if (Show(client.node(i)) != first) return false;
        }
        return true;
      },
      time);
  traffic.Resume();
  return are_equal;
}

void CheckLog(const Group& group, const Traffic& traffic) {
  std::array<std::uint64_t, Traffic::kWriters> last{};
  ASSERT_TRUE(
      ReadStore(*group.node(0).NewStub(), Traffic::kLog, [&](const v1::ReadRowsResponse& response) {
        for (const v1::Row& row : response.rows()) {
          const auto writer = static_cast<int>(ComponentOf(row.value()));
          const auto sequence = static_cast<std::uint64_t>(ComponentOf(row.key()));
          ASSERT_GE(writer, 0);
          ASSERT_LT(writer, Traffic::kWriters);
          ASSERT_EQ(sequence, ++last[writer]) << "of writer " << writer;
        }
      }));
  for (int writer = 0; writer < Traffic::kWriters; ++writer) {
    EXPECT_GE(last[writer], traffic.acknowledged(writer));
    EXPECT_LE(last[writer], traffic.sent(writer));
  }
}

void CheckBatches(const Group& group, const Traffic& traffic) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> positions;  // By number.
  ASSERT_TRUE(ReadStore(
      *group.node(0).NewStub(), Traffic::kBatches, [&](const v1::ReadRowsResponse& response) {
        for (const v1::Row& row : response.rows()) {
          const auto number = static_cast<std::uint64_t>(ComponentOf(row.value()));
          positions[number].push_back(row.position());
        }
      }));
  for (std::uint64_t number = 1; number <= traffic.batches().size(); ++number) {
    const std::vector<std::uint64_t>& rows = positions[number];
    if (traffic.batches()[number - 1] != Outcome::kMade && rows.empty()) continue;
    EXPECT_NE(traffic.batches()[number - 1], Outcome::kNotMade) << "batch " << number;
    ASSERT_EQ(rows.size(), Traffic::kBatchRows) << "batch " << number;
    EXPECT_EQ(rows.back(), rows.front() + Traffic::kBatchRows - 1) << "batch " << number;
  }
  EXPECT_LE(positions.size(), traffic.batches().size());
}

}  // namespace softlookup::testing
