#include "client/tool/backup_files.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/tool/exit_code.h"
#include "client/tool/whole_file.h"

namespace softlookup::tool {
namespace {

namespace fs = std::filesystem;
using admin::v1::BackupManifest;

constexpr char kManifestName[] = "BACKUP.json";
// The newest format of a manifest that this version reads, and the first format with checksums.
constexpr std::uint32_t kFormat = 2, kFirstWithChecksums = 2;
constexpr std::size_t kSha256Digits = 64;

bool IsFileName(const std::string& name) {
  return !name.empty() && !absl::StrContains(name, '/') && name != "." && name != "..";
}

bool IsSha256(const std::string& text) {
  return text.size() == kSha256Digits && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

// Returns what is wrong with the manifest, or "".
std::string FaultOf(const BackupManifest& manifest) {
  if (manifest.format() < 1 || manifest.format() > kFormat) {
    return absl::StrCat("has format ", manifest.format(), ", which this version does not know");
  }
  if (manifest.files().empty()) return "names no files";
  for (const BackupManifest::File& file : manifest.files()) {
    if (!IsFileName(file.name())) {
      return absl::StrCat("names \"", file.name(), "\", which is not a file in it");
    }
    const bool may_lack_checksum = HasSizesOnly(manifest) && file.sha256().empty();
    if (!may_lack_checksum && !IsSha256(file.sha256())) {
      return absl::StrCat("has no SHA-256 of ", file.name());
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<BackupManifest> ReadBackupManifest(const std::string& directory) {
  const fs::path path = fs::path(directory) / kManifestName;
  if (std::error_code error; !fs::exists(directory, error)) {
    return InputError(directory, error ? error.message()
                                       : "No such file or directory; a backup is a directory NAME "
                                         "in the server's --backup-dir");
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream json;
  json << file.rdbuf();
  if (!file) {
    return InputError(directory, absl::StrCat("is not a backup: there is no ", kManifestName,
                                              " that can be read in it"));
  }
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  BackupManifest manifest;
  const auto parsed = google::protobuf::util::JsonStringToMessage(json.str(), &manifest, options);
  if (!parsed.ok()) return InputError(path.string(), parsed.ToString());
  const std::string fault = FaultOf(manifest);
  if (!fault.empty()) return InputError(path.string(), fault);
  return manifest;
}

bool HasSizesOnly(const BackupManifest& manifest) {
  return manifest.format() < kFirstWithChecksums;
}

std::uint64_t ByteSizeOf(const BackupManifest& manifest) {
  std::uint64_t bytes = 0;
  for (const BackupManifest::File& file : manifest.files()) bytes += file.byte_size();
  return bytes;
}

FileCheck::FileCheck(const BackupManifest::File& file) : file_(file), digest_(EVP_MD_CTX_new()) {
  EVP_DigestInit_ex(digest_.get(), EVP_sha256(), nullptr);
}

void FileCheck::Add(std::string_view bytes) {
  byte_size_ += bytes.size();
  EVP_DigestUpdate(digest_.get(), bytes.data(), bytes.size());
}

absl::Status FileCheck::Finish(const std::string& path) {
  if (byte_size_ != file_.byte_size()) {
    return InputError(path, absl::StrCat("has ", output::Counted(byte_size_, "byte"),
                                         " instead of the backup's ", file_.byte_size()));
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  if (EVP_DigestFinal_ex(digest_.get(), digest.data(), &size) != 1) {
    return absl::InternalError("OpenSSL cannot compute a SHA-256");
  }
  const std::string sha256 =
      absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
  if (file_.sha256().empty() || file_.sha256() == sha256) return absl::OkStatus();
  return InputError(path, absl::StrCat("is damaged: its SHA-256 is ", sha256,
                                       " instead of the backup's ", file_.sha256()));
}

int CountBadFiles(const std::string& directory, const BackupManifest& manifest,
                  absl::FunctionRef<void(const absl::Status&)> report) {
  int bad_files = 0;
  for (const BackupManifest::File& file : manifest.files()) {
    const std::string path = (fs::path(directory) / file.name()).string();
    FileCheck check(file);
    absl::Status status = ReadFile(path, [&check](std::string_view part) { check.Add(part); });
    if (status.ok()) status = check.Finish(path);
    if (status.ok()) continue;
    report(status);
    ++bad_files;
  }
  return bad_files;
}

}  // namespace softlookup::tool
