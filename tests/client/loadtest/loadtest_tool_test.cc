// `softlookup loadtest` against a server whose answers the test writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/client/scripted_service.h"
#include "tests/client/tool/run_tool.h"
#include "tests/client/tool/temporary_file.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::tool {
namespace {

using nlohmann::json;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

class LoadtestToolTest : public ::testing::Test {
 protected:
  LoadtestToolTest() {
    service_.create_store = [this](auto*, const v1::CreateStoreRequest& request, v1::Store* store) {
      const absl::MutexLock lock(&mutex_);
      stores_.insert(request.store().name());
      ++created_;
      *store = request.store();
      return create_status_;
    };
    service_.delete_store = [this](auto*, const v1::DeleteStoreRequest& request, auto*) {
      const absl::MutexLock lock(&mutex_);
      if (delete_status_.ok()) stores_.erase(request.name());
      return delete_status_;
    };
    service_.append = [](auto*, const v1::AppendRequest& request, v1::AppendResponse* response) {
      response->set_appended_count(request.keys().rows());
      return grpc::Status::OK;
    };
    // An answer of the right shape, and wrong.
    service_.lookup = [](auto*, const v1::LookupRequest& request, v1::LookupResponse* response) {
      response->mutable_values()->set_rows(request.queries().rows());
      response->mutable_values()->set_cols(3);
      response->mutable_values()->set_data(std::string(4 * 3 * request.queries().rows(), '\0'));
      for (std::uint32_t q = 0; q < request.queries().rows(); ++q) {
        response->add_stats()->set_counted_rows(50);
      }
      response->set_row_count(50);
      return grpc::Status::OK;
    };
  }

  // A short test of two stores of 50 rows. Long enough for a call to be sent on a machine that is
  // busy with much else.
  Outcome Run(std::vector<std::string> arguments) {
    const std::vector<std::string> first = {
        "loadtest", "--warm-up", "0", "--duration",  "1", "--stores",      "2", "--rows",
        "50",       "--key-dim", "4", "--value-dim", "3", "--concurrency", "2"};
    arguments.insert(arguments.begin(), first.begin(), first.end());
    return RunTool(service_.address(), std::move(arguments));
  }

