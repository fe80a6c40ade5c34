// A mistyped store's name, by the tool against the real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client/tool/exit_code.h"
#include "tests/client/tool/server_tool_test.h"

namespace softlookup::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class StoreSuggestionTest : public ServerToolTest {
 protected:
  StoreSuggestionTest() {
    for (const std::string name : {"people", "acme/users", "acme/orders"}) {
      EXPECT_EQ(Run({"store", "create", name, "--key-dim", "2", "--value-dim", "2"}).error, "");
    }
  }
};

TEST_F(StoreSuggestionTest, EveryCommandNamesTheStoreThatMayBeMeant) {
  const std::vector<std::vector<std::string>> commands = {
      {"lookup", "peple", "--query", "1,2"},
      {"rows", "peple"},
      {"store", "get", "peple"},
      {"store", "rename", "peple", "persons"},
      {"store", "delete", "peple"},
      {"memory", "peple"},
      {"delete-rows", "peple", "--begin", "0"},
  };
  for (const std::vector<std::string>& command : commands) {
    const Outcome outcome = Run(command);
    EXPECT_EQ(outcome.exit_code, ExitCode::kNotFound) << command[0];
    EXPECT_THAT(outcome.error, HasSubstr("\"peple\"; did you mean people?")) << command[0];
  }
  EXPECT_THAT(Run({"store", "get", "acme/user"}).error, HasSubstr("did you mean acme/users?"));
  EXPECT_EQ(RunJson({"store", "list"})["stores"].size(), 3u);
}

TEST_F(StoreSuggestionTest, NothingIsSaidIfNoNameIsNear) {
  for (const std::string name : {"places", "p", "acme/sellers", "users"}) {
    EXPECT_THAT(Run({"store", "get", name}).error, Not(HasSubstr("did you mean"))) << name;
  }
}

}  // namespace
}  // namespace softlookup::tool
