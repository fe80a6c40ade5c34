#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cpp/address.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"
#include "client/tool/command.h"
#include "client/tool/exit_code.h"
#include "client/tool/interrupt.h"

#ifdef SOFTLOOKUP_HAS_CONSOLE
#include "client/console/api.h"
#include "client/console/console_server.h"
#endif

namespace softlookup::tool {
namespace {

struct ConsoleFlags {
  std::string listen = "127.0.0.1:8471";
  std::string metrics;  // Empty: the server's host, at the default port.
};

#ifdef SOFTLOOKUP_HAS_CONSOLE

// Returns HOST:PORT of /metrics of the first server that `servers` names.
std::string MetricsAddress(const ConsoleFlags& flags, const std::string& servers) {
  if (!flags.metrics.empty()) {
    absl::string_view address = absl::StripPrefix(flags.metrics, "http://");
    address = absl::StripSuffix(absl::StripSuffix(address, "/"), "/metrics");
    return std::string(address);
  }
  const std::string server = client_internal::SplitServers(servers).front();
  const std::size_t colon = server.rfind(':');
  // A name of gRPC's, such as dns:///host:7471, has no host that HTTP would understand.
  const bool plain = server.find(':') == colon || server.front() == '[';
  return absl::StrCat(plain ? server.substr(0, colon) : "127.0.0.1", ":7472");
}

absl::Status RunConsole(const ConsoleFlags& flags, const std::string& version,
                        const Session& session) {
  ClientOptions options;
  options.retry.attempts_max = 3;  // Somebody looks at the page and waits.
  CLIENT_ASSIGN_OR_RETURN(Client client, session.Connect(options));
  const InterruptGuard guard;
  console::Api api({.client = &client,
                    .server = session.server,
                    .metrics = MetricsAddress(flags, session.server),
                    .version = version,
                    .stopping = &guard.interrupted()});
  const auto on_entered = [&](const std::string& link) {
    *session.err << "a browser has entered; the link for another one:\n"
                 << link << "\n"
                 << std::flush;
  };
  const auto server =
      console::ConsoleServer::Open({.listen = flags.listen, .on_entered = on_entered}, &api);
  if (!server.ok()) return UsageError(std::string(server.status().message()));
  if (session.json) {
    output::PrintJson({{"link", (*server)->link()}, {"server", session.server}}, session.out);
  } else {
    *session.out << (*server)->link() << "\n";
    *session.err << "Open this link in a browser; it works once. Ctrl-C ends the console.\n";
  }
  session.out->flush();
  const InterruptAction stop([&] { (*server)->Stop(); });
  (*server)->Run();
  return absl::OkStatus();
}

#else

absl::Status RunConsole(const ConsoleFlags&, const std::string&, const Session&) {
  return absl::UnimplementedError(
      "this softlookup was built without the console: that takes cpp-httplib, Node.js and npm "
      "where "
      "it is built (docs/console.md)");
}

#endif

}  // namespace

void AddConsoleCommand(CLI::App* app, Session* session) {
  auto flags = std::make_shared<ConsoleFlags>();
  CLI::App* console =
      app->add_subcommand("console", "Serve pages that show stores, lookups and memories");
  console->footer(
      "Prints a link to open in a browser of this machine. The link works once. The pages make\n"
      "their calls as this command would, with its server, certificate and token, until Ctrl-C.\n"
      "They change nothing, except that a Posner experiment makes a store, recall/..., and\n"
      "deletes it at the end.");
  console
      ->add_option("--listen", flags->listen, "IP address and port to serve on; port 0: a free one")
      ->type_name("IP:PORT")
      ->capture_default_str();
  console
      ->add_option("--metrics", flags->metrics,
                   "The server's --http-listen (default: port 7472 of the first host of --server)")
      ->type_name("HOST:PORT");
  console->callback(
      [=] { session->run = [=] { return RunConsole(*flags, app->version(), *session); }; });
}

}  // namespace softlookup::tool
