#include "client/console/console_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/console/access.h"
#include "client/console/assets.h"
#include "client/console/bounded_queue.h"
#include "client/console/bounded_stream.h"
#include "client/cpp/status_macros.h"
#include "client/output/json.h"

namespace softlookup::console {
namespace {

using output::Json;

constexpr std::size_t kThreads = 16;
constexpr std::size_t kWaitingConnectionsMax = 64;
constexpr BoundedStream::Limits kLimits = {
    .request_bytes = std::size_t{64} << 10,  // Before its body.
    .idle = std::chrono::seconds(2),
    .request = std::chrono::seconds(10),
    .answer = std::chrono::seconds(30)};

constexpr char kContentType[] = "application/json";
constexpr char kKeyHeader[] = "X-Softlookup-Key";

// What every answer carries: nothing is loaded from elsewhere, nothing inline runs, and no other
// page may frame, read or guess an answer.
httplib::Headers SafetyHeaders() {
  return {{"Content-Security-Policy",
           "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
           "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Permissions-Policy", "camera=(), geolocation=(), microphone=()"},
          {"Cache-Control", "no-store"}};
}

struct ListenAddress {
  std::string host;  // An IP address, without brackets.
  int port = 0;
  bool loopback = false;
};

absl::StatusOr<ListenAddress> ParseListen(const std::string& text) {
  const auto refuse = [&](absl::string_view message) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen takes an IP address and a port, such as 127.0.0.1:8471, not \"",
                     text, "\": ", message));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return refuse("the port is missing");
  ListenAddress address{.host = text.substr(0, colon)};
  std::uint32_t port = 0;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &port) || port > 65535) {
    return refuse("the port is no number from 0 to 65535");
  }
  address.port = static_cast<int>(port);
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (absl::StartsWith(address.host, "[") && absl::EndsWith(address.host, "]")) {
    address.host = address.host.substr(1, address.host.size() - 2);
  }
  in_addr v4 = {};
  in6_addr v6 = {};
  bool everywhere = false;
  if (inet_pton(AF_INET, address.host.c_str(), &v4) == 1) {
    const std::uint32_t number = ntohl(v4.s_addr);
    address.loopback = number >> 24 == 127;
    everywhere = number == 0;
  } else if (inet_pton(AF_INET6, address.host.c_str(), &v6) == 1) {
    address.loopback = IN6_IS_ADDR_LOOPBACK(&v6);
    everywhere = IN6_IS_ADDR_UNSPECIFIED(&v6);
  } else {
    return refuse("the host is no IP address");
  }
  // The console answers to one name only (Access::IsOwnHost()).
  if (everywhere) return refuse("name the one address that browsers will ask");
  return address;
}

std::string HostPort(const std::string& host, int port) {
  return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]:", port)
                                      : absl::StrCat(host, ":", port);
}

std::vector<std::string> OwnHosts(const ListenAddress& address) {
  std::vector<std::string> hosts = {HostPort(address.host, address.port)};
  if (address.loopback) hosts.push_back(HostPort("localhost", address.port));
  return hosts;
}

void Refuse(int status, const std::string& why, httplib::Response* response) {
  response->status = status;
  response->set_content(why + "\n", "text/plain; charset=utf-8");
}

// Returns the value of a header that must come once. Empty if it comes never or twice.
std::string OneHeader(const httplib::Request& request, const char* name) {
  return request.get_header_value_count(name) == 1 ? request.get_header_value(name) : "";
}

// Whether the body is bytes of a length that is known before. The library bounds no other: neither
// the sum of chunks, nor what a compressed body becomes.
bool HasPlainBody(const httplib::Request& request) {
  return request.get_header_value_count("Content-Length") == 1 &&
         !request.has_header("Transfer-Encoding") && !request.has_header("Content-Encoding");
}

std::string Text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

