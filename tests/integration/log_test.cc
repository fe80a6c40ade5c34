// What a real server writes to its log.
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";
constexpr char kTraceParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr std::int64_t kKeyDim = 32, kValueDim = 32, kQueries = 500, kRows = 20'000;

class LogTest : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--log-level", "info"});
    server_ = std::make_unique<ServerProcess>(flags, log_);
    stub_ = v1::SoftLookup::NewStub(
        grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
  }

  // Fills a store such that a lookup in it takes some milliseconds at least.
  void Fill(const std::string& name) {
    Client client = *Client::Connect(server_->grpc_address(), PatientOptions());
    ASSERT_THAT(client.CreateStore(StoreMessage(name, kKeyDim, kValueDim)), IsOk());
    const std::vector<float> keys = NormalFloats(kRows * kKeyDim, 1);
    ASSERT_THAT(client.Append(name, View(keys, kKeyDim), View(keys, kValueDim)), IsOk());
  }

  static v1::LookupRequest SlowLookup(const std::string& store) {
    v1::LookupRequest request;
    request.set_store(store);
    *request.mutable_queries() = Message(NormalFloats(kQueries * kKeyDim, 2), kKeyDim);
    return request;
  }

  grpc::Status LookUp(const v1::LookupRequest& request, const std::string& trace_parent = "") {
    CallContext context;
    if (!trace_parent.empty()) context.AddMetadata("traceparent", trace_parent);
    v1::LookupResponse response;
    return stub_->Lookup(&context, request, &response);
  }

  // The lines of the log, once the server has ended.
  std::vector<std::string> Stop() {
    EXPECT_EQ(server_->Stop(SIGTERM), 0);
    std::vector<std::string> lines;
    std::ifstream file(log_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  // The same, of a server that writes JSON: those with this message.
  std::vector<json> StopJson(const std::string& message) {
    std::vector<json> found;
    for (const std::string& line : Stop()) {
      const json object = json::parse(line);
      EXPECT_TRUE(object.contains("time") && object.contains("level")) << line;
      if (object.at("message") == message) found.push_back(object);
    }
    return found;
  }

  const TemporaryDirectory directory_;
  const std::string log_ = directory_.path() + "/log";
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::SoftLookup::Stub> stub_;
};

TEST_F(LogTest, EveryLineOfJsonIsAnObject) {
  Start({"--log-format", "json"});
  const std::vector<std::string> lines = Stop();
  ASSERT_THAT(lines, SizeIs(4));
  for (const std::string& line : lines) {
    const json object = json::parse(line);
    EXPECT_EQ(object.at("level"), "info");
    EXPECT_THAT(object.at("time").get<std::string>(),
                MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z"));
  }
  EXPECT_THAT(json::parse(lines[0]).at("message").get<std::string>(), HasSubstr("kernel"));
  EXPECT_THAT(json::parse(lines[1]).at("message").get<std::string>(),
              AllOf(HasSubstr("serves gRPC on"), HasSubstr(" without TLS, ")));
  EXPECT_EQ(json::parse(lines[3]).at("message"), "stopped");
}

TEST_F(LogTest, ASighupSaysWhatIsReadAgainAndThatTheConfigIsNot) {
  const std::string config = directory_.path() + "/config", audit = directory_.path() + "/audit";
  std::ofstream(config) << "audit-log=\"" << audit << "\"\n";
  Start({"--config", config});
  std::ofstream(config) << "memory-limit=\"1GiB\"\n";
  kill(server_->pid(), SIGHUP);  // SIGTERM is taken after it.
  EXPECT_THAT(Stop(), Contains(HasSubstr("SIGHUP: opened the audit log anew; flags and --config " +
                                         config + " are read at the start only")));
  std::filesystem::remove(log_);
  Start({});
  kill(server_->pid(), SIGHUP);
  EXPECT_THAT(Stop(), Contains(HasSubstr("SIGHUP: there are no certificates, no auth file and no "
                                         "audit log to read again; flags are read at the start "
                                         "only")));
}

TEST_F(LogTest, IdentitiesThatNobodyCanCallAsAreWarnedOf) {
  const std::string auth = directory_.path() + "/auth.json";
  std::ofstream(auth) << R"({"identities": [{"name": "ingest", "certificate_name": "ingest.acme",
                                             "grants": [{"role": "read", "stores": "*"}]}]})";
  Start({"--auth", auth});
  EXPECT_THAT(Stop(), Contains(HasSubstr("1 identities of the auth file, such as ingest, have no "
                                         "token, and without --tls-client-ca no certificate")));
}

TEST_F(LogTest, ANewDataDirectoryIsWarnedOfOnce) {
  const std::string data = directory_.path() + "/data";
  const std::string warning = data + " does not exist: it becomes a new data directory";
  // The second server's log goes on where the first one's ended.
  for (int start = 0; start < 2; ++start) {
    Start({"--data-dir", data});
    const std::vector<std::string> lines = Stop();
    EXPECT_EQ(std::count_if(
                  lines.begin(), lines.end(),
                  [&](const std::string& line) { return line.find(warning) != std::string::npos; }),
              1);
  }
}

