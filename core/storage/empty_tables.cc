#include "core/storage/empty_tables.h"

#include <rocksdb/file_system.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"

namespace softlookup {
namespace {

using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

// What this thread knows of the table that it makes.
struct TableOfThread {
  const rocksdb::FSWritableFile* file = nullptr;  // The last file of a table that it opened.
  bool is_watched = false;                        // A collector was made for that table.
  bool has_entries = false;
};
thread_local TableOfThread current_table;

class Collector final : public rocksdb::TablePropertiesCollector {
 public:
  Collector() {
    current_table.is_watched = true;
    current_table.has_entries = false;
  }
  rocksdb::Status AddUserKey(const Slice&, const Slice&, rocksdb::EntryType,
                             rocksdb::SequenceNumber, std::uint64_t) override {
    current_table.has_entries = true;
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties*) override {
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }
  const char* Name() const override { return "EmptyTableWatch"; }
};

class TableFile final : public rocksdb::FSWritableFileOwnerWrapper {
 public:
  explicit TableFile(std::unique_ptr<rocksdb::FSWritableFile> file)
      : FSWritableFileOwnerWrapper(std::move(file)) {
    current_table = {.file = this};
  }
  ~TableFile() override {
    if (current_table.file == this) current_table = {};
  }

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* debug) override {
    return Hide(target()->Append(data, options, debug));
  }
  IOStatus Append(const Slice& data, const IOOptions& options,
                  const rocksdb::DataVerificationInfo& verification,
                  IODebugContext* debug) override {
    return Hide(target()->Append(data, options, verification, debug));
  }
  IOStatus Flush(const IOOptions& options, IODebugContext* debug) override {
    return Hide(target()->Flush(options, debug));
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* debug) override {
    return Hide(target()->Sync(options, debug));
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* debug) override {
    return Hide(target()->Fsync(options, debug));
  }
  IOStatus Close(const IOOptions& options, IODebugContext* debug) override {
    return Hide(target()->Close(options, debug));
  }

 private:
  // Returns OK instead of `status` if nothing was put into the table.
  IOStatus Hide(IOStatus status) const {
    const bool is_empty =
        current_table.file == this && current_table.is_watched && !current_table.has_entries;
    return is_empty ? IOStatus::OK() : std::move(status);
  }
};

class TableFileSystem final : public rocksdb::FileSystemWrapper {
 public:
  using FileSystemWrapper::FileSystemWrapper;
  const char* Name() const override { return "TableFileSystem"; }

  IOStatus NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* result,
                           IODebugContext* debug) override {
    IOStatus status = target()->NewWritableFile(name, options, result, debug);
    if (status.ok() && absl::EndsWith(name, ".sst")) {
      *result = std::make_unique<TableFile>(std::move(*result));
    }
    return status;
  }
};

}  // namespace

std::unique_ptr<rocksdb::Env> HideErrorsOfEmptyTables(rocksdb::Env& env) {
  return rocksdb::NewCompositeEnv(std::make_shared<TableFileSystem>(env.GetFileSystem()));
}

rocksdb::TablePropertiesCollector* EmptyTableWatch::CreateTablePropertiesCollector(Context) {
  return new Collector();
}

}  // namespace softlookup
