#include "core/replicated_log/replicated_log.h"

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

absl::Status TooLarge(std::size_t bytes) {
  return MakeError(reasons::kStorageFailed,
                   absl::StrCat("The write was not made: it has ", bytes,
                                " bytes of changes, and a replica makes at most ",
                                ReplicatedLog::kEntryBytesMax, " in one step"));
}

}  // namespace

// The peers of a group's only replica.
class ReplicatedLog::NoPeers final : public Peers {
 public:
  explicit NoPeers(ReplicaThread& thread) : thread_(thread) {}

  void Stage(const std::string& node, const Entry&,
             absl::AnyInvocable<void(absl::Status)> done) override {
    thread_.Post([alive = std::weak_ptr(alive_), error = NoSuchPeer(node),
                  done = std::move(done)]() mutable {
      if (!alive.expired()) done(error);
    });
  }
  void Fetch(const std::string& node, std::uint64_t, const EntryDigest&,
             absl::AnyInvocable<void(absl::StatusOr<std::string>)> done) override {
    thread_.Post([alive = std::weak_ptr(alive_), error = NoSuchPeer(node),
                  done = std::move(done)]() mutable {
      if (!alive.expired()) done(error);
    });
  }

 private:
  static absl::Status NoSuchPeer(const std::string& node) {
    return absl::UnimplementedError(absl::StrCat("this version does not call node ", node));
  }

  ReplicaThread& thread_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
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
      keys_(options_.name.cluster, options_.name.group),
      thread_(thread),
      make_nonce_([this] { return NewNonce(); }),
      peers_(std::make_unique<NoPeers>(thread)) {}

ReplicatedLog::~ReplicatedLog() {
  absl::Notification closed;
  thread_.Post([&] {
    if (replica_.has_value()) replica_->Resign("the server stops");
    thread_.Close();
    replica_.reset();
    founding_.reset();
    peers_.reset();
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
  replica_.emplace(ReplicaOptions{.node = options_.name.node, .keys = keys_}, thread_.etcd(),
                   *peers_, *entries_, Clock::Steady(), [this] { return NewNonce(); });
  thread_.Watch(keys_.commit_point(), [this] { replica_->Wake(); });
}

void ReplicatedLog::Tick() {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    trouble_ = thread_.etcd_trouble();
  }
  if (!is_founded_) return founding_->Tick();
  if (!replica_.has_value()) return Join();
  replica_->Tick();
  // A new term of this node has a larger epoch, so an entry of an earlier term that is not
  // committed by now never is.
  if (unsettled_.has_value() && replica_->is_primary() &&
      entries_->applied().sequence < unsettled_->sequence) {
    Settle(/*is_made=*/false);
  }
  Show();
  if (!replica_->may_serve()) Fail(replica_->gap());
}

void ReplicatedLog::OnApplied(const Entry& entry) {
  if (is_proposing_ || !has_led_) return;
  const bool is_ours = unsettled_.has_value() && entry.sequence == unsettled_->sequence &&
                       entry.digest == unsettled_->digest;
  if (is_ours) return Settle(/*is_made=*/true);
  // The stores in memory do not have it.
  Fail(MakeError(reasons::kStorageFailed,
                 absl::StrCat("entry ", entry.sequence,
                              " of the group is not from this process: another process has the "
                              "name of this node")));
}

void ReplicatedLog::Show() {
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return;
  has_led_ = has_led_ || replica_->is_primary();
  stats_ = {.is_primary = replica_->is_primary(),
            .epoch = replica_->epoch(),
            .applied_entry = entries_->applied().sequence};
}

void ReplicatedLog::Fail(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return;
    failure_ = why;
    stats_.is_primary = false;
  }
  // Ends what Commit() waits for.
  if (replica_.has_value()) replica_->Resign(why.message());
  if (options_.on_failure != nullptr) options_.on_failure(why);
}

void ReplicatedLog::Settle(bool is_made) {
  unsettled_.reset();
  absl::MutexLock lock(&mutex_);
  is_made_ = is_made;
  if (on_settled_ != nullptr) std::exchange(on_settled_, nullptr)(is_made);
}

std::string ReplicatedLog::NewNonce() {
  return absl::StrCat(absl::Hex(absl::Uniform<std::uint64_t>(random_), absl::kZeroPad16),
                      absl::Hex(absl::Uniform<std::uint64_t>(random_), absl::kZeroPad16));
}

std::unique_ptr<LogBatch> ReplicatedLog::NewBatch() { return std::make_unique<EntryBatch>(); }

absl::Status ReplicatedLog::Commit(LogBatch& batch, Sync) {
  auto& changes = static_cast<EntryBatch&>(batch);
  // Entries are synced before they are committed, so there is nothing to sync.
  if (changes.empty()) return absl::OkStatus();
  const std::string bytes = changes.Take();
  if (bytes.size() > kEntryBytesMax) return TooLarge(bytes.size());
  absl::Status outcome;
  absl::Notification done;
  thread_.Post([&] {
    if (absl::Status failed = failure(); !failed.ok() || !replica_.has_value()) {
      outcome = Proposer::NotCommitted("this node is no replica of its group");
      return done.Notify();
    }
    is_proposing_ = true;
    replica_->Propose(bytes, [&](absl::Status status) {
      OnProposed(bytes, status);
      outcome = std::move(status);
      done.Notify();
    });
  });
  done.WaitForNotification();
  return outcome;
}

void ReplicatedLog::OnProposed(const std::string& bytes, const absl::Status& outcome) {
  is_proposing_ = false;
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

absl::Status ReplicatedLog::Scan(
    absl::string_view begin, absl::string_view end,
    absl::FunctionRef<absl::Status(absl::string_view, absl::string_view)> visit) const {
  return records_->Scan(begin, end, visit);
}

absl::Status ReplicatedLog::AwaitPrimary(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto is_known = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stats_.is_primary || !failure_.ok();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&is_known), timeout);
  if (!failure_.ok()) return failure_;
  if (stats_.is_primary) return absl::OkStatus();
  if (!trouble_.empty()) return absl::DeadlineExceededError(trouble_);
  return absl::DeadlineExceededError(
      stats_.epoch == 0 ? "etcd has not answered yet"
                        : "the lease of the primary before has not ended yet, or the disk does "
                          "not take what the group has written");
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
