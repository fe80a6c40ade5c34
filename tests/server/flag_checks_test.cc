#include "server/flag_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <string>

#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::TemporaryDirectory;
using ::testing::Optional;
using ::testing::StartsWith;

TEST(NonFiniteFlagTest, NamesTheFlagThatIsNotFinite) {
  Flags flags;
  EXPECT_EQ(NonFiniteFlag(flags), std::nullopt);
  flags.stall_timeout_seconds = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(NonFiniteFlag(flags), "--stall-timeout: not a number");
  flags.keepalive_seconds = std::numeric_limits<double>::infinity();
  EXPECT_EQ(NonFiniteFlag(flags), "--keepalive-seconds: not a number");
  flags.compact_above = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(NonFiniteFlag(flags), "--compact-above: not a number");
}

TEST(FlagConflictTest, TheDefaultsAgree) {
  const Flags flags;
  EXPECT_EQ(FlagConflict(flags, /*is_ephemeral=*/false, /*sets_data_dir=*/false), std::nullopt);
  EXPECT_EQ(FlagConflict(flags, /*is_ephemeral=*/true, /*sets_data_dir=*/false), std::nullopt);
}

TEST(FlagConflictTest, AnEphemeralServerHasNoDirectories) {
  Flags flags;
  EXPECT_THAT(FlagConflict(flags, /*is_ephemeral=*/true, /*sets_data_dir=*/true),
              Optional(StartsWith("--ephemeral and --data-dir ")));
  flags.backup_dir = "b";
  EXPECT_THAT(FlagConflict(flags, /*is_ephemeral=*/true, /*sets_data_dir=*/false),
              Optional(StartsWith("--ephemeral and --backup-dir ")));
  flags.verify = true;
  EXPECT_THAT(FlagConflict(flags, /*is_ephemeral=*/true, /*sets_data_dir=*/false),
              Optional(StartsWith("--verify ")));
}

TEST(FlagConflictTest, AnEphemeralServersAuditLogMayBeAnywhere) {
  Flags flags;
  flags.audit_log = flags.data_dir + "/audit.log";
  EXPECT_EQ(FlagConflict(flags, /*is_ephemeral=*/true, /*sets_data_dir=*/false), std::nullopt);
  EXPECT_THAT(FlagConflict(flags, /*is_ephemeral=*/false, /*sets_data_dir=*/false),
              Optional(StartsWith("--audit-log ")));
}

TEST(FlagConflictTest, DirectoriesAreComparedAfterLinks) {
  const TemporaryDirectory directory;
  Flags flags;
  flags.data_dir = directory.path() + "/data";
  flags.backup_dir = directory.path() + "/link";
  std::filesystem::create_directory(flags.data_dir);
  std::filesystem::create_directory_symlink(flags.data_dir, flags.backup_dir);
  EXPECT_THAT(FlagConflict(flags, /*is_ephemeral=*/false, /*sets_data_dir=*/true),
              Optional(StartsWith("--backup-dir ")));
  flags.backup_dir += "/backups";
  EXPECT_EQ(FlagConflict(flags, /*is_ephemeral=*/false, /*sets_data_dir=*/true), std::nullopt);
}

TEST(FlagConflictTest, TheDataDirectoryHasAName) {
  Flags flags;
  flags.data_dir.clear();
  EXPECT_THAT(FlagConflict(flags, /*is_ephemeral=*/false, /*sets_data_dir=*/true),
              Optional(StartsWith("--data-dir: must not be empty")));
}

}  // namespace
}  // namespace softlookup::server
