#include "client/tool/range_commands.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/figure_text.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/tool/range_moves.h"

namespace softlookup::tool {
namespace {

using admin::v1::StoreRange;
using admin::v1::StoreRanges;
using cli::TerminalText;
using output::Align;
using output::Counted;
using output::Json;
using output::Table;

struct SplitFlags {
  std::string store;
  std::uint32_t range_count = 0;
  bool dry_run = false;
};

struct RebalanceFlags {
  std::string store;
  std::vector<std::string> nodes;  // Empty: all of the group.
  bool dry_run = false;
};

struct MoveFlags {
  std::string store;
  std::uint64_t begin = 0;
  std::vector<std::string> nodes;
  bool dry_run = false;
};

// Prints {"store", "revision", "row_count", "ranges": [{"begin", "end"?, "nodes", "row_count",
// "live_row_count", "byte_size"}]}. The last range has no end.
void PrintRangesJson(const StoreRanges& ranges, const Session& session) {
  Json list = Json::array();
  for (int i = 0; i < ranges.ranges_size(); ++i) {
    const StoreRange& range = ranges.ranges(i);
    Json entry = {{"begin", range.begin()}};
    if (i + 1 < ranges.ranges_size()) entry["end"] = ranges.ranges(i + 1).begin();
    entry["nodes"] = std::vector<std::string>(range.nodes().begin(), range.nodes().end());
    entry["row_count"] = range.row_count();
    entry["live_row_count"] = range.live_row_count();
    entry["byte_size"] = range.byte_size();
    list.push_back(std::move(entry));
  }
  output::PrintJson({{"store", ranges.store()},
                     {"revision", ranges.revision()},
                     {"row_count", ranges.row_count()},
                     {"ranges", std::move(list)}},
                    session.out);
}

// Prints a line about the store, which begins with `title`, and a table of its ranges. `nodes` are
// the texts about the nodes of each. Empty: their names.
void PrintRangesTable(const std::string& title, const StoreRanges& ranges, const Session& session,
                      const std::vector<std::string>& nodes = {}) {
  *session.out << title << TerminalText(ranges.store()) << ", revision " << ranges.revision()
               << ": " << Counted(ranges.row_count(), "row");
  if (ranges.ranges().empty()) {
    *session.out << ", not cut into ranges\n";
    return;
  }
  *session.out << " in " << Counted(ranges.ranges_size(), "range") << "\n";
  Table table({{"begin", Align::kRight},
               {"end", Align::kRight},
               {nodes.empty() ? "nodes" : "nodes (rows in RAM)"},
               {"rows", Align::kRight},
               {"live rows", Align::kRight, 1},
               {"bytes of rows", Align::kRight, 1}});
  for (int i = 0; i < ranges.ranges_size(); ++i) {
    const StoreRange& range = ranges.ranges(i);
    const bool is_last = i + 1 == ranges.ranges_size();
    table.AddRow(
        {absl::StrCat(range.begin()), is_last ? "-" : absl::StrCat(ranges.ranges(i + 1).begin()),
         nodes.empty() ? absl::StrJoin(range.nodes(), ",") : nodes[static_cast<std::size_t>(i)],
         absl::StrCat(range.row_count()), absl::StrCat(range.live_row_count()),
         output::BytesText(range.byte_size())});
  }
  session.Print(&table);
}

// Shows what change(client, /*dry_run=*/true) returns, as a plan. Then makes the change, unless
// `dry_run` is set.
template <typename Change>
absl::Status ShowAndMake(bool dry_run, const Session& session, const Change& change) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  if (session.json) {
    CLIENT_ASSIGN_OR_RETURN(const StoreRanges ranges, change(client, dry_run));
    PrintRangesJson(ranges, session);
    return absl::OkStatus();
  }
  CLIENT_ASSIGN_OR_RETURN(const StoreRanges plan, change(client, true));
  PrintRangesTable("plan for store ", plan, session);
  if (dry_run) return absl::OkStatus();
  session.out->flush();
  CLIENT_ASSIGN_OR_RETURN(const StoreRanges made, change(client, false));
  *session.out << "done: revision " << made.revision() << " of the store has "
               << (made.ranges().empty() ? "no ranges" : Counted(made.ranges_size(), "range"))
               << "\n";
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ReplicasOf(Client& client) {
  CLIENT_ASSIGN_OR_RETURN(const admin::v1::Group group, client.GetGroup());
  std::vector<std::string> nodes;
  for (const admin::v1::Replica& replica : group.replicas()) nodes.push_back(replica.node());
  return nodes;
}

// Gives all ranges of the store to all nodes, so that each can answer for the whole store.
absl::Status LoadEverywhere(Client& client, const std::string& store, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(const std::vector<std::string> nodes, ReplicasOf(client));
  CLIENT_ASSIGN_OR_RETURN(const StoreRanges ranges, client.GetRanges(store));
  for (const StoreRange& range : ranges.ranges()) {
    CLIENT_RETURN_IF_ERROR(
        MakeMove(client, store, {.begin = range.begin(), .nodes = nodes}, session).status());
  }
  return absl::OkStatus();
}

absl::Status Split(const SplitFlags& flags, const Session& session) {
  return ShowAndMake(flags.dry_run, session,
                     [&](Client& client, bool dry_run) -> absl::StatusOr<StoreRanges> {
                       if (!dry_run && flags.range_count == 1) {
                         CLIENT_RETURN_IF_ERROR(LoadEverywhere(client, flags.store, session));
                       }
                       return client.SplitStore(flags.store, flags.range_count, dry_run);
                     });
}

absl::Status MoveRange(const MoveFlags& flags, const Session& session) {
  return ShowAndMake(
      flags.dry_run, session, [&](Client& client, bool dry_run) -> absl::StatusOr<StoreRanges> {
        if (dry_run) {
          return client.MoveRange(flags.store, flags.begin, flags.nodes, true);
        }
        return MakeMove(client, flags.store, {.begin = flags.begin, .nodes = flags.nodes}, session);
      });
}

// Returns `ranges` after `moves`.
StoreRanges After(StoreRanges ranges, const std::vector<RangeMove>& moves) {
  for (const RangeMove& move : moves) {
    for (StoreRange& range : *ranges.mutable_ranges()) {
      if (range.begin() == move.begin)
        range.mutable_nodes()->Assign(move.nodes.begin(), move.nodes.end());
    }
  }
  return ranges;
}

absl::Status Rebalance(const RebalanceFlags& flags, const Session& session) {
  return ShowAndMake(
      flags.dry_run, session, [&](Client& client, bool dry_run) -> absl::StatusOr<StoreRanges> {
        std::vector<std::string> nodes = flags.nodes;
        if (nodes.empty()) {
          CLIENT_ASSIGN_OR_RETURN(nodes, ReplicasOf(client));
        }
        CLIENT_ASSIGN_OR_RETURN(StoreRanges ranges, client.GetRanges(flags.store));
        const std::vector<RangeMove> moves = MovesToBalance(ranges, nodes);
        if (dry_run) return After(std::move(ranges), moves);
        for (const RangeMove& move : moves) {
          CLIENT_ASSIGN_OR_RETURN(ranges, MakeMove(client, flags.store, move, session));
        }
        return ranges;
      });
}

// How many of the rows of each range its nodes have in RAM, by the nodes' names: "a 100%".
using ResidentText = std::vector<std::string>;

ResidentText ResidentTextOf(Client& client, const std::string& store, const StoreRanges& ranges) {
  ResidentText text(static_cast<std::size_t>(ranges.ranges_size()));
  std::map<std::string, absl::StatusOr<StoreRanges>> answers;
  for (int i = 0; i < ranges.ranges_size(); ++i) {
    const StoreRange& range = ranges.ranges(i);
    for (const std::string& node : range.nodes()) {
      if (!answers.contains(node)) answers.emplace(node, client.GetRanges(store, node));
      const absl::StatusOr<StoreRanges>& answer = answers.at(node);
      // A node that is behind may have other ranges yet.
      const bool is_known = answer.ok() && answer->ranges_size() == ranges.ranges_size() &&
                            answer->ranges(i).row_count() > 0;
      const std::string part =
          is_known
              ? absl::StrCat(
                    100 * answer->ranges(i).resident_count() / answer->ranges(i).row_count(), "%")
              : "?";
      absl::StrAppend(&text[static_cast<std::size_t>(i)],
                      text[static_cast<std::size_t>(i)].empty() ? "" : ", ", node, " ", part);
    }
  }
  return text;
}

absl::Status ListRanges(const std::string& store, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const StoreRanges ranges, client.GetRanges(store));
  if (session.json) {
    PrintRangesJson(ranges, session);
  } else {
    PrintRangesTable("store ", ranges, session, ResidentTextOf(client, store, ranges));
  }
  return absl::OkStatus();
}

void AddStoreAndDryRun(CLI::App* command, std::string* store, bool* dry_run) {
  command->add_option("STORE", *store, "Name of the store")->required();
  command->add_flag("--dry-run", *dry_run, "Show the plan, and change nothing");
}

// Returns the option, of names of nodes.
CLI::Option* AddNodes(CLI::App* command, const std::string& flag, std::vector<std::string>* nodes,
                      const std::string& description) {
  return command->add_option(flag, *nodes, description)
      ->type_name("NODE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
}

}  // namespace

void AddRangeCommands(CLI::App* cluster, Session* session) {
  auto split_flags = std::make_shared<SplitFlags>();
  CLI::App* split = cluster->add_subcommand("split", "Cut a store into ranges of rows");
  split->footer(
      "Shows the plan, then makes it. The ranges have about as many rows each, of those that the\n"
      "store has now, and go round the nodes in the order of their names. Rows that come later\n"
      "belong to the last range. Each node then keeps only the rows of its ranges in RAM, and\n"
      "all rows on its disk, and routers ask a node of each range for its part of a lookup. Rows\n"
      "of a store that has ranges already stay at their nodes.");
  AddStoreAndDryRun(split, &split_flags->store, &split_flags->dry_run);
  split
      ->add_option("--ranges", split_flags->range_count,
                   "Number of ranges, 1 to 256; 1: the store is whole again")
      ->required();
  split->callback([=] { session->run = [=] { return Split(*split_flags, *session); }; });

  auto move_flags = std::make_shared<MoveFlags>();
  CLI::App* move = cluster->add_subcommand("move", "Give a range of a store to other nodes");
  move->footer(
      "Shows the plan, then makes it. Nodes that get the range load its rows from their disks\n"
      "before others drop them. If the command ends early, the range has its old and its new\n"
      "nodes, and the command can be given again.");
  AddStoreAndDryRun(move, &move_flags->store, &move_flags->dry_run);
  move->add_option("--begin", move_flags->begin,
                   "Where the range begins, as `cluster ranges` shows it")
      ->required();
  AddNodes(move, "--to", &move_flags->nodes, "Names of 1 to 5 nodes, with commas between them")
      ->required();
  move->callback([=] { session->run = [=] { return MoveRange(*move_flags, *session); }; });

  auto rebalance_flags = std::make_shared<RebalanceFlags>();
  CLI::App* rebalance =
      cluster->add_subcommand("rebalance", "Spread the ranges of a store over nodes");
  rebalance->footer(
      "Shows the plan, then moves one range after the other, as `cluster move` does, so that the\n"
      "nodes have about equally many bytes of rows. To have smaller pieces, split the store into\n"
      "more ranges first.");
  AddStoreAndDryRun(rebalance, &rebalance_flags->store, &rebalance_flags->dry_run);
  AddNodes(rebalance, "--nodes", &rebalance_flags->nodes,
           "Names of the nodes, with commas between them; default: all of the group");
  rebalance->callback(
      [=] { session->run = [=] { return Rebalance(*rebalance_flags, *session); }; });

  auto listed = std::make_shared<std::string>();
  CLI::App* ranges =
      cluster->add_subcommand("ranges", "List the ranges of a store, and the rows in them");
  ranges->add_option("STORE", *listed, "Name of the store")->required();
  ranges->callback([=] { session->run = [=] { return ListRanges(*listed, *session); }; });
}

}  // namespace softlookup::tool
