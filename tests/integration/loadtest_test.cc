// `softlookup loadtest` against the real server, as people and CI run it.
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A machine that is busy with other tests may be late, which the load tester says.
constexpr int kOk = 0;
constexpr int kMissed = 8;
constexpr int kInvalid = 9;

class LoadtestTest : public IntegrationTest {
 protected:
  // No test leaves a store behind.
  void TearDown() override { EXPECT_THAT(*client_.ListStores("loadtest"), IsEmpty()); }

  // Measures for longer and longer until a call has ended, since a busy machine may answer none in
  // half a second.
  CommandResult Run(const std::vector<std::string>& arguments) {
    for (double seconds = 0.5;; seconds *= 4) {
      std::vector<std::string> all = {ToolBinary(), "--server",           server_.grpc_address(),
                                      "loadtest",   "--warm-up",          "0.1",
                                      "--duration", absl::StrCat(seconds)};
      all.insert(all.end(), arguments.begin(), arguments.end());
      CommandResult result = RunCommand(all);
      const bool has_calls = !absl::StrContains(result.err, "no call was made in this time");
      if (has_calls || seconds > 30) return result;
    }
  }

  json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const CommandResult result = Run(arguments);
    EXPECT_THAT(result.exit_code, AnyOf(kOk, kInvalid)) << result.err;
    return json::parse(result.out);
  }
};

TEST_F(LoadtestTest, AClosedLoopMeasuresVerifiedLookupsOfEveryStorageType) {
  for (const std::string storage : {"float32", "bfloat16", "int8"}) {
    const json found =
        RunJson({"--rows", "500", "--concurrency", "4", "--queries", "3", "--storage-type", storage,
                 "--weights", "top", "--verify", "--stores", "2"});
    EXPECT_GT(found["calls"]["ok"], 0);
    EXPECT_EQ(found["calls"]["errors"], 0);
    EXPECT_GT(found["verification"]["answers"], 0) << storage;
    EXPECT_EQ(found["verification"]["wrong"], 0) << found["verification"]["first_wrong"];
    EXPECT_LT(found["verification"]["error_max"], 1e-5);
  }
}

TEST_F(LoadtestTest, AnOpenLoopOfLookupsAndAppendsIsVerifiedAsOfEachSnapshot) {
  const json found = RunJson({"--rows", "500", "--rate", "400", "--arrivals", "constant", "--mix",
                              "lookup=60,append=40", "--append-rows", "3", "--verify", "--weights",
                              "all", "--dim", "16"});
  EXPECT_EQ(found["calls"]["ok"], 200);
  EXPECT_GT(found["methods"]["append"]["ok"], 20);
  EXPECT_GT(found["methods"]["lookup"]["ok"], 60);
  EXPECT_EQ(found["calls"]["errors"], 0);
  EXPECT_GT(found["verification"]["answers"], 0);
  EXPECT_EQ(found["verification"]["wrong"], 0) << found["verification"]["first_wrong"];
  EXPECT_EQ(found["verification"]["unchecked"], 0);
}

TEST_F(LoadtestTest, AppendsWithRetriesAreVerifiedToo) {
  const json found =
      RunJson({"--rows", "500", "--rate", "300", "--mix", "lookup=1,append=1", "--retries", "3",
               "--connections", "2", "--senders", "2", "--verify", "--ramp", "0.2"});
  EXPECT_EQ(found["calls"]["errors"], 0);
  EXPECT_GT(found["verification"]["answers"], 0);
  EXPECT_EQ(found["verification"]["wrong"], 0) << found["verification"]["first_wrong"];
}

TEST_F(LoadtestTest, LookupsWithAMaxErrorAreVerifiedByIt) {
  const json found = RunJson({"--rows", "5000", "--concurrency", "2", "--queries", "3",
                              "--max-error", "0.001", "--verify"});
  EXPECT_EQ(found["calls"]["errors"], 0);
  EXPECT_GT(found["verification"]["answers"], 0);
  EXPECT_EQ(found["verification"]["wrong"], 0) << found["verification"]["first_wrong"];
  EXPECT_LE(found["verification"]["error_max"], 0.001);
  EXPECT_EQ(found["parameters"]["max_error"], 0.001);
}

