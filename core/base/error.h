#ifndef SOFTLOOKUP_CORE_BASE_ERROR_H_
#define SOFTLOOKUP_CORE_BASE_ERROR_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace softlookup {

// The machine-readable cause of a failed call: a stable UPPER_SNAKE name and its status code.
// docs/errors.md says what to do about each reason.
struct ErrorReason {
  absl::StatusCode code;
  absl::string_view name;
};

namespace reasons {
inline constexpr ErrorReason kInvalidName{absl::StatusCode::kInvalidArgument, "INVALID_NAME"};
inline constexpr ErrorReason kInvalidMatrix{absl::StatusCode::kInvalidArgument, "INVALID_MATRIX"};
inline constexpr ErrorReason kMalformedMessage{absl::StatusCode::kInvalidArgument,
                                               "MALFORMED_MESSAGE"};
inline constexpr ErrorReason kShapeMismatch{absl::StatusCode::kInvalidArgument, "SHAPE_MISMATCH"};
inline constexpr ErrorReason kNonFiniteValue{absl::StatusCode::kInvalidArgument,
                                             "NON_FINITE_VALUE"};
inline constexpr ErrorReason kInvalidOption{absl::StatusCode::kInvalidArgument, "INVALID_OPTION"};
inline constexpr ErrorReason kLimitExceeded{absl::StatusCode::kInvalidArgument, "LIMIT_EXCEEDED"};
inline constexpr ErrorReason kPositionOutOfRange{absl::StatusCode::kInvalidArgument,
                                                 "POSITION_OUT_OF_RANGE"};
inline constexpr ErrorReason kStoreNotFound{absl::StatusCode::kNotFound, "STORE_NOT_FOUND"};
inline constexpr ErrorReason kRowsCompacted{absl::StatusCode::kFailedPrecondition,
                                            "ROWS_COMPACTED"};
inline constexpr ErrorReason kCompactionEndsMemories{absl::StatusCode::kFailedPrecondition,
                                                     "COMPACTION_ENDS_MEMORIES"};
inline constexpr ErrorReason kCompactionInProgress{absl::StatusCode::kResourceExhausted,
                                                   "COMPACTION_IN_PROGRESS"};
inline constexpr ErrorReason kMemoryNotFound{absl::StatusCode::kNotFound, "MEMORY_NOT_FOUND"};
inline constexpr ErrorReason kWriterNotFound{absl::StatusCode::kNotFound, "WRITER_NOT_FOUND"};
inline constexpr ErrorReason kStoreExists{absl::StatusCode::kAlreadyExists, "STORE_EXISTS"};
inline constexpr ErrorReason kRowExists{absl::StatusCode::kAlreadyExists, "ROW_EXISTS"};
inline constexpr ErrorReason kBackupExists{absl::StatusCode::kAlreadyExists, "BACKUP_EXISTS"};
inline constexpr ErrorReason kNoProjection{absl::StatusCode::kFailedPrecondition, "NO_PROJECTION"};
inline constexpr ErrorReason kMessageTooLarge{absl::StatusCode::kResourceExhausted,
                                              "MESSAGE_TOO_LARGE"};
inline constexpr ErrorReason kAnswerTooLarge{absl::StatusCode::kResourceExhausted,
                                             "ANSWER_TOO_LARGE"};
inline constexpr ErrorReason kTooManyStores{absl::StatusCode::kResourceExhausted,
                                            "TOO_MANY_STORES"};
inline constexpr ErrorReason kQueueFull{absl::StatusCode::kResourceExhausted, "QUEUE_FULL"};
inline constexpr ErrorReason kCancelled{absl::StatusCode::kCancelled, "CANCELLED"};
inline constexpr ErrorReason kDeadlineExceeded{absl::StatusCode::kDeadlineExceeded,
                                               "DEADLINE_EXCEEDED"};
inline constexpr ErrorReason kStorageFailed{absl::StatusCode::kUnavailable, "STORAGE_FAILED"};
inline constexpr ErrorReason kDirectoryInUse{absl::StatusCode::kFailedPrecondition,
                                             "DIRECTORY_IN_USE"};
inline constexpr ErrorReason kBackupsDisabled{absl::StatusCode::kFailedPrecondition,
                                              "BACKUPS_DISABLED"};
inline constexpr ErrorReason kBackupInProgress{absl::StatusCode::kResourceExhausted,
                                               "BACKUP_IN_PROGRESS"};
inline constexpr ErrorReason kBackupNotFound{absl::StatusCode::kNotFound, "BACKUP_NOT_FOUND"};
inline constexpr ErrorReason kRestoreInProgress{absl::StatusCode::kResourceExhausted,
                                                "RESTORE_IN_PROGRESS"};
inline constexpr ErrorReason kNoCluster{absl::StatusCode::kFailedPrecondition, "NO_CLUSTER"};
inline constexpr ErrorReason kGroupUnchanged{absl::StatusCode::kFailedPrecondition,
                                             "GROUP_UNCHANGED"};
inline constexpr ErrorReason kClusterUnavailable{absl::StatusCode::kUnavailable,
                                                 "CLUSTER_UNAVAILABLE"};
inline constexpr ErrorReason kSeveralGroups{absl::StatusCode::kFailedPrecondition,
                                            "SEVERAL_GROUPS"};
inline constexpr ErrorReason kTenantElsewhere{absl::StatusCode::kFailedPrecondition,
                                              "TENANT_ELSEWHERE"};
inline constexpr ErrorReason kTooManyTenants{absl::StatusCode::kResourceExhausted,
                                             "TOO_MANY_TENANTS"};
inline constexpr ErrorReason kDataLoss{absl::StatusCode::kDataLoss, "DATA_LOSS"};
inline constexpr ErrorReason kTooManyWriters{absl::StatusCode::kResourceExhausted,
                                             "TOO_MANY_WRITERS"};
inline constexpr ErrorReason kLoading{absl::StatusCode::kUnavailable, "LOADING"};
inline constexpr ErrorReason kMemoryLimit{absl::StatusCode::kResourceExhausted, "MEMORY_LIMIT"};
inline constexpr ErrorReason kTenantRate{absl::StatusCode::kResourceExhausted, "TENANT_RATE"};
inline constexpr ErrorReason kIdentityLimit{absl::StatusCode::kResourceExhausted, "IDENTITY_LIMIT"};
inline constexpr ErrorReason kRequestBytes{absl::StatusCode::kResourceExhausted, "REQUEST_BYTES"};
inline constexpr ErrorReason kTooManyCalls{absl::StatusCode::kResourceExhausted, "TOO_MANY_CALLS"};
inline constexpr ErrorReason kUnauthenticated{absl::StatusCode::kUnauthenticated,
                                              "UNAUTHENTICATED"};
inline constexpr ErrorReason kPermissionDenied{absl::StatusCode::kPermissionDenied,
                                               "PERMISSION_DENIED"};
inline constexpr ErrorReason kUnknownMethod{absl::StatusCode::kUnimplemented, "UNKNOWN_METHOD"};
inline constexpr ErrorReason kShuttingDown{absl::StatusCode::kUnavailable, "SHUTTING_DOWN"};
}  // namespace reasons

