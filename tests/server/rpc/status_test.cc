#include "server/rpc/status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include "core/base/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace softlookup::server {
namespace {

using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  return details;
}

google::rpc::ErrorInfo ErrorInfoOf(const google::rpc::Status& details) {
  google::rpc::ErrorInfo info;
  EXPECT_TRUE(details.details_size() > 0 && details.details(0).UnpackTo(&info));
  return info;
}

TEST(ToGrpcStatusTest, OkHasNoDetails) {
  const grpc::Status status = ToGrpcStatus(absl::OkStatus());
  EXPECT_TRUE(status.ok());
  EXPECT_THAT(status.error_details(), IsEmpty());
}

TEST(ToGrpcStatusTest, CarriesCodeAndMessageInBothPlaces) {
  const grpc::Status status = ToGrpcStatus(MakeError(reasons::kStoreNotFound, "no \"s\""));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "no \"s\"");
  EXPECT_EQ(DetailsOf(status).code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(DetailsOf(status).message(), "no \"s\"");
}

TEST(ToGrpcStatusTest, CarriesReasonDomainAndMetadata) {
  const google::rpc::Status details = DetailsOf(
      ToGrpcStatus(MakeError(reasons::kNonFiniteValue, "m", {{"field", "keys"}, {"row", "3"}})));
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  const google::rpc::ErrorInfo info = ErrorInfoOf(details);
  EXPECT_EQ(info.reason(), "NON_FINITE_VALUE");
  EXPECT_EQ(info.domain(), "softlookup");
  EXPECT_THAT(info.metadata(), UnorderedElementsAre(Pair("field", "keys"), Pair("row", "3")));
}

TEST(ToGrpcStatusTest, SaysWhenToComeBackWhereWaitingHelps) {
  for (const absl::Duration delay :
       {absl::Milliseconds(50), absl::Milliseconds(2500), absl::ZeroDuration()}) {
    const google::rpc::Status details =
        DetailsOf(ToGrpcStatus(WithRetryAfter(MakeError(reasons::kQueueFull, "m"), delay)));
    ASSERT_EQ(details.details_size(), 2);
    EXPECT_EQ(ErrorInfoOf(details).reason(), "QUEUE_FULL");
    EXPECT_EQ(details.details(1).type_url(), "type.googleapis.com/google.rpc.RetryInfo");
    google::rpc::RetryInfo retry;
    ASSERT_TRUE(details.details(1).UnpackTo(&retry));
    EXPECT_EQ(absl::Seconds(retry.retry_delay().seconds()) +
                  absl::Nanoseconds(retry.retry_delay().nanos()),
              delay);
    EXPECT_LT(retry.retry_delay().nanos(), 1'000'000'000);
  }
}

TEST(ToGrpcStatusTest, AStreamThatAStoppingServerEndsMayBeOpenedAgain) {
  const grpc::Status status = ToGrpcStatus(ShuttingDown());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ErrorInfoOf(DetailsOf(status)).reason(), "SHUTTING_DOWN");
  google::rpc::RetryInfo retry;
  ASSERT_EQ(DetailsOf(status).details_size(), 2);
  EXPECT_TRUE(DetailsOf(status).details(1).UnpackTo(&retry));
}

