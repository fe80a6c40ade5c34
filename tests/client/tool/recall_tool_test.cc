// `recall` as it is given up; tests/integration/recall_test.cc has what it prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "client/recall/blend.h"
#include "softlookup/float_matrix.h"
#include "softlookup/word_encoder.h"
#include "tests/client/scripted_service.h"
#include "tests/client/tool/run_tool.h"

namespace softlookup::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(RecallToolTest, ASignalEndsItAndItsStoreIsDeleted) {
  int signal = 0;
  int lookups = 0;
  std::vector<std::string> created, deleted;
  testing::ScriptedService service;
  service.create_store = [&](auto*, const auto& request, auto* store) {
    created.push_back(request.store().name());
    *store = request.store();
    return grpc::Status::OK;
  };
  service.append = [&](auto*, auto&, auto*) {
    raise(signal);
    return grpc::Status::OK;
  };
  service.lookup = [&](auto*, auto&, auto*) {
    ++lookups;
    return grpc::Status::OK;
  };
  service.delete_store = [&](auto*, const auto& request, auto*) {
    deleted.push_back(request.name());
    return grpc::Status::OK;
  };
  for (const int each : {SIGINT, SIGTERM}) {
    signal = each;
    for (const std::vector<std::string>& arguments :
         {std::vector<std::string>{"recall"}, {"recall", "--experiment", "posner"}}) {
      const Outcome outcome = RunTool(service.address(), arguments);
      EXPECT_EQ(outcome.exit_code, ExitCode::kOther);
      EXPECT_THAT(outcome.error, HasSubstr("interrupted"));
    }
  }
  EXPECT_THAT(created, SizeIs(4));
  EXPECT_EQ(deleted, created);
  EXPECT_EQ(lookups, 0);
}

TEST(RecallToolTest, TheSeedDecidesTheNoiseAndNotTheWords) {
  std::string keys, query;
  testing::ScriptedService service;
  service.create_store = [](auto*, const auto& request, auto* store) {
    *store = request.store();
    return grpc::Status::OK;
  };
  service.append = [&](auto*, const v1::AppendRequest& request, auto*) {
    keys = request.keys().data();
    return grpc::Status::OK;
  };
  service.lookup = [&](auto*, const v1::LookupRequest& request, auto*) {
    query = request.queries().data();
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "enough");
  };
  service.delete_store = [](auto*, auto&, auto*) { return grpc::Status::OK; };
  const auto ask = [&](const std::string& seed, const std::string& noise) {
    const Outcome outcome =
        RunTool(service.address(), {"recall", "apple", "--seed", seed, "--noise", noise});
    EXPECT_THAT(outcome.error, HasSubstr("enough"));
    return query;
  };
  const std::string exact = ask("1", "0");
  const std::string words = keys;
  EXPECT_EQ(ask("2", "0"), exact);
  const std::string noisy = ask("1", "1");
  EXPECT_NE(noisy, exact);
  EXPECT_EQ(ask("1", "1"), noisy);
  EXPECT_NE(ask("2", "1"), noisy);
  EXPECT_EQ(keys, words);

  // In 64 dimensions, as the tool's default has it.
  const WordEncoder encoder(64);
  const std::vector<float> blend =
      recall::Blend(encoder.Encode("apple"), 1, encoder.Encode("recall/1/noise"));
  v1::Matrix expected;
  ASSERT_TRUE(FloatMatrixView(blend, 1, 64).ToProto(&expected).ok());
  EXPECT_EQ(noisy, expected.data());
}

TEST(RecallToolTest, APlotThatCannotBeWrittenIsRefusedBeforeTheFirstCall) {
  const Outcome outcome = RunTool(
      "127.0.0.1:1", {"recall", "--experiment", "posner", "--plot", "/no/such/folder/plot.svg"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("/no/such/folder/plot.svg: cannot be written"));
}

}  // namespace
}  // namespace softlookup::tool