  absl::Mutex mutex_;
  std::set<std::string> stores_;
  int created_ = 0;
  grpc::Status create_status_;
  grpc::Status delete_status_;
  absl::Notification never_;
  std::atomic<bool> raised_ = false;
  testing::ScriptedService service_;
};

TEST_F(LoadtestToolTest, PrintsASummaryAndLeavesNoStoreBehind) {
  const Outcome outcome = Run({});
  EXPECT_EQ(outcome.error, "");
  for (const std::string text :
       {"closed loop, 2 calls in flight, 1.00 s measured", "\nlatency   lookup\n", "\np99.99 ",
        "\nthroughput ", "\nerrors ", "\nrejected ", "\nclient CPU "}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
  }
  EXPECT_EQ(created_, 2);
  EXPECT_THAT(stores_, IsEmpty());
}

TEST_F(LoadtestToolTest, EveryCallCarriesTheToken) {
  std::atomic<int> calls = 0, with_token = 0;
  const auto count = [&](grpc::ServerContext* context) {
    const auto it = context->client_metadata().find("authorization");
    if (it != context->client_metadata().end() && it->second == "Bearer abc") ++with_token;
    ++calls;
  };
  const auto append = service_.append;
  service_.append = [&](auto* context, const auto& request, auto* response) {
    count(context);
    return append(context, request, response);
  };
  const auto lookup = service_.lookup;
  service_.lookup = [&](auto* context, const auto& request, auto* response) {
    count(context);
    return lookup(context, request, response);
  };
  const testing::TemporaryFile token("token", "abc\n");
  EXPECT_EQ(Run({"--token-file", token.path(), "--connections", "2"}).error, "");
  EXPECT_GT(calls, 4);
  EXPECT_EQ(calls, with_token);
}

TEST_F(LoadtestToolTest, KeptStoresAreNamed) {
  const Outcome outcome = Run({"--keep", "--store-prefix", "acme/load"});
  ASSERT_THAT(stores_, SizeIs(2));
  for (const std::string& store : stores_) {
    EXPECT_THAT(store, StartsWith("acme/load/"));
    EXPECT_THAT(outcome.out, HasSubstr(store));
  }
}

TEST_F(LoadtestToolTest, AWrongAnswerFailsAVerifiedTest) {
  EXPECT_EQ(Run({}).exit_code, ExitCode::kOk);
  const Outcome outcome = Run({"--verify"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kMissed);
  EXPECT_THAT(outcome.error, HasSubstr("answers were wrong: values are off by "));
  EXPECT_THAT(outcome.out, HasSubstr("\nWRONG: values are off by "));
  EXPECT_THAT(Run({"--verify", "--weights", "top"}).error,
              HasSubstr("answers were wrong: it has no weights, which were asked for"));
}

TEST_F(LoadtestToolTest, LookupsAskForTheirMaxErrorAndAnswersAreCheckedByIt) {
  std::atomic<double> asked = -1;
  const auto lookup = service_.lookup;
  service_.lookup = [&](auto* context, const auto& request, auto* response) {
    asked = request.options().has_max_error() ? request.options().max_error() : -1;
    return lookup(context, request, response);
  };
  EXPECT_EQ(Run({}).error, "");
  EXPECT_EQ(asked, -1);
  // Values of 0 are within any value's size of the answer. Their log-sum-exp of 0 is not right.
  const Outcome outcome = Run({"--verify", "--max-error", "1", "-o", "json"});
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(outcome.error, HasSubstr("answers were wrong: log_sum_exp is 0"));
  EXPECT_EQ(json::parse(outcome.out)["parameters"]["max_error"], 1);
  EXPECT_EQ(Run({"--max-error", "1.5"}).exit_code, ExitCode::kUsage);
}

TEST_F(LoadtestToolTest, AConditionThatHoldsHasAnExitCodeOfItsOwn) {
  EXPECT_EQ(Run({"--fail-if", "errors>0", "--fail-if", "p99>9s"}).exit_code, ExitCode::kOk);
  const Outcome outcome = Run({"--fail-if", "errors>0", "--fail-if", "p50>1ns"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kMissed);
  EXPECT_THAT(outcome.error, StartsWith("--fail-if p50>1ns: p50 is "));
  EXPECT_THAT(outcome.out, HasSubstr("\nFAILED: p50>1ns: p50 is "));
}

TEST_F(LoadtestToolTest, JsonAndThePageHaveWhatIsPrinted) {
  const testing::TemporaryFile page("report.html"), file("report.json");
  const Outcome outcome = Run({"-o", "json", "--report", page.path(), "--json", file.path()});
  EXPECT_EQ(outcome.error, "");
  const json printed = json::parse(outcome.out);
  EXPECT_GT(printed["calls"]["ok"], 10);
  EXPECT_EQ(printed["parameters"]["stores"], 2);
  EXPECT_EQ(printed["parameters"]["concurrency"], 2);
  std::ifstream written(file.path());
  EXPECT_EQ(json::parse(written), printed);
  std::ostringstream html;
  html << std::ifstream(page.path()).rdbuf();
  EXPECT_THAT(html.str(), StartsWith("<!DOCTYPE html>"));
}

TEST_F(LoadtestToolTest, AServerThatOnlyFailsFailsTheTest) {
  service_.lookup = [](auto*, auto&, auto*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "broken");
  };
  const Outcome outcome = Run({});
  EXPECT_EQ(outcome.exit_code, ExitCode::kOther);
  EXPECT_THAT(outcome.error, HasSubstr("no call ended OK: broken"));
  EXPECT_THAT(outcome.out, HasSubstr("INTERNAL x "));
  EXPECT_THAT(stores_, IsEmpty());
}

TEST_F(LoadtestToolTest, AnInterruptionStillPrintsAndDeletes) {
  for (const bool while_filling : {true, false}) {
    // The second one would end the process.
    std::atomic<bool> raised = false;
    service_.append = [&](auto*, auto&, auto*) {
      if (while_filling && !raised.exchange(true)) raise(SIGINT);
      return grpc::Status::OK;
    };
    service_.lookup = [&](auto*, auto&, auto*) {
      if (!while_filling && !raised.exchange(true)) raise(SIGINT);
      return grpc::Status::OK;
    };
    const Outcome outcome =
        RunTool(service_.address(),
                {"loadtest", "--duration", "300", "--warm-up", "0", "--rows", "1", "--rate", "20"});
    EXPECT_EQ(outcome.exit_code, ExitCode::kOther);
    EXPECT_THAT(outcome.error, HasSubstr("interrupted"));
    EXPECT_THAT(stores_, IsEmpty());
    if (!while_filling) {
      EXPECT_THAT(outcome.out, HasSubstr("measured (interrupted)"));
    }
  }
}

TEST_F(LoadtestToolTest, AnInterruptedRunIsStillVerified) {
  const auto lookup = service_.lookup;
  std::atomic<int> calls = 0;
  service_.lookup = [&](auto* context, const auto& request, auto* response) {
    if (++calls == 20) raise(SIGINT);
    return lookup(context, request, response);
  };
  const Outcome outcome =
      RunTool(service_.address(),
              {"loadtest", "--duration", "60", "--warm-up", "0", "--rows", "50", "--key-dim", "4",
               "--value-dim", "3", "--concurrency", "1", "--verify", "--verify-answers", "10000"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kMissed);
  EXPECT_THAT(outcome.error, ContainsRegex("answers? (was|were) wrong"));
  EXPECT_THAT(outcome.out, HasSubstr("measured (interrupted)"));
  EXPECT_THAT(stores_, IsEmpty());
}

TEST_F(LoadtestToolTest, AServerThatHangsDoesNotKeepFillingFromBeingInterrupted) {
  service_.append = [this](grpc::ServerContext* context, auto&, auto*) {
    if (!raised_.exchange(true)) raise(SIGINT);
    while (!context->IsCancelled()) never_.WaitForNotificationWithTimeout(absl::Milliseconds(10));
    return grpc::Status::OK;
  };
  const Outcome outcome = RunTool(service_.address(), {"loadtest", "--rows", "1"});
  EXPECT_THAT(outcome.error, HasSubstr("interrupted"));
  EXPECT_EQ(created_, 1);
  EXPECT_THAT(stores_, IsEmpty());
}

TEST_F(LoadtestToolTest, StoresThatCouldNotBeDeletedAreNamed) {
  delete_status_ = grpc::Status(grpc::StatusCode::INTERNAL, "stuck");
  const auto names_all = [this](const Outcome& outcome) {
    EXPECT_THAT(outcome.error, HasSubstr("not deleted: loadtest/"));
    EXPECT_THAT(outcome.error, HasSubstr("stuck"));
    for (const std::string& store : stores_) EXPECT_THAT(outcome.error, HasSubstr(store));
    stores_.clear();
  };
  Outcome outcome = Run({});
  EXPECT_EQ(outcome.exit_code, ExitCode::kOther);
  EXPECT_THAT(stores_, SizeIs(2));
  names_all(outcome);
  // The verdict stays what it is.
  outcome = Run({"--fail-if", "p50>1ns"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kMissed);
  EXPECT_THAT(outcome.error, StartsWith("--fail-if p50>1ns: p50 is "));
  names_all(outcome);
  // Filling fails.
  service_.append = [](auto*, auto&, auto*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "no such row");
  };
  outcome = Run({});
  EXPECT_EQ(outcome.exit_code, ExitCode::kRefused);
  EXPECT_THAT(outcome.error, HasSubstr("no such row"));
  names_all(outcome);
}

TEST_F(LoadtestToolTest, AFailureToMakeStoresIsTheServersErrorAndLeavesNone) {
  create_status_ =
      testing::DetailedStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "no memory", "MEMORY_LIMIT");
  const Outcome outcome = Run({});
  EXPECT_EQ(outcome.exit_code, ExitCode::kRefused);
  EXPECT_THAT(outcome.error, HasSubstr("MEMORY_LIMIT"));
  EXPECT_THAT(stores_, IsEmpty());
}

TEST_F(LoadtestToolTest, WhatCannotBeMeantIsRefusedBeforeAnythingIsMade) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--mix", "lookups=1"},
                                             {"--fail-if", "p99>20"},
                                             {"--fail-if", "p99=20ms"},
                                             {"--fail-if", "errors==0"},
                                             {"--find-max"},
                                             {"--slo", "p99=20ms"},
                                             {"--find-max", "--slo", "p99"},
                                             {"--find-max", "--slo", "p99>20ms"},
                                             {"--rate", "0"},
                                             {"--rate", "100"},  // Beside --concurrency.
                                             {"--ramp", "-1"},
                                             {"--ramp", "soon"},
                                             {"--queries", "4097"},
                                             {"--dim", "8"},  // Beside --key-dim.
                                             {"--storage-type", "float16"},
                                             {"--verify-answers", "5"},
                                             {"--store", "people"}}) {
    EXPECT_EQ(Run(arguments).exit_code, ExitCode::kUsage) << arguments.front();
  }
  EXPECT_EQ(Run({"--report", "/no/such/folder/report.html"}).exit_code, ExitCode::kInput);
  EXPECT_EQ(created_, 0);
}

