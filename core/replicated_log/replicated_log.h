#ifndef SOFTLOOKUP_CORE_REPLICATED_LOG_REPLICATED_LOG_H_
#define SOFTLOOKUP_CORE_REPLICATED_LOG_REPLICATED_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/random/random.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/replicated_log/latest_waits.h"
#include "core/replicated_log/log_entry_store.h"
#include "core/replicated_log/replica_directory.h"
#include "core/replication/founding.h"
#include "core/replication/replica.h"
#include "core/replication/tenant_claims.h"
#include "core/storage/commit_log.h"
#include "softlookup/replication.h"

namespace softlookup {

// The log of a replica. Makes a batch once etcd has named it as the next entry of the group, and
// not before. Also makes the entries of other primaries, which it hands to a LogReplay. Records are
// read from this replica's own log. The protocol runs on a ReplicaThread, on which Commit() waits.
//
// Commit() needs this replica to be the primary, and a batch of at most kEntryBytesMax, which was
// made when the stores had the last entry of the group. Its errors are those of the log below for
// an entry that cannot be staged, and STORAGE_FAILED. The outcome is unknown if etcd has not
// answered for 10 s, or if the lease has ended meanwhile.
class ReplicatedLog final : public CommitLog, public Replication {
 public:
  // Maximum bytes of a batch. The log below takes no record of more than 4 GiB.
  static constexpr std::size_t kEntryBytesMax = Entry::kBytesMax;

  // Takes over `records`, a log that is open. `thread` must outlive this. Errors: those of
  // ClaimDirectory() and LogEntryStore::Open().
  static absl::StatusOr<std::unique_ptr<ReplicatedLog>> Open(std::unique_ptr<CommitLog> records,
                                                             ReplicationOptions options,
                                                             ReplicaThread& thread);
  // Stops leading, so that another replica can lead at once. Closes the thread.
  ~ReplicatedLog() override;