TEST_F(LogTest, WhatHappensToStoresIsLogged) {
  Start({"--log-format", "json", "--data-dir", directory_.path() + "/data", "--backup-dir",
         directory_.path() + "/backups"});
  Client client = *Client::Connect(server_->grpc_address(), PatientOptions());
  for (const char* name : {"a", "b"})
    ASSERT_THAT(client.CreateStore(StoreMessage(name, 2, 1)), IsOk());
  ASSERT_THAT(client.CreateBackup("one"), IsOk());
  ASSERT_THAT(client.RenameStore("a", "b", {.replace = true}), IsOk());
  ASSERT_THAT(client.CompactStore("b"), IsOk());
  ASSERT_THAT(client.RestoreStore("one", "a", "c"), IsOk());
  EXPECT_FALSE(client.RestoreStore("one", "none", "d").ok());
  ASSERT_THAT(client.DeleteStore("b"), IsOk());
  EXPECT_FALSE(client.DeleteStore("b").ok());
  std::vector<std::string> events;
  for (const std::string& text : Stop()) {
    const json line = json::parse(text);
    if (!line.contains("store")) continue;
    EXPECT_THAT(line.at("peer").get<std::string>(), HasSubstr("127.0.0.1"));
    events.push_back(line.at("level").get<std::string>() + " " +
                     line.at("message").get<std::string>() + " " +
                     line.at("store").get<std::string>());
  }
  EXPECT_THAT(events, ElementsAre("info store created a", "info store created b",
                                  "info store renamed a", "info compaction begun b",
                                  "info compaction ended b", "info store restored c",
                                  "warning store not restored d", "info store deleted b"));
}

TEST_F(LogTest, ASlowLookupIsLoggedWithWhereItsTimeWentAndItsTrace) {
  Start({"--log-format", "json", "--slow-lookup-ms", "1"});
  Fill("acme/s");
  v1::LookupRequest request = SlowLookup("acme/s");
  request.mutable_filter()->set_begin(100);
  request.mutable_options()->set_top_k(50);
  ASSERT_THAT(LookUp(request, kTraceParent), IsGrpcOk());
  const std::vector<json> lines = StopJson("slow lookup");
  ASSERT_THAT(lines, SizeIs(1));
  const json& line = lines[0];
  EXPECT_EQ(line.at("level"), "warning");
  EXPECT_EQ(line.at("method"), "Lookup");
  EXPECT_EQ(line.at("code"), "OK");
  EXPECT_EQ(line.at("store"), "acme/s");
  EXPECT_EQ(line.at("queries"), kQueries);
  EXPECT_EQ(line.at("counted_rows"), 50);
  EXPECT_EQ(line.at("scanned_rows"), kRows - 100);
  EXPECT_EQ(line.at("trace_id"), kTraceId);
  EXPECT_THAT(line.at("peer").get<std::string>(), HasSubstr("127.0.0.1"));
  EXPECT_GE(line.at("duration_ms"), 1);
  EXPECT_GT(line.at("compute_ms"), 0);
  EXPECT_LE(line.at("queue_ms").get<double>() + line.at("compute_ms").get<double>(),
            line.at("duration_ms").get<double>() + 0.01);
  // Nothing of the vectors.
  std::set<std::string> names;
  for (const auto& [name, value] : line.items()) {
    names.insert(name);
    EXPECT_TRUE(value.is_string() || value.is_number()) << name;
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"time", "level", "message", "method", "code", "duration_ms",
                                   "peer", "trace_id", "store", "queries", "counted_rows",
                                   "scanned_rows", "queue_ms", "compute_ms"}));
}

TEST_F(LogTest, OnAStreamEachSlowLookupIsLoggedWithItsStore) {
  Start({"--log-format", "json", "--slow-lookup-ms", "1"});
  Fill("s");
  {
    CallContext context;
    context.AddMetadata("traceparent", kTraceParent);
    const auto stream = stub_->StreamLookup(&context);
    v1::LookupRequest request = SlowLookup("s");
    v1::LookupResponse response;
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(stream->Write(request));
      ASSERT_TRUE(stream->Read(&response));
      request.clear_store();  // The first has named it.
    }
    stream->WritesDone();
    EXPECT_THAT(stream->Finish(), IsGrpcOk());
  }
  const std::vector<json> lines = StopJson("slow lookup");
  EXPECT_THAT(lines, SizeIs(3));
  for (const json& line : lines) {
    EXPECT_EQ(line.at("method"), "StreamLookup");
    EXPECT_EQ(line.at("store"), "s");
    EXPECT_EQ(line.at("trace_id"), kTraceId);
  }
}

