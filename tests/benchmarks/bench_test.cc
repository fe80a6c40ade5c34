// Keeps softlookup-bench from rotting: tiny shapes, every field, figures that can be.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/tool/npy_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/random.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

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

// Writes normally distributed float32 and returns the path.
std::string WriteRows(const TemporaryDirectory& directory, const std::string& name,
                      std::uint32_t rows, std::uint32_t cols) {
  std::string path = directory.path() + "/" + name;
  const std::vector<float> floats = NormalFloats(std::int64_t{rows} * cols, cols);
  EXPECT_TRUE(tool::WriteNpy(path, {floats, rows, cols}).ok());
  return path;
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

// Figures are printed with four digits or more. A slow moment of the machine can make any of them
// large or small, so the allowance is a part of the expected figure.
::testing::Matcher<double> About(double expected) {
  return ::testing::DoubleNear(expected, 2e-3 * std::abs(expected));
}

TEST(BenchTest, ALookupIsMeasuredBesideWhatBoundsItAndTheFloat64Answer) {
  const CommandResult result =
      RunBench({"attend", "--queries", "5", "--rows", "3001", "--key-dim", "24", "--value-dim",
                "40", "--temperature", "0.5", "--threads", "2", "--repetitions", "3", "--storage",
                "float32", "--kernel", "simd"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto figures = FiguresOf(result.out);
  EXPECT_EQ(figures.size(), 23) << result.out;
  EXPECT_THAT(figures, Contains(Pair("median_ms", AllOf(Gt(0), Lt(1e6)))));
  EXPECT_THAT(figures, Contains(Pair("true_error", AllOf(Gt(0), Lt(1e-5)))));
  EXPECT_THAT(figures, Contains(Pair("max_relative_error", AllOf(Gt(0), Lt(1e-5)))));
  EXPECT_THAT(figures, Contains(Pair("read_limit_gb_per_s", AllOf(Gt(0), Lt(1e6)))));
  for (const char* name : {"fma_peak_gflops", "fma_peak_gflops_one_thread"}) {
    EXPECT_THAT(figures, Contains(Pair(name, AllOf(Gt(0), Lt(1e9)))));
  }
  // What the others must be, by their definitions.
  const double seconds = 1e-3 * figures.at("median_ms");
  EXPECT_THAT(figures.at("gflops"), About(2e-9 * 5 * 3001 * (24 + 40) / seconds));
  EXPECT_THAT(figures.at("gb_per_s"), About(4e-9 * 3001 * (24 + 40) / seconds));
  EXPECT_THAT(figures.at("fraction_of_peak"),
              About(figures.at("gflops") / figures.at("fma_peak_gflops")));
  EXPECT_THAT(figures.at("fraction_of_read_limit"),
              About(figures.at("gb_per_s") / figures.at("read_limit_gb_per_s")));
  EXPECT_EQ(figures.at("scanned_rows"), 3001);
  EXPECT_EQ(figures.at("summed_rows_per_query"), 3001);
  EXPECT_EQ(figures.at("sketched_rows"), 0);
  EXPECT_EQ(figures.at("skipped_blocks"), 0);
  EXPECT_LE(figures.at("min_ms"), figures.at("median_ms"));
  EXPECT_GE(figures.at("max_ms"), figures.at("median_ms"));
}

TEST(BenchTest, EveryScoreAndModeStaysWithinTheBoundOnErrors) {
  for (const char* score : {"dot", "scaled-dot", "cosine", "euclidean", "squared-euclidean"}) {
    for (const char* mode : {"soft", "hard", "linear"}) {
      for (const char* top_k : {"0", "7"}) {
        const CommandResult result = RunBench(
            {"attend", "--queries", "3",   "--rows",   "1500", "--key-dim", "20",  "--value-dim",
             "9",      "--score",   score, "--mode",   mode,   "--top-k",   top_k, "--temperature",
             "0.7",    "--noise",   "0.5", "--repeat", "1"});
        ASSERT_EQ(result.exit_code, 0) << result.err;
        EXPECT_THAT(FiguresOf(result.out), Contains(Pair("true_error", Lt(1e-5))))
            << score << " " << mode << " " << top_k;
      }
    }
  }
}

TEST(BenchTest, RowsBelowAMinScoreAreNotSummed) {
  const CommandResult result =
      RunBench({"attend", "--queries", "2", "--rows", "6000", "--key-dim", "33", "--value-dim", "2",
                "--score", "cosine", "--noise", "0.01", "--min-score", "0.99", "--list", "5",
                "--repeat", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto figures = FiguresOf(result.out);
  EXPECT_EQ(figures.at("summed_rows_per_query"), 1);
  EXPECT_LT(figures.at("true_error"), 1e-5);
  EXPECT_LT(figures.at("scanned_rows"), 6000);
}

TEST(BenchTest, OnlyWhatALookupHasToReadAndAddUpCounts) {
  for (const auto& [flag, word, values] :
       {std::tuple("--top-k", "2", 2 * 3), std::tuple("--mode", "hard", 3)}) {
    const CommandResult result =
        RunBench({"attend", "--queries", "3", "--rows", "10000", "--key-dim", "8", "--value-dim",
                  "400", flag, word, "--repeat", "1"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const auto figures = FiguresOf(result.out);
    const double seconds = 1e-3 * figures.at("median_ms");
    EXPECT_THAT(figures.at("gflops"), About(2e-9 * (3 * 10'000 * 8 + values * 400) / seconds));
    EXPECT_THAT(figures.at("gb_per_s"), About(4e-9 * (10'000 * 8 + values * 400) / seconds));
  }
}

TEST(BenchTest, RowsAndQueriesComeFromFiles) {
  const TemporaryDirectory directory;
  const std::string keys = WriteRows(directory, "keys.npy", 700, 12);
  const std::string values = WriteRows(directory, "values.npy", 700, 5);
  const std::string queries = WriteRows(directory, "queries.npy", 6, 12);
  const auto figures_of = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"attend", "--queries", "4", "--repeat", "1"});
    const CommandResult result = RunBench(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    auto figures = FiguresOf(result.out);
    EXPECT_THAT(figures, Contains(Pair("true_error", Lt(1e-5))));
    EXPECT_THAT(figures, Contains(Pair("queries", 4)));
    EXPECT_THAT(figures, Contains(Pair("key_dim", 12)));
    return figures;
  };
  const auto alone = figures_of({"--data", keys, "--noise", "0.05", "--score", "cosine"});
  EXPECT_THAT(alone, AllOf(Contains(Pair("rows", 700)), Contains(Pair("value_dim", 12))));
  const auto all =
      figures_of({"--data", keys, "--values", values, "--query-data", queries, "--shuffle"});
  EXPECT_THAT(all, AllOf(Contains(Pair("rows", 700)), Contains(Pair("value_dim", 5))));
  const auto fewer = figures_of({"--data", keys, "--rows", "300"});
  EXPECT_THAT(fewer, Contains(Pair("rows", 300)));
}

TEST(BenchTest, ClusteredRowsAreMeasured) {
  const CommandResult result = RunBench({"attend", "--queries", "3", "--rows", "2000", "--key-dim",
                                         "8", "--value-dim", "4", "--clusters", "20", "--spread",
                                         "0.3", "--shuffle", "--noise", "0.1", "--repeat", "1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(FiguresOf(result.out), Contains(Pair("true_error", Lt(1e-5))));
}

TEST(BenchTest, AnOptionThatIsOutOfItsRangeIsRefusedByName) {
  for (const auto& [option, word] :
       {std::pair("--score", "jaccard"), std::pair("--mode", "gentle"),
        std::pair("--temperature", "0"), std::pair("--top-k", "-1"), std::pair("--max-error", "2"),
        std::pair("--data", "nowhere.npy"), std::pair("--noise", "-1"),
        std::pair("--clusters", "0"), std::pair("--spread", "0.1"), std::pair("--seed", "-1"),
        std::pair("--threads", "0"), std::pair("--repeat", "0")}) {
    const CommandResult result = RunBench({"attend", option, word});
    EXPECT_NE(result.exit_code, 0) << option;
    EXPECT_THAT(result.err, HasSubstr(option));
  }
}

TEST(BenchTest, OptionsThatDoNotFitEachOtherAreRefusedByName) {
  const TemporaryDirectory directory;
  const std::string keys = WriteRows(directory, "keys.npy", 7, 12);
  const std::string others = WriteRows(directory, "others.npy", 6, 5);
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"--values", {"--values", keys}},
      {"--values", {"--data", keys, "--values", others}},
      {"--rows", {"--data", keys, "--rows", "8"}},
      {"--key-dim", {"--data", keys, "--key-dim", "12"}},
      {"--query-data", {"--data", keys, "--query-data", others, "--queries", "2"}},
      {"--query-data", {"--data", keys, "--query-data", keys, "--queries", "8"}},
      {"--noise", {"--data", keys, "--query-data", keys, "--noise", "0.1"}},
      {"--clusters", {"--data", keys, "--clusters", "2"}},
      {"--clusters", {"--rows", "3", "--clusters", "4"}},
  };
  for (const auto& [option, arguments] : cases) {
    std::vector<std::string> all = {"attend"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const CommandResult result = RunBench(all);
    EXPECT_NE(result.exit_code, 0) << option;
    EXPECT_THAT(result.err, HasSubstr(option));
  }
}

TEST(BenchTest, AFileThatIsNoArrayIsRefusedByNameOfItsOption) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/text.npy";
  std::ofstream(path) << "1,2,3\n";
  const CommandResult result = RunBench({"attend", "--data", path});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("--data"), HasSubstr(path), HasSubstr("not a .npy file")));
  const CommandResult empty =
      RunBench({"attend", "--data", WriteRows(directory, "empty.npy", 0, 3)});
  EXPECT_NE(empty.exit_code, 0);
  EXPECT_THAT(empty.err, AllOf(HasSubstr("--data"), HasSubstr("no rows")));
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

// Returns what RunBench(`arguments`) prints, of which `rates` must be above 0. A busy machine may
// end no call in a short time, and is then given more.
std::string RunUntilAbove0(const std::vector<std::string>& arguments,
                           const std::vector<std::string>& rates) {
  CommandResult result;
  for (double seconds = 0.2; seconds < 20; seconds *= 4) {
    std::vector<std::string> timed = arguments;
    timed.insert(timed.end(), {"--seconds", absl::StrCat(seconds)});
    result = RunBench(timed);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    const auto figures = FiguresOf(result.out);
    const auto is_above_0 = [&](const std::string& rate) {
      const auto found = figures.find(rate);
      return found != figures.end() && found->second > 0 && found->second < 1e9;
    };
    if (std::ranges::all_of(rates, is_above_0)) return result.out;
  }
  ADD_FAILURE() << "Not all of " << absl::StrJoin(rates, ", ") << " are above 0: " << result.out;
  return result.out;
}

TEST(BenchTest, SmallLookupsAreMeasuredBesideEchoes) {
  const std::string out = RunUntilAbove0(
      {"echo", "--queries", "2", "--rows", "10", "--key-dim", "8", "--value-dim", "4",
       "--concurrency", "3"},
      {"lookup_per_s", "echo_per_s", "completion_queue_per_s", "callback_per_s", "generic_per_s"});
  ASSERT_FALSE(HasFailure());
  const auto figures = FiguresOf(out);
  EXPECT_THAT(figures.at("ratio"), About(figures.at("lookup_per_s") / figures.at("echo_per_s")));
  EXPECT_THAT(figures.at("ratio_to_generic"),
              About(figures.at("lookup_per_s") / figures.at("generic_per_s")));
  EXPECT_THAT(out, HasSubstr("fastest_echo=c"));
}

TEST(BenchTest, TlsIsMeasuredForLookupsAndEchoes) {
  RunUntilAbove0(
      {"tls", "--rows", "10", "--key-dim", "8", "--value-dim", "4", "--concurrency", "3"},
      {"lookup_per_s", "secure_per_s", "echo_per_s", "tls_echo_per_s", "ratio", "echo_ratio"});
}

TEST(BenchTest, TheLoadTesterIsMeasuredBesideABareCaller) {
  RunUntilAbove0({"loadtest", "--queries", "2", "--key-dim", "8", "--concurrency", "3"},
                 {"loadtest_per_s", "bare_per_s", "ratio", "ratio_with_deadlines"});
}

TEST(BenchTest, SharingIsMeasuredAndAnswersWithTheSameBits) {
  const std::string out =
      RunUntilAbove0({"share", "--rows", "20000", "--key-dim", "32", "--value-dim", "32",
                      "--clients", "8", "--repetitions", "1"},
                     {"shared_per_s", "alone_per_s", "shared_p99_ms", "alone_p99_ms"});
  EXPECT_THAT(FiguresOf(out), Contains(Pair("other_bits", 0)));
}

}  // namespace
}  // namespace softlookup::testing
