#include "tests/core/replication/simulation.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/replication/config_change.h"
#include "core/replication/replica.h"
#include "tests/core/replication/course.h"
#include "tests/core/replication/event_loop.h"
#include "tests/core/replication/named_entries.h"
#include "tests/core/replication/node_name.h"
#include "tests/core/replication/proposal_ledger.h"
#include "tests/core/replication/simulated_etcd.h"
#include "tests/core/replication/simulated_network.h"
#include "tests/core/replication/simulated_process.h"
#include "tests/core/replication/simulated_store.h"

namespace softlookup::testing {
namespace {

constexpr int kNodes = 4;  // Three of them are replicas at a time.
constexpr std::uint64_t kCopies = 2;
// Once all was healed and nobody proposes any more, what was proposed must be decided within this
// time,
constexpr absl::Duration kDecidedTime = absl::Minutes(5);
constexpr absl::Duration kQuietTime = absl::Seconds(30);  // and then all have it within this one.

class World {
 public:
  explicit World(std::uint64_t seed);

  HistoryReport Run();

 private:
  // A process of a node. It is gone after a crash.
  struct Process {
    std::unique_ptr<SimulatedProcess> process;
    std::unique_ptr<SimulatedEtcdClient> etcd;
    std::unique_ptr<SimulatedPeers> peers;
    std::unique_ptr<Replica> replica;
  };

  void Violation(std::string what) { report_.AddViolation(std::move(what)); }
  void Start(int node);
  // Where the process of a node listens, which no other process does.
  std::string Address(int node) const;
  // Ends the process of a node.
  void End(int node);
  void Crash(int node);
  void CrashForAWhile(int node);
  // Has the replica of a node do something once its process does not stand still. Drops it if none
  // runs.
  void Deliver(int node, absl::AnyInvocable<void(Replica&)> work);
  void StandStill(int node, int readings, absl::Duration time);
  void TickEach(int node, int incarnation);
  void Tick(int node, Replica& replica);
  void ProposeOften();
  void Propose(int node);
  void Read(int node);
  void DisturbOften();
  void ChangeConfigOften();
  // Makes all nodes but one the replicas.
  void LeaveOut(int left_out);
  // Has the primary add or remove a replica.
  void AskForAChange(Replica& primary);
  void OnEtcdChange();
  // Tells each node that etcd has changed, as a watch does.
  void WakeAll();
  // Disturbs a new primary, sometimes before it has etcd's answer.
  void DisturbElected(int node);
  void OnApply(int node, const Entry& entry);
  // Sometimes has readers of a follower wait for the entry that it has applied.
  void ShowLater(int node);
  void Heal();
  // Whether one replica leads, all have all entries, and the others can reach them.
  bool IsWhole() const;
  void CheckEnd();

