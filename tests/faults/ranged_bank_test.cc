// A store that is cut into ranges at the nodes of a group of three, behind a router, all of them
// processes. One client replaces, appends and deletes its rows, while the ranges change, the
// primary moves, connections are cut, and nodes and the router are killed and stand still. A lookup
// counts exactly the rows that the store has as of the answer's revision, whichever nodes have
// answered.
//
// In the environment,
// SOFTLOOKUP_TEST_BANK_SECONDS sets how long that goes on, and
// SOFTLOOKUP_TEST_SEED sets what is drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/group_faults/client.h"
#include "tests/faults/group_faults/group.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

constexpr char kStore[] = "bank";
constexpr std::uint32_t kDim = 2048;  // So many that few rows are enough for a range.
constexpr std::uint32_t kRowsAtFirst = 2048;
constexpr std::uint32_t kRowsPerWrite = 8;
constexpr std::int64_t kRangesMax = 7;

absl::Duration RunTime() {
  const char* const seconds = std::getenv("SOFTLOOKUP_TEST_BANK_SECONDS");
  return absl::Seconds(seconds == nullptr ? 20 : std::atoi(seconds));
}

// The number of rows from a revision on, until the next state.
struct BankState {
  std::uint64_t revision = 0;
  std::uint64_t rows = 0;
  // The write has made this revision. Otherwise it was sent again, and was made at this revision or
  // at an earlier one, after that of the state before.
  bool is_exact = false;
};

// What a lookup has answered.
struct Count {
  std::uint64_t revision = 0;
  std::uint64_t rows = 0;
};

class RangedBankTest : public ::testing::Test {
 protected:
  RangedBankTest() { group_.Start(); }
  ~RangedBankTest() override {
    if (HasFailure()) std::cout << "SOFTLOOKUP_TEST_SEED=" << FirstSeed() << "\n" << group_.Logs();
  }

  void Fill() {
    Client client(group_);
    ASSERT_TRUE(client.Try(must_end_, [](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
      v1::CreateStoreRequest request;
      request.mutable_store()->set_name(kStore);
      request.mutable_store()->set_key_dim(kDim);
      request.mutable_store()->set_value_dim(1);
      v1::Store response;
      const grpc::Status status = stub.CreateStore(&context, request, &response);
      return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status::OK : status;
    }));
    constexpr std::uint32_t kRowsPerAppend = 256;
    for (std::uint32_t row = 0; row < kRowsAtFirst; row += kRowsPerAppend) {
      Append(client, NextIds(kRowsPerAppend), v1::ON_CONFLICT_UNSPECIFIED);
    }
  }

  // Changes the bank until must_end_. Each write is sent again until it is acknowledged.
  void Write() {
    Client client(group_.router());
    Draw draw(FirstSeed());
    while (!must_end_) {
      const std::int64_t kind = draw.Int(0, 3);
      if (kind == 0) {
        Append(client, NextIds(kRowsPerWrite), v1::ON_CONFLICT_UNSPECIFIED);
      } else if (kind == 1 && ids_.size() > kRowsAtFirst) {
        Delete(client, TakeIds(draw));
      } else {
        std::vector<std::uint64_t> ids = TakeIds(draw);
        ids_.insert(ids_.end(), ids.begin(), ids.end());
        Append(client, ids, v1::ON_CONFLICT_REPLACE);
      }
    }
  }
  // Looks up through the router until must_end_.
  void Read(std::vector<Count>& counts) {
    const auto stub = group_.router().NewStub();
    while (!must_end_) {
      std::optional<Count> count = LookUp(*stub);
      if (!count.has_value()) ++failed_;
      if (count.has_value()) counts.push_back(*count);
      LetPass(absl::Milliseconds(2));
    }
  }
  std::optional<Count> LookUp(v1::SoftLookup::Stub& stub) {
    v1::LookupRequest request;
    request.set_store(kStore);
    request.mutable_queries()->set_rows(1);
    request.mutable_queries()->set_cols(kDim);
    const std::vector<float> query(kDim, 0.01f);
    request.mutable_queries()->set_data(query.data(), kDim * sizeof(float));
    grpc::ClientContext context;
    SetDeadline(30, context);
    v1::LookupResponse response;
    if (!stub.Lookup(&context, request, &response).ok()) return std::nullopt;
    // All values are 1, so their mean is, whatever the weights are.
    EXPECT_NEAR(ComponentOf(response.values()), 1, 1e-5);
    return Count{.revision = response.revision(), .rows = response.stats(0).counted_rows()};
  }

