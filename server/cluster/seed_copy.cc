#include "server/cluster/seed_copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/random/random.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/base/file_descriptor.h"
#include "server/cluster/peer_protocol.h"

namespace softlookup::server {
namespace {

constexpr char kSeedPrefix[] = "seed-";

absl::Status CopyFileError(absl::string_view act, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("Cannot ", act, " ", path));
}

std::string RandomSeedName() {
  absl::BitGen random;
  return absl::StrCat(kSeedPrefix,
                      absl::Hex(absl::Uniform<std::uint64_t>(random), absl::kZeroPad16));
}

}  // namespace

absl::Status PrepareSeedDirectory(const std::string& scratch_directory) {
  if (mkdir(scratch_directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return CopyFileError("create", scratch_directory, errno);
  }
  std::error_code error;
  std::filesystem::directory_iterator it(scratch_directory, error), end;
  std::vector<std::filesystem::path> leftovers;
  for (; !error && it != end; it.increment(error)) {
    if (absl::StartsWith(it->path().filename().string(), kSeedPrefix)) {
      leftovers.push_back(it->path());
    }
  }
  if (error) return CopyFileError("read", scratch_directory, error.value());
  for (const std::filesystem::path& leftover : leftovers) {
    std::filesystem::remove_all(leftover, error);
    if (error) return CopyFileError("remove", leftover.string(), error.value());
  }
  return absl::OkStatus();
}

SeedCopy::SeedCopy(const std::string& scratch_directory)
    : directory_(absl::StrCat(scratch_directory, "/", RandomSeedName())) {}

SeedCopy::~SeedCopy() {
  std::error_code ignored;  // PrepareSeedDirectory() tries again.
  std::filesystem::remove_all(directory_, ignored);
}

absl::StatusOr<std::vector<std::string>> SeedCopy::FileNames() const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator it(directory_, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (!it->is_regular_file(error)) {
      if (error) break;
      return absl::InternalError(absl::StrCat(it->path().string(), " is not a file"));
    }
    names.push_back(it->path().filename().string());
  }
  if (error) return CopyFileError("read", directory_, error.value());
  std::ranges::sort(names);
  return names;
}

absl::StatusOr<std::uint64_t> SeedCopy::SizeOf(const std::string& name) const {
  const std::string path = absl::StrCat(directory_, "/", name);
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return CopyFileError("read", path, error.value());
  return size;
}

absl::Status SeedCopy::ReadFile(const std::string& name, std::uint64_t begin, std::uint64_t end,
                                absl::FunctionRef<absl::Status(absl::string_view)> visit) const {
  const std::string path = absl::StrCat(directory_, "/", name);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return CopyFileError("open", path, errno);
  std::string buffer(std::min<std::uint64_t>(end - begin, kPeerChunkBytesMax), '\0');
  while (begin < end) {
    const ssize_t count =
        pread(file.get(), buffer.data(), std::min<std::uint64_t>(end - begin, buffer.size()),
              static_cast<off_t>(begin));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CopyFileError("read", path, errno);
    if (count == 0) return absl::DataLossError(absl::StrCat(path, " has become shorter"));
    SOFTLOOKUP_RETURN_IF_ERROR(
        visit(absl::string_view(buffer.data(), static_cast<std::size_t>(count))));
    begin += static_cast<std::uint64_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace softlookup::server
