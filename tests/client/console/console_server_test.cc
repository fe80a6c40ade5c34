// Who may do what over HTTP. No server of softlookup is there: `about` needs none.
#include "client/console/console_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/console/assets.h"
#include "client/output/json.h"

namespace softlookup::console {
namespace {

using output::Json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kJson[] = "application/json";

class ConsoleServerTest : public ::testing::Test {
 protected:
  ConsoleServerTest()
      : client_(*Client::Connect("127.0.0.1:1")),
        api_({.client = &client_, .server = "s:1", .metrics = "m:1", .stopping = &stopping_}) {
    auto server = ConsoleServer::Open(
        {.listen = "127.0.0.1:0", .on_entered = [this](const auto& link) { next_ = link; }}, &api_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->Run(); });
  }
  ~ConsoleServerTest() override {
    server_->Stop();
    thread_.join();
  }

  std::string origin() const { return "http://" + server_->address(); }
  static std::string TokenOf(const std::string& link) { return link.substr(link.rfind('=') + 1); }

  // Sends a request with the headers of a page of the console's own; `changes` replace some.
  httplib::Result Post(const std::string& path, const std::string& body,
                       const httplib::Headers& changes = {}, const char* type = kJson) {
    httplib::Headers headers = changes;
    if (headers.count("Origin") == 0) headers.emplace("Origin", origin());
    if (headers.count("Cookie") == 0) headers.emplace("Cookie", cookie_);
    if (headers.count("X-Softlookup-Key") == 0) headers.emplace("X-Softlookup-Key", key_);
    httplib::Client http(origin());
    http.set_read_timeout(60, 0);  // Seconds: a sanitized server on a busy machine is slow.
    return http.Post(path, headers, body, type);
  }
  httplib::Result Enter(const std::string& token) {
    return Post("/api/enter", Json({{"token", token}}).dump());
  }
  void EnterAsBrowser() {
    const httplib::Result entered = Enter(TokenOf(server_->link()));
    ASSERT_EQ(entered->status, 200);
    const std::string cookie = entered->get_header_value("Set-Cookie");
    EXPECT_THAT(cookie, HasSubstr("; HttpOnly; SameSite=Strict"));
    cookie_ = cookie.substr(0, cookie.find(';'));
    key_ = Json::parse(entered->body)["key"];
  }
  // Returns the status of a call; 0, and why, if there was no answer.
  int StatusOf(const httplib::Headers& changes) {
    const httplib::Result answer = Post("/api/about", "{}", changes);
    if (answer) return answer->status;
    ADD_FAILURE() << httplib::to_string(answer.error());
    return 0;
  }

