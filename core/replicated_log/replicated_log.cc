#include "core/replicated_log/replicated_log.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "core/base/error.h"
#include "core/base/status_macros.h"
#include "core/replicated_log/entry_batch.h"

namespace softlookup {
namespace {

absl::Status NotAReplica(absl::string_view why = "This node is no replica of its group now") {
  return MakeError(reasons::kStorageFailed, std::string(why));
}

absl::Status NoReplicaForWrites() { return WriteNotMade("this node is no replica of its group"); }

absl::Status NotInGroup() {
  return WithRetryAfter(
      MakeError(reasons::kClusterUnavailable, "This server is no replica of its group now"),
      absl::Seconds(1));
}

absl::Status TooLarge(std::size_t bytes) {
  return MakeError(reasons::kStorageFailed,
                   absl::StrCat("The write was not made: it has ", bytes,
                                " bytes of changes, and a replica makes at most ",
                                ReplicatedLog::kEntryBytesMax, " in one step"),
                   {{"written", "no"}});
}

}  // namespace

class ReplicatedLog::Batch final : public EntryBatch {
 public:
  explicit Batch(std::uint64_t after) : after_(after) {}
  // The last entry that the stores had when the batch was begun.
  std::uint64_t after() const { return after_; }

 private:
  const std::uint64_t after_;
};

absl::StatusOr<std::unique_ptr<ReplicatedLog>> ReplicatedLog::Open(
    std::unique_ptr<CommitLog> records, ReplicationOptions options, ReplicaThread& thread) {
  std::unique_ptr<ReplicatedLog> log(
      new ReplicatedLog(std::move(records), std::move(options), thread));
  SOFTLOOKUP_ASSIGN_OR_RETURN(const ReplicaRecord record,
                              ClaimDirectory(log->options_.name, log->NewNonce(), *log->records_));
  SOFTLOOKUP_ASSIGN_OR_RETURN(
      log->entries_, LogEntryStore::Open(*log->records_, [log = log.get()](const Entry& entry) {
        log->OnApplied(entry);
      }));
  thread.Post([log = log.get(), record] { log->Start(record); });
  return log;
}

ReplicatedLog::ReplicatedLog(std::unique_ptr<CommitLog> records, ReplicationOptions options,
                             ReplicaThread& thread)
    : records_(std::move(records)),
      options_(std::move(options)),
      keys_(options_.name.cluster, options_.name.group,
            options_.slots == 0 ? GroupKeys::kSlots : options_.slots),
      thread_(thread),
      make_nonce_([this] { return NewNonce(); }),
      latest_waits_(Clock::Steady(),
                    [this](auto answer) { replica_->ReadCommitPoint(std::move(answer)); }) {}

ReplicatedLog::~ReplicatedLog() {
  absl::Notification closed;
  thread_.Post([&] {
    if (replica_.has_value()) replica_->Resign("the server stops");
    if (claims_.has_value()) claims_->End("the server stops");
    thread_.Close();
    claims_.reset();
    replica_.reset();
    founding_.reset();
    closed.Notify();
  });
  closed.WaitForNotification();
}

void ReplicatedLog::Start(const ReplicaRecord& record) {
  has_joined_ = record.has_joined;
  founding_.emplace(keys_, thread_.etcd(), make_nonce_);
  founding_->Start(
      {.name = options_.name.node, .applied = entries_->applied(), .has_joined = record.has_joined},
      [this](const absl::Status& founded) { OnFounded(founded); });
  thread_.SetTick([this] { Tick(); });
}

void ReplicatedLog::OnFounded(const absl::Status& founded) {
  if (!founded.ok()) return Fail(founded);
  is_founded_ = true;
  Join();
}

void ReplicatedLog::Join() {
  if (!has_joined_) {
    // After an error, such as a full disk, the next Tick() tries again.
    if (const absl::Status noted = NoteJoined(options_.name, *records_); !noted.ok()) {
      absl::MutexLock lock(&mutex_);
      trouble_ = std::string(noted.message());
      return;
    }
    has_joined_ = true;
  }
  replica_.emplace(ReplicaOptions{.node = options_.name.node, .keys = keys_, .address = address_},
                   thread_.etcd(), thread_.peers(), *entries_, Clock::Steady(),
                   [this] { return NewNonce(); });
  claims_.emplace(TenantKeys(options_.name.cluster), options_.name.group, thread_.etcd(),
                  Clock::Steady());
  thread_.Watch(keys_.watched_begin(), keys_.watched_end(), [this](std::int64_t revision) {
    if (failure().ok()) replica_->Wake(revision);
  });
}

void ReplicatedLog::Tick() {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    trouble_ = thread_.etcd_trouble();
  }
  if (!is_founded_) return founding_->Tick();
  if (!replica_.has_value()) return Join();
  AwaitCaughtUp();
  replica_->Tick();
  claims_->Tick();
  TryReplay();
  latest_waits_.Tick();
  ServeLatestWaits();
  // A new term of this node has a larger epoch, so an entry of an earlier term that is not
  // committed by now never is.
  if (unsettled_.has_value() && replica_->is_primary() &&
      entries_->applied().sequence < unsettled_->sequence) {
    Settle(/*is_made=*/false);
  }
  Show();
  if (!replica_->may_serve()) return Fail(replica_->gap());
  if (replica_->has_left()) {
    Fail(absl::FailedPreconditionError(
        absl::StrCat("node ", options_.name.node, " is no replica of its group any more")));
  }
}

