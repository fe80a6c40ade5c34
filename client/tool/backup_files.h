#ifndef SOFTLOOKUP_CLIENT_TOOL_BACKUP_FILES_H_
#define SOFTLOOKUP_CLIENT_TOOL_BACKUP_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/tool/openssl_ptr.h"
#include "softlookup/admin/v1/admin.pb.h"

namespace softlookup::tool {

// Reads the manifest of the backup in `directory`, which lists the backup's files. InputError if
// there is no manifest, or if it is damaged or of a newer format.
absl::StatusOr<admin::v1::BackupManifest> ReadBackupManifest(const std::string& directory);

// Whether the manifest is of format 1, which older versions wrote. A manifest of format 1 has the
// sizes of the files, but no checksums.
bool HasSizesOnly(const admin::v1::BackupManifest& manifest);

// Returns the sum of the sizes of all files.
std::uint64_t ByteSizeOf(const admin::v1::BackupManifest& manifest);

// Compares the bytes of a file with its size and its SHA-256 in the manifest. Without a SHA-256,
// compares the size alone.
class FileCheck {
 public:
  // `file` must outlive the object.
  explicit FileCheck(const admin::v1::BackupManifest::File& file);

  // Adds the next bytes of the file.
  void Add(std::string_view bytes);
  // Call this once, after the last byte. InputError about the file at `path` if its size or SHA-256
  // is not as in the manifest.
  absl::Status Finish(const std::string& path);

 private:
  const admin::v1::BackupManifest::File& file_;
  std::uint64_t byte_size_ = 0;
  const EvpDigestPtr digest_;
};

// Compares the files that the manifest of the backup in `directory` lists with their sizes and
// checksums. Reads no file if the manifest has no checksums (format 1). Passes the error about each
// bad file to `report`. Returns the number of bad files: those that cannot be read or are not as
// the manifest says.
int CountBadFiles(const std::string& directory, const admin::v1::BackupManifest& manifest,
                  absl::FunctionRef<void(const absl::Status&)> report);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_BACKUP_FILES_H_
