// `softlookup import` and `append`, which a SIGINT meets at random rows. An import leaves all of
// its store or nothing of it. An append says how to go on, and then each row is there once, in
// order. A failure prints SOFTLOOKUP_TEST_SEED=N; with that in the environment the rows are the
// same again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "softlookup/client.h"
#include "softlookup/error_details.h"
#include "tests/faults/cycles.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"
#include "tests/testing/tool_process.h"

namespace softlookup::testing {
namespace {

using ::testing::HasSubstr;

constexpr int kRows = 4000;

class InterruptedToolTest : public ::testing::Test {
 protected:
  InterruptedToolTest() {
    std::ofstream keys(keys_), values(values_);
    for (int row = 0; row < kRows; ++row) {
      keys << row % 7 << "," << row % 11 << "\n";
      values << row << "\n";
    }
  }

  std::vector<std::string> Command(const std::string& command,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {
        ToolBinary(), "--server", server_.grpc_address(), command, "s", "--keys", keys_,
        "--values",   values_,    "--batch-rows",         "5"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // The rows of the store, or 0 if there is none.
  std::uint64_t RowCount() {
    const auto store = client_.GetStore("s");
    return store.ok() ? store->row_count() : 0;
  }

  // Runs the command and sends it SIGINT once `row` rows are there. Returns true if that ended it
  // before its time, and false if it had all rows appended.
  bool Interrupt(const std::vector<std::string>& command, std::uint64_t row) {
    ToolProcess tool(command, error_);
    const absl::Time give_up = absl::Now() + absl::Seconds(60);
    while (RowCount() < row && absl::Now() < give_up) {
    }
    const int status = tool.End(SIGINT);
    if (WIFSIGNALED(status)) {  // All was done, and the process was about to end.
      EXPECT_EQ(WTERMSIG(status), SIGINT);
      return false;
    }
    EXPECT_THAT(WEXITSTATUS(status), ::testing::AnyOf(0, 1)) << ErrorLines();
    return WEXITSTATUS(status) == 1;
  }

  // A random row after those that are there.
  std::uint64_t NextRow() {
    return std::min<std::uint64_t>(
        kRows, RowCount() + static_cast<std::uint64_t>(draw_.Int(1, kRows / 2)));
  }

  std::string ErrorLines() const {
    std::ifstream file(error_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  void ExpectEachRowOnce() {
    std::uint64_t row = 0;
    EXPECT_THAT(client_.ReadRows("s", {},
                                 [&](const v1::ReadRowsResponse& page) {
                                   for (const v1::Row& there : page.rows()) {
                                     const auto value = FloatMatrix::FromProto(there.value());
                                     EXPECT_EQ(value->data[0], static_cast<float>(row++));
                                   }
                                   return !HasFailure();
                                 }),
                IsOk());
    EXPECT_EQ(row, kRows);
  }

  const TemporaryDirectory directory_;
  const std::string keys_ = directory_.path() + "/keys.csv";
  const std::string values_ = directory_.path() + "/values.csv";
  const std::string error_ = directory_.path() + "/error";
  const ServerProcess server_;
  Client client_ = *Client::Connect(server_.grpc_address(), PatientOptions());
  const std::uint64_t seed_ = FirstSeed();
  const ::testing::ScopedTrace trace_{__FILE__, __LINE__,
                                      absl::StrCat("SOFTLOOKUP_TEST_SEED=", seed_)};
  Draw draw_{seed_};
};

TEST_F(InterruptedToolTest, AnImportLeavesAllRowsOrNoStore) {
  const int cycles = Cycles(8, 100);
  int interrupted = 0;
  for (int i = 0; i < cycles; ++i) {
    if (Interrupt(Command("import"), static_cast<std::uint64_t>(draw_.Int(1, kRows)))) {
      ++interrupted;
      EXPECT_THAT(ErrorLines(), HasSubstr("interrupted; rows appended before: "));
      EXPECT_THAT(ErrorLines(), HasSubstr("; s, which import had made, is deleted again"));
      EXPECT_EQ(ErrorReason(client_.GetStore("s").status()), "STORE_NOT_FOUND");
    } else {
      ExpectEachRowOnce();
      EXPECT_THAT(client_.DeleteStore("s"), IsOk());
    }
    if (HasFailure()) return;
  }
  std::printf("%d of %d imports were interrupted\n", interrupted, cycles);
  EXPECT_GT(interrupted, 0);
}

TEST_F(InterruptedToolTest, AnAppendSaysHowToGoOn) {
  const int cycles = Cycles(8, 100);
  int interrupted = 0;
  v1::Store store;
  store.set_name("s");
  store.set_key_dim(2);
  store.set_value_dim(1);
  for (int i = 0; i < cycles; ++i) {
    const bool has_writer = i % 2 == 1;
    ASSERT_THAT(client_.CreateStore(store), IsOk());
    std::vector<std::string> more;
    if (has_writer) more = {"--writer", "w"};
    // Several signals meet the same input, each a row further on.
    while (Interrupt(Command("append", more), NextRow())) {
      ++interrupted;
      const std::string error = ErrorLines();
      std::smatch rows;
      if (has_writer) {
        EXPECT_THAT(error, HasSubstr("; the same command appends the rest"));
      } else if (std::regex_search(error, rows, std::regex("; --skip-rows ([0-9]+) appends"))) {
        EXPECT_EQ(rows[1], absl::StrCat(RowCount()));
        more = {"--skip-rows", rows[1]};
      } else {
        EXPECT_THAT(error, HasSubstr("interrupted; rows appended before: 0"));
      }
      if (HasFailure()) return;
      if (RowCount() == kRows) break;
    }
    ExpectEachRowOnce();
    ASSERT_THAT(client_.DeleteStore("s"), IsOk());
    if (HasFailure()) return;
  }
  std::printf("%d times were %d appends interrupted\n", interrupted, cycles);
  EXPECT_GT(interrupted, 0);
}

}  // namespace
}  // namespace softlookup::testing
