#include "tests/faults/faulty_env.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

namespace softlookup::testing {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;
using Call = FaultyFileSystem::Call;
using Fault = FaultyFileSystem::Fault;

constexpr std::uint64_t kSectorBytes = 512;

bool Befalls(Fault fault, Call call) {
  switch (fault) {
    case Fault::kNone:
      return false;
    case Fault::kWriteFails:
    case Fault::kDiskFull:
      return call == Call::kWrite;
    case Fault::kSyncFails:
    case Fault::kSyncHasNoRoom:
      return call == Call::kSync;
    case Fault::kReadFails:
      return call == Call::kRead;
    case Fault::kPowerCut:
      return call != Call::kRead;
  }
  return false;
}

class FaultyWritableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  // `begin` is the size that the file has already, which RocksDB's own file does not count.
  FaultyWritableFile(std::string name, std::uint64_t begin,
                     std::unique_ptr<rocksdb::FSWritableFile> file, FaultyFileSystem& files)
      : FSWritableFileOwnerWrapper(std::move(file)),
        name_(std::move(name)),
        begin_(begin),
        files_(files) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    IOStatus status = files_.Befall(Call::kWrite, name_);
    if (!status.ok()) {
      // As much as there was room for.
      target()->Append(Slice(data.data(), data.size() / 2), options, debug);
      return status;
    }
    return target()->Append(data, options, debug);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* debug) override {
    return Append(data, options, debug);
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return Synced(options, debug);
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Synced(options, debug);
  }

 private:
  IOStatus Synced(const IOOptions& options, IODebugContext* debug) {
    // What is added meanwhile is not part of it.
    const std::uint64_t size = begin_ + target()->GetFileSize(options, debug);
    IOStatus status = files_.Befall(Call::kSync, name_);
    if (status.ok()) status = target()->Flush(options, debug);  // The machine keeps its power.
    if (status.ok()) files_.OnSynced(name_, size);
    return status;
  }

  const std::string name_;
  const std::uint64_t begin_;
  FaultyFileSystem& files_;
};

class FaultySequentialFile final : public rocksdb::FSSequentialFileOwnerWrapper {
 public:
  FaultySequentialFile(std::string name, std::unique_ptr<rocksdb::FSSequentialFile> file,
                       FaultyFileSystem& files)
      : FSSequentialFileOwnerWrapper(std::move(file)), name_(std::move(name)), files_(files) {}
  IOStatus Read(std::size_t count, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* debug) override {
    IOStatus status = files_.Befall(Call::kRead, name_);
    return status.ok() ? target()->Read(count, options, result, scratch, debug) : status;
  }

 private:
  const std::string name_;
  FaultyFileSystem& files_;
};

class FaultyRandomAccessFile final : public rocksdb::FSRandomAccessFileOwnerWrapper {
 public:
  FaultyRandomAccessFile(std::string name, std::unique_ptr<rocksdb::FSRandomAccessFile> file,
                         FaultyFileSystem& files)
      : FSRandomAccessFileOwnerWrapper(std::move(file)), name_(std::move(name)), files_(files) {}
  IOStatus Read(std::uint64_t offset, std::size_t count, const IOOptions& options, Slice* result,
                char* scratch, IODebugContext* debug) const override {
    IOStatus status = files_.Befall(Call::kRead, name_);
    return status.ok() ? target()->Read(offset, count, options, result, scratch, debug) : status;
  }
  IOStatus MultiRead(rocksdb::FSReadRequest* requests, std::size_t count, const IOOptions& options,
                     IODebugContext* debug) override {
    IOStatus status = files_.Befall(Call::kRead, name_);
    return status.ok() ? target()->MultiRead(requests, count, options, debug) : status;
  }

 private:
  const std::string name_;
  FaultyFileSystem& files_;
};

// Zeros, or anything, from a random place after `begin` on: sectors reach a disk in any order.
void TearEnd(const std::string& name, std::uint64_t begin, std::uint64_t end,
             std::mt19937_64& random) {
  if (begin == end) return;
  std::fstream file(name, std::ios::binary | std::ios::in | std::ios::out);
  const bool zeros = random() % 2 == 0;
  const std::uint64_t from = std::max(begin, end - std::min(end, random() % (8 * kSectorBytes)));
  file.seekp(static_cast<std::streamoff>(from));
  for (std::uint64_t i = from; i < end; ++i) file.put(zeros ? '\0' : static_cast<char>(random()));
}

}  // namespace

void FaultyFileSystem::FailAt(Fault fault, std::int64_t call, bool stays) {
  absl::MutexLock lock(&mutex_);
  fault_ = fault;
  calls_left_ = call;
  stays_ = stays;
  has_failed_ = false;
}

void FaultyFileSystem::SetFreeBytes(std::optional<std::uint64_t> bytes) {
  absl::MutexLock lock(&mutex_);
  free_bytes_ = bytes;
}

