// The tool from its command line to its output, against a scripted server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/tool/command.h"
#include "tests/client/tool/scripted_tool_test.h"
#include "tests/client/tool/temporary_file.h"
#include "tests/testing/closed_port.h"

namespace softlookup::tool {
namespace {

using ::softlookup::testing::ClosedPort;
using ::softlookup::testing::DetailedStatus;
using ::softlookup::testing::ScriptedService;
using ::softlookup::testing::TemporaryFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using ToolTest = ScriptedToolTest;

class ToolLookupTest : public ToolTest {
 protected:
  ToolLookupTest() {
    service_.lookup = [this](grpc::ServerContext*, const v1::LookupRequest& request,
                             v1::LookupResponse* response) {
      request_ = request;
      const auto queries = *FloatMatrix::FromProto(request.queries());
      FloatMatrix values{.rows = queries.rows, .cols = 2, .data = {}};
      for (const float query : queries.data) {
        values.data.insert(values.data.end(), {query, 0.1f});
        auto* stats = response->add_stats();
        stats->set_counted_rows(5);
        stats->set_summed_rows(3);
        stats->set_error_bound(0.00012);
        stats->set_entropy(0.6047);
        stats->set_log_sum_exp(log_sum_exp_);
        stats->set_empty(is_empty_);
        auto* weights = response->add_weights();
        for (const std::uint64_t position : {4, 1}) {
          weights->add_positions(position);
          weights->add_scores(position);
          weights->add_weights(position == 4 ? 0.75 : small_weight_);
        }
        weights->set_remaining_weight(0.05);
      }
      EXPECT_TRUE(FloatMatrixView(values).ToProto(response->mutable_values()).ok());
      response->set_revision(2);
      response->set_row_count(5);
      return grpc::Status::OK;
    };
  }

