// Kills a node of a group of three with SIGKILL at some moment of an append of nearly 64 MiB, and
// starts it again. The append is then on all replicas whole, and there once, or on none; if it was
// acknowledged, it is there. Sent again under its sequence, it is there once.
//
// In the environment,
// SOFTLOOKUP_TEST_APPEND_KILLS sets how often a node is killed, and
// SOFTLOOKUP_TEST_SEED sets what is drawn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/faults/cycles.h"
#include "tests/faults/group_faults/client.h"
#include "tests/faults/group_faults/group.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/random.h"

namespace softlookup::testing {
namespace {

constexpr char kStore[] = "s";
constexpr std::uint32_t kDim = 128;
constexpr std::size_t kRowBytes = 2 * kDim * sizeof(float);
constexpr std::uint32_t kRows = 65'500;  // Close to the 64 MiB that a message may have.
constexpr std::uint64_t kAppendBytes = kRows * kRowBytes;
constexpr std::int64_t kCallSeconds = 120;

int Kills() {
  const char* const number = std::getenv("SOFTLOOKUP_TEST_APPEND_KILLS");
  return number == nullptr ? Cycles(2, 100) : std::atoi(number);
}

// Returns an append of rows no two of which are equal. Key and value of the row `i` begin with
// `first + i * kDim`.
v1::AppendRequest AppendOf(std::uint32_t rows, std::uint32_t first) {
  v1::AppendRequest request;
  request.set_store(kStore);
  std::vector<float> components(std::size_t{rows} * kDim);
  for (std::size_t i = 0; i < components.size(); ++i) {
    components[i] = static_cast<float>(first + i);  // Exact: less than 2^24.
  }
  for (v1::Matrix* const matrix : {request.mutable_keys(), request.mutable_values()}) {
    matrix->set_rows(rows);
    matrix->set_cols(kDim);
    matrix->set_data(components.data(), components.size() * sizeof(float));
  }
  return request;
}

// The bytes of the rows of an append, for each those of its key and of its value.
std::string BytesOf(const v1::AppendRequest& append) {
  std::string bytes;
  for (std::size_t row = 0; row < append.keys().rows(); ++row) {
    for (const v1::Matrix* const matrix : {&append.keys(), &append.values()}) {
      bytes.append(matrix->data(), row * kRowBytes / 2, kRowBytes / 2);
    }
  }
  return bytes;
}

// How many bytes a process has written to its files so far.
std::uint64_t WrittenBytes(pid_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/io"));
  std::uint64_t bytes = 0;
  for (std::string name; file >> name >> bytes;) {
    if (name == "wchar:") return bytes;
  }
  return 0;
}

// What a node shows of the store.
struct Contents {
  std::uint64_t revision = 0;
  std::string rows;
};

class LargeAppendKillTest : public ::testing::Test {
 protected:
  LargeAppendKillTest() {
    group_.Start();
    MakeStore();
    group_.AwaitCopies();
  }
  ~LargeAppendKillTest() override {
    if (HasFailure()) std::cout << "SOFTLOOKUP_TEST_SEED=" << FirstSeed() << "\n" << group_.Logs();
  }

  struct Result {
    Outcome outcome = Outcome::kUnknown;  // As the client was told.
    absl::Duration time;
    bool is_there = false;
    std::string progress;  // Of the primary when the node was killed.
  };