  EventLoop loop_;
  const Course course_;
  HistoryReport report_;
  const GroupKeys keys_{"c", "g", course_.slots};
  SimulatedEtcd etcd_;
  std::array<std::unique_ptr<SimulatedStore>, kNodes> stores_;
  std::array<Process, kNodes> processes_;
  std::array<int, kNodes> incarnations_{};
  SimulatedNetwork network_{loop_, [this](int node, absl::AnyInvocable<void(Replica&)> work) {
                              Deliver(node, std::move(work));
                            }};
  bool disturbed_ = true;
  bool is_quiet_ = false;
  std::uint64_t nonces_ = 0;
  NamedEntries named_{keys_, etcd_, stores_, report_};
  ProposalLedger ledger_{report_};
  SimulatedProcess change_process_{loop_};
  std::unique_ptr<SimulatedEtcdClient> change_etcd_;
  std::unique_ptr<ConfigChange> change_;  // The last one.
};

World::World(std::uint64_t seed)
    : loop_(seed), course_(DrawCourse(loop_)), etcd_(loop_, [this] { OnEtcdChange(); }) {
  etcd_.faults = {.lost_request = 0.03,
                  .lost_answer = 0.05,
                  .late = 0.05,
                  .slow = course_.slow_calls,
                  .old_read = 0.1,
                  .old_member = 0.2,
                  .early_lease_end = 0.03,
                  .dead_kept_alive = 0.3,
                  .late_lease_end = 0.2,
                  .stop_at_keep_alive = 0.01};
  etcd_.Put(keys_.config(),
            EncodeGroupConfig({.version = 1, .copies = kCopies, .replicas = {"a", "b", "c"}}));
  for (int node = 0; node < kNodes; ++node) {
    stores_[node] = std::make_unique<SimulatedStore>(
        loop_, [this, node](const Entry& entry) { OnApply(node, entry); });
    stores_[node]->refused = 0.02;
  }
}

HistoryReport World::Run() {
  for (int node = 0; node < kNodes; ++node) Start(node);
  ProposeOften();
  DisturbOften();
  ChangeConfigOften();
  loop_.RunUntil(loop_.Now() + course_.faulty);
  Heal();
  loop_.RunUntil(loop_.Now() + course_.healed);
  is_quiet_ = true;
  const absl::Time decided = loop_.Now() + kDecidedTime;
  while (ledger_.HasOpenProposal(incarnations_) && loop_.Now() < decided)
    loop_.RunUntil(loop_.Now() + absl::Seconds(1));
  if (ledger_.HasOpenProposal(incarnations_))
    Violation("a proposal is not decided after all was healed");
  const absl::Time end = loop_.Now() + kQuietTime;
  while ((course_.is_long || !IsWhole()) && loop_.Now() < end) {
    loop_.RunUntil(loop_.Now() + absl::Seconds(1));
  }
  CheckEnd();
  if (!named_.all().empty()) report_.last_entry = named_.all().back().digest;
  return std::move(report_);
}

void World::Start(int node) {
  Process& process = processes_[node];
  process.process = std::make_unique<SimulatedProcess>(loop_, &report_.stops);
  process.etcd = std::make_unique<SimulatedEtcdClient>(etcd_, *process.process);
  process.peers = std::make_unique<SimulatedPeers>(network_, *process.process, node);
  stores_[node]->set_ready(true);
  ++incarnations_[node];
  process.replica = std::make_unique<Replica>(
      ReplicaOptions{.node = NodeName(node), .keys = keys_, .address = Address(node)},
      *process.etcd, *process.peers, *stores_[node], *process.process,
      [this] { return absl::StrCat(++nonces_); });
  TickEach(node, incarnations_[node]);
}

std::string World::Address(int node) const {
  return absl::StrCat(NodeName(node), ":", incarnations_[node]);
}

void World::End(int node) {
  // An assignment would destroy the members from the first on, which the others use.
  static_cast<void>(std::exchange(processes_[node], {}));
}

void World::Crash(int node) {
  if (processes_[node].replica == nullptr) return;
  ++report_.crashes;
  End(node);
  if (loop_.Happens(0.5)) stores_[node]->LosePower();
}

void World::CrashForAWhile(int node) {
  Crash(node);
  loop_.After(loop_.Between(absl::Milliseconds(10), absl::Seconds(15)), [=, this] {
    if (processes_[node].replica == nullptr) Start(node);
  });
}

void World::Deliver(int node, absl::AnyInvocable<void(Replica&)> work) {
  const Process& process = processes_[node];
  if (process.replica == nullptr) return;
  process.process->Receive(
      [replica = process.replica.get(), work = std::move(work)]() mutable { work(*replica); });
}

void World::StandStill(int node, int readings, absl::Duration time) {
  if (processes_[node].replica == nullptr) return;
  processes_[node].process->StandStill(readings, time);
}

void World::TickEach(int node, int incarnation) {
  if (incarnations_[node] != incarnation) return;
  Deliver(node, [=, this](Replica& replica) { Tick(node, replica); });
}

void World::Tick(int node, Replica& replica) {
  replica.Tick();
  if (!replica.may_serve()) {  // It is seeded anew.
    ++report_.seeded;
    // No disk loses what it has synced, so a replica can only be too far behind.
    if (!absl::IsOutOfRange(replica.gap())) Violation(std::string(replica.gap().message()));
    End(node);
    int best = node;
    for (int other = 0; other < kNodes; ++other) {
      if (stores_[other]->applied().sequence > stores_[best]->applied().sequence) best = other;
    }
    if (best == node) return Violation("a gap though no replica is ahead");
    named_.CheckSeeding(node);
    stores_[node]->SeedFrom(*stores_[best]);
    return Start(node);
  }
  loop_.After(absl::Milliseconds(100),
              [=, this, incarnation = incarnations_[node]] { TickEach(node, incarnation); });
}

void World::ProposeOften() {
  if (is_quiet_) return;
  for (int node = 0; node < kNodes; ++node) {
    Replica* const replica = processes_[node].replica.get();
    if (replica == nullptr) continue;
    // Mostly one entry at a time, sometimes more than there are slots.
    std::int64_t entries = loop_.Happens(0.7) ? 1 : 0;
    if (loop_.Happens(0.02)) entries = static_cast<std::int64_t>(4 * course_.slots);
    for (; entries > 0 && replica->is_primary(); --entries) Propose(node);
    if (loop_.Happens(0.1)) Read(node);
  }
  loop_.After(loop_.Between(absl::Milliseconds(20), absl::Seconds(1.5)),
              [this] { ProposeOften(); });
}

void World::Propose(int node) {
  const std::string bytes = ledger_.Propose(node, incarnations_[node]);
  Deliver(node, [this, bytes](Replica& replica) {
    replica.Propose(
        bytes, [this, bytes](const absl::Status& status) { ledger_.OnOutcome(bytes, status); });
  });
}

void World::Read(int node) {
  Deliver(node, [this, node, committed = named_.all().size()](Replica& replica) {
    replica.Await([=, this](const absl::Status& status) {
      if (status.ok() && stores_[node]->applied().sequence < committed) {
        Violation(absl::StrCat("a read on ", node, " misses what was committed before it"));
      }
    });
  });
}

void World::DisturbOften() {
  if (!disturbed_) return;
  const int node = static_cast<int>(loop_.Below(kNodes));
  switch (loop_.Below(8)) {
    case 0:
      CrashForAWhile(node);
      break;
    case 1:
      if (loop_.Happens(0.3)) {
        for (int each = 0; each < kNodes; ++each) CrashForAWhile(each);
      }
      break;
    case 2:
      network_.cut_nodes.insert(node);
      loop_.After(loop_.Between(absl::Seconds(1), absl::Seconds(15)),
                  [=, this] { network_.cut_nodes.erase(node); });
      break;
    case 3:
      etcd_.is_away = true;
      loop_.After(loop_.Between(absl::Seconds(1), absl::Seconds(14)),
                  [this] { etcd_.is_away = false; });
      break;
    case 4:
      Deliver(node, [](Replica& replica) { replica.Resign("told to"); });
      break;
    case 5:
      StandStill(node, static_cast<int>(loop_.Below(40)),
                 loop_.Between(absl::Milliseconds(100), absl::Seconds(15)));
      break;
    default:
      break;
  }
  loop_.After(loop_.Between(absl::Seconds(0.5), absl::Seconds(8)) / course_.pace,
              [this] { DisturbOften(); });
}

void World::ChangeConfigOften() {
  if (!disturbed_) return;
  if (loop_.Happens(0.5)) {
    for (int node = 0; node < kNodes; ++node) {
      Deliver(node, [this](Replica& replica) {
        if (replica.is_primary()) AskForAChange(replica);
      });
    }
  } else {
    LeaveOut(static_cast<int>(loop_.Below(kNodes)));
  }
  loop_.After(loop_.Between(absl::Seconds(5), absl::Seconds(15)) / course_.pace,
              [this] { ChangeConfigOften(); });
}

void World::LeaveOut(int left_out) {
  std::vector<std::string> replicas;
  for (int node = 0; node < kNodes; ++node) {
    if (node != left_out) replicas.push_back(NodeName(node));
  }
  // A change that is not over is left alone: its transaction may still be made.
  change_etcd_ = std::make_unique<SimulatedEtcdClient>(etcd_, change_process_);
  change_ = std::make_unique<ConfigChange>(keys_, *change_etcd_);
  change_->Start(
      [replicas](const GroupConfig&) {
        return GroupConfig{.copies = kCopies, .replicas = replicas};
      },
      /*primary=*/"", absl::StrCat(++nonces_),
      [this](const absl::Status& status) { report_.config_changes += status.ok(); });
  for (int second = 1; second < 5; ++second) {
    loop_.After(absl::Seconds(second), [this] { change_->Tick(); });
  }
}

void World::AskForAChange(Replica& primary) {
  if (!primary.view().config.has_value()) return;
  const std::vector<std::string>& replicas = primary.view().config->replicas;
  const auto done = [this](const absl::Status& status) { report_.config_changes += status.ok(); };
  if (replicas.size() > kCopies && loop_.Happens(0.5)) {
    const auto index = static_cast<std::size_t>(loop_.Below(static_cast<int>(replicas.size())));
    primary.RemoveReplica(replicas[index], done);
  } else {
    primary.AddReplica(NodeName(static_cast<int>(loop_.Below(kNodes))), done);
  }
}

void World::OnEtcdChange() {
  if (course_.is_watched) WakeAll();
  if (!named_.OnEtcdChange()) return;
  ++report_.elections;
  const auto primary = ParsePrimary(etcd_.Value(keys_.primary()).value_or(""));
  if (disturbed_ && primary.ok()) DisturbElected(NodeNumber(primary->node));
}

void World::WakeAll() {
  for (int node = 0; node < kNodes; ++node) {
    if (loop_.Happens(0.1)) continue;  // The watch was cut.
    loop_.After(loop_.Between(absl::Milliseconds(1), absl::Milliseconds(20)),
                [=, this, revision = etcd_.revision()] {
                  Deliver(node, [revision](Replica& replica) { replica.Wake(revision); });
                });
  }
}

void World::DisturbElected(int node) {
  if (loop_.Happens(0.1)) {
    loop_.After(loop_.Between(absl::Milliseconds(1), absl::Seconds(1)),
                [=, this] { LeaveOut(node); });
  }
  if (loop_.Happens(0.3)) {
    // About as long as a lease lives.
    StandStill(node, static_cast<int>(loop_.Below(4)),
               loop_.Between(absl::Seconds(3), absl::Seconds(8)));
    // Sometimes no crash mends what comes of it. Messages still get lost and late.
    if (!course_.is_long && loop_.Happens(0.3)) disturbed_ = false;
  }
}

void World::OnApply(int node, const Entry& entry) {
  named_.CheckApplied(node, entry);
  ledger_.OnApply(entry);
  if (!processes_[node].replica->is_primary()) ShowLater(node);
}

void World::ShowLater(int node) {
  if (!stores_[node]->is_ready()) {
    Violation(absl::StrCat(NodeName(node), " applies an entry before readers have the last one"));
  }
  if (!loop_.Happens(0.2)) return;
  stores_[node]->set_ready(false);
  loop_.After(loop_.Between(absl::Milliseconds(1),
                            absl::Seconds(disturbed_ && loop_.Happens(0.2) ? 20 : 2)),
              [=, this, incarnation = incarnations_[node]] {
                if (incarnation != incarnations_[node]) return;
                stores_[node]->set_ready(true);
                Deliver(node, [](Replica& replica) { replica.Resume(); });
              });
}

void World::Heal() {
  disturbed_ = false;
  // A member may go on to be behind all others.
  etcd_.faults = {.old_member = loop_.Happens(0.5) ? 1.0 : 0.0};
  etcd_.is_away = false;
  network_.cut_nodes.clear();
  network_.is_disturbed = false;
  for (const auto& store : stores_) store->refused = 0;
  for (int node = 0; node < kNodes; ++node) {
    if (processes_[node].replica == nullptr) Start(node);
  }
}

bool World::IsWhole() const {
  // A process that has ended is started again soon.
  const auto has_ended = [](const Process& process) { return process.replica == nullptr; };
  if (std::ranges::any_of(processes_, has_ended)) return false;
  const auto primaries = std::ranges::count_if(
      processes_, [](const Process& process) { return process.replica->is_primary(); });
  const auto config = ParseGroupConfig(etcd_.Value(keys_.config()).value_or(""));
  if (primaries != 1 || !config.ok()) return false;
  for (int node = 0; node < kNodes; ++node) {
    if (stores_[node]->applied().sequence != named_.all().size()) return false;
  }
  return std::ranges::all_of(config->replicas, [this](const std::string& name) {
    const auto record = ParseNode(etcd_.Value(keys_.node(name)).value_or(""));
    return record.ok() && record->address == Address(NodeNumber(name));
  });
}

void World::CheckEnd() {
  ledger_.CheckOutcomes(named_.all());
  if (IsWhole()) return;
  Violation(absl::StrCat("the group does not go on after all was healed; etcd has the primary ",
                         etcd_.Value(keys_.primary()).value_or("-"), " and the commit point ",
                         etcd_.Value(keys_.commit_point()).value_or("-")));
  for (int node = 0; node < kNodes; ++node) {
    const auto& replica = processes_[node].replica;
    const char* const state = replica == nullptr      ? " has ended,"
                              : replica->is_primary() ? " leads,"
                                                      : "";
    Violation(absl::StrCat(NodeName(node), state, " has entry ", stores_[node]->applied().sequence,
                           " of ", named_.all().size(), " and listens at ", Address(node),
                           ", where etcd has ",
                           etcd_.Value(keys_.node(NodeName(node))).value_or("-")));
  }
}

}  // namespace

HistoryReport RunHistory(std::uint64_t seed) { return World(seed).Run(); }

}  // namespace softlookup::testing
