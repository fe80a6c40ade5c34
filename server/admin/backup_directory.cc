#include "server/admin/backup_directory.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "server/base/file_descriptor.h"

namespace softlookup::server {
namespace {

namespace fs = std::filesystem;
using admin::v1::Backup;
using admin::v1::BackupManifest;

constexpr const char* kManifestName = BackupDirectory::kManifestName;
constexpr char kPartialSuffix[] = ".partial";
// Values of BackupManifest.format: the one that Make() writes, and the first one with checksums.
constexpr std::uint32_t kFormat = 2, kFirstFormatWithChecksums = 2;
constexpr std::size_t kNameBytesMax = 64;
// How long a caller should wait if another backup is being made (BACKUP_IN_PROGRESS).
constexpr absl::Duration kRetryDelayOfBackups = absl::Seconds(1);

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' ||
                  c == '-';
         });
}

absl::Status FileError(absl::string_view what, const fs::path& path, const std::error_code& error) {
  return MakeError(reasons::kStorageFailed,
                   absl::StrCat("cannot ", what, " ", path.string(), ": ", error.message()));
}

std::error_code LastError() { return {errno, std::generic_category()}; }

absl::Status Sync(const fs::path& path) {
  const std::error_code error = SyncPath(path);
  return error ? FileError("sync", path, error) : absl::OkStatus();
}

std::vector<fs::path> EntriesOf(const fs::path& directory, std::error_code& error) {
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  return entries;
}

// Creates `directory` if it is missing, and locks it until the returned descriptor is closed.
// BACKUP_IN_PROGRESS if it is locked already, also by another process.
absl::StatusOr<FileDescriptor> Lock(const fs::path& directory) {
  if (const std::error_code error = MakeDirectories(directory)) {
    return FileError("make the directory for backups", directory, error);
  }
  FileDescriptor lock(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.get() < 0) return FileError("open the directory for backups", directory, LastError());
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno == EWOULDBLOCK) return BackupInProgress();
  return FileError("lock the directory for backups", directory, LastError());
}

// Returns what helps if `user`, who runs this process, cannot make backups in `directory` because
// of `error`.
std::string AccessRemedy(const std::string& directory, const std::error_code& error, uid_t user) {
  if (error == std::errc::permission_denied || error == std::errc::operation_not_permitted) {
    return absl::StrCat("let uid ", user,
                        ", the user that runs this process, write there: ", "install -d -o ", user,
                        " -m 0700 ", directory);
  }
  if (error == std::errc::read_only_file_system) {
    return "look at its mount; the service of the package needs a line ReadWritePaths= for it";
  }
  return absl::StrCat("name a directory in which uid ", user,
                      ", the user that runs this process, may write");
}

bool IsFullDisk(const std::error_code& error) {
  return error == std::errc::no_space_on_device || error.value() == EDQUOT;
}

// Returns the SHA-256 of a file's bytes, in 64 digits of [0-9a-f] as the manifest has it. `cancel`,
// if it is not null, ends the work.
absl::StatusOr<std::string> Sha256Of(const fs::path& path, const CancelToken* cancel) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError("read", path, LastError());
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  std::array<char, 1 << 16> buffer;
  bool ok = EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  for (;;) {
    if (cancel != nullptr) SOFTLOOKUP_RETURN_IF_ERROR(cancel->Check());
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("read", path, LastError());
    if (count == 0) break;
    ok = ok && EVP_DigestUpdate(context.get(), buffer.data(), static_cast<std::size_t>(count)) == 1;
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  ok = ok && EVP_DigestFinal_ex(context.get(), digest.data(), &size) == 1;
  if (!ok) return absl::InternalError("OpenSSL cannot compute a SHA-256");
  // Hashing reads whole files, of which little is read again soon. So their pages leave the page
  // cache, where they would push out those of other files. A restore reads what it needs again.
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), size});
}

// `directory` is the engine's copy of the data directory. Syncs each file in it, because a file
// that the copy shares with the data directory may not be on disk yet. Returns a manifest that
// lists the files.
absl::StatusOr<BackupManifest> SyncAndList(const fs::path& directory) {
  BackupManifest manifest;
  manifest.set_format(kFormat);
  std::error_code error;
  const std::vector<fs::path> paths = EntriesOf(directory, error);
  if (error) return FileError("read", directory, error);
  for (const fs::path& path : paths) {
    SOFTLOOKUP_RETURN_IF_ERROR(Sync(path));
    BackupManifest::File* file = manifest.add_files();
    file->set_name(path.filename().string());
    file->set_byte_size(fs::file_size(path, error));
    if (error) return FileError("read", path, error);
    SOFTLOOKUP_ASSIGN_OR_RETURN(*file->mutable_sha256(), Sha256Of(path, /*cancel=*/nullptr));
  }
  return manifest;
}

absl::Status WriteManifest(const BackupManifest& manifest, const fs::path& directory) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto printed = google::protobuf::util::MessageToJsonString(manifest, &json, options);
  if (!printed.ok()) return absl::InternalError(printed.ToString());
  const fs::path path = directory / kManifestName;
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << json;
  file.close();
  if (!file) return FileError("write", path, LastError());
  SOFTLOOKUP_RETURN_IF_ERROR(Sync(path));
  return Sync(directory);
}