  // Cuts the store anew, or has other nodes answer for its ranges, until must_end_.
  void ChangeRanges() {
    Draw draw(FirstSeed() + 1);
    while (!must_end_) {
      std::vector<std::string> nodes;
      for (int i = 0; i < Group::kNodes; ++i) {
        if (draw.Coin()) nodes.push_back(group_.node(i).name());
      }
      const bool splits = draw.Chance(0.3) || nodes.empty();
      const std::vector<std::string> arguments =
          splits
              ? std::vector<std::string>{"split", kStore, "--ranges",
                                         absl::StrCat(draw.Int(1, kRangesMax))}
              : std::vector<std::string>{"rebalance", kStore, "--nodes", absl::StrJoin(nodes, ",")};
      std::vector<std::string> command = {ToolBinary(), "cluster"};
      command.insert(command.end(), arguments.begin(), arguments.end());
      command.insert(command.end(), {"--server", group_.router().address()});
      if (RunCommand(command).exit_code != 0) {
        ++failed_changes_;
      } else {
        ++(splits ? splits_ : moves_);
      }
      LetPass(absl::Milliseconds(draw.Int(0, 1000)));
    }
  }

  // Something goes wrong every few seconds.
  void Disturb(absl::Duration time) {
    Draw draw(FirstSeed() + 2);
    const absl::Time end = absl::Now() + time;
    // Ranges that never change prove nothing.
    const auto has_changed = [this] { return splits_ > 0 && moves_ > 0; };
    for (int faults = 0; absl::Now() < end || faults < 4 || !has_changed(); ++faults) {
      Node& node = group_.node(static_cast<int>(draw.Int(0, Group::kNodes - 1)));
      switch (draw.Int(0, 5)) {
        case 0:
          group_.router().Stop(SIGKILL);
          break;
        case 1:
          group_.Ask("move-leader");
          break;
        case 2:
          node.Signal(SIGSTOP);
          LetPass(absl::Milliseconds(draw.Int(500, 8000)));
          node.Signal(SIGCONT);
          break;
        case 3:
          node.Stop(SIGTERM);
          break;
        default:
          node.Stop(SIGKILL);
      }
      LetPass(absl::Seconds(1));
      group_.StartMissing();
      ASSERT_FALSE(HasFailure());
      LetPass(absl::Seconds(3));
    }
  }

  // Expects that each count is that of its revision.
  void Check(const std::vector<Count>& counts) const {
    for (const Count& count : counts) {
      const auto after =
          std::ranges::upper_bound(states_, count.revision, {}, &BankState::revision);
      // There was a store before it had rows.
      const std::uint64_t before = after == states_.begin() ? 0 : std::prev(after)->rows;
      if (count.rows == before) continue;
      const bool may_be_made = after != states_.end() && !after->is_exact;
      ASSERT_TRUE(may_be_made && count.rows == after->rows)
          << count.rows << " rows instead of " << before << " as of revision " << count.revision
          << (after == states_.end() ? std::string(", the last one")
                                     : absl::StrCat("; ", after->rows, " as of ", after->revision));
    }
  }

  Group group_{{.cuts = FirstSeed()}};
  std::atomic<bool> must_end_ = false;
  std::atomic<std::uint64_t> failed_ = 0;                         // Lookups.
  std::atomic<int> splits_ = 0, moves_ = 0, failed_changes_ = 0;  // Commands about ranges.
  std::vector<BankState> states_;                                 // By revision.

