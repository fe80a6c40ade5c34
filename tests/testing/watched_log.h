#ifndef SOFTLOOKUP_TESTS_TESTING_WATCHED_LOG_H_
#define SOFTLOOKUP_TESTS_TESTING_WATCHED_LOG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/storage/commit_log.h"

namespace softlookup::testing {

// A log in a directory. `before_commit` runs before each commit. An error of it is the commit's.
class WatchedLog final : public CommitLog {
 public:
  explicit WatchedLog(std::unique_ptr<CommitLog> log) : log_(std::move(log)) {}

  std::unique_ptr<LogBatch> NewBatch() override { return log_->NewBatch(); }
  absl::Status Commit(LogBatch& batch, Sync sync) override {
    absl::Status status = before_commit();
    return status.ok() ? log_->Commit(batch, sync) : status;
  }
  bool has_failed() const override { return log_->has_failed(); }
  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override {
    return log_->Scan(begin, end, visit);
  }
  void AllowTableCompaction() override { log_->AllowTableCompaction(); }
  std::string LastKeyInTables() const override { return log_->LastKeyInTables(); }
  std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange> ranges) const override {
    return log_->RangesInTables(ranges);
  }
  absl::Status ReadTables(absl::Span<const KeyRange> ranges) const override {
    return log_->ReadTables(ranges);
  }
  void AwaitReclaimed() override { log_->AwaitReclaimed(); }
  std::uint64_t deleted_bytes() const override { return log_->deleted_bytes(); }
  absl::Status VerifyChecksums() const override { return log_->VerifyChecksums(); }
  absl::Status CopyTo(const std::string& directory) override { return log_->CopyTo(directory); }

  // Set this while no write is in progress.
  std::function<absl::Status()> before_commit = [] { return absl::OkStatus(); };

 private:
  const std::unique_ptr<CommitLog> log_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_WATCHED_LOG_H_