TEST_F(LoadtestToolTest, ASearchTakesNoAppends) {
  const auto search = [&](const std::string& mix) {
    return RunTool(service_.address(),
                   {"loadtest", "--find-max", "--slo", "p99=1ns", "--mix", mix, "--rate", "1",
                    "--duration", "0.05", "--warm-up", "0", "--rows", "1"});
  };
  const Outcome outcome = search("lookup=9,append=1");
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_THAT(outcome.error, HasSubstr("--find-max does not go with appends"));
  EXPECT_EQ(created_, 0);
  EXPECT_EQ(search("lookup=9,append=0").exit_code, ExitCode::kMissed);
}

TEST_F(LoadtestToolTest, TheRateHasABound) {
  for (const std::string rate : {"1e18", "10000001", "inf"}) {
    const Outcome outcome =
        RunTool(service_.address(), {"loadtest", "--rate", rate, "--duration", "0.1"});
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage) << rate;
    EXPECT_THAT(outcome.error, HasSubstr("--rate takes at most 10,000,000 calls a second"));
  }
  EXPECT_EQ(created_, 0);
}

TEST_F(LoadtestToolTest, CallsThatWereNotSentMakeTheTestInvalid) {
  service_.lookup = [this](auto*, auto&, auto*) {
    never_.WaitForNotificationWithTimeout(absl::Milliseconds(300));
    return grpc::Status::OK;
  };
  const testing::TemporaryFile page("report.html");
  const Outcome outcome = RunTool(
      service_.address(), {"loadtest", "--rate", "100", "--max-in-flight", "2", "--warm-up", "0",
                           "--duration", "0.2", "--rows", "1", "--report", page.path()});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInvalid);
  EXPECT_THAT(outcome.out, ContainsRegex("\nINVALID: [0-9]+ calls that were due were not sent"));
  std::ostringstream html;
  html << std::ifstream(page.path()).rdbuf();
  EXPECT_THAT(html.str(), HasSubstr("<b>Invalid</b>"));
  EXPECT_THAT(html.str(), Not(HasSubstr("<b>Valid</b>")));
}

TEST_F(LoadtestToolTest, FilesAreLeftOnlyWhereSomethingWasMeasured) {
  const testing::TemporaryDirectory directory;
  const std::string page = directory.path() + "/report.html", file = directory.path() + "/a.json";
  create_status_ = grpc::Status(grpc::StatusCode::INTERNAL, "broken");
  const std::vector<std::string> both = {"--report", page, "--json", file};
  EXPECT_EQ(Run(both).exit_code, ExitCode::kOther);
  EXPECT_FALSE(std::filesystem::exists(page));
  EXPECT_FALSE(std::filesystem::exists(file));
  std::ofstream(page) << "of an earlier test";
  Run(both);
  EXPECT_EQ(std::filesystem::file_size(page), 18u);
  create_status_ = grpc::Status::OK;
  EXPECT_EQ(Run(both).error, "");
  EXPECT_GT(std::filesystem::file_size(page), 1000u);
  EXPECT_GT(std::filesystem::file_size(file), 1000u);
}

}  // namespace
}  // namespace softlookup::tool
