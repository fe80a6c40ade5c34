#include "server/cluster/seed_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "server/cluster/peer_protocol.h"

namespace softlookup::server {
namespace {

namespace fs = std::filesystem;

// Bytes of the kept files in a request. They leave room for the caller.
constexpr std::size_t kKeptBytesMax = kPeerChunkBytesMax;

absl::Status FileError(absl::string_view act, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("Cannot ", act, " ", path));
}

absl::Status MalformedSeed(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("The copy of the other replica is malformed: ", what));
}

// Whether a file system says by `error` that it does not have the call.
bool IsUnsupported(int error) { return error == ENOSYS || error == EINVAL || error == ESPIPE; }

// Whether `name` is that of a file directly in a directory.
bool IsFileName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(absl::string_view("/\0", 2)) == absl::string_view::npos;
}

// Adds the bytes of a file to `sha256`, and returns how many there are.
absl::StatusOr<std::uint64_t> AddFile(const std::string& path, Sha256Stream& sha256,
                                      absl::FunctionRef<bool()> should_stop) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return FileError("open", path, errno);
  std::string buffer(kPeerChunkBytesMax, '\0');
  std::uint64_t size = 0;
  while (!should_stop()) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return FileError("read", path, errno);
    if (count == 0) return size;
    sha256.Add(absl::string_view(buffer.data(), static_cast<std::size_t>(count)));
    size += static_cast<std::uint64_t>(count);
  }
  return absl::CancelledError("Fetching the copy was stopped");
}

}  // namespace

absl::StatusOr<SeedWriter> SeedWriter::Open(const std::string& directory,
                                            absl::FunctionRef<bool()> should_stop) {
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return FileError("create", directory, errno);
  }
  SeedWriter writer(directory);
  const absl::Status read = writer.ReadKept(should_stop);
  // A file that cannot be read must not be in the way again.
  if (!read.ok() && !absl::IsCancelled(read)) writer.Remove();
  if (!read.ok()) return read;
  return writer;
}

absl::Status SeedWriter::ReadKept(absl::FunctionRef<bool()> should_stop) {
  std::error_code error;
  fs::directory_iterator it(directory_, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it->symlink_status(error).type() != fs::file_type::regular) continue;
    KeptSeedFile kept;
    SOFTLOOKUP_ASSIGN_OR_RETURN(kept.size, AddFile(it->path(), kept.sha256, should_stop));
    if (kept.size != 0) kept_.emplace(it->path().filename().string(), std::move(kept));
  }
  return error ? FileError("read", directory_, error.value()) : absl::OkStatus();
}

void SeedWriter::AddKept(cluster::v1::SeedRequest& request) const {
  std::size_t bytes = 0;
  for (const auto& [name, kept] : kept_) {
    cluster::v1::KeptFile file;
    file.set_name(name);
    file.set_size(kept.size);
    file.set_sha256(kept.sha256.Digest());
    constexpr std::size_t kHeadBytes = 8;  // At most, for an element of a repeated field.
    bytes += file.ByteSizeLong() + kHeadBytes;
    if (bytes > kKeptBytesMax) return;
    *request.add_kept() = std::move(file);
  }
}

absl::Status SeedWriter::Add(const cluster::v1::SeedResponse& response) {
  if (is_complete_) return MalformedSeed("it goes on after its end");
  switch (response.part_case()) {
    case cluster::v1::SeedResponse::kFile:
      return BeginFile(response.file());
    case cluster::v1::SeedResponse::kChunk:
      return AddChunk(response.chunk());
    case cluster::v1::SeedResponse::kSha256:
      return EndFile(response.sha256());
    case cluster::v1::SeedResponse::kFileCount:
      return EndCopy(response.file_count());
    case cluster::v1::SeedResponse::PART_NOT_SET:
      break;
  }
  return MalformedSeed("a response is empty");
}

