// `softlookup-server --verify`, as an operator runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/integration/integration_test.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::HasSubstr;

class VerifyTest : public ::testing::Test {
 protected:
  CommandResult Verify(const std::string& directory) const {
    return RunCommand({ServerBinary(), "--verify", "--data-dir", directory});
  }

  // Starts a server that must not start.
  CommandResult Serve(const std::string& directory) const {
    return RunCommand({ServerBinary(), "--data-dir", directory, "--listen", "127.0.0.1:0",
                       "--http-listen", "127.0.0.1:0"});
  }

  TemporaryDirectory parent_;
  const std::string directory_ = parent_.path() + "/data";
};

TEST_F(VerifyTest, TellsWhatADirectoryHoldsAndWhetherItIsWhole) {
  {
    ServerProcess server({"--data-dir", directory_});
    const std::string rows = parent_.path() + "/rows.csv";
    std::ofstream(rows) << "1,2\n";
    for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
             {"store", "create", "people", "--key-dim", "1", "--value-dim", "1"},
             {"store", "create", "empty", "--key-dim", "1", "--value-dim", "1"},
             {"append", "people", "--rows", rows}}) {
      std::vector<std::string> command = {ToolBinary(), "--server", server.grpc_address()};
      command.insert(command.end(), arguments.begin(), arguments.end());
      const CommandResult done = RunCommand(command);
      ASSERT_EQ(done.exit_code, 0) << done.err;
    }
    const CommandResult in_use = Verify(directory_);
    EXPECT_EQ(in_use.exit_code, 1);
    EXPECT_THAT(in_use.out, HasSubstr("another process"));
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  const CommandResult whole = Verify(directory_);
  EXPECT_EQ(whole.exit_code, 0);
  EXPECT_THAT(whole.out, HasSubstr("store \"people\", 1 row, revision 2\n"));
  EXPECT_THAT(whole.out, HasSubstr("store \"empty\", 0 rows, revision 1\n"));
  EXPECT_THAT(whole.out, HasSubstr("is whole"));

  // What was acknowledged is cut off the write-ahead log of a server that was killed.
  {
    ServerProcess server({"--data-dir", directory_});
    const CommandResult created =
        RunCommand({ToolBinary(), "--server", server.grpc_address(), "store", "create", "more",
                    "--key-dim", "1", "--value-dim", "1"});
    ASSERT_EQ(created.exit_code, 0) << created.err;
    server.Stop(SIGKILL);
  }
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    if (entry.path().extension() == ".log") std::filesystem::resize_file(entry.path(), 0);
  }
  const CommandResult damaged = Verify(directory_);
  EXPECT_EQ(damaged.exit_code, 1);
  EXPECT_THAT(damaged.out, HasSubstr("is damaged"));
  EXPECT_EQ(Verify(directory_).out, damaged.out) << "it changes nothing";
}

TEST_F(VerifyTest, ADirectoryWithoutItsRootIsDamagedAndIsNotServed) {
  EXPECT_EQ(ServerProcess({"--data-dir", directory_}).Stop(SIGTERM), 0);
  ASSERT_TRUE(std::filesystem::remove(directory_ + "/CURRENT"));
  const CommandResult result = Verify(directory_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("is damaged: CURRENT is missing beside"));
  EXPECT_THAT(result.out, HasSubstr("in " + directory_));
  EXPECT_THAT(result.out, HasSubstr("restore a backup"));
  const CommandResult served = Serve(directory_);
  EXPECT_EQ(served.exit_code, 1);
  EXPECT_THAT(served.err, HasSubstr("is damaged: CURRENT is missing beside"));
  EXPECT_THAT(served.err, HasSubstr("restore a backup"));

  // Whatever else is lost, it is seen that stores were there.
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("MANIFEST-", 0) != 0) std::filesystem::remove(entry.path());
  }
  EXPECT_THAT(Verify(directory_).out, HasSubstr("CURRENT is missing beside MANIFEST-"));
}

TEST_F(VerifyTest, ADirectoryOfOtherFilesIsNoDataDirectory) {
  const CommandResult result = Verify(parent_.path());
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("there is no data directory " + parent_.path() +
                                    ": it has none of the files of one"));
}

TEST_F(VerifyTest, ADirectoryOfOthersIsNeitherServedNorWholeAndStaysAsItIs) {
  std::filesystem::create_directory(directory_);
  std::ofstream(directory_ + "/hosts") << "127.0.0.1 localhost\n";
  const CommandResult served = Serve(directory_);
  EXPECT_EQ(served.exit_code, 1);
  EXPECT_THAT(served.err, HasSubstr(directory_ + " is no data directory: it has hosts,"));
  const CommandResult verified = Verify(directory_);
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(served.err, HasSubstr(verified.out));
  std::filesystem::remove(directory_ + "/hosts");
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(VerifyTest, ADirectoryOfBackupsIsNeitherServedNorWhole) {
  const std::string backups = parent_.path() + "/backups";
  {
    const ServerProcess server({"--data-dir", directory_, "--backup-dir", backups});
    const CommandResult made =
        RunCommand({ToolBinary(), "--server", server.grpc_address(), "backup", "create", "monday"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  const std::string command = "softlookup backup restore " + backups + "/monday";
  const CommandResult served = Serve(backups);
  EXPECT_EQ(served.exit_code, 1);
  EXPECT_THAT(served.err, HasSubstr(command));
  const CommandResult verified = Verify(backups);
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out, HasSubstr(command));

  // A version that served it made a data directory of it, without stores.
  const std::string empty = parent_.path() + "/empty";
  EXPECT_EQ(ServerProcess({"--data-dir", empty}).Stop(SIGTERM), 0);
  EXPECT_EQ(Verify(empty).exit_code, 0);
  std::filesystem::copy(backups, empty, std::filesystem::copy_options::recursive);
  const CommandResult mixed = Verify(empty);
  EXPECT_EQ(mixed.exit_code, 1);
  EXPECT_THAT(mixed.out, HasSubstr("softlookup backup restore " + empty + "/monday"));
}

TEST_F(VerifyTest, ADirectoryThatIsNotThereIsAnErrorAndIsNotMade) {
  const CommandResult result = Verify(directory_);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("there is no data directory"));
  EXPECT_FALSE(std::filesystem::exists(directory_));
}

}  // namespace
}  // namespace softlookup::testing