  v1::LookupRequest request_;
  double log_sum_exp_ = -std::numeric_limits<double>::infinity();
  double small_weight_ = 0.2;
  bool is_empty_ = false;
};

TEST_F(ToolLookupTest, SendsEveryOption) {
  const Outcome outcome = Run({"lookup",
                               "people",
                               "--query",
                               "-1.5",
                               "--query",
                               "2",
                               "--score",
                               "cosine",
                               "--temperature",
                               "0.1",
                               "--mode",
                               "hard",
                               "--top-k",
                               "3",
                               "--min-score",
                               "-0.5",
                               "--recency-decay",
                               "0.9",
                               "--causal",
                               "--causal-offset",
                               "7",
                               "--max-error",
                               "0.25",
                               "--weights",
                               "all",
                               "--begin",
                               "0",
                               "--end",
                               "5",
                               "--last",
                               "4",
                               "--min-revision",
                               "2",
                               "--linearizable"});
  ASSERT_EQ(outcome.error, "");
  const v1::AttentionOptions& options = request_.options();
  EXPECT_THAT(FloatMatrix::FromProto(request_.queries())->data, ElementsAre(-1.5, 2));
  EXPECT_EQ(options.score(), v1::SCORE_COSINE);
  EXPECT_EQ(options.temperature(), 0.1);
  EXPECT_EQ(options.mode(), v1::MODE_HARD);
  EXPECT_EQ(options.top_k(), 3u);
  EXPECT_EQ(options.min_score(), -0.5);
  EXPECT_EQ(options.recency_decay(), 0.9);
  EXPECT_TRUE(options.causal());
  EXPECT_EQ(options.causal_offset(), 7u);
  EXPECT_EQ(options.max_error(), 0.25);
  EXPECT_EQ(options.weights(), v1::WEIGHTS_MODE_ALL);
  EXPECT_TRUE(request_.filter().has_begin());
  EXPECT_EQ(request_.filter().end(), 5u);
  EXPECT_EQ(request_.filter().last(), 4u);
  EXPECT_EQ(request_.min_revision(), 2u);
  EXPECT_TRUE(request_.linearizable());
}

TEST_F(ToolLookupTest, LeavesToTheStoreWhatIsNotNamed) {
  EXPECT_EQ(Run({"lookup", "people", "--query", "1"}).exit_code, ExitCode::kOk);
  EXPECT_EQ(request_.options().score(), v1::SCORE_UNSPECIFIED);
  EXPECT_FALSE(request_.options().has_temperature());
  EXPECT_FALSE(request_.options().has_min_score());
  EXPECT_FALSE(request_.options().has_max_error());
  EXPECT_FALSE(request_.filter().has_begin());
  EXPECT_EQ(request_.options().weights(), v1::WEIGHTS_MODE_TOP);
  EXPECT_EQ(request_.options().top_weights(), 10u);
}

TEST_F(ToolLookupTest, PrintsWeightsStatsAndAnswer) {
  const TemporaryFile names("names.txt", "Ann\nBob\nCleo\nDan\nEve\n");
  EXPECT_EQ(Run({"lookup", "people", "--query", "1", "--names", names.path()}).out,
            "people at revision 2, 5 rows\n"
            "query 0\n"
            "  position  name  score  weight\n"
            "         4  Eve       4  0.7500  #######################\n"
            "         1  Bob       1  0.2000  ######\n"
            "  5 rows counted, 3 summed, entropy and log-sum-exp not defined for this mode, error "
            "bound 0.00012, weight of the others 0.05\n"
            "  answer [1 0.1]\n");
}

TEST_F(ToolLookupTest, ASoftmaxHasEntropyAndAnEmptyAnswerSaysSo) {
  log_sum_exp_ = 2.5;
  small_weight_ = 0.00002;
  const std::string out = Run({"lookup", "people", "--query", "1"}).out;
  EXPECT_THAT(out, HasSubstr("  5 rows counted, 3 summed, entropy 0.6047 nats, log-sum-exp 2.5, "
                             "error bound 0.00012"));
  EXPECT_THAT(out, HasSubstr("  2.0e-05"));
  is_empty_ = true;
  EXPECT_THAT(Run({"lookup", "people", "--query", "1"}).out,
              HasSubstr("  no row counts, so the answer is 0\n  answer ["));
}

TEST_F(ToolLookupTest, JsonHasNumbersNamesAndNullForInfinity) {
  const TemporaryFile names("names.txt", "Ann\nBob\n");
  const auto json =
      RunJson({"lookup", "people", "--words", "x,y", "--any-store", "--names", names.path()});
  EXPECT_EQ(json["store"], "people");
  EXPECT_EQ(json["row_count"], 5);
  ASSERT_EQ(json["answers"].size(), 2u);
  const auto& answer = json["answers"][1];
  EXPECT_EQ(answer["query"], 1);
  EXPECT_EQ(answer["word"], "y");
  EXPECT_EQ(answer["values"][1], 0.1);
  const auto& head = answer["heads"][0];
  EXPECT_TRUE(head["log_sum_exp"].is_null());
  EXPECT_EQ(head["counted_rows"], 5);
  EXPECT_EQ(head["summed_rows"], 3);
  EXPECT_EQ(head["error_bound"], 0.00012);
  EXPECT_EQ(head["weights"][0]["position"], 4);
  EXPECT_FALSE(head["weights"][0].contains("name"));
  EXPECT_EQ(head["weights"][1]["name"], "Bob");
  EXPECT_EQ(head["weights"][1]["weight"], 0.2);
}

TEST_F(ToolLookupTest, WritesTheAnswersToAFile) {
  const TemporaryFile queries("q.csv", "1\n2\n");
  const TemporaryFile values("v.npy");
  EXPECT_EQ(
      Run({"lookup", "people", "--queries", queries.path(), "--values-out", values.path()}).error,
      "");
  std::ifstream file(values.path(), std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  EXPECT_THAT(bytes.str(), HasSubstr("'shape': (2, 2)"));
  EXPECT_EQ(bytes.str().size(), 128u + 4 * sizeof(float));
}

TEST_F(ToolLookupTest, WrongQueriesAreUsageErrors) {
  EXPECT_EQ(Run({"lookup", "people"}).error,
            "lookup needs one of --queries, --query, --name, --words and --inputs");
  const Outcome both = Run({"lookup", "people", "--query", "1", "--words", "a"});
  EXPECT_EQ(both.exit_code, ExitCode::kUsage);
  EXPECT_THAT(both.error, StartsWith("lookup takes only one of --queries"));
  EXPECT_EQ(Run({"lookup", "people", "--query", "1,x"}).exit_code, ExitCode::kUsage);
  EXPECT_EQ(Run({"lookup", "people", "--query", "1", "--mode", "loud"}).exit_code,
            ExitCode::kUsage);
  const Outcome outcome = Run({"lookup", "people", "--query", "1,2,3"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_EQ(outcome.error, "--query 1,2,3 has 3 numbers, but key_dim is 1");
}

TEST_F(ToolTest, MemoryPrintsDoubles) {
  service_.get_memory = [](grpc::ServerContext*, const v1::GetMemoryRequest& request,
                           v1::Memory* memory) {
    EXPECT_EQ(request.name(), "average");
    EXPECT_FALSE(request.has_begin());
    EXPECT_EQ(request.end(), 3u);
    const double mean = 1.0 / 3;
    memory->set_name("average");
    memory->mutable_key()->set_rows(1);
    memory->mutable_key()->set_cols(1);
    memory->mutable_key()->set_element_type(v1::ELEMENT_TYPE_FLOAT64);
    memory->mutable_key()->set_data(&mean, sizeof(mean));
    memory->set_end(3);
    memory->set_weight(3);
    return grpc::Status::OK;
  };
  EXPECT_EQ(RunJson({"memory", "people", "--end", "3"})["key"][0], 1.0 / 3);
  EXPECT_EQ(Run({"memory", "people", "--end", "3"}).out,
            "average of positions [0, 3), weight 3, revision 0\nkey    [0.333333]\nvalue  []\n");
}

TEST_F(ToolTest, HealthFailsUnlessTheServerTakesCalls) {
  EXPECT_EQ(Run({"health"}).out, "SERVING\n");
  service_.SetServing(false);
  const Outcome outcome = Run({"health"});
  EXPECT_EQ(outcome.out, "NOT_SERVING\n");
  EXPECT_EQ(outcome.error, "the server is up, but takes no calls");
  EXPECT_EQ(outcome.exit_code, ExitCode::kUnavailable);
}

// A port at which connections are made, and nothing answers.
class SilentPort {
 public:
  SilentPort() {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_, 8), 0);
    EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~SilentPort() { close(socket_); }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string address_;
};

TEST(HealthCommandTest, WaitsTwoSecondsForAnAnswerOrAsLongAsTheTimeout) {
  const SilentPort port;
  Session session;
  session.server = port.address();
  CLI::App app;
  AddHealthCommand(&app, &session);
  app.parse("health");
  const std::string no_answer = "DEADLINE_EXCEEDED: no answer from " + port.address() +
                                " in time (--timeout gives it longer): waited ";
  const absl::Status by_default = session.run();
  EXPECT_EQ(ExitCodeOf(by_default), ExitCode::kUnavailable);
  EXPECT_EQ(ErrorLine(by_default, session.server), no_answer + "2s");
  session.timeout_s = 0.25;
  EXPECT_EQ(ErrorLine(session.run(), session.server), no_answer + "250ms");
}

TEST_F(ToolTest, ServerErrorIsOneLineThatBeginsWithItsReason) {
  const Outcome outcome = Run({"store", "get", "nobody"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kNotFound);
  EXPECT_EQ(outcome.error,
            "STORE_NOT_FOUND: no store (`softlookup store list` shows those there are)");
  service_.get_memory = [](grpc::ServerContext*, const auto&, auto*) {
    return DetailedStatus(grpc::StatusCode::NOT_FOUND, "no memory", "MEMORY_NOT_FOUND");
  };
  EXPECT_EQ(Run({"memory", "people"}).error,
            "MEMORY_NOT_FOUND: no memory (`softlookup store get` shows those beside average)");
  service_.delete_store = [](grpc::ServerContext*, const auto&, auto*) {
    return DetailedStatus(grpc::StatusCode::INTERNAL, "two\nlines", "BUG");
  };
  EXPECT_EQ(Run({"store", "delete", "people"}).error, "BUG: two lines");
}

TEST_F(ToolTest, FieldsOfTheRequestAreShownAsTheirFlags) {
  std::string message, field;
  service_.get_memory = [&](grpc::ServerContext*, const auto&, auto*) {
    return DetailedStatus(grpc::StatusCode::INVALID_ARGUMENT, message, "INVALID_OPTION",
                          {{"field", field}});
  };
  const auto error = [&](const std::string& of_server, const std::string& of_field) {
    message = of_server;
    field = of_field;
    return Run({"memory", "people"}).error;
  };
  EXPECT_EQ(error("options.top_weights: 5000 is over the limit", "options.top_weights"),
            "INVALID_OPTION: --top: 5000 is over the limit");
  EXPECT_EQ(error("filter.end: 9 is past filter.end", "filter.end"),
            "INVALID_OPTION: --end: 9 is past --end");
  EXPECT_EQ(error("keys: 4 columns", "keys"), "INVALID_OPTION: keys: 4 columns");
}

TEST_F(ToolTest, AServerThatAnsweredBeforeIsNotTakenForAnother) {
  const std::string never_made =
      "failed to connect to all addresses; last error: UNAVAILABLE: ipv4:127.0.0.1:1: ";
  const absl::Status refused = absl::UnavailableError(never_made + "Socket closed");
  EXPECT_EQ(ErrorLine(refused, "a:1"),
            "UNAVAILABLE: no answer from a:1; it may serve TLS: --tls-ca names its authority's "
            "certificate; or this is the server's HTTP port: " +
                never_made + "Socket closed");
  EXPECT_EQ(ErrorLine(AfterAnAnswer(refused), "a:1"),
            "UNAVAILABLE: no answer from a:1; it answered before, so it may have stopped: " +
                never_made + "Socket closed");
  const absl::Status untrusted =
      absl::UnavailableError(never_made + "Ssl handshake failed: certificate verify failed");
  EXPECT_THAT(ErrorLine(AfterAnAnswer(untrusted), "a:1"), HasSubstr("its certificate is out of"));
}

TEST_F(ToolTest, AConnectionThatBreaksDuringACallIsNotTakenForAMatterOfTls) {
  for (const char* message : {"Socket closed", "recvmsg:Connection reset by peer"}) {
    for (const CredentialFiles& files :
         {CredentialFiles(), CredentialFiles{.tls_ca = "ca.pem"},
          CredentialFiles{.tls_certificate = "client.pem", .tls_key = "client-key.pem"}}) {
      EXPECT_EQ(ErrorLine(absl::UnavailableError(message), "a:1", files),
                std::string("UNAVAILABLE: no answer from a:1; it took the call and closed the "
                            "connection, so it may have stopped: ") +
                    message);
    }
  }
}

TEST_F(ToolTest, TheHintAtAStoreTakesOnePageOfNames) {
  service_.get_store = [](grpc::ServerContext*, const auto&, auto*) {
    return DetailedStatus(grpc::StatusCode::NOT_FOUND, "no store", "STORE_NOT_FOUND",
                          {{"store", "peple"}});
  };
  std::vector<v1::ListStoresRequest> asked;
  service_.list_stores = [&](grpc::ServerContext*, const v1::ListStoresRequest& request,
                             v1::ListStoresResponse* page) {
    asked.push_back(request);
    *page->add_stores() = store_;
    page->set_next_page_token(store_.name());  // Further names follow for ever.
    return grpc::Status::OK;
  };
  EXPECT_THAT(Run({"store", "get", "peple"}).error, HasSubstr("no store; did you mean people?"));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].prefix(), "p");
  EXPECT_EQ(asked[0].page_size(), 1000);

  service_.list_stores = [](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "busy");
  };
  EXPECT_THAT(Run({"store", "get", "peple"}).error, Not(HasSubstr("did you mean")));
}

TEST_F(ToolTest, UnreachableServerNamesItsAddressAndHowToSetIt) {
  Session session;
  const ClosedPort port;
  session.server = port.address();
  const absl::Status status = session.Connect()->GetStore("people").status();
  EXPECT_EQ(ExitCodeOf(status), ExitCode::kUnavailable);
  const std::string line = ErrorLine(status, session.server);
  EXPECT_THAT(line, StartsWith("UNAVAILABLE: no answer from " + session.server));
  EXPECT_THAT(line, HasSubstr("--server or SOFTLOOKUP_SERVER"));
}

TEST_F(ToolTest, AddressThatIsNoHostAndPortIsAUsageError) {
  for (const auto& [address, wrong] : std::vector<std::pair<std::string, std::string>>{
           {"", "it is empty"},
           {"localhost", "the port is missing"},
           {"localhost:", "the port is missing"},
           {"127.0.0.1:83638", "the port is not in [1, 65535]"},
           {"localhost:99999", "the port is not in [1, 65535]"},
           {"[::1]:0", "the port is not in [1, 65535]"},
           {"localhost:99999999999999999999", "the port is not in [1, 65535]"},
           {"http://localhost:7471", "leave out what ends in ://"}}) {
    const Outcome outcome = RunTool(address, {"store", "list"});
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
    EXPECT_EQ(outcome.error,
              "--server or SOFTLOOKUP_SERVER must be HOST:PORT, not \"" + address + "\": " + wrong);
  }
}

TEST_F(ToolTest, EachOfSeveralAddressesIsChecked) {
  for (const auto& [list, address, wrong] :
       std::vector<std::tuple<std::string, std::string, std::string>>{
           {"a:1,,b:2", "", "it is empty"},
           {"a:1,", "", "it is empty"},
           {"a:1,b", "b", "the port is missing"},
           {"a:1, b:2", " b:2", "a host has no slash, space or control character"}}) {
    const Outcome outcome = RunTool(list, {"store", "list"});
    EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
    EXPECT_EQ(outcome.error, "--server or SOFTLOOKUP_SERVER must be HOST:PORT, not \"" + address +
                                 "\" in \"" + list + "\": " + wrong);
  }
}

TEST_F(ToolTest, OfSeveralServersOneThatIsDownIsPassedOver) {
  const ClosedPort down;
  const Outcome outcome = RunTool(down.address() + "," + service_.address(), {"health"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kOk) << outcome.error;
}

TEST_F(ToolTest, ALoadTestIsOfOneServer) {
  const Outcome outcome = RunTool(service_.address() + "," + service_.address(), {"loadtest"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kUsage);
  EXPECT_EQ(outcome.error,
            "loadtest measures one server, but --server or SOFTLOOKUP_SERVER names several");
}

TEST_F(ToolTest, UnreachableServersAreAllNamed) {
  const ClosedPort a, b;
  Session session;
  session.server = a.address() + "," + b.address();
  const absl::Status status = session.Connect()->GetStore("people").status();
  EXPECT_THAT(ErrorLine(status, session.server),
              StartsWith("UNAVAILABLE: no answer from " + session.server));
}

TEST_F(ToolTest, LateAnswerNamesTheTimeout) {
  service_.get_memory = [](grpc::ServerContext*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "late");
  };
  const Outcome outcome = Run({"memory", "people", "--timeout", "5"});
  EXPECT_EQ(outcome.exit_code, ExitCode::kUnavailable);
  EXPECT_EQ(outcome.error, "DEADLINE_EXCEEDED: no answer from " + service_.address() +
                               " in time (--timeout gives it longer): late (GetMemory had 5s)");
}

TEST(ExitCodeTest, FollowsTheStatusCode) {
  const auto code_of = [](absl::StatusCode code) { return ExitCodeOf(absl::Status(code, "")); };
  EXPECT_EQ(ExitCodeOf(absl::OkStatus()), ExitCode::kOk);
  EXPECT_EQ(code_of(absl::StatusCode::kInvalidArgument), ExitCode::kRefused);
  EXPECT_EQ(code_of(absl::StatusCode::kFailedPrecondition), ExitCode::kRefused);
  EXPECT_EQ(code_of(absl::StatusCode::kResourceExhausted), ExitCode::kRefused);
  EXPECT_EQ(code_of(absl::StatusCode::kNotFound), ExitCode::kNotFound);
  EXPECT_EQ(code_of(absl::StatusCode::kAlreadyExists), ExitCode::kAlreadyExists);
  EXPECT_EQ(code_of(absl::StatusCode::kUnavailable), ExitCode::kUnavailable);
  EXPECT_EQ(code_of(absl::StatusCode::kDeadlineExceeded), ExitCode::kUnavailable);
  EXPECT_EQ(code_of(absl::StatusCode::kInternal), ExitCode::kOther);
  EXPECT_EQ(ExitCodeOf(UsageError("")), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(InputError("", "")), ExitCode::kInput);
}

}  // namespace
}  // namespace softlookup::tool
