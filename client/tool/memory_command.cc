#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/terminal_text.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/output/table.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/validators.h"

namespace softlookup::tool {
namespace {

using cli::TerminalText;
using output::PrintJson;
using output::VectorText;

struct MemoryFlags {
  std::string store;
  std::string name = "average";
  std::optional<std::uint64_t> begin;
  std::optional<std::uint64_t> end;
};

struct WatchFlags {
  std::string store;
  std::string name = "average";
  std::uint32_t interval_ms = 0;
  std::uint64_t count = 0;  // Updates to show; 0: no limit.
};

absl::Status Print(const v1::Memory& memory, const std::string& store, const Session& session) {
  CLIENT_ASSIGN_OR_RETURN(const std::vector<double> key, DoublesFromProto(memory.key()));
  CLIENT_ASSIGN_OR_RETURN(const std::vector<double> value, DoublesFromProto(memory.value()));
  if (session.json) {
    PrintJson({{"store", store},
               {"name", memory.name()},
               {"begin", memory.begin()},
               {"end", memory.end()},
               {"weight", memory.weight()},
               {"revision", memory.revision()},
               {"key", key},
               {"value", value}},
              session.out);
  } else {
    *session.out << absl::StreamFormat("%s of positions [%d, %d), weight %.6g, revision %d\n",
                                       TerminalText(memory.name()), memory.begin(), memory.end(),
                                       memory.weight(), memory.revision())
                 << "key    " << VectorText(key) << "\nvalue  " << VectorText(value) << "\n";
  }
  return absl::OkStatus();
}

absl::Status ShowMemory(const MemoryFlags& flags, const Session& session) {
  v1::GetMemoryRequest request;
  request.set_store(flags.store);
  request.set_name(flags.name);
  if (flags.begin.has_value()) request.set_begin(*flags.begin);
  if (flags.end.has_value()) request.set_end(*flags.end);
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  CLIENT_ASSIGN_OR_RETURN(const v1::Memory memory, client.GetMemory(request));
  return Print(memory, flags.store, session);
}

absl::Status Watch(const WatchFlags& flags, const Session& session) {
  WatchMemoryOptions options;
  options.min_interval = absl::Milliseconds(flags.interval_ms);
  options.deadline = session.StreamDeadline();
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect());
  std::uint64_t shown = 0;
  absl::Status printed;
  const absl::Status watched = client.WatchMemory(
      flags.store, flags.name,
      [&](const v1::Memory& memory) {
        printed = Print(memory, flags.store, session);
        // Also stop when nobody reads standard output any more.
        return printed.ok() && !session.out->flush().fail() && ++shown != flags.count;
      },
      options);
  CLIENT_RETURN_IF_ERROR(shown > 0 ? AfterAnAnswer(watched) : watched);
  return printed;
}

}  // namespace

void AddMemoryCommands(CLI::App* app, Session* session) {
  auto flags = std::make_shared<MemoryFlags>();
  CLI::App* memory = app->add_subcommand(
      "memory", "Show a running memory of a store, now or as of an earlier append");
  memory->add_option("STORE", flags->store, "Name of the store")->required();
  memory->add_option("NAME", flags->name, "Name of the memory")->capture_default_str();
  memory->add_option("--begin", flags->begin,
                     "First position that the memory covers; kind average only (default 0)");
  memory->add_option("--end", flags->end,
                     "Position after the last one that the memory covers (default: all rows)");
  memory->callback([=] { session->run = [=] { return ShowMemory(*flags, *session); }; });

  auto watch_flags = std::make_shared<WatchFlags>();
  CLI::App* watch = app->add_subcommand("watch", "Show a running memory now and as it changes");
  watch->footer("With -o json, prints one JSON object per line.");
  watch->add_option("STORE", watch_flags->store, "Name of the store")->required();
  watch->add_option("NAME", watch_flags->name, "Name of the memory")->capture_default_str();
  watch->add_option(
      "--interval-ms", watch_flags->interval_ms,
      "Shortest time between two updates, in milliseconds; skips changes in between (default 0)");
  watch
      ->add_option("--count", watch_flags->count,
                   "Number of times to show the memory before the command ends (default: no limit)")
      ->check(Positive());
  watch->callback([=] { session->run = [=] { return Watch(*watch_flags, *session); }; });
}

}  // namespace softlookup::tool
