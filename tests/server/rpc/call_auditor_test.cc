#include "server/rpc/call_auditor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "core/base/error.h"
#include "server/observability/line_limiter.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::server {
namespace {

using ::softlookup::testing::IsOk;
using ::softlookup::testing::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Status LoginFailure() { return MakeError(reasons::kUnauthenticated, "who are you"); }
absl::Status Denial() { return MakeError(reasons::kPermissionDenied, "not in this store"); }
absl::Status Failure() { return MakeError(reasons::kStoreNotFound, "no such store"); }

class CallAuditorTest : public ::testing::Test {
 protected:
  CallAuditorTest() {
    auto log = AuditLog::Open(path_, LineFormat::kJson);
    EXPECT_THAT(log.status(), IsOk());
    log_ = *std::move(log);
  }

  CallAuditor AuditorOf(Method method) {
    return CallAuditor(log_.get(), refusals_, SpecOf(method), [] {
      return AuditSubject{
          .identity = "ingest", .peer = "ipv4:10.0.0.7:1", .store = "s", .trace_id = "4bf9"};
    });
  }

  // All lines so far. No line can follow.
  std::vector<nlohmann::json> Lines() {
    log_.reset();
    std::vector<nlohmann::json> lines;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  std::vector<std::string> Events() {
    std::vector<std::string> events;
    for (const nlohmann::json& line : Lines()) events.push_back(line["event"]);
    return events;
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/audit.log";
  std::unique_ptr<AuditLog> log_;
  LineLimiter refusals_{kRefusalLinesPerSecondMax};
};

TEST_F(CallAuditorTest, AChangeLeavesALineWhetherItSucceedsOrNot) {
  AuditorOf(Method::kCreateStore).Answer(absl::OkStatus());
  AuditorOf(Method::kAppend).Answer(Failure());
  EXPECT_THAT(Events(), ElementsAre("change", "change"));
}

TEST_F(CallAuditorTest, EveryAnswerOfTheAdminServiceLeavesALine) {
  AuditorOf(Method::kCreateBackup).Answer(absl::OkStatus());
  AuditorOf(Method::kListBackups).Answer(Failure());
  EXPECT_THAT(Events(), ElementsAre("admin", "admin"));
}

TEST_F(CallAuditorTest, ANodeThatTheCallIsAboutIsNamed) {
  CallAuditor auditor = AuditorOf(Method::kAddReplica);
  auditor.NoteNode("n2");
  auditor.Answer(absl::OkStatus());
  AuditorOf(Method::kMovePrimary).Answer(absl::OkStatus());
  const std::vector<nlohmann::json> lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("node"), "n2");
  EXPECT_FALSE(lines[1].contains("node"));
}

TEST_F(CallAuditorTest, ACallThatOnlyReadsLeavesNone) {
  AuditorOf(Method::kLookup).Answer(absl::OkStatus());
  AuditorOf(Method::kGetStore).Answer(Failure());
  AuditorOf(Method::kStreamLookup).EndStream(Failure());
  EXPECT_THAT(Events(), IsEmpty());
}

TEST_F(CallAuditorTest, ARefusedCallerLeavesALineWhateverItCalls) {
  AuditorOf(Method::kLookup).Answer(LoginFailure());
  AuditorOf(Method::kLookup).Answer(Denial());
  AuditorOf(Method::kCreateStore).Answer(Denial());
  AuditorOf(Method::kCreateBackup).Answer(LoginFailure());
  EXPECT_THAT(Events(), ElementsAre("login_failure", "denial", "denial", "login_failure"));
}

TEST_F(CallAuditorTest, ADeniedMessageAndTheStreamThatItEndsLeaveOneLine) {
  for (const Method method : {Method::kStreamLookup, Method::kStreamAppend}) {
    CallAuditor auditor = AuditorOf(method);
    auditor.AnswerMessage(Denial());
    auditor.EndStream(Denial());
  }
  EXPECT_THAT(Events(), ElementsAre("denial", "denial"));
}

TEST_F(CallAuditorTest, AFailedLoginInAStreamLeavesOneLineAtItsEnd) {
  CallAuditor auditor = AuditorOf(Method::kStreamLookup);
  auditor.AnswerMessage(LoginFailure());
  auditor.AnswerMessage(LoginFailure());
  auditor.EndStream(LoginFailure());
  EXPECT_THAT(Events(), ElementsAre("login_failure"));
}

TEST_F(CallAuditorTest, AStreamOfAppendsLeavesOneLineThatCountsItsChanges) {
  CallAuditor auditor = AuditorOf(Method::kStreamAppend);
  for (const std::uint64_t rows : {3, 4}) {
    auditor.AnswerMessage(absl::OkStatus());
    auditor.CountChange(rows);
  }
  auditor.EndStream(absl::OkStatus());
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["event"], "change");
  EXPECT_EQ(lines[0]["changes"], 2);
  EXPECT_EQ(lines[0]["rows"], 7);
}

TEST_F(CallAuditorTest, ALineSaysWhoDidWhatToWhichStoreAndHowItEnded) {
  AuditorOf(Method::kDeleteStore).Answer(Failure());
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  nlohmann::json line = lines[0];
  line.erase("time");
  EXPECT_EQ(line, nlohmann::json({{"event", "change"},
                                  {"identity", "ingest"},
                                  {"peer", "ipv4:10.0.0.7:1"},
                                  {"method", "DeleteStore"},
                                  {"store", "s"},
                                  {"result", "NOT_FOUND"},
                                  {"reason", "STORE_NOT_FOUND"},
                                  {"trace_id", "4bf9"}}));
}

TEST_F(CallAuditorTest, ALineAboutARenameHasBothNamesAndSaysWhatWasReplaced) {
  CallAuditor auditor(log_.get(), refusals_, SpecOf(Method::kRenameStore),
                      [] { return AuditSubject{.store = "old", .new_name = "new"}; });
  auditor.Answer(Failure());
  auditor.NoteReplacement();
  auditor.Answer(absl::OkStatus());
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ(line["store"], "old");
    EXPECT_EQ(line["new_name"], "new");
  }
  EXPECT_FALSE(lines[0].contains("replaced"));
  EXPECT_EQ(lines[1]["replaced"], true);
}