void ReplicatedLog::AwaitCaughtUp() {
  if (is_caught_up_ || is_awaiting_) return;
  is_awaiting_ = true;
  replica_->Await([this](const absl::Status& status) {
    is_awaiting_ = false;
    is_caught_up_ = status.ok();
  });
}

void ReplicatedLog::OnApplied(const Entry& entry) {
  if (is_proposing_ || !must_replay_) return;
  if (unsettled_.has_value() && entry.sequence == unsettled_->sequence) {
    const bool is_made = entry.digest == unsettled_->digest;
    Settle(is_made);
    if (is_made) return;
  }
  to_replay_ = std::make_shared<const std::string>(entry.bytes);
  entries_->set_ready(false);
  TryReplay();
}

void ReplicatedLog::TryReplay() {
  if (to_replay_ == nullptr || is_replaying_) return;
  absl::MutexLock lock(&mutex_);
  if (replay_ == nullptr) return;
  is_replaying_ = replay_->Replay(
      to_replay_, [this, sequence = entries_->applied().sequence](absl::Status status) {
        if (status.ok()) entry_of_stores_ = sequence;
        thread_.Post([this, status = std::move(status)] { OnReplayed(status); });
      });
}

void ReplicatedLog::OnReplayed(const absl::Status& replayed) {
  is_replaying_ = false;
  to_replay_ = nullptr;
  if (!replayed.ok()) return Fail(replayed);
  entries_->set_ready(true);
  replica_->Resume();
}

void ReplicatedLog::Show() {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return;
  const bool was_primary = stats_.is_primary;
  stats_ = {.is_primary = replica_->is_primary(),
            .primary_node = replica_->is_primary() ? options_.name.node : replica_->primary_node(),
            .epoch = replica_->epoch(),
            .applied_entry = entries_->applied().sequence};
  const GroupView& view = replica_->view();
  stats_.last_entry = view.commit_point.has_value() ? view.commit_point->sequence : 0;
  stats_.last_entry = std::max(stats_.last_entry, stats_.applied_entry);
  const bool has_other_primary =
      !stats_.primary_node.empty() && stats_.primary_node != options_.name.node;
  stats_.has_primary = stats_.is_primary || (has_other_primary && trouble_.empty());
  is_ready_ = stats_.is_primary || (is_caught_up_ && has_other_primary);
  if (stats_.is_primary && !was_primary && replay_ != nullptr) replay_->OnWritable();
}

void ReplicatedLog::Fail(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    failure_ = why;
    stats_.is_primary = false;
  }
  // End what Commit() and ClaimTenant() wait for.
  if (replica_.has_value()) replica_->Resign(why.message());
  if (claims_.has_value()) claims_->End(why.message());
  latest_waits_.EndAll(NotInGroup());
  if (options_.on_failure != nullptr) options_.on_failure(why);
}

void ReplicatedLog::Settle(bool is_made) {
  if (is_made) entry_of_stores_ = unsettled_->sequence;
  unsettled_.reset();
  absl::MutexLock lock(&mutex_);
  is_made_ = is_made;
  if (on_settled_ != nullptr) std::exchange(on_settled_, nullptr)(is_made);
}

std::string ReplicatedLog::NewNonce() {
  return absl::StrCat(absl::Hex(absl::Uniform<std::uint64_t>(random_), absl::kZeroPad16),
                      absl::Hex(absl::Uniform<std::uint64_t>(random_), absl::kZeroPad16));
}

std::unique_ptr<LogBatch> ReplicatedLog::NewBatch() {
  return std::make_unique<Batch>(entry_of_stores_);
}