// Reads the manifest in `directory`. Nullopt if there is none, or if it cannot be parsed.
std::optional<BackupManifest> ReadManifest(const fs::path& directory) {
  const fs::path path = directory / kManifestName;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;  // Reading a pipe could block.
  std::ifstream file(path, std::ios::binary);
  std::ostringstream json;
  json << file.rdbuf();
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  BackupManifest manifest;
  if (!file || !google::protobuf::util::JsonStringToMessage(json.str(), &manifest, options).ok()) {
    return std::nullopt;
  }
  return manifest;
}

// Returns the backup in `directory`. Nullopt if its manifest cannot be read.
std::optional<Backup> ReadBackup(const fs::path& directory) {
  const std::optional<BackupManifest> manifest = ReadManifest(directory);
  if (!manifest) return std::nullopt;
  Backup backup;
  backup.set_name(directory.filename().string());
  *backup.mutable_create_time() = manifest->create_time();
  std::uint64_t bytes = 0;
  for (const BackupManifest::File& part : manifest->files()) bytes += part.byte_size();
  backup.set_byte_size(bytes);
  *backup.mutable_damaged_stores() = manifest->damaged_stores();
  return backup;
}

absl::Status BackupDamaged(const std::string& name, const std::string& file,
                           absl::string_view what) {
  return MakeError(reasons::kDataLoss,
                   absl::StrCat("Backup ", name, " is damaged: ", file, " ", what),
                   {{"backup", name}, {"file", file}});
}

// Compares one file of the backup `name`, whose directory is `directory`, with `file`, its entry in
// the manifest. Without `has_checksums`, compares only the size.
absl::Status CheckFile(const std::string& name, const fs::path& directory,
                       const BackupManifest::File& file, bool has_checksums,
                       const CancelToken& cancel) {
  const fs::path path = directory / file.name();
  // A name with a slash would be that of another file.
  if (fs::path(file.name()).filename() != file.name() || file.name() == "..") {
    return BackupDamaged(name, kManifestName, "names what is no file of it");
  }
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return BackupDamaged(name, file.name(), "is missing");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return FileError("read", path, error);
  if (size != file.byte_size()) {
    return BackupDamaged(name, file.name(),
                         absl::StrCat("has ", size, " bytes instead of ", file.byte_size()));
  }
  if (!has_checksums) return absl::OkStatus();
  SOFTLOOKUP_ASSIGN_OR_RETURN(const std::string sha256, Sha256Of(path, &cancel));
  if (sha256 == file.sha256()) return absl::OkStatus();
  return BackupDamaged(name, file.name(), "is not as it was backed up");
}

void SetTime(absl::Time time, google::protobuf::Timestamp& timestamp) {
  const absl::Duration since_epoch = time - absl::UnixEpoch();
  timestamp.set_seconds(absl::ToInt64Seconds(since_epoch));
  timestamp.set_nanos(
      static_cast<std::int32_t>(absl::ToInt64Nanoseconds(since_epoch % absl::Seconds(1))));
}

}  // namespace

absl::Status CheckBackupName(absl::string_view field, const std::string& name) {
  if (IsName(name)) return absl::OkStatus();
  return MakeError(reasons::kInvalidName,
                   absl::StrCat(field, ": \"", name, "\" is not 1 to ", kNameBytesMax,
                                " characters of [A-Za-z0-9._-], the first not a dot"),
                   {{"field", std::string(field)}});
}

absl::Status BackupInProgress() {
  return WithRetryAfter(MakeError(reasons::kBackupInProgress, "Another backup is being made"),
                        kRetryDelayOfBackups);
}

absl::Status BackupAccessError(absl::string_view what, const std::string& directory,
                               const std::error_code& error, uid_t user) {
  return MakeError(reasons::kStorageFailed,
                   absl::StrCat("--backup-dir: cannot ", what, " ", directory, ": ",
                                error.message(), "; ", AccessRemedy(directory, error, user)));
}

