#include "core/storage/rocksdb_errors.h"

#include "absl/strings/str_cat.h"
#include "core/base/error.h"

namespace softlookup {

absl::Status UnavailableError(absl::string_view what, const rocksdb::Status& status) {
  return MakeError(reasons::kStorageFailed, absl::StrCat(what, ": ", status.ToString()));
}

absl::Status FullDiskError(absl::string_view what, const rocksdb::Status& status) {
  return WithRetryAfter(UnavailableError(what, status), absl::Seconds(1));
}

bool IsFullDiskError(const absl::Status& status) {
  return absl::IsUnavailable(status) && RetryAfterOf(status).has_value();
}

absl::Status DamagedError(absl::string_view what) {
  return MakeError(reasons::kDataLoss, absl::StrCat("the data directory is damaged: ", what));
}

absl::Status ReadError(const rocksdb::Status& status) {
  return status.IsCorruption() ? DamagedError(status.ToString())
                               : UnavailableError("cannot read the data directory", status);
}

}  // namespace softlookup
