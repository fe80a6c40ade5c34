#include <array>

#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/tool/command.h"

namespace softlookup::tool {
namespace {

absl::Status CheckHealth(const Session& session) {
  constexpr std::array<const char*, 4> kNames = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                 "SERVICE_UNKNOWN"};
  // No retries: the command tells whether the server takes calls now.
  ClientOptions options;
  options.retry.attempts_max = 1;
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect(options));
  CLIENT_ASSIGN_OR_RETURN(const ServingStatus serving, client.Health());
  const char* name = kNames[static_cast<int>(serving)];
  if (session.json) {
    output::PrintJson({{"status", name}}, session.out);
  } else {
    *session.out << name << "\n";
  }
  if (serving == ServingStatus::kServing) return absl::OkStatus();
  return absl::UnavailableError("the server is up, but takes no calls");
}

}  // namespace

void AddHealthCommand(CLI::App* app, Session* session) {
  CLI::App* health =
      app->add_subcommand("health", "Ask whether the server takes calls; exit code 0 if it does");
  health->callback([=] { session->run = [=] { return CheckHealth(*session); }; });
}

}  // namespace softlookup::tool
