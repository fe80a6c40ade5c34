#include "core/storage/rocksdb_errors.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "core/base/error.h"

namespace softlookup {
namespace {

// Returns RocksDB's text, with the names of files alone instead of their paths. Clients get the
// text, and the server's directories are none of their business.
std::string TextOf(const rocksdb::Status& status) {
  const std::string text = status.ToString();
  return absl::StrJoin(absl::StrSplit(text, ' '), " ",
                       [](std::string* joined, absl::string_view word) {
                         if (absl::StartsWith(word, "/")) word.remove_prefix(word.rfind('/') + 1);
                         absl::StrAppend(joined, word);
                       });
}

}  // namespace

absl::Status UnavailableError(absl::string_view what, const rocksdb::Status& status) {
  return MakeError(reasons::kStorageFailed, absl::StrCat(what, ": ", TextOf(status)));
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
  return status.IsCorruption() ? DamagedError(TextOf(status))
                               : UnavailableError("cannot read the data directory", status);
}

}  // namespace softlookup
