#include "tests/faults/group_faults/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/faults/group_faults/passing_time.h"
#include "tests/testing/random.h"

namespace softlookup::testing {
namespace {

// Between two calls of one client, so that the group and not its clients has the machine.
constexpr absl::Duration kRest = absl::Milliseconds(2);

}  // namespace

Traffic::Traffic(Group& group) : group_(group) {
  Client client(group);
  for (const char* store : {kLog, kBank, kBatches}) {
    client.Try(must_stop_, [&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
      v1::CreateStoreRequest request;
      request.mutable_store()->set_name(store);
      request.mutable_store()->set_key_dim(1);
      request.mutable_store()->set_value_dim(1);
      v1::Store response;
      const grpc::Status status = stub.CreateStore(&context, request, &response);
      return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status::OK : status;
    });
  }
  for (std::uint64_t id = 0; id < kBankRows; ++id) Append(client, kBank, "bank", id + 1, 0, id);
}

void Traffic::Start() {
  Resume();
  for (int i = 0; i < kWriters; ++i) threads_.emplace_back([this, i] { Write(i); });
  threads_.emplace_back([this] { WriteBatches(); });
  for (int i = 0; i < Group::kNodes; ++i) threads_.emplace_back([this, i] { Read(i); });
}

void Traffic::Stop() {
  must_stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Traffic::Resume() {
  {
    absl::MutexLock lock(&mutex_);
    last_acknowledged_ = absl::Now();
  }
  is_paused_ = false;
}

std::uint64_t Traffic::acknowledged() const {
  std::uint64_t sum = acknowledged_batches_;
  for (const auto& count : acknowledged_) sum += count;
  return sum;
}

absl::Duration Traffic::longest_gap() const {
  absl::MutexLock lock(&mutex_);
  return longest_gap_;
}

std::vector<std::string> Traffic::violations() const {
  absl::MutexLock lock(&mutex_);
  return violations_;
}

void Traffic::Write(int index) {
  Client client(group_);
  Draw draw(static_cast<std::uint64_t>(index) + 1);
  const std::string writer = absl::StrCat("w", index);
  for (std::uint64_t sequence = 1; !must_stop_; ++sequence) {
    AwaitResumed();
    const auto value = static_cast<float>(index);
    sent_[index] = sequence;
    if (!Append(client, kLog, writer, sequence, value, std::nullopt)) return;
    acknowledged_[index] = sequence;
    const auto id = static_cast<std::uint64_t>(draw.Int(0, kBankRows - 1));
    Append(client, kBank, writer, sequence, value, id);
    LetPass(kRest);
  }
}

bool Traffic::Append(Client& client, const std::string& store, const std::string& writer,
                     std::uint64_t sequence, float value, std::optional<std::uint64_t> id) {
  v1::AppendRequest request;
  request.set_store(store);
  request.set_writer(writer);
  request.set_sequence(sequence);
  if (id) {
    request.add_ids(*id);
    request.set_on_conflict(v1::ON_CONFLICT_REPLACE);
  }
  SetRows(1, static_cast<float>(sequence), value, request);
  return client.Try(must_stop_, [&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
    const absl::Time begin = absl::Now();
    v1::AppendResponse response;
    const grpc::Status status = stub.Append(&context, request, &response);
    NoteOutcome(begin, status);
    return status;
  });
}

void Traffic::WriteBatches() {
  Client client(group_);
  Draw draw(99);
  while (!must_stop_) {
    AwaitResumed();
    const auto number = static_cast<float>(batches_.size() + 1);
    v1::AppendRequest request;
    request.set_store(kBatches);
    SetRows(kBatchRows, 0, number, request);
    v1::AppendResponse response;
    const absl::Time begin = absl::Now();
    const grpc::Status status =
        client.TryOnce([&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
          return stub.Append(&context, request, &response);
        });
    const Outcome outcome = NoteOutcome(begin, status);
    batches_.push_back(outcome);
    if (outcome == Outcome::kMade) {
      ++acknowledged_batches_;
      ReadOwn(client, static_cast<int>(draw.Int(0, Group::kNodes - 1)), number, response);
    }
    LetPass(kRest);
  }
}

void Traffic::ReadOwn(Client& client, int node, float number, const v1::AppendResponse& appended) {
  v1::LookupRequest request;
  request.set_store(kBatches);
  request.mutable_queries()->set_rows(1);
  request.mutable_queries()->set_cols(1);
  request.mutable_queries()->add_values(0);
  request.mutable_filter()->set_begin(appended.first_position());
  request.mutable_filter()->set_end(appended.first_position() + kBatchRows);
  request.set_min_revision(appended.revision());
  grpc::ClientContext context;
  SetDeadline(5, context);
  v1::LookupResponse response;
  if (!client.node(node).Lookup(&context, request, &response).ok()) return;
  ++own_writes_seen_;
  if (response.values().values_size() != 1 ||
      std::abs(response.values().values(0) - number) > 1e-3 * number) {
    NoteViolation(absl::StrCat("batch ", number, " is not at position ", appended.first_position(),
                               " as of its revision ", appended.revision()));
  }
}

void Traffic::Read(int index) {
  const std::unique_ptr<v1::SoftLookup::Stub> stub = group_.node(index).NewStub();
  for (std::uint64_t last_revision = 0; !must_stop_;) {
    ReadBank(index, *stub, last_revision);
    LookUp(*stub);
    LetPass(kRest);
  }
}

void Traffic::ReadBank(int index, v1::SoftLookup::Stub& stub, std::uint64_t& last_revision) {
  grpc::ClientContext context;
  SetDeadline(5, context);
  v1::ReadRowsRequest request;
  request.set_store(kBank);
  const auto reader = stub.ReadRows(&context, request);
  std::multiset<std::uint64_t> ids;
  std::uint64_t revision = 0;
  v1::ReadRowsResponse response;
  while (reader->Read(&response)) {
    revision = response.revision();
    for (const v1::Row& row : response.rows()) ids.insert(row.id());
  }
  if (!reader->Finish().ok()) return;
  if (revision < last_revision) {
    NoteViolation(
        absl::StrCat("node ", index, " shows revision ", revision, " after ", last_revision));
  }
  last_revision = revision;
  if (ids.size() != kBankRows || *ids.rbegin() != kBankRows - 1 ||
      std::set(ids.begin(), ids.end()).size() != kBankRows) {
    NoteViolation(absl::StrCat("node ", index, " shows ", ids.size(),
                               " rows of the bank at revision ", revision));
  }
}

void Traffic::LookUp(v1::SoftLookup::Stub& stub) {
  v1::LookupRequest request;
  request.set_store(kBank);
  request.mutable_queries()->set_rows(1);
  request.mutable_queries()->set_cols(1);
  request.mutable_queries()->add_values(0);
  grpc::ClientContext context;
  SetDeadline(5, context);
  v1::LookupResponse response;
  if (!stub.Lookup(&context, request, &response).ok()) {
    ++failed_lookups_;
    LetPass(10 * kRest);
    return;
  }
  ++lookups_;
}

void Traffic::AwaitResumed() const {
  while (is_paused_ && !must_stop_) LetPass(kRest);
}

Outcome Traffic::NoteOutcome(absl::Time begin, const grpc::Status& status) {
  const Outcome outcome = OutcomeOf(status);
  const absl::Time now = absl::Now();
  absl::MutexLock lock(&mutex_);
  if (outcome == Outcome::kNotMade) {
    ++refused_;
    longest_refusal_ = std::max(longest_refusal_, now - begin);
  }
  if (outcome == Outcome::kMade && !is_paused_) {
    longest_gap_ = std::max(longest_gap_, now - last_acknowledged_);
    last_acknowledged_ = std::max(now, last_acknowledged_);
  }
  return outcome;
}

absl::Duration Traffic::TakeLongestRefusal() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(longest_refusal_, absl::ZeroDuration());
}

void Traffic::NoteViolation(std::string what) {
  absl::MutexLock lock(&mutex_);
  constexpr std::size_t kViolationsMax = 20;
  if (violations_.size() < kViolationsMax) violations_.push_back(std::move(what));
}

}  // namespace softlookup::testing