// The library's server with one request a connection, in bounded bytes and time: the body of a
// refused request then never counts as the next request, and no connection keeps a thread for long.
class BoundedServer : public httplib::Server {
 private:
  bool process_and_close_socket(socket_t socket) override {
    bool served = false;
    if (svr_sock_ != INVALID_SOCKET) {  // Not stopped.
      BoundedStream stream(socket, kLimits);
      bool closed = false;
      // Called after the header lines.
      const auto setup = [&](httplib::Request& request) {
        stream.AllowBytes(ConsoleServer::kBodyBytesMax);
        // The library answers each range of a request, also a thousand times the whole page. A
        // server may send the whole instead.
        request.ranges.clear();
      };
      served = process_request(stream, /*close_connection=*/true, closed, setup);
    }
    shutdown(socket, SHUT_RDWR);
    close(socket);
    return served;
  }
};

class ConsoleServer::Impl {
 public:
  Impl(std::function<void(const std::string&)> on_entered, Api* api)
      : on_entered_(std::move(on_entered)), api_(api) {}

  absl::Status Open(ListenAddress address);
  const std::string& address() const { return access_->hosts().front(); }
  std::string link() const {
    return absl::StrCat("http://", address(), "/#enter=", access_->token());
  }
  void Run();
  void Stop();

 private:
  using Handled = httplib::Server::HandlerResponse;

  // Refuses what is not for the console, and answers with pages. Leaves only calls to handle.
  Handled Route(const httplib::Request& request, httplib::Response& response);
  void ServePage(const httplib::Request& request, httplib::Response* response) const;
  // Whether the request may make calls. If not, `response` says so.
  bool CheckSession(const httplib::Request& request, httplib::Response* response) const;
  void Enter(const httplib::Request& request, httplib::Response* response);
  void Call(const std::string& name, const httplib::Request& request, httplib::Response* response);

  // Browsers keep cookies by host, without the port.
  std::string CookieName() const { return absl::StrCat("softlookup_console_", port_); }

  const std::function<void(const std::string&)> on_entered_;
  Api* const api_;
  std::optional<Access> access_;
  int port_ = 0;
  BoundedServer http_;
  std::atomic<bool> running_{false};
  std::atomic<bool> stopped_{false};
};

absl::Status ConsoleServer::Impl::Open(ListenAddress address) {
  http_.new_task_queue = [] { return new BoundedQueue(kThreads, kWaitingConnectionsMax); };
  http_.set_default_headers(SafetyHeaders());
  http_.set_payload_max_length(kBodyBytesMax);
  http_.set_tcp_nodelay(true);
  // The library's own options would let a second process listen on the same port.
  socket_t listening = INVALID_SOCKET;
  http_.set_socket_options([&listening](socket_t socket) {
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    listening = socket;
  });
  http_.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        return Route(request, response);
      });
  http_.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
        Refuse(500, "the console failed", &response);
      });
  http_.Post("/api/enter", [this](const httplib::Request& request, httplib::Response& response) {
    Enter(request, &response);
  });
  for (const std::string& name : api_->names()) {
    http_.Post("/api/" + name,
               [this, name](const httplib::Request& request, httplib::Response& response) {
                 Call(name, request, &response);
               });
  }
  if (address.port == 0) {
    address.port = http_.bind_to_any_port(address.host);
  } else if (!http_.bind_to_port(address.host, address.port)) {
    address.port = -1;
  }
  if (address.port <= 0) {
    return absl::UnavailableError(
        "the port of --listen cannot be opened: it is taken, or the address is not this machine's; "
        "port 0 takes a free one");
  }
  // The library lets 5 connections wait to be accepted. A browser opens 6 at once, and the kernel
  // may reset the surplus.
  listen(listening, kWaitingConnectionsMax);
  http_.set_socket_options([](socket_t) {});  // The one above refers to this call's variable.
  port_ = address.port;
  access_.emplace(OwnHosts(address));
  return absl::OkStatus();
}

void ConsoleServer::Impl::Run() {
  running_ = true;
  if (!stopped_) http_.listen_after_bind();
  running_ = false;
}

