#include "core/replication/membership.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace softlookup {
namespace {

bool IsReplica(const std::string& node, const GroupConfig& config) {
  return std::ranges::find(config.replicas, node) != config.replicas.end();
}

}  // namespace

void Membership::Add(const std::string& node, Done done) {
  Start(
      [node](const GroupConfig& before) -> absl::StatusOr<GroupConfig> {
        GroupConfig config = before;
        if (IsReplica(node, config)) return config;
        if (config.replicas.size() >= kReplicasMax) {
          return absl::InvalidArgumentError(
              absl::StrCat("the group has its limit of ", kReplicasMax, " replicas"));
        }
        config.replicas.push_back(node);
        return config;
      },
      std::move(done));
}

void Membership::Remove(const std::string& node, Done done) {
  if (node == node_) {
    return done(absl::FailedPreconditionError(
        absl::StrCat("node ", node, " is the primary; move the primary to another node first")));
  }
  Start(
      [node](const GroupConfig& before) -> absl::StatusOr<GroupConfig> {
        GroupConfig config = before;
        if (std::erase(config.replicas, node) == 0) return config;
        config.copies = std::min(config.copies, MajorityOf(config.replicas.size()));
        return config;
      },
      std::move(done));
}

void Membership::Tick(const GroupConfig& config, std::uint64_t committed,
                      const std::map<std::string, std::uint64_t>& applied) {
  if (is_trying_) attempt_->Tick();
  const absl::Time now = clock_.Now();
  if (is_changing()) {
    if (now >= deadline_) {
      Finish(is_trying_ ? absl::UnavailableError("etcd does not answer") : last_error_);
    } else if (!is_trying_ && now >= next_try_) {
      Try();
    }
    return;
  }
  const std::uint64_t majority = MajorityOf(config.replicas.size());
  if (config.copies >= majority || now < next_raise_ || is_trying_) return;
  const auto nearly_all = std::ranges::count_if(config.replicas, [&](const std::string& node) {
    const auto found = applied.find(node);
    return found != applied.end() && found->second > 0 && found->second + kRaiseWithin >= committed;
  });
  if (static_cast<std::uint64_t>(nearly_all) < majority) return;
  next_raise_ = now + raise_interval_;
  raise_interval_ = std::min(2 * raise_interval_, kRaiseIntervalMax);
  Start(
      [](const GroupConfig& before) -> absl::StatusOr<GroupConfig> {
        GroupConfig config = before;
        config.copies = std::max(config.copies, MajorityOf(config.replicas.size()));
        return config;
      },
      [this](const absl::Status& status) {
        if (status.ok()) raise_interval_ = kRaiseIntervalMin;
      },
      kRaiseTimeMax);
}

void Membership::End() {
  if (is_changing()) Finish(absl::UnavailableError("this node is not the primary any more"));
}

void Membership::Start(Edit edit, Done done, absl::Duration time_max) {
  if (is_changing() || is_trying_) {
    return done(absl::FailedPreconditionError("another change of the replicas is being made"));
  }
  edit_ = std::move(edit);
  done_ = std::move(done);
  deadline_ = clock_.Now() + time_max;
  last_error_ = absl::UnavailableError("etcd does not answer");
  Try();
}

void Membership::Try() {
  is_trying_ = true;
  attempt_.emplace(keys_, etcd_);
  attempt_->Start(edit_, EncodePrimary(primary_), make_nonce_(), [this](absl::Status status) {
    is_trying_ = false;
    if (!is_changing()) return;
    if (status.ok()) return Finish(absl::OkStatus());
    if (absl::IsInvalidArgument(status)) {  // From the edit.
      return Finish(absl::FailedPreconditionError(status.message()));
    }
    // Replicas tell what they have applied once a second.
    last_error_ = std::move(status);
    next_try_ = clock_.Now() + kRetryInterval;
  });
}

void Membership::Finish(absl::Status status) { std::exchange(done_, nullptr)(std::move(status)); }

}  // namespace softlookup