  // As CommitLog says.
  std::unique_ptr<LogBatch> NewBatch() override;
  absl::Status Commit(LogBatch& batch, Sync sync) override;
  void WhenSettled(absl::AnyInvocable<void(bool)> settled) override;
  void PauseReplay() override;
  void StartReplay(LogReplay* replay) override;
  void OnPublished() override;
  void AwaitLatest(absl::AnyInvocable<void(absl::Status)> done) override;
  bool is_replicated() const override { return true; }
  bool is_writable() const override { return stats().is_primary; }
  absl::Status ClaimTenant(absl::string_view tenant) override;
  bool has_failed() const override { return records_->has_failed(); }
  absl::Status Scan(
      absl::string_view begin, absl::string_view end,
      absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const override;
  void AllowTableCompaction() override { records_->AllowTableCompaction(); }
  std::string LastKeyInTables() const override { return records_->LastKeyInTables(); }
  std::vector<KeyRange> RangesInTables(absl::Span<const KeyRange> ranges) const override {
    return records_->RangesInTables(ranges);
  }
  absl::Status ReadTables(absl::Span<const KeyRange> ranges) const override {
    return records_->ReadTables(ranges);
  }
  void AwaitReclaimed() override { records_->AwaitReclaimed(); }
  std::uint64_t deleted_bytes() const override { return records_->deleted_bytes(); }
  absl::Status VerifyChecksums() const override { return records_->VerifyChecksums(); }
  absl::Status CopyTo(const std::string& directory) override { return records_->CopyTo(directory); }

  void Advertise(std::string address) override;
  absl::Status AwaitReady(absl::Duration timeout) override;
  ReplicationStats stats() const override;
  absl::Status failure() const override;

  void GetGroup(absl::AnyInvocable<void(absl::StatusOr<GroupStatus>)> done) override;
  void AddReplica(std::string node, absl::AnyInvocable<void(absl::Status)> done) override;
  void RemoveReplica(std::string node, absl::AnyInvocable<void(absl::Status)> done) override;
  void StepDown(absl::AnyInvocable<void(absl::Status)> done) override;
  void ClaimTenant(std::string tenant, absl::AnyInvocable<void(absl::Status)> done) override;

  void OnStage(Entry entry, absl::AnyInvocable<void(absl::Status)> done) override;
  void OnFetch(std::uint64_t sequence, EntryDigest digest,
               absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) override;
  absl::Status CopyRecordsTo(const std::string& directory) override;

 private:
  class Batch;
  // A batch whose outcome is unknown.
  struct UnsettledEntry {
    std::uint64_t sequence = 0;
    EntryDigest digest;
  };

  ReplicatedLog(std::unique_ptr<CommitLog> records, ReplicationOptions options,
                ReplicaThread& thread);

  // These run on the replica's thread.
  void Start(const ReplicaRecord& record);
  void OnFounded(const absl::Status& founded);
  // Makes replica_ and claims_, once the directory says that this node has joined its group.
  void Join();
  void Tick();
  // Asks etcd what this replica must have before it is ready.
  void AwaitCaughtUp();
  void OnApplied(const Entry& entry);
  // Hands to_replay_ to the stores, if they take it now.
  void TryReplay();
  void OnReplayed(const absl::Status& replayed);
  void OnProposed(const std::string& bytes, const absl::Status& outcome);
  // Has `act` run on the replica's thread, which calls done(status) unless an error comes before.
  void AskReplica(absl::AnyInvocable<void(absl::Status)> done,
                  absl::AnyInvocable<void(Replica&, Membership::Done)> act);
  // Lets the waits of AwaitLatest() go on that end with what is published.
  void ServeLatestWaits();
  GroupStatus StatusOfGroup() const;
  // Whether other replicas may ask this one.
  bool CanAnswer() const { return replica_.has_value() && failure().ok(); }
  // Shows other threads what has changed.
  void Show();
  void Fail(const absl::Status& why);
  void Settle(bool is_made);
  std::string NewNonce();

  const std::unique_ptr<CommitLog> records_;
  const ReplicationOptions options_;
  const GroupKeys keys_;
  ReplicaThread& thread_;

  // Used on the replica's thread only, once Open() has returned.
  absl::BitGen random_;
  MakeNonce make_nonce_;
  std::unique_ptr<LogEntryStore> entries_;
  std::optional<Founding> founding_;
  bool has_joined_ = false;         // Whether the directory says that it is a replica's of a group.
  bool is_founded_ = false;         // Whether founding_ has ended well.
  std::optional<Replica> replica_;  // Once both are true.
  std::optional<TenantClaims> claims_;  // As replica_.
  bool is_proposing_ = false;           // Whether a Commit() waits.
  std::optional<UnsettledEntry> unsettled_;
  std::string address_;        // Of this replica, for others. Empty: not known yet.
  bool is_awaiting_ = false;   // Whether AwaitCaughtUp() has no answer yet.
  bool is_caught_up_ = false;  // Whether it had a good one.
  bool must_replay_ = false;   // Whether the stores are read, or being read.
  // An entry of another replica that the stores do not have yet.
  std::shared_ptr<const std::string> to_replay_;
  bool is_replaying_ = false;  // Whether the stores have taken it.
  LatestWaits latest_waits_;

  // The last entry that the stores have, or will have once the batch that was committed last is
  // published.
  std::atomic<std::uint64_t> entry_of_stores_{0};
  std::atomic<std::uint64_t> published_entry_{0};  // The last entry that the stores show.
  std::atomic<bool> has_latest_waits_{false};      // Whether latest_waits_ has some.

  mutable absl::Mutex mutex_;
  LogReplay* replay_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_ready_ ABSL_GUARDED_BY(mutex_) = false;
  ReplicationStats stats_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::string trouble_ ABSL_GUARDED_BY(mutex_);          // What AwaitReady() waits for.
  std::optional<bool> is_made_ ABSL_GUARDED_BY(mutex_);  // Once the last unknown outcome is known.
  absl::AnyInvocable<void(bool)> on_settled_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_REPLICATED_LOG_REPLICATED_LOG_H_