TEST(ToGrpcStatusTest, AStatusWithoutAReasonIsNamedByItsCode) {
  const grpc::Status status = ToGrpcStatus(absl::InternalError("m"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(ErrorInfoOf(DetailsOf(status)).reason(), "INTERNAL");
  EXPECT_EQ(ErrorInfoOf(DetailsOf(status)).domain(), "softlookup");
}

TEST(ToLookupErrorTest, SaysTheSameAsTheStatusOfACall) {
  const absl::Status status =
      WithRetryAfter(MakeError(reasons::kQueueFull, "m", {{"limit", "1"}}), absl::Milliseconds(50));
  const v1::LookupError error = ToLookupError(status);
  google::rpc::Status as_status;
  as_status.set_code(error.code());
  as_status.set_message(error.message());
  *as_status.mutable_details() = error.details();
  EXPECT_EQ(error.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(as_status.DebugString(), DetailsOf(ToGrpcStatus(status)).DebugString());
}

// Clients cannot parse a message with half a character in a string.
TEST(ToGrpcStatusTest, CutsLongTextBetweenCharacters) {
  for (const std::string character : {"a", "\u00e4", "\u20ac", "\U0001f600"}) {
    for (int offset = 0; offset < 4; ++offset) {
      std::string text(offset, 'x');
      while (text.size() < 3000) text += character;
      const google::rpc::Status details =
          DetailsOf(ToGrpcStatus(MakeError(reasons::kStoreNotFound, text, {{"store", text}})));
      const auto expect_cut = [&](const std::string& cut, std::size_t bytes_max) {
        ASSERT_GE(cut.size(), 3u);
        EXPECT_EQ(cut.substr(cut.size() - 3), "...");
        const std::string kept = cut.substr(0, cut.size() - 3);
        EXPECT_LE(kept.size(), bytes_max);
        EXPECT_GT(kept.size() + character.size(), bytes_max);
        EXPECT_EQ(kept, text.substr(0, kept.size()));
        EXPECT_EQ((kept.size() - offset) % character.size(), 0u);
      };
      expect_cut(details.message(), 1024);
      expect_cut(ErrorInfoOf(details).metadata().at("store"), 256);
    }
  }
}

TEST(ToGrpcStatusTest, WhatFitsStaysWhole) {
  const std::string text(1024, 'x'), store(256, 's');
  const google::rpc::Status details =
      DetailsOf(ToGrpcStatus(MakeError(reasons::kStoreNotFound, text, {{"store", store}})));
  EXPECT_EQ(details.message(), text);
  EXPECT_EQ(ErrorInfoOf(details).metadata().at("store"), store);
}

TEST(ToGrpcStatusTest, BytesThatAreNotTextBecomeQuestionMarks) {
  const struct {
    std::string text;
    std::string expected;
  } kCases[] = {
      {"disk/\xff\xfe", "disk/??"},
      {"\xc3", "?"},  // Half a character.
      {"\xc3(", "?("},
      {"\xe2\x82", "??"},
      {"\xc0\x80", "??"},  // Longer than need be.
      {"\xe0\x9f\xbf", "???"},
      {"\xf0\x8f\xbf\xbf", "????"},
      {"\xed\xa0\x80", "???"},       // Half of a UTF-16 pair.
      {"\xf4\x90\x80\x80", "????"},  // Beyond Unicode.
      {"\xed\x9f\xbf\xf4\x8f\xbf\xbf", "\xed\x9f\xbf\xf4\x8f\xbf\xbf"},
      {"\xe0\xa0\x80\xf0\x90\x80\x80", "\xe0\xa0\x80\xf0\x90\x80\x80"},
  };
  for (const auto& expected : kCases) {
    const google::rpc::Status details = DetailsOf(ToGrpcStatus(absl::DataLossError(expected.text)));
    EXPECT_EQ(details.message(), expected.expected);
    EXPECT_EQ(ToLookupError(absl::DataLossError(expected.text)).message(), expected.expected);
  }
}

struct ExpectedReason {
  ErrorReason reason;
  const char* name;
  grpc::StatusCode code;
};

// What clients match on: rows may be added, never changed.
constexpr ExpectedReason kReasons[] = {
    {reasons::kInvalidName, "INVALID_NAME", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kInvalidMatrix, "INVALID_MATRIX", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kMalformedMessage, "MALFORMED_MESSAGE", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kShapeMismatch, "SHAPE_MISMATCH", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kNonFiniteValue, "NON_FINITE_VALUE", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kInvalidOption, "INVALID_OPTION", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kLimitExceeded, "LIMIT_EXCEEDED", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kPositionOutOfRange, "POSITION_OUT_OF_RANGE", grpc::StatusCode::INVALID_ARGUMENT},
    {reasons::kStoreNotFound, "STORE_NOT_FOUND", grpc::StatusCode::NOT_FOUND},
    {reasons::kMemoryNotFound, "MEMORY_NOT_FOUND", grpc::StatusCode::NOT_FOUND},
    {reasons::kWriterNotFound, "WRITER_NOT_FOUND", grpc::StatusCode::NOT_FOUND},
    {reasons::kStoreExists, "STORE_EXISTS", grpc::StatusCode::ALREADY_EXISTS},
    {reasons::kRowExists, "ROW_EXISTS", grpc::StatusCode::ALREADY_EXISTS},
    {reasons::kBackupExists, "BACKUP_EXISTS", grpc::StatusCode::ALREADY_EXISTS},
    {reasons::kNoProjection, "NO_PROJECTION", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kMessageTooLarge, "MESSAGE_TOO_LARGE", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kAnswerTooLarge, "ANSWER_TOO_LARGE", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kTooManyStores, "TOO_MANY_STORES", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kMemoryLimit, "MEMORY_LIMIT", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kTooManyWriters, "TOO_MANY_WRITERS", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kQueueFull, "QUEUE_FULL", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kCancelled, "CANCELLED", grpc::StatusCode::CANCELLED},
    {reasons::kDeadlineExceeded, "DEADLINE_EXCEEDED", grpc::StatusCode::DEADLINE_EXCEEDED},
    {reasons::kDataLoss, "DATA_LOSS", grpc::StatusCode::DATA_LOSS},
    {reasons::kStorageFailed, "STORAGE_FAILED", grpc::StatusCode::UNAVAILABLE},
    {reasons::kLoading, "LOADING", grpc::StatusCode::UNAVAILABLE},
    {reasons::kDirectoryInUse, "DIRECTORY_IN_USE", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kBackupsDisabled, "BACKUPS_DISABLED", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kBackupInProgress, "BACKUP_IN_PROGRESS", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kBackupNotFound, "BACKUP_NOT_FOUND", grpc::StatusCode::NOT_FOUND},
    {reasons::kRestoreInProgress, "RESTORE_IN_PROGRESS", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kNoCluster, "NO_CLUSTER", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kGroupUnchanged, "GROUP_UNCHANGED", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kClusterUnavailable, "CLUSTER_UNAVAILABLE", grpc::StatusCode::UNAVAILABLE},
    {reasons::kSeveralGroups, "SEVERAL_GROUPS", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kTenantElsewhere, "TENANT_ELSEWHERE", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kTooManyTenants, "TOO_MANY_TENANTS", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kRowsCompacted, "ROWS_COMPACTED", grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kCompactionEndsMemories, "COMPACTION_ENDS_MEMORIES",
     grpc::StatusCode::FAILED_PRECONDITION},
    {reasons::kCompactionInProgress, "COMPACTION_IN_PROGRESS",
     grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kTenantRate, "TENANT_RATE", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kIdentityLimit, "IDENTITY_LIMIT", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kRequestBytes, "REQUEST_BYTES", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kTooManyCalls, "TOO_MANY_CALLS", grpc::StatusCode::RESOURCE_EXHAUSTED},
    {reasons::kUnauthenticated, "UNAUTHENTICATED", grpc::StatusCode::UNAUTHENTICATED},
    {reasons::kPermissionDenied, "PERMISSION_DENIED", grpc::StatusCode::PERMISSION_DENIED},
    {reasons::kUnknownMethod, "UNKNOWN_METHOD", grpc::StatusCode::UNIMPLEMENTED},
    {reasons::kShuttingDown, "SHUTTING_DOWN", grpc::StatusCode::UNAVAILABLE},
};

TEST(ReasonsTest, EveryReasonMapsToItsCode) {
  for (const ExpectedReason& expected : kReasons) {
    const grpc::Status status = ToGrpcStatus(MakeError(expected.reason, "m"));
    EXPECT_EQ(status.error_code(), expected.code) << expected.name;
    EXPECT_EQ(ErrorInfoOf(DetailsOf(status)).reason(), expected.name);
  }
}

std::string ReadSource(const std::string& path) {
  std::ifstream file(std::string(SOFTLOOKUP_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file) << path;
  return (std::ostringstream() << file.rdbuf()).str();
}

// The first group of every match to the second.
std::map<std::string, std::string> FindAll(const std::string& text, const std::regex& pattern) {
  std::map<std::string, std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    EXPECT_TRUE(found.emplace((*match)[1], (*match)[2]).second) << (*match)[1] << " twice";
  }
  return found;
}

TEST(ReasonsTest, TheListAboveIsThatOfTheHeader) {
  std::vector<std::string> names;
  for (const ExpectedReason& expected : kReasons) names.push_back(expected.name);
  std::vector<std::string> in_header;
  const std::regex definition(R"re(constexpr ErrorReason (k\w+)\{[^"}]*"(\w+)"\})re");
  for (const auto& [_, name] : FindAll(ReadSource("core/base/error.h"), definition)) {
    in_header.push_back(name);
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(in_header));
}

TEST(ReasonsTest, TheManualListsEveryReasonWithItsCode) {
  std::map<std::string, std::string> expected;
  for (const ExpectedReason& row : kReasons) {
    expected[row.name] = absl::StatusCodeToString(row.reason.code);
  }
  const std::regex table_row(R"re(\| `([A-Z_]+)` \| ([A-Z_]+) \| [^|\n]+ \| [^|\n]+ \|\n)re");
  EXPECT_EQ(FindAll(ReadSource("docs/errors.md"), table_row), expected);
}

}  // namespace
}  // namespace softlookup::server