  Client client_;
  std::atomic<bool> stopping_{false};
  Api api_;
  std::unique_ptr<ConsoleServer> server_;
  std::thread thread_;
  std::string next_;
  std::string cookie_;
  std::string key_;
};

TEST_F(ConsoleServerTest, PagesNeedNoSessionAndLoadNothingFromElsewhere) {
  httplib::Client http(origin());
  std::size_t bytes = 0;
  for (const Asset& asset : Assets()) {
    const httplib::Result page = http.Get(std::string(asset.path));
    ASSERT_EQ(page->status, 200) << asset.path;
    EXPECT_EQ(page->body, asset.bytes);
    EXPECT_EQ(page->get_header_value("Content-Type"), asset.type);
    EXPECT_THAT(page->get_header_value("Content-Security-Policy"),
                StartsWith("default-src 'none'; script-src 'self'; style-src 'self'"));
    EXPECT_THAT(page->get_header_value("Content-Security-Policy"),
                HasSubstr("frame-ancestors 'none'"));
    EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(page->get_header_value("Referrer-Policy"), "no-referrer");
    bytes += asset.bytes.size();
  }
  EXPECT_LT(bytes, 300u * 1024);
  EXPECT_EQ(http.Get("/etc/passwd")->status, 404);
  EXPECT_EQ(http.Get("/../app.js")->status, 404);
  EXPECT_EQ(http.Get("/api/about")->status, 404);
  EXPECT_EQ(http.Delete("/")->status, 405);
}

TEST_F(ConsoleServerTest, ALinkLetsOneBrowserIn) {
  EXPECT_EQ(Post("/api/about", "{}")->status, 401);
  const std::string link = server_->link();
  EXPECT_THAT(link, StartsWith(origin() + "/#enter="));
  EnterAsBrowser();
  const httplib::Result about = Post("/api/about", "{}");
  ASSERT_EQ(about->status, 200);
  EXPECT_EQ(Json::parse(about->body)["result"]["server"], "s:1");
  EXPECT_EQ(Enter(TokenOf(link))->status, 401);
  EXPECT_EQ(next_, server_->link());
  EXPECT_NE(next_, link);
  EXPECT_EQ(Enter(TokenOf(next_))->status, 200);
}

TEST_F(ConsoleServerTest, ACallNeedsTheCookieAndTheKey) {
  EnterAsBrowser();
  EXPECT_EQ(StatusOf({}), 200);
  EXPECT_EQ(StatusOf({{"Cookie", ""}}), 401);
  EXPECT_EQ(StatusOf({{"Cookie", cookie_ + "0"}}), 401);
  const std::string strange = cookie_.substr(0, cookie_.find('=')) + "=x; ";
  EXPECT_EQ(StatusOf({{"Cookie", strange + cookie_}}), 200);
  EXPECT_EQ(StatusOf({{"X-Softlookup-Key", ""}}), 401);
  EXPECT_EQ(StatusOf({{"X-Softlookup-Key", key_ + "0"}}), 401);
  EXPECT_EQ(StatusOf({{"X-Softlookup-Key", key_}, {"X-Softlookup-Key", key_}}), 401);
}

TEST_F(ConsoleServerTest, APageOfAnotherOriginIsRefusedEvenWithASession) {
  EnterAsBrowser();
  for (const char* stranger : {"http://evil.example", "null", "", "http://127.0.0.1:1"}) {
    EXPECT_EQ(StatusOf({{"Origin", stranger}}), 403) << stranger;
  }
  EXPECT_EQ(StatusOf({{"Origin", "https://" + server_->address()}}), 403);
}

TEST_F(ConsoleServerTest, ANameThatWasRebondToThisMachineIsRefused) {
  EnterAsBrowser();
  const std::string port = server_->address().substr(server_->address().rfind(':'));
  const std::string host = "evil.example" + port;
  EXPECT_EQ(StatusOf({{"Host", host}, {"Origin", "http://" + host}}), 403);
  EXPECT_EQ(StatusOf({{"Host", host}}), 403);
  httplib::Client http(origin());
  EXPECT_EQ(http.Get("/", {{"Host", host}})->status, 403);
  EXPECT_EQ(http.Get("/", {{"Host", "localhost" + port}})->status, 200);
}

TEST_F(ConsoleServerTest, ACallIsAJsonObjectOfBoundedSize) {
  EnterAsBrowser();
  EXPECT_EQ(Post("/api/about", "{}", {}, "text/plain")->status, 415);
  EXPECT_EQ(Post("/api/about", "{}", {}, "multipart/form-data; boundary=x")->status, 415);
  for (const char* body : {"", "[]", "7", "{", "\xff"}) {
    EXPECT_EQ(Post("/api/about", body)->status, 400) << body;
  }
  EXPECT_EQ(Post("/api/about", std::string(100000, '['))->status, 400);
  EXPECT_EQ(Post("/api/no_such_call", "{}")->status, 404);
  // The connection may end before the answer is read.
  const httplib::Result large =
      Post("/api/about", std::string(ConsoleServer::kBodyBytesMax + 1, ' '));
  if (large) {
    EXPECT_EQ(large->status, 413);
  }
  EXPECT_EQ(StatusOf({}), 200);
}

TEST_F(ConsoleServerTest, ABodyThatGrowsIsRefusedBeforeItIsRead) {
  EnterAsBrowser();
  EXPECT_EQ(StatusOf({{"Content-Encoding", "gzip"}}), 411);
  httplib::Client http(origin());
  const httplib::Headers headers = {
      {"Origin", origin()}, {"Cookie", cookie_}, {"X-Softlookup-Key", key_}};
  const httplib::Result chunked = http.Post(
      "/api/about", headers,
      [](std::size_t, httplib::DataSink& sink) {
        sink.write("{}", 2);
        sink.done();
        return true;
      },
      kJson);
  // The connection may end before the answer is read.
  if (chunked) {
    EXPECT_EQ(chunked->status, 411);
  }
}

TEST_F(ConsoleServerTest, HeaderLinesHaveBoundedBytes) {
  httplib::Client http(origin());
  httplib::Headers headers;
  for (int i = 0; i < 12; ++i) headers.emplace("X-Line", std::string(4000, 'x'));
  EXPECT_EQ(http.Get("/", headers)->status, 200);
  for (int i = 0; i < 12; ++i) headers.emplace("X-Line", std::string(4000, 'x'));
  // The connection may end before the answer is read.
  const httplib::Result refused = http.Get("/", headers);
  if (refused) {
    EXPECT_EQ(refused->status, 400);
  }
}

TEST_F(ConsoleServerTest, APageIsSentOnceHoweverManyRangesAreAskedFor) {
  httplib::Client http(origin());
  const std::string whole = http.Get("/icon.svg")->body;
  const httplib::Result answer = http.Get("/icon.svg", {{"Range", "bytes=0-,0-,0-"}});
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, whole);
}

TEST_F(ConsoleServerTest, AnErrorOfACallSaysWhatIsWrong) {
  EnterAsBrowser();
  const httplib::Result answer = Post("/api/store", R"({"name":7})");
  ASSERT_EQ(answer->status, 200);
  const Json error = Json::parse(answer->body)["error"];
  EXPECT_EQ(error["code"], "INVALID_ARGUMENT");
  EXPECT_THAT(error["message"].get<std::string>(), StartsWith("name must be a text"));
}

TEST_F(ConsoleServerTest, ManyConnectionsAreServed) {
  EnterAsBrowser();
  std::vector<std::thread> threads;
  std::atomic<int> served{0};
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&] { served += StatusOf({}) == 200; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(served, 40);
}

TEST(ConsoleServerOpenTest, TakesOneAddressAndAPort) {
  std::atomic<bool> stopping{false};
  Client client = *Client::Connect("127.0.0.1:1");
  Api api({.client = &client, .stopping = &stopping});
  for (const char* listen : {"", "8471", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x",
                             "127.0.0.1:65536", "0.0.0.0:0", "[::]:0", "example.com:0"}) {
    const auto server = ConsoleServer::Open({.listen = listen}, &api);
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << listen;
    EXPECT_THAT(std::string(server.status().message()), StartsWith("--listen takes")) << listen;
  }
  const auto server = ConsoleServer::Open({.listen = "127.0.0.1:0"}, &api);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto second = ConsoleServer::Open({.listen = (*server)->address()}, &api);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST(ConsoleServerOpenTest, AStopBeforeTheRunEndsIt) {
  std::atomic<bool> stopping{false};
  Client client = *Client::Connect("127.0.0.1:1");
  Api api({.client = &client, .stopping = &stopping});
  const auto server = ConsoleServer::Open({.listen = "127.0.0.1:0"}, &api);
  ASSERT_TRUE(server.ok());
  (*server)->Stop();
  (*server)->Run();
}

}  // namespace
}  // namespace softlookup::console
