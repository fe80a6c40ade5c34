#include "core/replication/config_change.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace softlookup {

void ConfigChange::Start(Edit edit, std::string primary, std::string nonce, Done done) {
  edit_ = std::move(edit);
  primary_ = std::move(primary);
  nonce_ = std::move(nonce);
  done_ = std::move(done);
  etcd_.Run({.compares = {}, .puts = {}, .reads = {keys_.config()}},
            [this](const absl::StatusOr<EtcdTxnResult>& read) { OnConfigRead(read); });
}

void ConfigChange::OnConfigRead(const absl::StatusOr<EtcdTxnResult>& read) {
  // Nothing was changed yet.
  if (!read.ok()) return done_(absl::FailedPreconditionError(read.status().message()));
  absl::StatusOr<std::optional<EtcdTxn>> next = EditConfig(*read);
  if (!next.ok()) return done_(next.status());
  if (!next->has_value()) return done_(absl::OkStatus());
  etcd_.Run(**std::move(next),
            [this](const absl::StatusOr<EtcdTxnResult>& values) { OnRead(values); });
}

absl::StatusOr<std::optional<EtcdTxn>> ConfigChange::EditConfig(const EtcdTxnResult& read) {
  if (!read.values[0].has_value()) {
    return absl::FailedPreconditionError("the group has no configuration yet");
  }
  before_ = *read.values[0];
  SOFTLOOKUP_ASSIGN_OR_RETURN(const GroupConfig before, ParseGroupConfig(before_));
  SOFTLOOKUP_ASSIGN_OR_RETURN(config_, edit_(before));
  config_.version = before.version;
  if (config_ == before) return std::nullopt;
  config_.version = before.version + 1;
  if (config_.copies == 0 || config_.copies > config_.replicas.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(config_.copies, " copies on ", config_.replicas.size(), " replicas"));
  }
  EtcdTxn txn{.reads = {keys_.config(), keys_.commit_point()}};
  for (const std::string& node : config_.replicas) {
    if (std::ranges::find(before.replicas, node) == before.replicas.end()) {
      added_.push_back(node);
    } else {
      txn.reads.push_back(keys_.applied(node));
    }
  }
  return txn;
}

void ConfigChange::OnRead(const absl::StatusOr<EtcdTxnResult>& read) {
  // Nothing was changed yet.
  if (!read.ok()) return done_(absl::FailedPreconditionError(read.status().message()));
  if (absl::Status status = Change(*read); !status.ok()) done_(std::move(status));
}

absl::Status ConfigChange::Change(const EtcdTxnResult& read) {
  const std::optional<std::string>& point_text = read.values[1];
  if (!point_text.has_value()) {
    return absl::FailedPreconditionError("the group has had no primary yet");
  }
  if (read.values[0] != before_) {
    return absl::FailedPreconditionError("the configuration of the group has changed meanwhile");
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(CommitPoint point, ParseCommitPoint(*point_text));
  std::uint64_t have_all = point.sequence == 0 ? added_.size() : 0;
  for (std::size_t i = 2; i < read.values.size(); ++i) {
    std::uint64_t applied = 0;  // A replica that has told nothing has no entry.
    if (read.values[i].has_value()) {
      SOFTLOOKUP_ASSIGN_OR_RETURN(applied, ParseApplied(*read.values[i]));
    }
    if (applied >= point.sequence) ++have_all;
  }
  if (have_all < config_.copies) {
    return absl::FailedPreconditionError(
        absl::StrCat(have_all, " of the replicas have applied entry ", point.sequence, ", and ",
                     config_.copies, " must have"));
  }
  point.nonce = nonce_;
  // The commit point is never as it was read again, so a change whose compares fail is never made.
  EtcdTxn txn{.compares = {{keys_.config(), before_}, {keys_.commit_point(), point_text}},
              .puts = {{keys_.config(), EncodeGroupConfig(config_)},
                       {keys_.commit_point(), EncodeCommitPoint(point)}},
              .reads = {keys_.config()}};
  if (!primary_.empty()) txn.compares.push_back({keys_.primary(), primary_});
  for (const std::string& node : added_) {
    // What an earlier node of this name has told is not on this one's disk.
    txn.puts.push_back({keys_.applied(node), EncodeApplied(0)});
  }
  txn_.Start(std::move(txn), [this](const EtcdTxnResult& result) {
    // Also if an earlier attempt was made and nobody has changed it since.
    const bool is_made = result.succeeded || result.values[0] == EncodeGroupConfig(config_);
    done_(is_made
              ? absl::OkStatus()
              : absl::UnavailableError("the group has changed meanwhile; read its configuration"));
  });
  return absl::OkStatus();
}

}  // namespace softlookup
