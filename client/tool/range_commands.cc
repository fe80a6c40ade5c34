#include "client/tool/range_commands.h"

#include <cstdint>
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

// Prints a line about the store, which begins with `title`, and a table of its ranges.
void PrintRangesTable(const std::string& title, const StoreRanges& ranges, const Session& session) {
  *session.out << title << TerminalText(ranges.store()) << ", revision " << ranges.revision()
               << ": " << Counted(ranges.row_count(), "row");
  if (ranges.ranges().empty()) {
    *session.out << ", not cut into ranges\n";
    return;
  }
  *session.out << " in " << Counted(ranges.ranges_size(), "range") << "\n";
  Table table({{"begin", Align::kRight},
               {"end", Align::kRight},
               {"nodes"},
               {"rows", Align::kRight},
               {"live rows", Align::kRight, 1},
               {"bytes of rows", Align::kRight, 1}});
  for (int i = 0; i < ranges.ranges_size(); ++i) {
    const StoreRange& range = ranges.ranges(i);
    const bool is_last = i + 1 == ranges.ranges_size();
    table.AddRow({absl::StrCat(range.begin()),
                  is_last ? "-" : absl::StrCat(ranges.ranges(i + 1).begin()),
                  absl::StrJoin(range.nodes(), ","), absl::StrCat(range.row_count()),
                  absl::StrCat(range.live_row_count()), output::BytesText(range.byte_size())});
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

absl::Status Split(const SplitFlags& flags, const Session& session) {
  return ShowAndMake(flags.dry_run, session, [&](Client& client, bool dry_run) {
    return client.SplitStore(flags.store, flags.range_count, dry_run);
  });
}

absl::Status MoveRange(const MoveFlags& flags, const Session& session) {
  return ShowAndMake(flags.dry_run, session, [&](Client& client, bool dry_run) {
    return client.MoveRange(flags.store, flags.begin, flags.nodes, dry_run);
  });
}

absl::Status ListRanges(const std::string& store, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const StoreRanges ranges, client.GetRanges(store));
  if (session.json) {
    PrintRangesJson(ranges, session);
  } else {
    PrintRangesTable("store ", ranges, session);
  }
  return absl::OkStatus();
}

void AddStoreAndDryRun(CLI::App* command, std::string* store, bool* dry_run) {
  command->add_option("STORE", *store, "Name of the store")->required();
  command->add_flag("--dry-run", *dry_run, "Show the plan, and change nothing");
}

}  // namespace

void AddRangeCommands(CLI::App* cluster, Session* session) {
  auto split_flags = std::make_shared<SplitFlags>();
  CLI::App* split = cluster->add_subcommand("split", "Cut a store into ranges of rows");
  split->footer(
      "Shows the plan, then makes it. The ranges have about as many rows each, of those that the\n"
      "store has now, and go round the nodes in the order of their names. Rows that come later\n"
      "belong to the last range. Routers then ask a node of each range for its part of a lookup.\n"
      "For now every node keeps all rows.");
  AddStoreAndDryRun(split, &split_flags->store, &split_flags->dry_run);
  split
      ->add_option("--ranges", split_flags->range_count,
                   "Number of ranges, 1 to 256; 1: the store is whole again")
      ->required();
  split->callback([=] { session->run = [=] { return Split(*split_flags, *session); }; });

  auto move_flags = std::make_shared<MoveFlags>();
  CLI::App* move = cluster->add_subcommand("move", "Give a range of a store to other nodes");
  move->footer("Shows the plan, then makes it.");
  AddStoreAndDryRun(move, &move_flags->store, &move_flags->dry_run);
  move->add_option("--begin", move_flags->begin,
                   "Where the range begins, as `cluster ranges` shows it")
      ->required();
  move->add_option("--to", move_flags->nodes, "Names of 1 to 5 nodes, with commas between them")
      ->type_name("NODE,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->required();
  move->callback([=] { session->run = [=] { return MoveRange(*move_flags, *session); }; });

  auto listed = std::make_shared<std::string>();
  CLI::App* ranges =
      cluster->add_subcommand("ranges", "List the ranges of a store, and the rows in them");
  ranges->add_option("STORE", *listed, "Name of the store")->required();
  ranges->callback([=] { session->run = [=] { return ListRanges(*listed, *session); }; });
}

}  // namespace softlookup::tool