TEST_F(CallAuditorTest, TheLimitOnRefusalsKeepsNoOtherLineOut) {
  LineLimiter no_refusals(0);
  CallAuditor auditor(log_.get(), no_refusals, SpecOf(Method::kCreateStore),
                      [] { return AuditSubject{.identity = "ingest"}; });
  auditor.Answer(Denial());
  auditor.Answer(LoginFailure());
  auditor.Answer(absl::OkStatus());
  EXPECT_EQ(no_refusals.TakeLeftOut(), 2);
  EXPECT_THAT(Events(), ElementsAre("change"));
}

TEST_F(CallAuditorTest, ALineSaysHowManyRefusalsWereLeftOutBeforeIt) {
  LineLimiter one(1);
  // The limiter's second is one that is over.
  EXPECT_EQ(one.Allow(absl::UnixEpoch()), 0);
  EXPECT_EQ(one.Allow(absl::UnixEpoch()), std::nullopt);
  CallAuditor(log_.get(), one, SpecOf(Method::kLookup), [] {
    return AuditSubject();
  }).Answer(Denial());
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["left_out"], 1);
}

TEST_F(CallAuditorTest, WithoutAnAuditLogNothingIsAsked) {
  CallAuditor auditor(nullptr, refusals_, SpecOf(Method::kCreateStore), [] {
    ADD_FAILURE() << "no line needs a subject";
    return AuditSubject();
  });
  auditor.Answer(Denial());
  auditor.AnswerMessage(Denial());
  auditor.EndStream(absl::OkStatus());
}

TEST(RefusalLinesTest, AHundredASecondAreWritten) {
  LineLimiter limiter(kRefusalLinesPerSecondMax);
  const absl::Time start = absl::UnixEpoch();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(limiter.Allow(start), 0);
  EXPECT_EQ(limiter.Allow(start + absl::Milliseconds(999)), std::nullopt);
  EXPECT_EQ(limiter.Allow(start + absl::Seconds(1)), 1);
}

}  // namespace
}  // namespace softlookup::server
