// Keeps softlookup-bench from rotting: tiny shapes, every field, figures that can be.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/server_process.h"

namespace softlookup::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::Lt;
using ::testing::Pair;

CommandResult RunBench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), SOFTLOOKUP_BENCH_BINARY);
  return RunCommand(arguments);
}

// The numbers of one line of name=number fields; what is not a number is NaN.
std::map<std::string, double> FiguresOf(absl::string_view line) {
  std::map<std::string, double> figures;
  for (absl::string_view field : absl::StrSplit(absl::StripSuffix(line, "\n"), ' ')) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(field, absl::MaxSplits('=', 1));
    double figure = 0;
    figures[parts.first] = absl::SimpleAtod(parts.second, &figure) ? figure : std::nan("");
  }
  return figures;
}

TEST(BenchTest, ALookupIsMeasuredBesideTheReadLimitAndTheFloat64Answer) {
  const CommandResult result =
      RunBench({"attend", "--queries", "5", "--rows", "3001", "--key-dim", "24", "--value-dim",
                "40", "--temperature", "0.5", "--threads", "2", "--repetitions", "3", "--storage",
                "float32", "--kernel", "simd"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto figures = FiguresOf(result.out);
  EXPECT_EQ(figures.size(), 7) << result.out;
  EXPECT_THAT(figures, Contains(Pair("median_ms", AllOf(Gt(1e-3), Lt(1e4)))));
  EXPECT_THAT(figures, Contains(Pair("max_relative_error", AllOf(Gt(0), Lt(1e-5)))));
  EXPECT_THAT(figures, Contains(Pair("read_limit_gb_per_s", AllOf(Gt(1e-2), Lt(1e5)))));
  // What the others must be, by their definitions; they are printed rounded.
  const double seconds = 1e-3 * figures.at("median_ms");
  EXPECT_NEAR(figures.at("gflops"), 2e-9 * 5 * 3001 * (24 + 40) / seconds, 0.1);
  EXPECT_NEAR(figures.at("gb_per_s"), 4e-9 * 3001 * (24 + 40) / seconds, 0.1);
}

TEST(BenchTest, NarrowRowsAreMeasuredAgainstThoseKeptAndThoseThatCame) {
  for (const auto& [storage, row_bytes] : {std::pair("bfloat16", 128), std::pair("int8", 72)}) {
    const CommandResult result =
        RunBench({"attend", "--queries", "3", "--rows", "3001", "--key-dim", "24", "--value-dim",
                  "40", "--storage", storage, "--repetitions", "1"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto figures = FiguresOf(result.out);
    EXPECT_THAT(figures, Contains(Pair("max_relative_error", Lt(1e-5))));
    EXPECT_THAT(figures, Contains(Pair("error_to_appended_rows", AllOf(Gt(1e-4), Lt(0.05)))));
    EXPECT_THAT(figures,
                Contains(Pair("bytes_per_row", AllOf(Gt(row_bytes), Lt(row_bytes * 1.1)))));
  }
}

TEST(BenchTest, OneQueryIsMeasuredToo) {
  const CommandResult result = RunBench({"attend", "--queries", "1", "--rows", "1", "--key-dim",
                                         "1", "--value-dim", "1", "--repetitions", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(FiguresOf(result.out), Contains(Pair("max_relative_error", Lt(1e-5))));
}

TEST(BenchTest, WhatIsNotThereIsRefusedWithWhatIs) {
  const CommandResult storage = RunBench({"attend", "--storage", "float64"});
  EXPECT_NE(storage.exit_code, 0);
  EXPECT_THAT(storage.err,
              AllOf(HasSubstr("--storage"), HasSubstr("float64"), HasSubstr("float32")));
  const CommandResult kernel = RunBench({"attend", "--kernel", "abacus"});
  EXPECT_NE(kernel.exit_code, 0);
  EXPECT_THAT(kernel.err, AllOf(HasSubstr("--kernel"), HasSubstr("abacus"), HasSubstr("simd")));
}

TEST(BenchTest, SmallLookupsAreMeasuredBesideBothEchoes) {
  const CommandResult result =
      RunBench({"echo", "--queries", "2", "--rows", "10", "--key-dim", "8", "--value-dim", "4",
                "--concurrency", "3", "--seconds", "0.2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto figures = FiguresOf(result.out);
  for (const char* name :
       {"lookup_per_s", "echo_per_s", "completion_queue_per_s", "callback_per_s"}) {
    EXPECT_THAT(figures, Contains(Pair(name, AllOf(Gt(1), Lt(1e7)))));
  }
  EXPECT_NEAR(figures.at("ratio"), figures.at("lookup_per_s") / figures.at("echo_per_s"), 1e-2);
  EXPECT_THAT(result.out, HasSubstr("fastest_echo=c"));
}

TEST(BenchTest, TlsIsMeasuredForLookupsAndEchoes) {
  const CommandResult result = RunBench({"tls", "--rows", "10", "--key-dim", "8", "--value-dim",
                                         "4", "--concurrency", "3", "--seconds", "0.2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto figures = FiguresOf(result.out);
  for (const char* name : {"lookup_per_s", "secure_per_s", "echo_per_s", "tls_echo_per_s"}) {
    EXPECT_THAT(figures, Contains(Pair(name, AllOf(Gt(1), Lt(1e7)))));
  }
  for (const char* name : {"ratio", "echo_ratio"}) {
    EXPECT_THAT(figures, Contains(Pair(name, AllOf(Gt(0), Lt(100)))));
  }
}

TEST(BenchTest, TheLoadTesterIsMeasuredBesideABareCaller) {
  const CommandResult result = RunBench(
      {"loadtest", "--queries", "2", "--key-dim", "8", "--concurrency", "3", "--seconds", "0.2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto figures = FiguresOf(result.out);
  for (const char* name : {"loadtest_per_s", "bare_per_s"}) {
    EXPECT_THAT(figures, Contains(Pair(name, AllOf(Gt(1), Lt(1e7)))));
  }
  for (const char* name : {"ratio", "ratio_with_deadlines"}) {
    EXPECT_THAT(figures, Contains(Pair(name, AllOf(Gt(0), Lt(100)))));
  }
}

TEST(BenchTest, SharingIsMeasuredAndAnswersWithTheSameBits) {
  const CommandResult result =
      RunBench({"share", "--rows", "20000", "--key-dim", "32", "--value-dim", "32", "--clients",
                "8", "--seconds", "0.1", "--repetitions", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto figures = FiguresOf(result.out);
  for (const char* name : {"shared_per_s", "alone_per_s", "shared_p99_ms", "alone_p99_ms"}) {
    EXPECT_THAT(figures, Contains(Pair(name, AllOf(Gt(1e-2), Lt(1e7)))));
  }
  EXPECT_THAT(figures, Contains(Pair("other_bits", 0)));
}

}  // namespace
}  // namespace softlookup::testing