bool FaultyFileSystem::has_failed() const {
  absl::MutexLock lock(&mutex_);
  return has_failed_;
}

std::string FaultyFileSystem::failed_file() const {
  absl::MutexLock lock(&mutex_);
  return failed_file_;
}

IOStatus FaultyFileSystem::Befall(Call call, const std::string& name) {
  absl::MutexLock lock(&mutex_);
  if (!Befalls(fault_, call)) return IOStatus::OK();
  if (calls_left_ > 0) --calls_left_;
  if (calls_left_ > 0 || (has_failed_ && !stays_)) return IOStatus::OK();
  has_failed_ = true;
  failed_file_ = name;
  return fault_ == Fault::kDiskFull || fault_ == Fault::kSyncHasNoRoom
             ? IOStatus::NoSpace("no space left, as the test has it")
             : IOStatus::IOError("input/output error, as the test has it");
}

void FaultyFileSystem::OnMade(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  synced_bytes_[name] = 0;
}

void FaultyFileSystem::OnSynced(const std::string& name, std::uint64_t size) {
  absl::MutexLock lock(&mutex_);
  synced_bytes_[name] = std::max(synced_bytes_[name], size);
}

void FaultyFileSystem::LosePower(std::mt19937_64& random) {
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, synced] : synced_bytes_) {
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(name, error);
    if (error || size <= synced) continue;
    const std::uint64_t end = synced + random() % (size - synced + 1);
    std::filesystem::resize_file(name, end);
    if (random() % 2 == 0) TearEnd(name, synced, end, random);
  }
  synced_bytes_.clear();
}

IOStatus FaultyFileSystem::NewWritableFile(const std::string& name,
                                           const rocksdb::FileOptions& options,
                                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                                           IODebugContext* debug) {
  IOStatus status = Befall(Call::kWrite, name);
  if (status.ok()) status = target()->NewWritableFile(name, options, result, debug);
  if (!status.ok()) return status;
  OnMade(name);
  *result = std::make_unique<FaultyWritableFile>(name, 0, std::move(*result), *this);
  return status;
}

IOStatus FaultyFileSystem::ReopenWritableFile(const std::string& name,
                                              const rocksdb::FileOptions& options,
                                              std::unique_ptr<rocksdb::FSWritableFile>* result,
                                              IODebugContext* debug) {
  IOStatus status = target()->ReopenWritableFile(name, options, result, debug);
  if (!status.ok()) return status;
  *result = std::make_unique<FaultyWritableFile>(name, std::filesystem::file_size(name),
                                                 std::move(*result), *this);
  return status;
}

IOStatus FaultyFileSystem::NewSequentialFile(const std::string& name,
                                             const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                             IODebugContext* debug) {
  IOStatus status = target()->NewSequentialFile(name, options, result, debug);
  if (status.ok())
    *result = std::make_unique<FaultySequentialFile>(name, std::move(*result), *this);
  return status;
}

IOStatus FaultyFileSystem::NewRandomAccessFile(const std::string& name,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                               IODebugContext* debug) {
  IOStatus status = target()->NewRandomAccessFile(name, options, result, debug);
  if (status.ok())
    *result = std::make_unique<FaultyRandomAccessFile>(name, std::move(*result), *this);
  return status;
}

IOStatus FaultyFileSystem::DeleteFile(const std::string& name, const IOOptions& options,
                                      IODebugContext* debug) {
  IOStatus status = Befall(Call::kDelete, name);
  if (status.ok()) status = target()->DeleteFile(name, options, debug);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  synced_bytes_.erase(name);
  return status;
}

IOStatus FaultyFileSystem::RenameFile(const std::string& from, const std::string& to,
                                      const IOOptions& options, IODebugContext* debug) {
  IOStatus status = Befall(Call::kWrite, from);
  if (status.ok()) status = target()->RenameFile(from, to, options, debug);
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  if (const auto it = synced_bytes_.find(from); it != synced_bytes_.end()) {
    synced_bytes_[to] = it->second;
    synced_bytes_.erase(from);
  }
  return status;
}

IOStatus FaultyFileSystem::GetFreeSpace(const std::string&, const IOOptions&,
                                        std::uint64_t* free_bytes, IODebugContext*) {
  absl::MutexLock lock(&mutex_);
  const bool is_full = fault_ == Fault::kDiskFull && has_failed_;
  *free_bytes = is_full && ++free_space_calls_ % 2 == 0 ? 0 : std::uint64_t{1} << 40;
  if (free_bytes_.has_value()) *free_bytes = *free_bytes_;
  return IOStatus::OK();
}

std::unique_ptr<rocksdb::Env> MakeEnv(const std::shared_ptr<FaultyFileSystem>& files) {
  return rocksdb::NewCompositeEnv(files);
}

}  // namespace softlookup::testing
