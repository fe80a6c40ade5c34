#include "server/cluster/fetch_seed.h"

#include <fcntl.h>
#include <grpcpp/completion_queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/check.h"
#include "core/base/files.h"
#include "core/base/status_macros.h"
#include "server/base/file_descriptor.h"
#include "server/cluster/sha256_stream.h"

namespace softlookup::server {
namespace {

constexpr std::chrono::milliseconds kStopInterval(100);

absl::Status SeedFileError(absl::string_view act, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("Cannot ", act, " ", path));
}

absl::Status MalformedSeed(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("The copy of the other replica is malformed: ", what));
}

// Whether `name` is that of a file directly in a directory.
bool IsFileName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(absl::string_view("/\0", 2)) == absl::string_view::npos;
}

// The responses of a Seed.
class SeedStream {
 public:
  SeedStream(const std::string& address, const PeerOptions& options, const std::string& to_node,
             absl::FunctionRef<bool()> should_stop)
      : should_stop_(should_stop), stub_(OpenPeerChannel(address, options.credentials)) {
    cluster::v1::SeedRequest request;
    *request.mutable_caller() = CallerOf(options, to_node);
    context_.set_deadline(absl::ToChronoTime(absl::Now() + kSeedTimeout));
    reader_ = stub_.AsyncSeed(&context_, request, &queue_, this);
    // If the call could not be started, the first Read() says why.
    Await();
  }
  ~SeedStream() {
    if (!is_finished_) {
      context_.TryCancel();
      Finish().IgnoreError();
    }
    queue_.Shutdown();
    void* operation;
    bool ok;
    SOFTLOOKUP_CHECK(!queue_.Next(&operation, &ok)) << "an operation is in progress";
  }
  SeedStream(const SeedStream&) = delete;
  SeedStream& operator=(const SeedStream&) = delete;

  // Waits for the next response. False: there are no more, and the other replica says that all is
  // well. Must not be called after false or an error.
  absl::StatusOr<bool> Read(cluster::v1::SeedResponse& response) {
    reader_->Read(&response, this);
    const bool has_response = Await();
    if (!has_response) {
      const absl::Status finished = Finish();
      if (is_stopped_) return absl::CancelledError("Fetching the copy was stopped");
      SOFTLOOKUP_RETURN_IF_ERROR(finished);
    }
    return has_response;
  }

 private:
  // Waits for the operation in progress, of which there is always one. Returns whether it has
  // succeeded.
  bool Await() {
    void* operation;
    bool ok;
    for (;;) {
      if (!is_stopped_ && should_stop_()) {
        is_stopped_ = true;
        context_.TryCancel();
      }
      const auto until = std::chrono::system_clock::now() + kStopInterval;
      if (queue_.AsyncNext(&operation, &ok, until) == grpc::CompletionQueue::GOT_EVENT) return ok;
    }
  }
  absl::Status Finish() {
    grpc::Status status;
    reader_->Finish(&status, this);
    Await();
    is_finished_ = true;
    return FromPeerStatus(status);
  }

  const absl::FunctionRef<bool()> should_stop_;
  cluster::v1::PeerService::Stub stub_;
  grpc::CompletionQueue queue_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReader<cluster::v1::SeedResponse>> reader_;
  bool is_stopped_ = false;
  bool is_finished_ = false;
};

// A file that has begun to come.
struct IncomingFile {
  std::string path;
  FileDescriptor descriptor;
  std::uint64_t size_left = 0;  // Bytes that are still to come.
  Sha256Stream sha256;
};

// Writes the files of a copy to a directory.
class SeedWriter {
 public:
  explicit SeedWriter(const std::string& directory) : directory_(directory) {}

  // Takes what a response has.
  absl::Status Add(const cluster::v1::SeedResponse& response) {
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
  // Must be called after the last response.
  absl::Status Finish() const {
    if (!is_complete_) return MalformedSeed("it has no end");
    const std::error_code error = SyncPath(directory_);
    return error ? SeedFileError("sync", directory_, error.value()) : absl::OkStatus();
  }

 private:
  absl::Status BeginFile(const cluster::v1::SeedFile& file) {
    if (file_.has_value()) return MalformedSeed("a file begins in another");
    if (!IsFileName(file.name())) {
      return MalformedSeed(absl::StrCat("a file cannot have the name \"",
                                        absl::CHexEscape(file.name().substr(0, 100)), "\""));
    }
    const std::string path = absl::StrCat(directory_, "/", file.name());
    FileDescriptor descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (descriptor.get() < 0) return SeedFileError("create", path, errno);
    file_.emplace();
    file_->path = path;
    file_->descriptor = std::move(descriptor);
    file_->size_left = file.size();
    return absl::OkStatus();
  }

  absl::Status AddChunk(absl::string_view chunk) {
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
      if (written < 0) return SeedFileError("write", file_->path, errno);
      chunk.remove_prefix(static_cast<std::size_t>(written));
    }
    return absl::OkStatus();
  }

  absl::Status EndFile(const std::string& sha256) {
    if (!file_.has_value()) return MalformedSeed("a checksum comes outside of a file");
    if (file_->size_left != 0) {
      return MalformedSeed(absl::StrCat("a file lacks ", file_->size_left, " bytes"));
    }
    if (file_->sha256.Take() != sha256) return MalformedSeed("a checksum is wrong");
    if (fsync(file_->descriptor.get()) != 0) return SeedFileError("sync", file_->path, errno);
    file_.reset();
    ++file_count_;
    return absl::OkStatus();
  }

  absl::Status EndCopy(std::uint64_t file_count) {
    if (file_.has_value()) return MalformedSeed("it ends in a file");
    if (file_count_ != file_count) {
      return MalformedSeed(absl::StrCat("it has ", file_count_, " of ", file_count, " files"));
    }
    is_complete_ = true;
    return absl::OkStatus();
  }

  const std::string directory_;
  std::optional<IncomingFile> file_;  // The one that has begun and not ended.
  std::uint64_t file_count_ = 0;
  bool is_complete_ = false;
};

// Writes all files of `stream` to `directory`.
absl::Status WriteSeed(SeedStream& stream, const std::string& directory) {
  SeedWriter writer(directory);
  cluster::v1::SeedResponse response;
  for (;;) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(const bool has_response, stream.Read(response));
    if (!has_response) return writer.Finish();
    SOFTLOOKUP_RETURN_IF_ERROR(writer.Add(response));
  }
}

}  // namespace

absl::Status FetchSeed(const std::string& address, const PeerOptions& options,
                       const std::string& to_node, const std::string& directory,
                       absl::FunctionRef<bool()> should_stop) {
  if (mkdir(directory.c_str(), 0700) != 0) return SeedFileError("create", directory, errno);
  SeedStream stream(address, options, to_node, should_stop);
  absl::Status written = WriteSeed(stream, directory);
  if (!written.ok()) {
    std::error_code ignored;  // The caller gets the first error.
    std::filesystem::remove_all(directory, ignored);
  }
  return written;
}

}  // namespace softlookup::server
