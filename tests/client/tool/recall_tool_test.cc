// `recall` as it is given up; tests/integration/recall_test.cc has what it prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

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

TEST(RecallToolTest, APlotThatCannotBeWrittenIsRefusedBeforeTheFirstCall) {
  const Outcome outcome = RunTool(
      "127.0.0.1:1", {"recall", "--experiment", "posner", "--plot", "/no/such/folder/plot.svg"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kInput);
  EXPECT_THAT(outcome.error, HasSubstr("/no/such/folder/plot.svg: cannot be written"));
}

}  // namespace
}  // namespace softlookup::tool