absl::Status SeedWriter::BeginFile(const cluster::v1::SeedFile& file) {
  if (file_.has_value()) return MalformedSeed("a file begins in another");
  const auto shown = [&file] { return absl::CHexEscape(file.name().substr(0, 100)); };
  if (!IsFileName(file.name())) {
    return MalformedSeed(absl::StrCat("a file cannot have the name \"", shown(), "\""));
  }
  if (!names_.insert(file.name()).second) {
    return MalformedSeed(absl::StrCat("the file \"", shown(), "\" comes twice"));
  }
  SOFTLOOKUP_RETURN_IF_ERROR(RemoveBefore(file.name()));
  const auto kept = kept_.find(file.name());
  const bool is_kept = file.kept_size() != 0;
  if (is_kept && (kept == kept_.end() || kept->second.size != file.kept_size() ||
                  file.kept_size() > file.size())) {
    return MalformedSeed(absl::StrCat("the file \"", shown(), "\" goes on after ", file.kept_size(),
                                      " bytes, which are not there"));
  }
  const std::string path = absl::StrCat(directory_, "/", file.name());
  FileDescriptor descriptor(
      open(path.c_str(),
           O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (is_kept ? O_APPEND : O_TRUNC), 0600));
  if (descriptor.get() < 0) return FileError("create", path, errno);
  file_.emplace();
  file_->path = path;
  file_->descriptor = std::move(descriptor);
  file_->size_left = file.size() - file.kept_size();
  if (is_kept) file_->sha256 = std::move(kept->second.sha256);
  if (kept != kept_.end()) kept_.erase(kept);
  return absl::OkStatus();
}

absl::Status SeedWriter::RemoveBefore(const std::string& name) {
  while (!kept_.empty() && kept_.begin()->first < name) {
    const std::string path = absl::StrCat(directory_, "/", kept_.begin()->first);
    if (unlink(path.c_str()) != 0) return FileError("remove", path, errno);
    kept_.erase(kept_.begin());
  }
  return absl::OkStatus();
}

absl::Status SeedWriter::AddChunk(absl::string_view chunk) {
  if (!file_.has_value()) return MalformedSeed("bytes come outside of a file");
  if (chunk.empty() || chunk.size() > file_->size_left) {
    return MalformedSeed(
        absl::StrCat(chunk.size(), " bytes come where a file lacks ", file_->size_left));
  }
  file_->size_left -= chunk.size();
  file_->sha256.Add(chunk);
  while (!chunk.empty()) {
    const ssize_t written = write(file_->descriptor.get(), chunk.data(), chunk.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", file_->path, errno);
    chunk.remove_prefix(static_cast<std::size_t>(written));
  }
  // Waits until the disk has the chunk before this one, and begins to write this one. Otherwise
  // EndFile() would write a whole file at once, and the syncs of all others on the disk would wait
  // for it. An error that is told here is not told again.
  constexpr unsigned int kFlags = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE;
  if (sync_file_range(file_->descriptor.get(), 0, 0, kFlags) != 0 && !IsUnsupported(errno)) {
    return FileError("write", file_->path, errno);
  }
  return absl::OkStatus();
}

absl::Status SeedWriter::EndFile(const std::string& sha256) {
  if (!file_.has_value()) return MalformedSeed("a checksum comes outside of a file");
  if (file_->size_left != 0) {
    return MalformedSeed(absl::StrCat("a file lacks ", file_->size_left, " bytes"));
  }
  if (file_->sha256.Digest() != sha256) return MalformedSeed("a checksum is wrong");
  if (fsync(file_->descriptor.get()) != 0) return FileError("sync", file_->path, errno);
  file_.reset();
  return absl::OkStatus();
}

absl::Status SeedWriter::EndCopy(std::uint64_t file_count) {
  if (file_.has_value()) return MalformedSeed("it ends in a file");
  if (names_.size() != file_count) {
    return MalformedSeed(absl::StrCat("it has ", names_.size(), " of ", file_count, " files"));
  }
  is_complete_ = true;
  return absl::OkStatus();
}

absl::Status SeedWriter::Finish() {
  if (!is_complete_) return MalformedSeed("it has no end");
  std::error_code error;
  std::vector<fs::path> others;
  fs::directory_iterator it(directory_, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (!names_.contains(it->path().filename().string())) others.push_back(it->path());
  }
  for (const fs::path& other : others) {
    if (!error) fs::remove_all(other, error);
  }
  if (!error) error = SyncPath(directory_);
  return error ? FileError("clear and sync", directory_, error.value()) : absl::OkStatus();
}

void SeedWriter::Keep() {
  std::error_code ignored;  // It fails if the directory has files.
  fs::remove(directory_, ignored);
}

void SeedWriter::Remove() {
  std::error_code ignored;  // The caller has the first error.
  fs::remove_all(directory_, ignored);
}

}  // namespace softlookup::server
