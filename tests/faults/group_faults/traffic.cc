#include "tests/faults/group_faults/traffic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/random.h"

namespace softlookup::testing {
namespace {

// Between two calls of one client, so that the group and not its clients has the machine.
constexpr absl::Duration kRest = absl::Milliseconds(2);
constexpr absl::Duration kReadersRest = absl::Milliseconds(10);
constexpr int kRoutedWriter = Traffic::kWriters - 1;
// More than a router waits for a node.
constexpr std::int64_t kRoutedSeconds = 15;

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
  threads_.emplace_back([this] { ReadThroughRouter(); });
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

void Traffic::ExpectRouted(bool expected) {
  if (expected != (expectations_ % 2 == 1)) ++expectations_;
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
  Client client = index == kRoutedWriter ? Client(group_.router()) : Client(group_);
  Draw draw(static_cast<std::uint64_t>(index) + 1);
  const std::string writer = absl::StrCat("w", index);
  for (std::uint64_t sequence = 1; !must_stop_; ++sequence) {
    AwaitResumed();
    const auto value = static_cast<float>(index);
    sent_[index] = sequence;
    if (!Append(client, kLog, writer, sequence, value, std::nullopt)) return;
    acknowledged_[index] = sequence;
    if (index == kRoutedWriter) ++routed_writes_;
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
  Client nodes(group_), router(group_.router());
  Draw draw(99);
  while (!must_stop_) {
    AwaitResumed();
    const bool is_routed = batches_.size() % 2 == 1;
    const int starts = group_.router().starts();
    const auto number = static_cast<float>(batches_.size() + 1);
    v1::AppendRequest request;
    request.set_store(kBatches);
    SetRows(kBatchRows, 0, number, request);
    v1::AppendResponse response;
    const absl::Time begin = absl::Now();
    const grpc::Status status =
        (is_routed ? router : nodes)
            .TryOnce([&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
              return stub.Append(&context, request, &response);
            });
    const Outcome outcome = NoteOutcome(begin, status);
    batches_.push_back(outcome);
    if (outcome == Outcome::kMade) {
      ++acknowledged_batches_;
      if (is_routed) ++routed_writes_;
      v1::SoftLookup::Stub& stub =
          is_routed ? router.node(0) : nodes.node(draw.Int(0, Group::kNodes - 1));
      const bool is_seen = ReadOwn(stub, number, response, is_routed ? 0 : response.revision());
      // Without a revision, only the router that has passed the write on is held to it.
      if (!is_seen && (!is_routed || group_.router().starts() == starts)) {
        NoteViolation(absl::StrCat("batch ", number, ", ", is_routed ? "routed, " : "",
                                   "is not at position ", response.first_position(),
                                   " after its revision ", response.revision()));
      }
    }
    LetPass(kRest);
  }
}

bool Traffic::ReadOwn(v1::SoftLookup::Stub& stub, float number, const v1::AppendResponse& appended,
                      std::uint64_t min_revision) {
  v1::LookupRequest request;
  request.set_store(kBatches);
  request.mutable_queries()->set_rows(1);
  request.mutable_queries()->set_cols(1);
  request.mutable_queries()->add_values(0);
  request.mutable_filter()->set_begin(appended.first_position());
  request.mutable_filter()->set_end(appended.first_position() + kBatchRows);
  request.set_min_revision(min_revision);
  grpc::ClientContext context;
  SetDeadline(5, context);
  v1::LookupResponse response;
  if (!stub.Lookup(&context, request, &response).ok()) return true;
  ++own_writes_seen_;
  return response.values().values_size() == 1 &&
         std::abs(response.values().values(0) - number) <= 1e-3 * number;
}

void Traffic::Read(int node) {
  const std::string where = absl::StrCat("node ", node);
  const std::unique_ptr<v1::SoftLookup::Stub> stub = group_.node(node).NewStub();
  for (std::uint64_t last_revision = 0; !must_stop_;) {
    if (const std::optional<std::uint64_t> revision = ReadBank(where, *stub)) {
      NoteRevision(where, *revision, last_revision);
    }
    if (LookUp(*stub, 5)) {
      ++lookups_;
    } else {
      ++failed_lookups_;
      LetPass(kReadersRest);
    }
    LetPass(kReadersRest);
  }
}

void Traffic::ReadThroughRouter() {
  const Router& router = group_.router();
  const std::unique_ptr<v1::SoftLookup::Stub> stub = router.NewStub();
  std::uint64_t last_revision = 0;
  int starts = 0;
  bool was_answered = false;
  while (!must_stop_) {
    const std::optional<std::uint64_t> revision = ReadBank("the router", *stub);
    if (const int now = router.starts(); now != starts) {
      // A new router has not seen what has passed the one before.
      starts = now;
      last_revision = 0;
    } else if (revision.has_value()) {
      NoteRevision("the router", *revision, last_revision);
    }
    const std::uint64_t expectations = expectations_;
    const bool is_answered = LookUp(*stub, kRoutedSeconds) || LookUp(*stub, kRoutedSeconds);
    const bool is_expected = expectations % 2 == 1 && expectations == expectations_;
    if (is_answered) {
      ++routed_lookups_;
    } else {
      ++failed_routed_lookups_;
      // A client that had no connection may still wait until it tries again to have one.
      if (is_expected && was_answered) ++lost_routed_lookups_;
    }
    was_answered = is_answered;
    LetPass(kReadersRest);
  }
}

void Traffic::NoteRevision(const std::string& where, std::uint64_t revision,
                           std::uint64_t& last_revision) {
  if (revision < last_revision) {
    NoteViolation(absl::StrCat(where, " shows revision ", revision, " after ", last_revision));
  }
  last_revision = revision;
}

std::optional<std::uint64_t> Traffic::ReadBank(const std::string& where,
                                               v1::SoftLookup::Stub& stub) {
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
  if (!reader->Finish().ok()) return std::nullopt;
  if (ids.size() != kBankRows || *ids.rbegin() != kBankRows - 1 ||
      std::set(ids.begin(), ids.end()).size() != kBankRows) {
    NoteViolation(
        absl::StrCat(where, " shows ", ids.size(), " rows of the bank at revision ", revision));
  }
  return revision;
}

bool Traffic::LookUp(v1::SoftLookup::Stub& stub, std::int64_t seconds) {
  v1::LookupRequest request;
  request.set_store(kBank);
  request.mutable_queries()->set_rows(1);
  request.mutable_queries()->set_cols(1);
  request.mutable_queries()->add_values(0);
  grpc::ClientContext context;
  SetDeadline(seconds, context);
  v1::LookupResponse response;
  return stub.Lookup(&context, request, &response).ok();
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