TEST_F(LoadtestTest, AStoreThatIsThereIsUsedAsItIs) {
  const CommandResult created =
      RunCommand({ToolBinary(), "--server", server_.grpc_address(), "store", "create", "people",
                  "--key-dim", "3", "--value-dim", "2"});
  ASSERT_EQ(created.exit_code, 0) << created.err;
  const json found = RunJson({"--store", "people", "--concurrency", "2", "--mix",
                              "lookup=0,append=1", "--append-rows", "4"});
  EXPECT_EQ(found["parameters"]["key_dim"], 3);
  EXPECT_EQ(found["calls"]["errors"], 0);
  EXPECT_EQ(found["methods"]["lookup"]["ok"], 0);
  // Those that no measurement counts are appended, too.
  const std::uint64_t rows = 4 * found["methods"]["append"]["ok"].get<std::uint64_t>();
  EXPECT_GE(client_.GetStore("people")->row_count(), rows);
}

TEST_F(LoadtestTest, ConditionsDecideTheExitCode) {
  const CommandResult good = Run({"--rows", "500", "--concurrency", "2", "--fail-if", "p99>30s",
                                  "--fail-if", "errors>0", "--fail-if", "rate<0.001"});
  EXPECT_EQ(good.exit_code, kOk) << good.err;
  const CommandResult bad = Run({"--rows", "500", "--concurrency", "2", "--fail-if", "mean>1us"});
  EXPECT_EQ(bad.exit_code, kMissed);
  EXPECT_THAT(bad.err, HasSubstr("--fail-if mean>1us: mean is "));
  EXPECT_THAT(bad.out, HasSubstr("p99.99"));
}

TEST_F(LoadtestTest, TheHighestRateIsFoundByStepsThatAreShown) {
  const auto search = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {ToolBinary(), "--server", server_.grpc_address(),
                                         "loadtest", "--find-max", "--slo"});
    return RunCommand(arguments);
  };
  const CommandResult result = search(
      {"p99=1s", "--duration", "0.15", "--warm-up", "0.05", "--rows", "20000", "--queries", "64"});
  EXPECT_THAT(result.exit_code, AnyOf(kOk, kInvalid)) << result.err;
  EXPECT_THAT(result.out, HasSubstr("held"));
  EXPECT_THAT(result.out, HasSubstr("missed: "));
  EXPECT_THAT(result.out, HasSubstr("highest rate that keeps p99=1s: "));
  const CommandResult none =
      search({"p99=1us", "--duration", "0.05", "--warm-up", "0", "--rate", "8", "--rows", "10"});
  EXPECT_EQ(none.exit_code, kMissed);
  EXPECT_THAT(none.err, HasSubstr("no rate was found"));
}

TEST_F(LoadtestTest, RequestsThatCannotBeMadeLeaveNoStores) {
  const CommandResult result =
      RunCommand({ToolBinary(), "--server", server_.grpc_address(), "loadtest", "--queries", "4096",
                  "--dim", "8192", "--rows", "10", "--duration", "0.1"});
  EXPECT_THAT(result.exit_code, AnyOf(2, 4)) << result.err;
  EXPECT_THAT(result.err, HasSubstr("softlookup: "));
  EXPECT_THAT(*client_.ListStores(), ::testing::IsEmpty());
}

TEST_F(LoadtestTest, NothingVerifiedIsAFailure) {
  const CommandResult result =
      Run({"--rows", "500", "--concurrency", "2", "--mix", "append=1", "--verify"});
  EXPECT_EQ(result.exit_code, kMissed);
  EXPECT_THAT(result.err, HasSubstr("no answer could be checked"));
}

TEST_F(LoadtestTest, AServerThatIsNotThereIsUnavailable) {
  const CommandResult result = RunCommand(
      {ToolBinary(), "--server", "127.0.0.1:1", "--timeout", "1", "loadtest", "--duration", "1"});
  EXPECT_EQ(result.exit_code, 7) << result.err;
  EXPECT_THAT(result.err, Not(HasSubstr("not deleted")));
}

}  // namespace
}  // namespace softlookup::testing