void ConsoleServer::Impl::Stop() {
  stopped_ = true;
  // The library forgets a stop() that comes before it listens.
  while (running_ && !http_.is_running()) std::this_thread::yield();
  http_.stop();
}

ConsoleServer::Impl::Handled ConsoleServer::Impl::Route(const httplib::Request& request,
                                                        httplib::Response& response) {
  if (!access_->IsOwnHost(OneHeader(request, "Host"))) {
    Refuse(403, absl::StrCat("this console answers to http://", address(), " only"), &response);
    return Handled::Handled;
  }
  if (request.method == "GET" || request.method == "HEAD") {
    ServePage(request, &response);
    return Handled::Handled;
  }
  if (request.method != "POST") {
    Refuse(405, "the console takes GET and POST", &response);
  } else if (!access_->IsOwnOrigin(OneHeader(request, "Origin"))) {
    Refuse(403, "this page may not call the console", &response);
  } else if (OneHeader(request, "Content-Type") != kContentType) {
    Refuse(415, absl::StrCat("a call has the type ", kContentType), &response);
  } else if (!HasPlainBody(request)) {
    Refuse(411, "a call has one Content-Length, and no other encoding", &response);
  } else if (request.path == "/api/enter" || CheckSession(request, &response)) {
    return Handled::Unhandled;
  }
  return Handled::Handled;
}

void ConsoleServer::Impl::ServePage(const httplib::Request& request,
                                    httplib::Response* response) const {
  for (const Asset& asset : Assets()) {
    if (asset.path != request.path) continue;
    response->set_content(asset.bytes.data(), asset.bytes.size(), std::string(asset.type));
    return;
  }
  Refuse(404, "the console has no such page", response);
}

bool ConsoleServer::Impl::CheckSession(const httplib::Request& request,
                                       httplib::Response* response) const {
  const std::string cookies = request.get_header_value("Cookie");
  const std::string key = OneHeader(request, kKeyHeader);
  for (const std::string_view cookie : CookiesIn(cookies, CookieName())) {
    if (access_->Admits(cookie, key)) return true;
  }
  Refuse(401, "open the link that softlookup console printed last", response);
  return false;
}

void ConsoleServer::Impl::Enter(const httplib::Request& request, httplib::Response* response) {
  const Json body = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  std::optional<Access::Session> session;
  if (body.is_object() && body.contains("token") && body["token"].is_string()) {
    session = access_->Enter(body["token"].get_ref<const std::string&>());
  }
  if (!session.has_value()) {
    return Refuse(401, "this link was used; open the one that softlookup console printed last",
                  response);
  }
  response->set_header("Set-Cookie", absl::StrCat(CookieName(), "=", session->cookie,
                                                  "; Path=/; HttpOnly; SameSite=Strict"));
  response->set_content(Text({{"key", session->key}}), kContentType);
  if (on_entered_) on_entered_(link());
}

void ConsoleServer::Impl::Call(const std::string& name, const httplib::Request& request,
                               httplib::Response* response) {
  const Json body = Json::parse(request.body, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object()) return Refuse(400, "the body is no JSON object", response);
  response->set_content(Text(api_->Call(name, body)), kContentType);
}

absl::StatusOr<std::unique_ptr<ConsoleServer>> ConsoleServer::Open(const Options& options,
                                                                   Api* api) {
  CLIENT_ASSIGN_OR_RETURN(ListenAddress address, ParseListen(options.listen));
  auto impl = std::make_unique<Impl>(options.on_entered, api);
  CLIENT_RETURN_IF_ERROR(impl->Open(std::move(address)));
  return std::unique_ptr<ConsoleServer>(new ConsoleServer(std::move(impl)));
}

ConsoleServer::ConsoleServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConsoleServer::~ConsoleServer() = default;

const std::string& ConsoleServer::address() const { return impl_->address(); }
std::string ConsoleServer::link() const { return impl_->link(); }
void ConsoleServer::Run() { impl_->Run(); }
void ConsoleServer::Stop() { impl_->Stop(); }

}  // namespace softlookup::console
