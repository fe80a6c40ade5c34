#include "tests/faults/group_faults/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {

Outcome OutcomeOf(const grpc::Status& status) {
  if (status.ok()) return Outcome::kMade;
  google::rpc::Status told;
  if (!told.ParseFromString(status.error_details())) return Outcome::kUnknown;
  const bool can_be_sent_again = std::ranges::any_of(told.details(), [](const auto& detail) {
    return detail.template Is<google::rpc::RetryInfo>();
  });
  return can_be_sent_again ? Outcome::kNotMade : Outcome::kUnknown;
}

void SetDeadline(std::int64_t seconds, grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
}

void SetRows(std::uint32_t count, float key, float value, v1::AppendRequest& request) {
  const auto set = [count](float component, v1::Matrix& matrix) {
    matrix.set_rows(count);
    matrix.set_cols(1);
    matrix.mutable_values()->Clear();
    for (std::uint32_t i = 0; i < count; ++i) matrix.add_values(component);
  };
  set(key, *request.mutable_keys());
  set(value, *request.mutable_values());
}

float ComponentOf(const v1::Matrix& matrix) {
  float component = 0;
  EXPECT_EQ(matrix.data().size(), sizeof component);
  std::memcpy(&component, matrix.data().data(), std::min(matrix.data().size(), sizeof component));
  return component;
}

bool ReadStore(v1::SoftLookup::Stub& stub, const std::string& store,
               const std::function<void(const v1::ReadRowsResponse&)>& visit) {
  grpc::ClientContext context;
  SetDeadline(30, context);
  v1::ReadRowsRequest request;
  request.set_store(store);
  const auto reader = stub.ReadRows(&context, request);
  v1::ReadRowsResponse response;
  while (reader->Read(&response)) visit(response);
  return reader->Finish().ok();
}

Client::Client(const Group& group) {
  for (int i = 0; i < Group::kNodes; ++i) stubs_.push_back(group.node(i).NewStub());
}

Client::Client(const Router& router) { stubs_.push_back(router.NewStub()); }

grpc::Status Client::TryOnce(const Call& call) {
  grpc::ClientContext context;
  SetDeadline(15, context);
  const grpc::Status status = call(*stubs_[next_], context);
  if (!status.ok()) {
    next_ = (next_ + 1) % stubs_.size();
    if (next_ == 0) LetPass(absl::Milliseconds(50));
  }
  return status;
}

bool Client::Try(const std::atomic<bool>& stop, const Call& call) {
  while (!stop) {
    if (TryOnce(call).ok()) return true;
  }
  return false;
}

}  // namespace softlookup::testing