absl::Status ReplicatedLog::Commit(LogBatch& batch, Sync) {
  auto& changes = static_cast<Batch&>(batch);
  const bool is_empty = changes.empty();
  const std::string bytes = changes.Take();
  if (bytes.size() > kEntryBytesMax) return TooLarge(bytes.size());
  absl::Status outcome;
  absl::Notification done;
  const auto end = [&](absl::Status status) {
    outcome = std::move(status);
    done.Notify();
  };
  thread_.Post([&] {
    if (!failure().ok() || !replica_.has_value()) {
      return end(NoReplicaForWrites());
    }
    // A batch that was made of older stores would undo what others have committed since.
    if (changes.after() != entries_->applied().sequence) {
      return end(WriteNotMade("this replica has become the primary just now"));
    }
    // Entries are synced before they are committed, so there is nothing to sync. But what changes
    // nothing here may have changed something at the primary.
    if (is_empty) return end(replica_->CheckPrimary());
    is_proposing_ = true;
    replica_->Propose(bytes, [&](absl::Status status) {
      OnProposed(bytes, status);
      end(std::move(status));
    });
  });
  done.WaitForNotification();
  return outcome;
}

void ReplicatedLog::OnProposed(const std::string& bytes, const absl::Status& outcome) {
  is_proposing_ = false;
  if (outcome.ok()) entry_of_stores_ = entries_->applied().sequence;
  if (HasUnknownOutcome(outcome)) {
    // A primary has applied all that was committed, and has had no other entry since the proposal.
    const AppliedEntry applied = entries_->applied();
    unsettled_ = {.sequence = applied.sequence + 1,
                  .digest = DigestOf(applied.digest, replica_->term_epoch(), bytes)};
    absl::MutexLock lock(&mutex_);
    is_made_.reset();
  }
  Show();
}

void ReplicatedLog::WhenSettled(absl::AnyInvocable<void(bool)> settled) {
  absl::MutexLock lock(&mutex_);
  on_settled_ = std::move(settled);
  if (on_settled_ != nullptr && is_made_.has_value()) {
    std::exchange(on_settled_, nullptr)(*is_made_);
  }
}

void ReplicatedLog::PauseReplay() {
  absl::Notification paused;
  thread_.Post([&] {
    must_replay_ = true;
    entries_->set_ready(false);
    entry_of_stores_ = entries_->applied().sequence;
    published_entry_ = entry_of_stores_.load();
    paused.Notify();
  });
  paused.WaitForNotification();
}

void ReplicatedLog::StartReplay(LogReplay* replay) {
  {
    absl::MutexLock lock(&mutex_);
    replay_ = replay;
  }
  if (replay == nullptr) {
    absl::Notification ended;
    thread_.Post([&] {
      latest_waits_.EndAll(NotInGroup());
      ended.Notify();
    });
    return ended.WaitForNotification();
  }
  thread_.Post([this] {
    entries_->set_ready(to_replay_ == nullptr);
    if (replica_.has_value()) replica_->Resume();
  });
}

void ReplicatedLog::OnPublished() {
  // No commit goes on, and no outcome is unknown, so nothing changes entry_of_stores_ now.
  published_entry_ = entry_of_stores_.load();
  if (has_latest_waits_) thread_.Post([this] { ServeLatestWaits(); });
}

void ReplicatedLog::AwaitLatest(absl::AnyInvocable<void(absl::Status)> done) {
  thread_.Post([this, done = std::move(done)]() mutable {
    if (!CanAnswer()) return done(NotInGroup());
    latest_waits_.Add(std::move(done));
    has_latest_waits_ = true;
    ServeLatestWaits();
  });
}

void ReplicatedLog::ServeLatestWaits() {
  latest_waits_.Show(published_entry_);
  has_latest_waits_ = !latest_waits_.empty();
}

void ReplicatedLog::OnStage(Entry entry, absl::AnyInvocable<void(absl::Status)> done) {
  thread_.Post([this, entry = std::move(entry), done = std::move(done)]() mutable {
    done(CanAnswer() ? replica_->OnStage(entry) : NotAReplica());
  });
}

void ReplicatedLog::OnFetch(std::uint64_t sequence, EntryDigest digest,
                            absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) {
  thread_.Post([this, sequence, digest = std::move(digest), done = std::move(done)]() mutable {
    done(CanAnswer() ? replica_->OnFetch(sequence, digest)
                     : absl::StatusOr<std::string>(NotAReplica()));
  });
}

