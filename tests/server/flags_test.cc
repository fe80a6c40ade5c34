#include "server/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <iostream>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/client/tool/temporary_file.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::TemporaryFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Holds back what is printed to `stream`.
class Printed {
 public:
  explicit Printed(std::ostream& stream) : stream_(stream), target_(stream.rdbuf(text_.rdbuf())) {}
  ~Printed() { stream_.rdbuf(target_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostream& stream_;
  std::ostringstream text_;
  std::streambuf* const target_;
};

struct Parsed {
  Flags flags;
  std::optional<int> exit_code;
  std::string out;
  std::string err;
};

Parsed Parse(const std::vector<std::string>& arguments,
             std::optional<std::size_t> terminal_width = std::nullopt) {
  std::vector<const char*> argv = {"softlookup-server"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  Parsed parsed;
  const Printed out(std::cout), err(std::cerr);
  parsed.exit_code =
      ParseFlags(static_cast<int>(argv.size()), argv.data(), parsed.flags, terminal_width);
  parsed.out = out.text();
  parsed.err = err.text();
  return parsed;
}

// Starts and ends without a SOFTLOOKUP_ variable.
class FlagsTest : public ::testing::Test {
 protected:
  FlagsTest() { ClearEnvironment(); }
  ~FlagsTest() override { ClearEnvironment(); }

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
};

TEST_F(FlagsTest, WithoutAnyItServesTheLoopbackInterfaceWithTheContractsLimits) {
  const Parsed parsed = Parse({});
  ASSERT_EQ(parsed.exit_code, std::nullopt) << parsed.err;
  EXPECT_EQ(parsed.flags.listen, "127.0.0.1:7471");
  EXPECT_EQ(parsed.flags.http_listen, "127.0.0.1:7472");
  EXPECT_EQ(parsed.flags.data_dir, "./softlookup-data");
  EXPECT_EQ(parsed.flags.threads, std::max(1u, std::thread::hardware_concurrency()));
  EXPECT_EQ(parsed.flags.limits.queries_per_lookup_max, 4096);
  EXPECT_EQ(parsed.flags.limits.rows_per_append_max, 65536);
  EXPECT_EQ(parsed.flags.limits.top_weights_max, 1024);
  EXPECT_EQ(parsed.flags.limits.message_bytes_max, 64 << 20);
  EXPECT_THAT(parsed.out + parsed.err, IsEmpty());
}

// A flag with what it is by default, in the file, in the environment and on the command line.
struct Setting {
  const char* flag;
  const char* variable;
  std::string values[4];
  std::string (*get)(const Flags&);
};

void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.flag; }

const Setting kSettings[] = {
    {"listen",
     "SOFTLOOKUP_LISTEN",
     {"127.0.0.1:7471", "10.0.0.1:1", "host.example:2", "[::1]:0"},
     [](const Flags& flags) { return flags.listen; }},
    {"http-listen",
     "SOFTLOOKUP_HTTP_LISTEN",
     {"127.0.0.1:7472", "10.0.0.1:1", "host.example:2", "[::1]:0"},
     [](const Flags& flags) { return flags.http_listen; }},
    {"data-dir",
     "SOFTLOOKUP_DATA_DIR",
     {"./softlookup-data", "a", "/b", "c/d"},
     [](const Flags& flags) { return flags.data_dir; }},
    {"backup-dir",
     "SOFTLOOKUP_BACKUP_DIR",
     {"", "a", "/b", "c/d"},
     [](const Flags& flags) { return flags.backup_dir; }},
    {"threads",
     "SOFTLOOKUP_THREADS",
     {absl::StrCat(std::max(1u, std::thread::hardware_concurrency())), "301", "302", "303"},
     [](const Flags& flags) { return absl::StrCat(flags.threads); }},
    {"kernel",
     "SOFTLOOKUP_KERNEL",
     {"auto", "amx", "simd", "auto"},
     [](const Flags& flags) { return std::string(NameOf(flags.kernel)); }},
    {"share-queries",
     "SOFTLOOKUP_SHARE_QUERIES",
     {"256", "1", "2", "1048576"},
     [](const Flags& flags) { return absl::StrCat(flags.share_queries); }},
    {"share-wait-us",
     "SOFTLOOKUP_SHARE_WAIT_US",
     {"5000", "0", "1", "1000000"},
     [](const Flags& flags) { return absl::StrCat(flags.share_wait_us); }},
    {"compact-above",
     "SOFTLOOKUP_COMPACT_ABOVE",
     {"0", "1", "0.5", "0.25"},
     [](const Flags& flags) { return absl::StrCat(flags.compact_above); }},
    {"shutdown-grace",
     "SOFTLOOKUP_SHUTDOWN_GRACE",
     {"10", "0", "0.5", "3600"},
     [](const Flags& flags) { return absl::StrCat(flags.shutdown_grace_seconds); }},
    {"log-level",
     "SOFTLOOKUP_LOG_LEVEL",
     {"info", "debug", "warning", "off"},
     [](const Flags& flags) { return flags.log_level; }},
    {"log-format",
     "SOFTLOOKUP_LOG_FORMAT",
     {"text", "json", "text", "json"},
     [](const Flags& flags) { return flags.log_format; }},
    {"slow-lookup-ms",
     "SOFTLOOKUP_SLOW_LOOKUP_MS",
     {"1000", "0", "5", "3600000"},
     [](const Flags& flags) { return absl::StrCat(flags.slow_lookup_ms); }},
    {"max-queries",
     "SOFTLOOKUP_MAX_QUERIES",
     {"4096", "1", "2", "1048576"},
     [](const Flags& flags) { return absl::StrCat(flags.limits.queries_per_lookup_max); }},
    {"max-append-rows",
     "SOFTLOOKUP_MAX_APPEND_ROWS",
     {"65536", "1", "2", "3"},
     [](const Flags& flags) { return absl::StrCat(flags.limits.rows_per_append_max); }},
    {"max-top-weights",
     "SOFTLOOKUP_MAX_TOP_WEIGHTS",
     {"1024", "1", "2", "3"},
     [](const Flags& flags) { return absl::StrCat(flags.limits.top_weights_max); }},
    {"max-message-bytes",
     "SOFTLOOKUP_MAX_MESSAGE_BYTES",
     {"67108864", "1", "2", "1073741824"},
     [](const Flags& flags) { return absl::StrCat(flags.limits.message_bytes_max); }},
    {"max-stores",
     "SOFTLOOKUP_MAX_STORES",
     {"1000000", "1", "2", "4294967296"},
     [](const Flags& flags) { return absl::StrCat(flags.limits.store_count_max); }},
    {"memory-limit",
     "SOFTLOOKUP_MEMORY_LIMIT",
     {"0", "1073741824", "4096", "1000000000000000"},
     [](const Flags& flags) { return absl::StrCat(flags.limits.ram_bytes_max); }},
    {"max-waiting-lookups",
     "SOFTLOOKUP_MAX_WAITING_LOOKUPS",
     {"1024", "1", "2", "3"},
     [](const Flags& flags) { return absl::StrCat(flags.limits.waiting_jobs_max); }},
    {"max-waiting-work",
     "SOFTLOOKUP_MAX_WAITING_WORK",
     {"100", "0", "2.5", "10"},
     [](const Flags& flags) { return absl::StrCat(flags.lookup_wait_ms_max); }},
    {"max-connections",
     "SOFTLOOKUP_MAX_CONNECTIONS",
     {"10000", "1", "2", "3"},
     [](const Flags& flags) { return absl::StrCat(flags.connections_max); }},
    {"max-streams-per-connection",
     "SOFTLOOKUP_MAX_STREAMS_PER_CONNECTION",
     {"1024", "1", "2", "3"},
     [](const Flags& flags) { return absl::StrCat(flags.streams_per_connection_max); }},
    {"keepalive-seconds",
     "SOFTLOOKUP_KEEPALIVE_SECONDS",
     {"60", "1", "2.5", "86400"},
     [](const Flags& flags) { return absl::StrCat(flags.keepalive_seconds); }},
    {"handshake-timeout",
     "SOFTLOOKUP_HANDSHAKE_TIMEOUT",
     {"10", "0.5", "2", "3"},
     [](const Flags& flags) { return absl::StrCat(flags.handshake_timeout_seconds); }},
    {"stall-timeout",
     "SOFTLOOKUP_STALL_TIMEOUT",
     {"60", "0.5", "2", "3"},
     [](const Flags& flags) { return absl::StrCat(flags.stall_timeout_seconds); }},
    {"tenant-requests-per-second",
     "SOFTLOOKUP_TENANT_REQUESTS_PER_SECOND",
     {"0", "1", "2.5", "1000"},
     [](const Flags& flags) { return absl::StrCat(flags.tenant_requests_per_second); }},
    {"tenant-rows-per-second",
     "SOFTLOOKUP_TENANT_ROWS_PER_SECOND",
     {"0", "1", "2.5", "1000"},
     [](const Flags& flags) { return absl::StrCat(flags.tenant_rows_per_second); }},
};

class SettingTest : public FlagsTest, public ::testing::WithParamInterface<Setting> {};

TEST_P(SettingTest, FlagGoesOverEnvironmentOverFileOverDefault) {
  const Setting& setting = GetParam();
  const TemporaryFile file("server.conf", absl::StrCat(setting.flag, "=", setting.values[1], "\n"));
  for (int places = 0; places < 8; ++places) {
    const bool in_file = places & 1, in_environment = places & 2, on_command_line = places & 4;
    ::unsetenv(setting.variable);
    if (in_environment) ::setenv(setting.variable, setting.values[2].c_str(), 1);
    std::vector<std::string> arguments;
    if (on_command_line) {
      arguments = {absl::StrCat("--", setting.flag), setting.values[3]};
    }
    if (in_file) arguments.push_back(absl::StrCat("--config=", file.path()));
    const Parsed parsed = Parse(arguments);
    ASSERT_EQ(parsed.exit_code, std::nullopt) << parsed.err;
    const int expected = on_command_line ? 3 : in_environment ? 2 : in_file ? 1 : 0;
    EXPECT_EQ(setting.get(parsed.flags), setting.values[expected]) << "places: " << places;
  }
}

TEST_P(SettingTest, HelpNamesIt) {
  EXPECT_THAT(Parse({"--help"}).out, HasSubstr(absl::StrCat("--", GetParam().flag)));
}

INSTANTIATE_TEST_SUITE_P(EveryFlag, SettingTest, ::testing::ValuesIn(kSettings));

TEST_F(FlagsTest, EphemeralKeepsEverythingInMemory) {
  EXPECT_EQ(Parse({"--ephemeral"}).flags.data_dir, "");
  EXPECT_EQ(Parse({"--ephemeral=false"}).flags.data_dir, "./softlookup-data");
  EXPECT_EQ(Parse({"--ephemeral=false", "--data-dir=d"}).flags.data_dir, "d");
  EXPECT_THAT(Parse({"--help"}).out, HasSubstr("--ephemeral"));
  ::setenv("SOFTLOOKUP_EPHEMERAL", "true", 1);
  const Parsed parsed = Parse({});
  EXPECT_EQ(parsed.exit_code, std::nullopt) << parsed.err;
  EXPECT_EQ(parsed.flags.data_dir, "");
}

TEST_F(FlagsTest, EveryNumberOfBytesTakesUnits) {
  const Parsed parsed = Parse({"--request-memory=1MiB", "--ranking-memory=2 GiB",
                               "--memory-limit=3TiB", "--max-message-bytes=4kib"});
  ASSERT_EQ(parsed.exit_code, std::nullopt) << parsed.err;
  EXPECT_EQ(parsed.flags.request_bytes_max, 1 << 20);
  EXPECT_EQ(parsed.flags.limits.ranking_bytes_max, std::int64_t{2} << 30);
  EXPECT_EQ(parsed.flags.limits.ram_bytes_max, std::int64_t{3} << 40);
  EXPECT_EQ(parsed.flags.limits.message_bytes_max, 4096);
  for (const char* flag :
       {"--request-memory", "--ranking-memory", "--memory-limit", "--max-message-bytes"}) {
    for (const char* size : {"64MB", "1.5GiB", "1M", "-1", "x", "9223372036854775808"}) {
      const Parsed refused = Parse({absl::StrCat(flag, "=", size)});
      EXPECT_EQ(refused.exit_code, 2) << flag << " " << size;
      EXPECT_THAT(refused.err, AllOf(HasSubstr(flag), HasSubstr("KiB, MiB, GiB and TiB")));
    }
  }
  EXPECT_THAT(Parse({"--max-message-bytes=2GiB"}).err,
              HasSubstr("2147483648 bytes are not between 1 and 1073741824"));
}

TEST_F(FlagsTest, TheMemoryLimitTakesUnitsWhereverItStands) {
  EXPECT_EQ(Parse({"--memory-limit=4GiB"}).flags.limits.ram_bytes_max, std::int64_t{4} << 30);
  const TemporaryFile file("server.conf", "memory-limit=\"512MiB\"\n");
  const Parsed parsed = Parse({"--config", file.path()});
  EXPECT_EQ(parsed.exit_code, std::nullopt) << parsed.err;
  EXPECT_EQ(parsed.flags.limits.ram_bytes_max, std::int64_t{512} << 20);
  ::setenv("SOFTLOOKUP_MEMORY_LIMIT", "2tib", 1);
  EXPECT_EQ(Parse({}).flags.limits.ram_bytes_max, std::int64_t{2} << 40);
  EXPECT_THAT(Parse({"--help"}).out, HasSubstr("0: no limit"));
}

TEST_F(FlagsTest, TheFileThatWasReadIsKnown) {
  const TemporaryFile file("server.conf", "threads=7\n");
  EXPECT_EQ(Parse({}).flags.config, "");
  EXPECT_EQ(Parse({"--config", file.path()}).flags.config, file.path());
  ::setenv("SOFTLOOKUP_CONFIG", file.path().c_str(), 1);
  EXPECT_EQ(Parse({}).flags.config, file.path());
}

TEST_F(FlagsTest, TheWaitOfLookupsIsGivenInMilliseconds) {
  EXPECT_EQ(Parse({}).flags.limits.lookup_wait_max, absl::Milliseconds(100));
  EXPECT_EQ(Parse({"--max-waiting-work=2.5"}).flags.limits.lookup_wait_max,
            absl::Microseconds(2500));
}

TEST_F(FlagsTest, TheLastOfARepeatedFlagCounts) {
  EXPECT_EQ(Parse({"--threads=3", "--threads", "5"}).flags.threads, 5);
}

TEST_F(FlagsTest, TheEnvironmentCanNameTheFile) {
  const TemporaryFile file("server.conf", "# Two of them\nthreads=7\nmax-queries = 9\n");
  ::setenv("SOFTLOOKUP_CONFIG", file.path().c_str(), 1);
  const Parsed parsed = Parse({"--max-queries=8"});
  ASSERT_EQ(parsed.exit_code, std::nullopt) << parsed.err;
  EXPECT_EQ(parsed.flags.threads, 7);
  EXPECT_EQ(parsed.flags.limits.queries_per_lookup_max, 8);
}

TEST_F(FlagsTest, VariablesOfOtherProgramsAreIgnored) {
  ::setenv("SOFTLOOKUP_SERVER", "127.0.0.1:1", 1);
  ::setenv("SOFTLOOKUP_HELP", "1", 1);
  ::setenv("SOFTLOOKUP_VERSION", "1", 1);
  const Parsed parsed = Parse({});
  EXPECT_EQ(parsed.exit_code, std::nullopt);
  EXPECT_THAT(parsed.flags.warnings, IsEmpty());
}

TEST_F(FlagsTest, AVariableOfNoFlagIsWarnedOf) {
  ::setenv("SOFTLOOKUP_MEMROY_LIMIT", "4GiB", 1);
  const Parsed parsed = Parse({});
  EXPECT_EQ(parsed.exit_code, std::nullopt);
  EXPECT_THAT(parsed.flags.warnings, ElementsAre(HasSubstr("mean SOFTLOOKUP_MEMORY_LIMIT?")));
}

TEST_F(FlagsTest, HelpFitsTheTerminal) {
  for (const std::size_t width : {80, 120}) {
    const Parsed help = Parse({"--help"}, width);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_THAT(help.out, HasSubstr("--tenant-requests-per-second"));
    for (const absl::string_view line : absl::StrSplit(help.out, '\n')) {
      EXPECT_LE(line.size(), width) << line;
    }
  }
}

TEST_F(FlagsTest, HelpAndVersionEndWithZero) {
  const Parsed help = Parse({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("SOFTLOOKUP_HTTP_LISTEN"));
  EXPECT_THAT(help.err, IsEmpty());
  const Parsed version = Parse({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex(
                               "softlookup-server [0-9]+\\.[0-9]+\\.[0-9]+( \\([0-9a-f]+\\))?\n"));
}

struct BadUsage {
  std::vector<std::string> arguments;
  const char* named;  // In what is printed.
};

TEST_F(FlagsTest, BadUsageEndsWithTwoAndNamesTheFlag) {
  const BadUsage kBadUsages[] = {
      {{"--listen=7471"}, "7471"},
      {{"--listen=127.0.0.1:"}, "127.0.0.1:"},
      {{"--listen=:7471"}, ":7471"},
      {{"--http-listen=::1:7472"}, "::1:7472"},
      {{"--http-listen=127.0.0.1:65536"}, "65536"},
      {{"--listen"}, "--listen"},
      {{"--threads=-1"}, "--threads"},
      {{"--compact-above=-0.1"}, "--compact-above"},
      {{"--compact-above=1.1"}, "--compact-above"},
      {{"--compact-above=nan"}, "--compact-above"},
      {{"--compact-above=half"}, "--compact-above"},
      {{"--threads=1025"}, "--threads"},
      {{"--threads=two"}, "--threads"},
      {{"--threads=1.5"}, "--threads"},
      {{"--threads=99999999999999999999"}, "--threads"},
      {{"--shutdown-grace=-0.1"}, "--shutdown-grace"},
      {{"--shutdown-grace=3601"}, "--shutdown-grace"},
      {{"--log-level=loud"}, "--log-level"},
      {{"--log-format=xml"}, "--log-format"},
      {{"--slow-lookup-ms=-1"}, "--slow-lookup-ms"},
      {{"--slow-lookup-ms=3600001"}, "--slow-lookup-ms"},
      {{"--max-queries=0"}, "--max-queries"},
      {{"--max-queries=1048577"}, "--max-queries"},
      {{"--max-append-rows=0"}, "--max-append-rows"},
      {{"--max-top-weights=-5"}, "--max-top-weights"},
      {{"--max-message-bytes=1073741825"}, "--max-message-bytes"},
      {{"--max-stores=0"}, "--max-stores"},
      {{"--max-waiting-lookups=0"}, "--max-waiting-lookups"},
      {{"--max-waiting-work=-1"}, "--max-waiting-work"},
      {{"--max-waiting-work=nan"}, "--max-waiting-work"},
      {{"--max-connections=0"}, "--max-connections"},
      {{"--max-streams-per-connection=0"}, "--max-streams-per-connection"},
      {{"--keepalive-seconds=0.5"}, "--keepalive-seconds"},
      {{"--handshake-timeout=0"}, "--handshake-timeout"},
      {{"--stall-timeout=0"}, "--stall-timeout"},
      {{"--stall-timeout=soon"}, "--stall-timeout"},
      {{"--tenant-requests-per-second=-1"}, "--tenant-requests-per-second"},
      {{"--tenant-rows-per-second=inf"}, "--tenant-rows-per-second"},
      {{"--request-memory=0"}, "--request-memory"},
      {{"--request-memory=1023KiB"}, "--request-memory"},
      {{"--request-memory=4000000TiB"}, "--request-memory"},
      {{"--memory-limit=4GB"}, "4GB"},
      {{"--memory-limit=-1"}, "--memory-limit"},
      {{"--memory-limit="}, "--memory-limit"},
      {{"--kernel=avx"}, "--kernel"},
      {{"--ephemeral=maybe"}, "--ephemeral"},
      {{"--ephemeral", "--data-dir=d"}, "--ephemeral and --data-dir"},
      {{"--ephemeral", "--backup-dir=b"}, "--ephemeral and --backup-dir"},
      {{"--data-dir=d", "--backup-dir=./d/"}, "--backup-dir"},
      {{"--data-dir=/proc", "--backup-dir=/proc/self/.."}, "--backup-dir"},
      {{"--data-dir=.", "--audit-log=audit.log"}, "--audit-log"},
      {{"--data-dir="}, "--data-dir"},
      {{"--data-dir"}, "--data-dir"},
      {{"--no-such-flag=1"}, "--no-such-flag"},
      {{"stray"}, "stray"},
      {{"--config=no/such/file"}, "no/such/file"},
  };
  for (const BadUsage& usage : kBadUsages) {
    const Parsed parsed = Parse(usage.arguments);
    EXPECT_EQ(parsed.exit_code, 2) << usage.arguments[0];
    EXPECT_THAT(parsed.err, HasSubstr(usage.named));
    EXPECT_THAT(parsed.out, IsEmpty());
  }
}

TEST_F(FlagsTest, ABadVariableEndsWithTwoAndNamesTheFlag) {
  ::setenv("SOFTLOOKUP_MAX_QUERIES", "many", 1);
  const Parsed parsed = Parse({});
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_THAT(parsed.err, HasSubstr("--max-queries"));
}

TEST_F(FlagsTest, ABadFileEndsWithTwoAndNamesTheLine) {
  const std::pair<const char*, const char*> bad_lines[] = {
      {"max-queries=0", "--max-queries: Value 0 not in range"},
      {"threads = many", "--threads: Value many not in range"},
      {"max-querys=5", "unknown setting max-querys; did you mean max-queries?"},
      {"nothing-like-it=5", "unknown setting nothing-like-it\n"},
      {"threads 5", "\"threads 5\" is not of the form name=\"value\""},
      {"[limits]\nthreads=5", "[limits]: settings stand in no section"},
      {"\"threads\"=many", "--threads: Value many not in range"},
      {"ephemeral=maybe", "Could not convert: --ephemeral = maybe"},
      {"stall-timeout=nan", "--stall-timeout: not a number"},
      {"config=x", "config: This option is not allowed in a configuration file"},
      {"tls-key=/x", "--tls-key requires --tls-certificate"},
      {"max-message-bytes=64MB", "--max-message-bytes: \"64MB\" is not a number of bytes"}};
  for (const auto& [line, problem] : bad_lines) {
    const TemporaryFile file("server.conf", absl::StrCat("listen=127.0.0.1:0\n", line, "\n"));
    const Parsed parsed = Parse({"--config", file.path()});
    EXPECT_EQ(parsed.exit_code, 2) << line;
    EXPECT_THAT(parsed.err, HasSubstr(absl::StrCat(file.path(), ", line 2: ", problem)));
  }
}

TEST_F(FlagsTest, AFlagThatTheFileSetsTwiceIsAnErrorThatNamesBothLines) {
  for (const char* lines : {"threads=2\n# between\n\"threads\" = 3\n",
                            "threads=2\n\nthreads=many\n", "threads=many\n\nthreads=2\n"}) {
    const TemporaryFile file("server.conf", lines);
    for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--threads=4"}}) {
      std::vector<std::string> arguments = {"--config", file.path()};
      arguments.insert(arguments.end(), more.begin(), more.end());
      const Parsed parsed = Parse(arguments);
      EXPECT_EQ(parsed.exit_code, 2) << lines;
      EXPECT_THAT(parsed.err, HasSubstr(absl::StrCat(
                                  file.path(), ", line 3: threads is set in line 1 already")));
    }
  }
}

TEST_F(FlagsTest, AFlagThatOverridesTheFileIsAtFaultItself) {
  const TemporaryFile file("server.conf", "threads=2\n");
  const Parsed parsed = Parse({"--config", file.path(), "--threads=many"});
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_THAT(parsed.err, AllOf(HasSubstr("--threads: Value many"), Not(HasSubstr("line"))));
}

TEST_F(FlagsTest, AnUnknownFlagIsNamedWithTheOneThatIsNear) {
  EXPECT_THAT(Parse({"--treads", "2"}).err,
              HasSubstr("unknown flag --treads; did you mean --threads?"));
  EXPECT_THAT(Parse({"--treads=2"}).err,
              HasSubstr("unknown flag --treads; did you mean --threads?"));
  EXPECT_THAT(Parse({"--treads", "2", "--lisen", "3"}).err, HasSubstr("unknown flag --treads;"));
  EXPECT_THAT(Parse({"--ephemeral", "yes"}).err,
              HasSubstr("unexpected argument yes: it follows no flag that takes a value"));
  EXPECT_THAT(Parse({"--", "foo"}).err, HasSubstr("unexpected argument foo"));
  EXPECT_THAT(Parse({"--nothing-like-it"}).err, HasSubstr("unknown flag --nothing-like-it\n"));
}

}  // namespace
}  // namespace softlookup::server
