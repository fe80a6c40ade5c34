#include "server/admin_http.h"

#include <httplib.h>

#include <thread>

#include "absl/strings/str_cat.h"

namespace softlookup::server {
namespace {

// A silent connection holds a thread for as long as a request may take to come.
constexpr int kThreadCount = 8;
constexpr int kRequestSeconds = 1;

}  // namespace

struct AdminHttp::Server {
  httplib::Server http;
  std::thread thread;
  int port = 0;
};

AdminHttp::AdminHttp() : server_(std::make_unique<Server>()) {
  httplib::Server& http = server_->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(kThreadCount); };
  // Without SO_REUSEPORT, which the library sets by itself: a second server must not share the
  // port.
  http.set_socket_options([](int socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  http.set_read_timeout(kRequestSeconds);
  http.set_keep_alive_timeout(kRequestSeconds);
  http.set_payload_max_length(1024);
  http.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("ok\n", "text/plain");
  });
  http.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
    const bool ready = ready_.load();
    response.status = ready ? 200 : 503;
    response.set_content(ready ? "ready\n" : "not ready\n", "text/plain");
  });
}

AdminHttp::~AdminHttp() {
  if (!server_->thread.joinable()) return;
  server_->http.stop();
  server_->thread.join();
}

absl::Status AdminHttp::Start(const std::string& host, int port) {
  httplib::Server& http = server_->http;
  server_->port =
      port == 0 ? http.bind_to_any_port(host) : (http.bind_to_port(host, port) ? port : -1);
  if (server_->port < 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", host, ":", port, " for HTTP; is the port taken?"));
  }
  server_->thread = std::thread([this] { server_->http.listen_after_bind(); });
  return absl::OkStatus();
}

int AdminHttp::port() const { return server_->port; }

}  // namespace softlookup::server