  // Appends with a writer, if `has_writer`, and kills `victim` after `delay`. Checks what is there
  // afterwards. Without a victim, lets the append end.
  void RunRound(std::optional<int> victim, absl::Duration delay, bool has_writer, Result& result) {
    MakeStore();
    ASSERT_NO_FATAL_FAILURE(AppendRow("first", first_row_));
    const int primary = AwaitPrimary();
    v1::AppendRequest append = append_;
    if (has_writer) {
      append.set_writer("large");
      append.set_sequence(1);
    }
    const std::uint64_t written = WrittenBytes(group_.node(primary).pid());
    grpc::Status status;
    std::thread appender([&, stub = group_.node(primary).NewStub()] {
      const absl::Time begin = absl::Now();
      v1::AppendResponse response;
      grpc::ClientContext context;
      SetDeadline(kCallSeconds, context);
      status = stub->Append(&context, append, &response);
      result.time = absl::Now() - begin;
    });
    if (victim.has_value()) {
      LetPass(delay);
      result.progress = ProgressAfter(WrittenBytes(group_.node(primary).pid()) - written);
      group_.node(*victim).Stop(SIGKILL);
    }
    appender.join();
    result.outcome = OutcomeOf(status);
    group_.StartMissing();
    const std::uint64_t revision = AppendRow("last", last_row_);
    const std::string before = BytesOf(first_row_), after = BytesOf(last_row_);
    const std::string whole = absl::StrCat(before, bytes_, after);
    for (int i = 0; i < Group::kNodes; ++i) {
      const Contents shown = AwaitContents(i, revision);
      if (i == 0) result.is_there = shown.rows == whole;
      EXPECT_EQ(shown.revision, revision) << group_.node(i).name();
      EXPECT_TRUE(shown.rows == (result.is_there ? whole : before + after))
          << group_.node(i).name() << " shows " << shown.rows.size() / kRowBytes << " rows";
    }
    EXPECT_NE(result.outcome, result.is_there ? Outcome::kNotMade : Outcome::kMade);
    if (!has_writer) return;
    v1::AppendResponse response;
    ASSERT_TRUE(Append(append, response));
    EXPECT_EQ(response.duplicate(), result.is_there);
    EXPECT_EQ(AwaitContents(primary, response.revision()).rows,
              result.is_there ? whole : absl::StrCat(before, after, bytes_));
  }

  int AwaitPrimary() {
    std::optional<int> primary;
    EXPECT_TRUE(AwaitThat([&] {
      primary = group_.Primary();
      return primary.has_value();
    }));
    return primary.value_or(0);
  }

 private:
  // Says how far the primary is with the append. `bytes` is what it has written to files since the
  // append began. It writes the rows to its log to stage them, again to apply them, and both times
  // to a table.
  static std::string ProgressAfter(std::uint64_t bytes) {
    if (bytes < kAppendBytes / 64) return "before it wrote anything";
    const std::uint64_t times = bytes / kAppendBytes;
    return times < 4 ? absl::StrCat("as it wrote the rows, ", times, " times so far")
                     : "after it wrote the rows 4 times";
  }

  // Makes the store anew, empty.
  void MakeStore() {
    Client client(group_);
    ASSERT_TRUE(client.Try(never_, [](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
      v1::DeleteStoreRequest request;
      request.set_name(kStore);
      v1::DeleteStoreResponse response;
      const grpc::Status status = stub.DeleteStore(&context, request, &response);
      return status.error_code() == grpc::StatusCode::NOT_FOUND ? grpc::Status::OK : status;
    }));
    ASSERT_TRUE(client.Try(never_, [](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
      v1::CreateStoreRequest request;
      request.mutable_store()->set_name(kStore);
      request.mutable_store()->set_key_dim(kDim);
      request.mutable_store()->set_value_dim(kDim);
      v1::Store response;
      const grpc::Status status = stub.CreateStore(&context, request, &response);
      return status.error_code() == grpc::StatusCode::ALREADY_EXISTS ? grpc::Status::OK : status;
    }));
  }

  // Sends `append`, which has a writer, until it is acknowledged.
  bool Append(const v1::AppendRequest& append, v1::AppendResponse& response) {
    return Client(group_).Try(never_,
                              [&](v1::SoftLookup::Stub& stub, grpc::ClientContext& context) {
                                SetDeadline(kCallSeconds, context);
                                return stub.Append(&context, append, &response);
                              });
  }
  // Appends a row as that of a writer. Returns the revision.
  std::uint64_t AppendRow(const std::string& writer, v1::AppendRequest row) {
    row.set_writer(writer);
    row.set_sequence(1);
    v1::AppendResponse response;
    EXPECT_TRUE(Append(row, response));
    return response.revision();
  }