void ReplicatedLog::GetGroup(absl::AnyInvocable<void(absl::StatusOr<GroupStatus>)> done) {
  thread_.Post([this, done = std::move(done)]() mutable {
    if (!CanAnswer()) return done(NotAReplica());
    if (!replica_->view().config.has_value()) {
      return done(absl::UnavailableError("etcd has not answered yet"));
    }
    done(StatusOfGroup());
  });
}

GroupStatus ReplicatedLog::StatusOfGroup() const {
  const GroupView& view = replica_->view();
  GroupStatus status{
      .primary = stats().primary_node, .epoch = replica_->epoch(), .copies = view.config->copies};
  if (view.commit_point.has_value()) status.last_entry = view.commit_point->sequence;
  for (const std::string& node : view.config->replicas) {
    GroupStatus::Node& replica = status.replicas.emplace_back();
    replica.name = node;
    if (const auto found = view.addresses.find(node); found != view.addresses.end()) {
      replica.address = found->second;
    }
    if (const auto found = view.applied.find(node); found != view.applied.end()) {
      replica.applied_entry = found->second;
    }
  }
  return status;
}

void ReplicatedLog::AskReplica(absl::AnyInvocable<void(absl::Status)> done,
                               absl::AnyInvocable<void(Replica&, Membership::Done)> act) {
  thread_.Post([this, done = std::move(done), act = std::move(act)]() mutable {
    if (!CanAnswer()) return done(NotAReplica());
    act(*replica_, std::move(done));
  });
}

void ReplicatedLog::AddReplica(std::string node, absl::AnyInvocable<void(absl::Status)> done) {
  AskReplica(std::move(done), [node = std::move(node)](Replica& replica, Membership::Done done) {
    replica.AddReplica(node, std::move(done));
  });
}

void ReplicatedLog::RemoveReplica(std::string node, absl::AnyInvocable<void(absl::Status)> done) {
  AskReplica(std::move(done), [node = std::move(node)](Replica& replica, Membership::Done done) {
    replica.RemoveReplica(node, std::move(done));
  });
}

void ReplicatedLog::StepDown(absl::AnyInvocable<void(absl::Status)> done) {
  AskReplica(std::move(done),
             [](Replica& replica, Membership::Done done) { done(replica.StepDown()); });
}

void ReplicatedLog::ClaimTenant(std::string tenant, absl::AnyInvocable<void(absl::Status)> done) {
  thread_.Post([this, tenant = std::move(tenant), done = std::move(done)]() mutable {
    if (!CanAnswer()) return done(NoReplicaForWrites());
    if (absl::Status status = replica_->CheckPrimary(); !status.ok()) {
      return done(std::move(status));
    }
    claims_->Claim(tenant, std::move(done));
  });
}

absl::Status ReplicatedLog::ClaimTenant(absl::string_view tenant) {
  absl::Status outcome;
  absl::Notification done;
  ClaimTenant(std::string(tenant), [&](absl::Status status) {
    outcome = std::move(status);
    done.Notify();
  });
  done.WaitForNotification();
  return outcome;
}

absl::Status ReplicatedLog::CopyRecordsTo(const std::string& directory) {
  // Only the primary is sure to have all that is committed.
  if (!is_writable()) return NotAReplica("This node is not the primary of its group now");
  return records_->CopyTo(directory);
}

absl::Status ReplicatedLog::Scan(
    absl::string_view begin, absl::string_view end,
    absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const {
  return records_->Scan(begin, end, visit);
}

void ReplicatedLog::Advertise(std::string address) {
  thread_.Post([this, address = std::move(address)]() mutable {
    address_ = std::move(address);
    if (replica_.has_value()) replica_->Advertise(address_);
  });
}

absl::Status ReplicatedLog::AwaitReady(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto is_known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return is_ready_ || !failure_.ok();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_known), timeout);
  if (!failure_.ok()) return failure_;
  if (is_ready_) return absl::OkStatus();
  if (!trouble_.empty()) return absl::DeadlineExceededError(trouble_);
  if (stats_.epoch == 0) return absl::DeadlineExceededError("etcd has not answered yet");
  if (stats_.primary_node.empty() || stats_.primary_node == options_.name.node) {
    return absl::DeadlineExceededError(
        "the lease of the primary before has not ended yet, or the disk does not take what the "
        "group has written");
  }
  return absl::DeadlineExceededError(absl::StrCat("it has applied the entries of its group up to ",
                                                  stats_.applied_entry, ", and node ",
                                                  stats_.primary_node, " has committed more"));
}

absl::Status ReplicatedLog::failure() const {
  absl::MutexLock lock(&mutex_);
  return failure_;
}

ReplicationStats ReplicatedLog::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

}  // namespace softlookup
