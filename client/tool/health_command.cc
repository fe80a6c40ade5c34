#include <array>

#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/tool/command.h"

namespace softlookup::tool {
namespace {

absl::Status CheckHealth(const Session& session) {
  constexpr std::array<const char*, 4> kNames = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                 "SERVICE_UNKNOWN"};
  // The question is whether the server is there now.
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
  CLI::App* health = app->add_subcommand("health", "Exit with 0 if the server takes calls");
  health->callback([=] { session->run = [=] { return CheckHealth(*session); }; });
}

}  // namespace softlookup::tool
