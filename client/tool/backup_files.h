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

// Reads which files make the backup in `directory` whole. InputError if it is not a backup, or if
// what describes it is damaged or of a newer version.
absl::StatusOr<admin::v1::BackupManifest> ReadBackupManifest(const std::string& directory);

// The backup has only the sizes of its files. An older version made it.
bool HasSizesAlone(const admin::v1::BackupManifest& manifest);

// The bytes of all files together.
std::uint64_t ByteSizeOf(const admin::v1::BackupManifest& manifest);

// Compares the bytes of a file with what the manifest says of them.
class FileCheck {
 public:
  explicit FileCheck(const admin::v1::BackupManifest::File& file);

  // Adds the next bytes of the file.
  void Add(std::string_view bytes);
  // Call this once, after the last byte. InputError about the file at `path` if its bytes are not
  // those of the manifest.
  absl::Status Finish(const std::string& path);

 private:
  const admin::v1::BackupManifest::File& file_;
  std::uint64_t byte_size_ = 0;
  const EvpDigestPtr digest_;
};

// Reads all files of the backup in `directory` and compares them with its manifest. Passes every
// error to `report`. Returns how many files are not as the manifest says.
int CountBadFiles(const std::string& directory, const admin::v1::BackupManifest& manifest,
                  absl::FunctionRef<void(const absl::Status&)> report);

}  // namespace softlookup::tool

#endif  // SOFTLOOKUP_CLIENT_TOOL_BACKUP_FILES_H_