TEST_F(LogTest, AStoreThatIsSlowDoesNotFloodTheLog) {
  Start({"--log-format", "json", "--slow-lookup-ms", "1"});
  Fill("s");
  constexpr int kLookups = 60;
  for (int i = 0; i < kLookups; ++i) ASSERT_THAT(LookUp(SlowLookup("s")), IsGrpcOk());
  int logged = 0, left_out = 0;
  for (const std::string& text : Stop()) {
    const json line = json::parse(text);
    if (line.at("message") == "slow lookup") ++logged;
    left_out += line.value("left_out", 0);
  }
  EXPECT_EQ(logged + left_out, kLookups);
  EXPECT_GE(logged, 10);
}

TEST_F(LogTest, ATraceParentThatIsNoneIsIgnored) {
  Start({"--slow-lookup-ms", "1"});
  Fill("s");
  for (const char* header :
       {"4bf92f3577b34da6a3ce929d0e0e4736",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01", "x level=info message=forged"}) {
    ASSERT_THAT(LookUp(SlowLookup("s"), header), IsGrpcOk());
  }
  CallContext twice;
  twice.AddMetadata("traceparent", kTraceParent);
  twice.AddMetadata("traceparent", kTraceParent);
  v1::LookupResponse response;
  ASSERT_THAT(stub_->Lookup(&twice, SlowLookup("s"), &response), IsGrpcOk());
  int slow = 0;
  for (const std::string& line : Stop()) {
    slow += line.find(" slow lookup ") != std::string::npos;
    EXPECT_THAT(line, AllOf(Not(HasSubstr("trace_id")), Not(HasSubstr("forged"))));
  }
  EXPECT_EQ(slow, 5);
}

TEST_F(LogTest, ANameCannotForgeALine) {
  Start({"--slow-lookup-ms", "1"});
  // So many numbers to convert that it takes longer than that; then the name turns out to be none.
  v1::LookupRequest request;
  request.set_store("s\n2026-01-01T00:00:00.000Z info forged \x1b[2J");
  v1::Matrix& queries = *request.mutable_queries();
  queries.set_rows(6000);
  queries.set_cols(1000);
  queries.set_element_type(v1::ELEMENT_TYPE_FLOAT64);
  queries.mutable_data()->resize(6000 * 1000 * 8);
  EXPECT_THAT(LookUp(request), IsGrpcError(grpc::INVALID_ARGUMENT, ""));
  const std::vector<std::string> lines = Stop();
  EXPECT_THAT(lines, Contains(HasSubstr("store=\"s\\n2026-01-01T00:00:00.000Z info forged "
                                        "\\u001b[2J\"")));
  for (const std::string& line : lines) {
    EXPECT_THAT(line, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}Z (info|warning) .*"));
  }
}

TEST_F(LogTest, WhatIsTheServersFaultIsLoggedWithItsTrace) {
  const std::string backups = directory_.path() + "/backups";
  Start(
      {"--log-format", "json", "--data-dir", directory_.path() + "/data", "--backup-dir", backups});
  std::filesystem::remove(backups);
  std::ofstream(backups) << "not a directory";
  const auto admin = admin::v1::Admin::NewStub(
      grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
  CallContext context;
  context.AddMetadata("traceparent", kTraceParent);
  admin::v1::Backup backup;
  const grpc::Status status = admin->CreateBackup(&context, {}, &backup);
  EXPECT_EQ(ReasonOf(status), "STORAGE_FAILED");
  // What is the caller's fault is theirs.
  EXPECT_THAT(LookUp(SlowLookup("none")), IsGrpcError(grpc::NOT_FOUND, ""));
  const std::vector<json> lines = StopJson("a call failed");
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].at("level"), "error");
  EXPECT_EQ(lines[0].at("method"), "CreateBackup");
  EXPECT_EQ(lines[0].at("code"), "UNAVAILABLE");
  EXPECT_EQ(lines[0].at("reason"), "STORAGE_FAILED");
  EXPECT_EQ(lines[0].at("error"), status.error_message());
  EXPECT_EQ(lines[0].at("trace_id"), kTraceId);
}

TEST_F(LogTest, QuickLookupsAndWaitsForARevisionAreNotSlow) {
  Start({"--slow-lookup-ms", "3000"});
  Fill("s");
  v1::LookupRequest request;
  request.set_store("s");
  *request.mutable_queries() = Message(NormalFloats(kKeyDim, 2), kKeyDim);
  EXPECT_THAT(LookUp(request), IsGrpcOk());
  // Fails at its deadline, after a wait that it asked for.
  request.set_min_revision(99);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(3500));
  v1::LookupResponse response;
  EXPECT_THAT(stub_->Lookup(&context, request, &response),
              IsGrpcError(grpc::DEADLINE_EXCEEDED, ""));
  EXPECT_THAT(Stop(), Each(Not(HasSubstr("slow lookup"))));
}

TEST_F(LogTest, With0NoneIsSlow) {
  Start({"--slow-lookup-ms", "0"});
  Fill("s");
  EXPECT_THAT(LookUp(SlowLookup("s")), IsGrpcOk());
  EXPECT_THAT(Stop(), Each(Not(HasSubstr("slow lookup"))));
}

}  // namespace
}  // namespace softlookup::testing