 private:
  // Ids of rows that the bank does not have yet.
  std::vector<std::uint64_t> NextIds(std::uint32_t count) {
    std::vector<std::uint64_t> ids;
    for (std::uint32_t i = 0; i < count; ++i) ids.push_back(next_id_++);
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    return ids;
  }
  // Takes some ids from those that the bank has.
  std::vector<std::uint64_t> TakeIds(Draw& draw) {
    std::vector<std::uint64_t> taken;
    for (std::uint32_t i = 0; i < kRowsPerWrite; ++i) {
      std::swap(ids_[draw.Int(0, std::ssize(ids_) - 1)], ids_.back());
      taken.push_back(ids_.back());
      ids_.pop_back();
    }
    return taken;
  }

  void Append(Client& client, const std::vector<std::uint64_t>& ids, v1::OnConflict on_conflict) {
    v1::AppendRequest request;
    request.set_store(kStore);
    request.set_writer("w");
    request.set_sequence(++sequence_);
    request.mutable_ids()->Add(ids.begin(), ids.end());
    request.set_on_conflict(on_conflict);
    const std::vector<float> keys(ids.size() * kDim, static_cast<float>(sequence_ % 100));
    const std::vector<float> values(ids.size(), 1);
    const auto set = [&](const std::vector<float>& components, std::uint32_t cols,
                         v1::Matrix& matrix) {
      matrix.set_rows(static_cast<std::uint32_t>(ids.size()));
      matrix.set_cols(cols);
      matrix.set_data(components.data(), components.size() * sizeof(float));
    };
    set(keys, kDim, *request.mutable_keys());
    set(values, 1, *request.mutable_values());
    v1::AppendResponse response;
    const bool is_made =
        client.Try(never_, [&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
          return stub.Append(&context, request, &response);
        });
    ASSERT_TRUE(is_made);
    // The router sends it again, too.
    NoteState(response.revision(), /*is_exact=*/!response.duplicate());
  }
  void Delete(Client& client, const std::vector<std::uint64_t>& ids) {
    v1::DeleteRowsRequest request;
    request.set_store(kStore);
    request.mutable_filter()->mutable_ids()->Add(ids.begin(), ids.end());
    v1::DeleteRowsResponse response;
    const bool is_made =
        client.Try(never_, [&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
          return stub.DeleteRows(&context, request, &response);
        });
    ASSERT_TRUE(is_made);
    NoteState(response.revision(), /*is_exact=*/response.deleted_count() == ids.size());
  }
  void NoteState(std::uint64_t revision, bool is_exact) {
    states_.push_back({.revision = revision, .rows = ids_.size(), .is_exact = is_exact});
  }

  const std::atomic<bool> never_ = false;
  std::deque<std::uint64_t> ids_;  // Of the rows that the bank has.
  std::uint64_t next_id_ = 0;
  std::uint64_t sequence_ = 0;
};

TEST_F(RangedBankTest, ALookupCountsTheRowsOfItsRevision) {
  ASSERT_NO_FATAL_FAILURE(Fill());
  group_.AwaitCopies();
  constexpr int kReaders = 2;
  std::vector<std::vector<Count>> counts(kReaders);
  std::vector<std::thread> threads;
  threads.emplace_back([this] { Write(); });
  threads.emplace_back([this] { ChangeRanges(); });
  for (std::vector<Count>& counted : counts) threads.emplace_back([&] { Read(counted); });
  Disturb(RunTime());
  must_end_ = true;
  for (std::thread& thread : threads) thread.join();
  group_.StartMissing();

  std::size_t answered = 0;
  for (const std::vector<Count>& counted : counts) {
    ASSERT_NO_FATAL_FAILURE(Check(counted));
    answered += counted.size();
  }
  EXPECT_GT(answered, 0u);
  std::cout << states_.size() << " writes, " << answered << " lookups, " << failed_
            << " failed; ranges cut " << splits_ << " times, moved " << moves_ << " times, "
            << failed_changes_ << " such commands failed\n";
  // Afterwards all is there.
  const auto stub = group_.router().NewStub();
  std::optional<Count> last;
  ASSERT_TRUE(AwaitThat([&] {
    last = LookUp(*stub);
    return last.has_value() && last->revision >= states_.back().revision;
  }));
  EXPECT_EQ(last->rows, states_.back().rows);
}

}  // namespace
}  // namespace softlookup::testing