// What an error is about: keys such as `store`, `field`, `row`, `limit`.
using ErrorMetadata = std::vector<std::pair<std::string, std::string>>;

// Returns a status that carries `reason` and `metadata`. `message` is one sentence for people,
// without a full stop. If the error is about a field or a row, `message` names it.
absl::Status MakeError(const ErrorReason& reason, absl::string_view message,
                       ErrorMetadata metadata = {});

// Returns INVALID_ARGUMENT with the reason INVALID_OPTION, about `field`. The status's message is
// "FIELD: MESSAGE".
absl::Status InvalidOption(absl::string_view field, absl::string_view message);

// Returns `status` with the advice to try again after `delay`. The status keeps `delay` in whole
// microseconds, rounded towards zero.
absl::Status WithRetryAfter(absl::Status status, absl::Duration delay);

// Returns STORAGE_FAILED for a write that a replica has not made, and never will. The metadata
// `written` is "no", and there is the advice to try again after a second.
absl::Status WriteNotMade(absl::string_view why, ErrorMetadata metadata = {});

// Returns STORAGE_FAILED with HasUnknownOutcome(), for a write that a replica may have made. The
// metadata `written` is "unknown".
absl::Status WriteMayBeMade(absl::string_view why);

// Returns `status`, of a change that may have been made all the same, or may be made later. Every
// other error of a change says that it was not made and never will be.
absl::Status WithUnknownOutcome(absl::Status status);
bool HasUnknownOutcome(const absl::Status& status);

// Return what MakeError() and WithRetryAfter() stored in a status. Other statuses have the reason
// "", no metadata and no retry delay.
std::string ReasonOf(const absl::Status& status);
ErrorMetadata MetadataOf(const absl::Status& status);
std::optional<absl::Duration> RetryAfterOf(const absl::Status& status);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_BASE_ERROR_H_
