#include "core/replication/config_change.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace softlookup {

void ConfigChange::Start(std::vector<std::string> replicas, std::uint64_t copies, std::string nonce,
                         Done done) {
  config_ = {.copies = copies, .replicas = std::move(replicas)};
  nonce_ = std::move(nonce);
  done_ = std::move(done);
  if (copies == 0 || copies > config_.replicas.size()) {
    return done_(absl::FailedPreconditionError(
        absl::StrCat(copies, " copies on ", config_.replicas.size(), " replicas")));
  }
  EtcdTxn txn{.reads = {keys_.config(), keys_.commit_point()}};
  for (const std::string& node : config_.replicas) txn.reads.push_back(keys_.applied(node));
  etcd_.Run(std::move(txn), [this](const absl::StatusOr<EtcdTxnResult>& read) { OnRead(read); });
}

void ConfigChange::OnRead(const absl::StatusOr<EtcdTxnResult>& read) {
  // Nothing was changed yet.
  if (!read.ok()) return done_(absl::FailedPreconditionError(read.status().message()));
  if (absl::Status status = Change(*read); !status.ok()) done_(std::move(status));
}

absl::Status ConfigChange::Change(const EtcdTxnResult& read) {
  const std::optional<std::string>& config_text = read.values[0];
  const std::optional<std::string>& point_text = read.values[1];
  if (!config_text.has_value() || !point_text.has_value()) {
    return absl::FailedPreconditionError("the group has no configuration or no primary yet");
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const GroupConfig before, ParseGroupConfig(*config_text));
  SOFTLOOKUP_ASSIGN_OR_RETURN(CommitPoint point, ParseCommitPoint(*point_text));
  std::uint64_t have_all = 0;
  for (std::size_t i = 2; i < read.values.size(); ++i) {
    if (!read.values[i].has_value()) continue;
    SOFTLOOKUP_ASSIGN_OR_RETURN(const std::uint64_t applied, ParseApplied(*read.values[i]));
    if (applied >= point.sequence) ++have_all;
  }
  if (have_all < config_.copies) {
    return absl::FailedPreconditionError(
        absl::StrCat(have_all, " of the replicas have applied entry ", point.sequence, ", and ",
                     config_.copies, " must have"));
  }
  config_.version = before.version + 1;
  point.nonce = nonce_;
  // The commit point is never as it was read again, so a change whose compares fail is never made.
  txn_.Start({.compares = {{keys_.config(), config_text}, {keys_.commit_point(), point_text}},
              .puts = {{keys_.config(), EncodeGroupConfig(config_)},
                       {keys_.commit_point(), EncodeCommitPoint(point)}},
              .reads = {keys_.config()}},
             [this](const EtcdTxnResult& result) {
               // Also if an earlier attempt was made and nobody has changed it since.
               const bool is_made =
                   result.succeeded || result.values[0] == EncodeGroupConfig(config_);
               done_(is_made ? absl::OkStatus()
                             : absl::UnavailableError(
                                   "the group has changed meanwhile; read its configuration"));
             });
  return absl::OkStatus();
}

}  // namespace softlookup
