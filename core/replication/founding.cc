#include "core/replication/founding.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"

namespace softlookup {

void Founding::Start(Node node, Done done) {
  node_ = std::move(node);
  done_ = std::move(done);
  Read();
}

void Founding::Tick() {
  reading_.Tick();
  making_.Tick();
}

void Founding::Read() {
  // A transaction that only reads can have an old answer, so this one puts something. It is no harm
  // if it is made twice.
  reading_.Start({.compares = {},
                  .puts = {{keys_.barrier(node_.name), make_nonce_()}},
                  .reads = {keys_.config(), keys_.commit_point()}},
                 [this](const EtcdTxnResult& read) { OnRead(read); });
}

void Founding::OnRead(const EtcdTxnResult& read) {
  if (!read.values[0].has_value() && !read.values[1].has_value() && !node_.has_joined) {
    return MakeGroup();
  }
  done_(Check(read));
}

absl::Status Founding::Check(const EtcdTxnResult& read) const {
  const std::optional<std::string>& config_text = read.values[0];
  const std::optional<std::string>& point_text = read.values[1];
  if (!config_text.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("etcd has no key ", keys_.config(),
                     ", but the group was founded before: etcd has lost its data, or this is "
                     "another etcd than before"));
  }
  SOFTLOOKUP_ASSIGN_OR_RETURN(const GroupConfig config, ParseGroupConfig(*config_text));
  if (std::ranges::find(config.replicas, node_.name) == config.replicas.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", node_.name, " is no replica of this group: etcd says that its ",
                     config.replicas.size() == 1 ? "replica is " : "replicas are ",
                     absl::StrJoin(config.replicas, ", ")));
  }
  CommitPoint point;
  if (point_text.has_value()) {
    SOFTLOOKUP_ASSIGN_OR_RETURN(point, ParseCommitPoint(*point_text));
  }
  if (node_.has_joined) {
    const bool is_same = node_.applied.digest == point.digest;
    if (node_.applied.sequence < point.sequence ||
        (node_.applied.sequence == point.sequence && is_same)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("etcd says that the last entry of this group is ", point.sequence,
                     ", but node ", node_.name, " has applied entry ", node_.applied.sequence,
                     node_.applied.sequence == point.sequence ? " of other bytes" : "",
                     ": etcd has lost what it had named, or this is another etcd than before"));
  }
  // The node may have founded the group and then ended before it noted so.
  if (point.sequence == node_.applied.sequence && point.digest == node_.applied.digest) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "etcd says that node ", node_.name, " is a replica of this group, which has ", point.sequence,
      " entries, but the data directory is not the one of this node: it was lost or replaced"));
}

void Founding::MakeGroup() {
  EtcdTxn txn{.compares = {{keys_.config(), std::nullopt}, {keys_.commit_point(), std::nullopt}},
              .puts = {{keys_.config(),
                        EncodeGroupConfig({.version = 1, .copies = 1, .replicas = {node_.name}})}},
              .reads = {keys_.config(), keys_.commit_point()}};
  if (node_.applied.sequence > 0) {
    txn.puts.push_back({keys_.commit_point(), EncodeCommitPoint({.sequence = node_.applied.sequence,
                                                                 .digest = node_.applied.digest,
                                                                 .nonce = make_nonce_()})});
  }
  // The configuration is never absent again. If the compares fail, the group was founded by an
  // earlier attempt, or by another node.
  making_.Start(std::move(txn), [this](const EtcdTxnResult& made) { done_(Check(made)); });
}

}  // namespace softlookup