absl::Status BackupDirectory::Prepare() const {
  const auto fail = [this](absl::string_view what, const std::error_code& error) {
    if (IsFullDisk(error)) return absl::OkStatus();
    return BackupAccessError(what, path_, error, geteuid());
  };
  if (const std::error_code error = MakeDirectories(path_)) return fail("make", error);
  const FileDescriptor opened(open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0) return fail("open", LastError());
  // Tries to make a directory, because a backup begins by making one. To look at the permissions
  // would not do: a network file system may refuse what they allow. If the process ends here,
  // Make() removes what is left.
  const std::string probe = absl::StrCat(".start-", getpid(), kPartialSuffix);
  if (mkdirat(opened.get(), probe.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail("write to", LastError());
  }
  unlinkat(opened.get(), probe.c_str(), AT_REMOVEDIR);
  return absl::OkStatus();
}

absl::Status BackupDirectory::Make(const std::string& name, absl::Time begin,
                                   const std::vector<std::string>& damaged_stores,
                                   Copy copy) const {
  const fs::path directory(path_), whole = directory / name;
  const fs::path partial = directory / absl::StrCat(".", name, kPartialSuffix);
  SOFTLOOKUP_ASSIGN_OR_RETURN(const FileDescriptor lock, Lock(directory));
  RemoveLeftovers();
  std::error_code error;
  if (fs::exists(fs::symlink_status(whole, error))) {
    return MakeError(reasons::kBackupExists, absl::StrCat("There is a backup ", name, " already"),
                     {{"backup", name}});
  }
  const auto make = [&]() -> absl::Status {
    SOFTLOOKUP_RETURN_IF_ERROR(copy(partial.string()));
    SOFTLOOKUP_ASSIGN_OR_RETURN(BackupManifest manifest, SyncAndList(partial));
    SetTime(begin, *manifest.mutable_create_time());
    manifest.mutable_damaged_stores()->Add(damaged_stores.begin(), damaged_stores.end());
    SOFTLOOKUP_RETURN_IF_ERROR(WriteManifest(manifest, partial));
    fs::rename(partial, whole, error);
    if (error) return FileError("make", whole, error);
    return Sync(directory);
  };
  absl::Status status = make();
  if (!status.ok()) RemoveLeftovers();
  return status;
}

void BackupDirectory::RemoveLeftovers() const {
  std::error_code ignored;
  for (const fs::path& entry : EntriesOf(path_, ignored)) {
    const std::string name = entry.filename().string();
    // The copy has the further suffix .tmp until the engine has completed it.
    if (name[0] == '.' && (absl::EndsWith(name, kPartialSuffix) ||
                           absl::EndsWith(name, absl::StrCat(kPartialSuffix, ".tmp")))) {
      fs::remove_all(entry, ignored);
    }
  }
}

std::string BackupDirectory::DirectoryOf(const std::string& name) const {
  return (fs::path(path_) / name).string();
}

std::optional<Backup> BackupDirectory::Find(const std::string& name) const {
  return ReadBackup(DirectoryOf(name));
}

absl::StatusOr<Backup> BackupDirectory::Get(const std::string& name) const {
  if (std::optional<Backup> backup = Find(name)) return *std::move(backup);
  const fs::path manifest = fs::path(DirectoryOf(name)) / kManifestName;
  if (access(manifest.c_str(), R_OK) != 0 && errno == EACCES) {
    return MakeError(
        reasons::kStorageFailed,
        absl::StrCat("cannot read ", manifest.string(), ": ", LastError().message(),
                     "; give it to uid ", geteuid(), ", the user that runs this process: chown -R ",
                     geteuid(), " ", DirectoryOf(name)),
        {{"backup", name}});
  }
  std::error_code ignored;
  if (fs::is_regular_file(manifest, ignored)) {
    return BackupDamaged(name, kManifestName, "cannot be read");
  }
  return MakeError(reasons::kBackupNotFound, absl::StrCat("There is no backup ", name),
                   {{"backup", name}});
}

absl::Status BackupDirectory::Check(const std::string& name, const CancelToken& cancel) const {
  SOFTLOOKUP_RETURN_IF_ERROR(Get(name).status());
  const std::optional<BackupManifest> manifest = ReadManifest(DirectoryOf(name));
  if (!manifest || manifest->files().empty()) {
    return BackupDamaged(name, kManifestName, "names no files");
  }
  if (manifest->format() < 1 || manifest->format() > kFormat) {
    return BackupDamaged(
        name, kManifestName,
        absl::StrCat("has format ", manifest->format(), "; this server reads up to ", kFormat));
  }
  for (const BackupManifest::File& file : manifest->files()) {
    SOFTLOOKUP_RETURN_IF_ERROR(CheckFile(name, DirectoryOf(name), file,
                                         manifest->format() >= kFirstFormatWithChecksums, cancel));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Backup>> BackupDirectory::List() const {
  std::vector<Backup> backups;
  std::error_code error;
  for (const fs::path& path : EntriesOf(path_, error)) {
    if (!IsName(path.filename().string())) continue;
    if (std::optional<Backup> backup = ReadBackup(path)) backups.push_back(*std::move(backup));
  }
  // A directory that is missing is not an error: Make() creates it.
  if (error && error != std::errc::no_such_file_or_directory) {
    return FileError("read the directory for backups", path_, error);
  }
  const auto order_of = [](const Backup& backup) {
    return std::tuple(backup.create_time().seconds(), backup.create_time().nanos(), backup.name());
  };
  std::sort(backups.begin(), backups.end(),
            [&](const Backup& a, const Backup& b) { return order_of(a) < order_of(b); });
  return backups;
}

std::optional<absl::Time> BackupDirectory::NewestTime(absl::Time now) const {
  const absl::StatusOr<std::vector<Backup>> backups = List();
  if (!backups.ok()) return std::nullopt;
  absl::Time newest = absl::UnixEpoch();
  for (const Backup& backup : *backups) {
    const absl::Time time = absl::FromUnixSeconds(backup.create_time().seconds()) +
                            absl::Nanoseconds(backup.create_time().nanos());
    if (time <= now) newest = std::max(newest, time);
  }
  return newest;
}

}  // namespace softlookup::server