  // Waits until a node shows `revision` or a later one.
  Contents AwaitContents(int node, std::uint64_t revision) {
    Contents contents;
    const auto stub = group_.node(node).NewStub();
    EXPECT_TRUE(AwaitThat([&] {
      grpc::ClientContext context;
      SetDeadline(kCallSeconds, context);
      v1::GetStoreRequest request;
      request.set_name(kStore);
      v1::Store store;
      if (!stub->GetStore(&context, request, &store).ok() || store.revision() < revision) {
        return false;
      }
      contents = {};
      std::uint64_t rows = 0;
      const bool came = ReadStore(*stub, kStore, [&](const v1::ReadRowsResponse& response) {
        for (const v1::Row& row : response.rows()) {
          EXPECT_EQ(row.position(), rows++);
          absl::StrAppend(&contents.rows, row.key().data(), row.value().data());
        }
        contents.revision = response.revision();
      });
      return came;
    })) << group_.node(node).name();
    return contents;
  }

  const std::atomic<bool> never_ = false;
  const v1::AppendRequest append_ = AppendOf(kRows, 0);
  const std::string bytes_ = BytesOf(append_);
  const v1::AppendRequest first_row_ = AppendOf(1, kRows* kDim);
  const v1::AppendRequest last_row_ = AppendOf(1, (kRows + 1) * kDim);

 protected:
  Group group_;
};

TEST_F(LargeAppendKillTest, TheAppendIsThereWholeOnAllReplicasOrOnNone) {
  absl::Duration undisturbed = absl::InfiniteDuration();
  for (int made = 0, tries = 0; made < 2; ++tries) {
    ASSERT_LT(tries, 10) << "a group that nobody disturbs refuses the append";
    Result result;
    ASSERT_NO_FATAL_FAILURE(RunRound(std::nullopt, absl::ZeroDuration(), made == 0, result));
    if (result.outcome != Outcome::kMade) continue;  // No entry may take more than 10 s.
    undisturbed = std::min(undisturbed, result.time);
    ++made;
  }
  std::cout << "undisturbed, the append takes " << undisturbed << std::endl;
  Draw draw(FirstSeed());
  std::map<std::string, int> counts;
  for (int kill = 0; kill < Kills(); ++kill) {
    const int primary = AwaitPrimary();
    const bool is_of_primary = draw.Chance(0.75);
    const int offset = is_of_primary ? 0 : static_cast<int>(draw.Int(1, Group::kNodes - 1));
    const absl::Duration delay =
        absl::Floor(draw.Real(0, 1.2) * undisturbed, absl::Milliseconds(1));
    Result result;
    ASSERT_NO_FATAL_FAILURE(
        RunRound((primary + offset) % Group::kNodes, delay, draw.Coin(), result));
    ASSERT_FALSE(HasFailure()) << "kill " << kill;
    const std::string outcome = result.outcome == Outcome::kMade      ? "acknowledged"
                                : result.outcome == Outcome::kNotMade ? "refused, and absent"
                                : result.is_there                     ? "unknown, and whole"
                                                                      : "unknown, and absent";
    const std::string line = absl::StrCat(is_of_primary ? "primary" : "follower", " killed, ",
                                          result.progress, ": ", outcome);
    std::cout << absl::FormatTime("%H:%M:%E1S", absl::Now(), absl::LocalTimeZone()) << " "
              << absl::FormatDuration(delay) << " of " << absl::FormatDuration(result.time) << ", "
              << line << std::endl;
    ++counts[line];
  }
  for (const auto& [line, count] : counts) std::cout << count << " times " << line << "\n";
}

}  // namespace
}  // namespace softlookup::testing
