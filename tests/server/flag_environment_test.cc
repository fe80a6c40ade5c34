#include "server/flag_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace softlookup::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Starts and ends without a SOFTLOOKUP_ variable.
class FlagEnvironmentTest : public ::testing::Test {
 protected:
  FlagEnvironmentTest() {
    ClearEnvironment();
    app_.add_option("--memory-limit", unused_);
    app_.add_option("--listen", unused_);
    app_.set_version_flag("--version", "1");
  }
  ~FlagEnvironmentTest() override { ClearEnvironment(); }

  CLI::App app_;

 private:
  static void ClearEnvironment() {
    std::vector<std::string> names;
    for (char** entry = environ; *entry != nullptr; ++entry) {
      if (absl::StartsWith(*entry, "SOFTLOOKUP_")) {
        names.push_back(std::vector<std::string>(absl::StrSplit(*entry, '='))[0]);
      }
    }
    for (const std::string& name : names) ::unsetenv(name.c_str());
  }

  std::string unused_;
};

TEST_F(FlagEnvironmentTest, AFlagsVariableIsAnArgument) {
  ::setenv("SOFTLOOKUP_MEMORY_LIMIT", "4GiB", 1);
  ::setenv("SOFTLOOKUP_LISTEN", "", 1);
  ::setenv("SOFTLOOKUP_VERSION", "1", 1);
  EXPECT_THAT(EnvironmentArguments(app_), ElementsAre("--memory-limit=4GiB"));
  EXPECT_THAT(UnknownVariables(app_), IsEmpty());
}

TEST_F(FlagEnvironmentTest, AVariableOfNoFlagIsWarnedOfWithoutItsValue) {
  ::setenv("SOFTLOOKUP_MEMROY_LIMIT", "secret", 1);
  ::setenv("SOFTLOOKUP_ANYTHING_ELSE", "secret", 1);
  ::setenv("SOFTLOOKUP_EMPTY", "", 1);
  EXPECT_THAT(
      UnknownVariables(app_),
      ElementsAre("the variable SOFTLOOKUP_ANYTHING_ELSE is of no flag, and has no effect",
                  "the variable SOFTLOOKUP_MEMROY_LIMIT is of no flag, and has no effect; did you "
                  "mean SOFTLOOKUP_MEMORY_LIMIT?"));
}

TEST_F(FlagEnvironmentTest, VariablesOfOtherProgramsAreFine) {
  for (const char* name :
       {"SOFTLOOKUP_SERVER", "SOFTLOOKUP_TLS_CA", "SOFTLOOKUP_TOKEN_FILE",
        "SOFTLOOKUP_CONTAINER_MEMORY", "SOFTLOOKUP_LONG_TESTS", "SOFTLOOKUP_TEST_SEED",
        "SOFTLOOKUP_HELP", "SOFTLOOKUP_SERVICE_HOST", "SOFTLOOKUP_SERVICE_PORT_GRPC",
        "SOFTLOOKUP_PORT_7471_TCP_ADDR", "SOFTLOOKUP_READ_SERVICE_PORT"}) {
    ::setenv(name, "x", 1);
  }
  ::setenv("SOFTLOOKUP_PORT", "tcp://10.0.0.1:7471", 1);
  EXPECT_THAT(UnknownVariables(app_), IsEmpty());
  // Kubernetes sets no such value.
  ::setenv("SOFTLOOKUP_PORT", "7471", 1);
  EXPECT_THAT(UnknownVariables(app_),
              ElementsAre("the variable SOFTLOOKUP_PORT is of no flag, and has no effect"));
}

}  // namespace
}  // namespace softlookup::server
