#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/tool/command.h"
#include "client/tool/range_commands.h"

namespace softlookup::tool {
namespace {

using admin::v1::Group;
using admin::v1::Replica;
using cli::TerminalText;
using output::Align;
using output::Counted;
using output::Json;
using output::Table;

// Number of committed entries that `replica` has not told to have.
std::uint64_t EntriesBehind(const Group& group, const Replica& replica) {
  // It can have told of an entry that the answering node had not read yet.
  return group.last_entry() - std::min(replica.applied_entry(), group.last_entry());
}

void PrintGroupJson(const Group& group, const Session& session) {
  Json replicas = Json::array();
  for (const Replica& replica : group.replicas()) {
    replicas.push_back({{"node", replica.node()},
                        {"address", replica.address()},
                        {"applied_entry", replica.applied_entry()}});
  }
  output::PrintJson({{"cluster", group.cluster()},
                     {"group", group.group()},
                     {"node", group.node()},
                     {"primary", group.primary()},
                     {"epoch", group.epoch()},
                     {"last_entry", group.last_entry()},
                     {"copies", group.copies()},
                     {"replicas", std::move(replicas)}},
                    session.out);
}

absl::Status PrintStatus(const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const Group group, client.GetGroup());
  if (session.json) {
    PrintGroupJson(group, session);
    return absl::OkStatus();
  }
  *session.out << "group " << TerminalText(group.group()) << " of cluster "
               << TerminalText(group.cluster()) << ": epoch " << group.epoch() << ", last entry "
               << group.last_entry() << ", each entry on at least " << group.copies() << " of "
               << Counted(group.replicas_size(), "replica") << "\n";
  Table table({{"node"}, {"role"}, {"address"}, {"entries behind", Align::kRight}});
  for (const Replica& replica : group.replicas()) {
    table.AddRow({replica.node(), replica.node() == group.primary() ? "primary" : "replica",
                  replica.address().empty() ? "-" : replica.address(),
                  absl::StrCat(EntriesBehind(group, replica))});
  }
  session.Print(&table);
  if (group.primary().empty()) {
    *session.err << "note: the group has no primary now, so it takes no writes\n";
  }
  return absl::OkStatus();
}

// Prints `sentence` about a change of the group, or with -o json the group as it is now.
void PrintChange(const Group& group, const std::string& sentence, const Session& session) {
  if (session.json) return PrintGroupJson(group, session);
  *session.out << TerminalText(sentence) << "\n";
}

absl::Status Add(const std::string& node, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const Group group, client.AddReplica(node));
  PrintChange(group,
              absl::StrCat("node ", node, " is a replica of group ", group.group(),
                           "; next, start it with --node ", node, " and an empty --data-dir"),
              session);
  return absl::OkStatus();
}

absl::Status Remove(const std::string& node, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const Group group, client.RemoveReplica(node));
  PrintChange(group,
              absl::StrCat("node ", node, " is no replica of group ", group.group(),
                           " any more; its server ends, and its data directory can be deleted"),
              session);
  return absl::OkStatus();
}

absl::Status MoveLeader(const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const Group group, client.MovePrimary());
  const std::string sentence =
      group.primary().empty() || group.primary() == group.node()
          ? absl::StrCat("node ", group.node(), " has stepped down, and no other node has taken ",
                         "over yet; `softlookup cluster status` shows when one has")
          : absl::StrCat("node ", group.primary(), " is the primary of group ", group.group(),
                         " now; node ", group.node(), " goes on as a replica");
  PrintChange(group, sentence, session);
  return absl::OkStatus();
}

}  // namespace

void AddClusterCommands(CLI::App* app, Session* session) {
  CLI::App* cluster = app->add_subcommand(
      "cluster", "Show and change the server's group, and the ranges of stores");
  cluster->require_subcommand(1);
  cluster->footer(
      "For servers with --cluster-etcd. A router takes all of these commands: give its address as\n"
      "--server. Any replica tells the status, and what it has of the ranges. The primary also\n"
      "adds and removes replicas, and hands over. move, rebalance and split --ranges 1 ask other\n"
      "nodes, so they need a router.");

  CLI::App* status = cluster->add_subcommand("status", "List the replicas, and what they lack");
  status->footer(
      "Shows what the server has read from etcd within some seconds. A replica tells once a\n"
      "second what it has, so one that keeps up can be shown as some entries behind.");
  status->callback([=] { session->run = [=] { return PrintStatus(*session); }; });

  auto added = std::make_shared<std::string>();
  CLI::App* add = cluster->add_subcommand("add", "Make a node a replica, before it is started");
  add->footer(
      "Then start a server with this --node, the same --cluster and --group, and an empty\n"
      "--data-dir. It gets all stores from another replica. Until it has them, the group goes on\n"
      "as before. Does nothing if the node is a replica already.");
  add->add_option("NODE", *added, "Name of the node: 1 to 64 of A-Z a-z 0-9 . _ -")->required();
  add->callback([=] { session->run = [=] { return Add(*added, *session); }; });

  auto removed = std::make_shared<std::string>();
  CLI::App* remove = cluster->add_subcommand("remove", "Make a node no replica any more");
  remove->footer(
      "For a node that is lost, or no longer needed. Its server ends by itself. The primary\n"
      "cannot be removed: move it to another node first. Does nothing if the node is no replica.");
  remove->add_option("NODE", *removed, "Name of the node, as `cluster status` shows it")
      ->required();
  remove->callback([=] { session->run = [=] { return Remove(*removed, *session); }; });

  CLI::App* move =
      cluster->add_subcommand("move-leader", "Have another replica become the primary");
  move->footer(
      "The server steps down, and takes no writes any more. Another replica that has all entries\n"
      "becomes the primary within seconds. If none does, this one may again after ten seconds.");
  move->callback([=] { session->run = [=] { return MoveLeader(*session); }; });

  AddRangeCommands(cluster, session);
}

}  // namespace softlookup::tool
