#ifndef SOFTLOOKUP_TESTS_TESTING_GATED_LOG_H_
#define SOFTLOOKUP_TESTS_TESTING_GATED_LOG_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "core/storage/commit_log.h"
#include "tests/testing/told_clock.h"

namespace softlookup::testing {

class NoBatch final : public LogBatch {
 public:
  void Put(absl::string_view, absl::string_view) override {}
  void Delete(absl::string_view) override {}
  void DeleteRange(absl::string_view, absl::string_view) override {}
  void FreeDiskOf(absl::string_view, absl::string_view) override {}
};

// A log that keeps nothing. Each Commit() takes `commit_time` of `clock`. If `gated` is set, the
// first one notifies `entered` and waits for `gate`.
class GatedLog final : public CommitLog {
 public:
  std::unique_ptr<LogBatch> NewBatch() override { return std::make_unique<NoBatch>(); }

  absl::Status Commit(LogBatch&, Sync sync) override {
    syncs_.push_back(sync);
    if (gated && !entered.HasBeenNotified()) {
      entered.Notify();
      gate.WaitForNotification();
    }
    clock.Advance(commit_time);
    return result;
  }

  void WhenSettled(absl::AnyInvocable<void(bool)> settled) override {
    on_settled = std::move(settled);
  }

  void OnPublished() override {
    if (on_published != nullptr) on_published();
  }

  bool has_failed() const override { return failed; }
  absl::Status Scan(
      absl::string_view, absl::string_view,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)>) const override {
    return absl::OkStatus();
  }
  void AllowTableCompaction() override {}
  std::string LastKeyInTables() const override { return ""; }
  std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange>) const override { return {}; }
  absl::Status ReadTables(absl::Span<const KeyRange>) const override { return absl::OkStatus(); }
  void AwaitReclaimed() override {}
  std::uint64_t deleted_bytes() const override { return 0; }
  absl::Status VerifyChecksums() const override { return absl::OkStatus(); }
  absl::Status CopyTo(const std::string&) override { return absl::OkStatus(); }

  // One entry per Commit(). Read it when no write is in progress.
  const std::vector<Sync>& syncs() const { return syncs_; }

  // Set these while no write is in progress.
  bool gated = false;
  bool failed = false;
  absl::Notification entered, gate;
  absl::Status result;
  absl::AnyInvocable<void(bool)> on_settled;  // Null, or what the last WhenSettled() was given.
  absl::AnyInvocable<void()> on_published;    // Called if it is not null.
  absl::Duration commit_time;
  ToldClock clock;

 private:
  std::vector<Sync> syncs_;
};

}  // namespace softlookup::testing

#endif  // SOFTLOOKUP_TESTS_TESTING_GATED_LOG_H_
