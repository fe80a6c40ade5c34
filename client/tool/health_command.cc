#include <array>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"

namespace softlookup::tool {
namespace {

// Short, because a server that takes calls answers within milliseconds.
constexpr absl::Duration kHealthDeadline = absl::Seconds(2);

absl::Status CheckHealth(const Session& session) {
  constexpr std::array<const char*, 4> kNames = {"UNKNOWN", "SERVING", "NOT_SERVING",
                                                 "SERVICE_UNKNOWN"};
  // No retries: the command tells whether the server takes calls now.
  ClientOptions options;
  options.retry.attempts_max = 1;
  options.deadline = kHealthDeadline;
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect(options));
  const absl::StatusOr<ServingStatus> serving = client.Health();
  if (absl::IsDeadlineExceeded(serving.status())) {
    const absl::Duration waited =
        session.timeout_s.has_value() ? absl::Seconds(*session.timeout_s) : kHealthDeadline;
    return absl::DeadlineExceededError(absl::StrCat("waited ", absl::FormatDuration(waited)));
  }
  CLIENT_RETURN_IF_ERROR(serving.status());
  const char* name = kNames[static_cast<int>(*serving)];
  if (session.json) {
    output::PrintJson({{"status", name}}, session.out);
  } else {
    *session.out << name << "\n";
  }
  if (*serving == ServingStatus::kServing) return absl::OkStatus();
  return NotServingError("the server is up, but takes no calls");
}

}  // namespace

void AddHealthCommand(CLI::App* app, Session* session) {
  CLI::App* health =
      app->add_subcommand("health", "Ask whether the server takes calls; exit code 0 if it does");
  health->footer("Waits for an answer for two seconds at most, or for --timeout if that is given.");
  health->callback([=] { session->run = [=] { return CheckHealth(*session); }; });
}

}  // namespace softlookup::tool
