#ifndef SOFTLOOKUP_TESTS_FAULTS_FAULTY_ENV_H_
#define SOFTLOOKUP_TESTS_FAULTS_FAULTY_ENV_H_

#include <rocksdb/env.h>
#include <rocksdb/file_system.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace softlookup::testing {

// The machine's files, as a disk has them that fails, and that loses power. Thread-safe.
class FaultyFileSystem : public rocksdb::FileSystemWrapper {
 public:
  enum class Fault {
    kNone,
    kWriteFails,
    kSyncFails,
    kSyncHasNoRoom,
    kReadFails,
    kDiskFull,
    kPowerCut
  };

  FaultyFileSystem() : FileSystemWrapper(rocksdb::FileSystem::Default()) {}
  const char* Name() const override { return "FaultyFileSystem"; }

  // `fault` befalls the `call`-th call from now on that it can befall, counted from 1, and, if it
  // is one that stays, all after it until the next FailAt.
  void FailAt(Fault fault, std::int64_t call, bool stays);
  void Heal() { FailAt(Fault::kNone, 0, false); }
  void SetFreeBytes(std::optional<std::uint64_t> bytes);
  // Whether the fault of the last FailAt has come to pass, and in which file.
  bool has_failed() const;
  std::string failed_file() const;

  // What a power cut leaves of the files written so far: what was synced, and of what came after
  // it, in each file, a prefix of random length, the end of which may be torn. Nothing may have
  // them open. Names of files are taken to be as safe as they were made, removed and changed.
  void LosePower(std::mt19937_64& random);

  rocksdb::IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                    std::unique_ptr<rocksdb::FSWritableFile>* result,
                                    rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                       std::unique_ptr<rocksdb::FSWritableFile>* result,
                                       rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewSequentialFile(const std::string& name, const rocksdb::FileOptions& options,
                                      std::unique_ptr<rocksdb::FSSequentialFile>* result,
                                      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(const std::string& name,
                                        const rocksdb::FileOptions& options,
                                        std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                                        rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus RenameFile(const std::string& from, const std::string& to,
                               const rocksdb::IOOptions& options,
                               rocksdb::IODebugContext* debug) override;

  // However full the machine's disk is: what SetFreeBytes() says, or else room enough, but none
  // every second time while the disk is full. A disk may tell of room and have none for a call.
  rocksdb::IOStatus GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                 std::uint64_t* free_bytes,
                                 rocksdb::IODebugContext* debug) override;

  // For the files: what befalls a call of this kind, and how much of a file is safe.
  enum class Call { kWrite, kSync, kRead, kDelete };
  rocksdb::IOStatus Befall(Call call, const std::string& name);
  void OnSynced(const std::string& name, std::uint64_t size);
  void OnMade(const std::string& name);

 private:
  mutable absl::Mutex mutex_;
  Fault fault_ ABSL_GUARDED_BY(mutex_) = Fault::kNone;
  std::int64_t calls_left_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stays_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_failed_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<std::uint64_t> free_bytes_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t free_space_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string failed_file_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::uint64_t> synced_bytes_ ABSL_GUARDED_BY(mutex_);
};

// An environment over that file system.
std::unique_ptr<rocksdb::Env> MakeEnv(const std::shared_ptr<FaultyFileSystem>& files);

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_FAULTS_FAULTY_ENV_H_
