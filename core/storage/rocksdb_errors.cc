#include "core/storage/rocksdb_errors.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"

namespace softlookup {

std::string WithoutPaths(absl::string_view text) {
  return absl::StrJoin(absl::StrSplit(text, ' '), " ",
                       [](std::string* joined, absl::string_view word) {
                         if (absl::StartsWith(word, "/")) word.remove_prefix(word.rfind('/') + 1);
                         absl::StrAppend(joined, word);
                       });
}

absl::Status UnavailableError(absl::string_view what, const rocksdb::Status& status) {
  return MakeError(reasons::kStorageFailed,
                   absl::StrCat(what, ": ", WithoutPaths(status.ToString())));
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
  return status.IsCorruption() ? DamagedError(WithoutPaths(status.ToString()))
                               : UnavailableError("cannot read the data directory", status);
}

}  // namespace softlookup
