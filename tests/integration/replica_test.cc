// A server whose writes etcd orders: what is left of it after a crash, and what becomes of two
// servers that have the same data. With the real server and a real etcd.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "softlookup/error_details.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/child_process.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/etcdctl.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::HasSubstr;

// Starts a server that does not get ready. Its standard error goes to the file `log`.
pid_t StartUnready(std::vector<std::string> flags, const std::string& log) {
  flags.insert(flags.begin(), ServerBinary());
  flags.insert(flags.end(), {"--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"});
  const int file = open(log.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  const pid_t server = StartChild(flags, {.err = file});
  close(file);
  return server;
}
// Waits until the file `log` has `text`, or the server has ended.
void AwaitLine(pid_t server, const std::string& log, const std::string& text) {
  siginfo_t ended = {};
  ASSERT_TRUE(AwaitThat([&] {
    waitid(P_PID, static_cast<id_t>(server), &ended, WEXITED | WNOHANG | WNOWAIT);
    return ended.si_pid != 0 || absl::StrContains(Contents(log), text);
  })) << Contents(log);
  ASSERT_THAT(Contents(log), HasSubstr(text));
}
// Returns its exit code; -1 if a signal ended it.
int StopUnready(pid_t server) {
  kill(server, SIGTERM);
  int status = 0;
  waitpid(server, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

class ReplicaTest : public ::testing::Test {
 protected:
  static std::vector<std::string> Flags(const EtcdMembers& etcd, const std::string& directory,
                                        const std::string& group = "g") {
    return {"--data-dir", directory, "--cluster-etcd", etcd.endpoints()[0],
            "--cluster",  "c",       "--group",        group,
            "--node",     "n"};
  }
  std::vector<std::string> Flags(const std::string& directory,
                                 const std::string& group = "g") const {
    return Flags(etcd_, directory, group);
  }
  std::unique_ptr<ServerProcess> Start(const std::string& directory) const {
    return std::make_unique<ServerProcess>(Flags(directory));
  }
  // Runs a server that does not get ready.
  CommandResult Run(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), ServerBinary());
    for (const char* flag : {"--listen", "--http-listen"}) {
      flags.insert(flags.end(), {flag, "127.0.0.1:0"});
    }
    return RunCommand(flags);
  }
  static std::unique_ptr<v1::SoftLookup::Stub> StubOf(const ServerProcess& server) {
    return v1::SoftLookup::NewStub(
        grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
  }
  static void Create(const ServerProcess& server) {
    CallContext context;
    v1::CreateStoreRequest request;
    *request.mutable_store() = StoreMessage("s", 1, 1);
    v1::Store response;
    ASSERT_THAT(StubOf(server)->CreateStore(&context, request, &response), IsGrpcOk());
  }
  static v1::AppendRequest OneRow() {
    v1::AppendRequest request;
    request.set_store("s");
    *request.mutable_keys() = Message({1}, 1);
    *request.mutable_values() = Message({1}, 1);
    return request;
  }
  // Appends a row. Returns the row count of the store.
  static std::uint64_t Append(const ServerProcess& server) {
    CallContext context;
    v1::AppendResponse response;
    EXPECT_THAT(StubOf(server)->Append(&context, OneRow(), &response), IsGrpcOk());
    return response.row_count();
  }

  const TemporaryDirectory parent_;
  const std::string directory_ = parent_.path() + "/data", copy_ = parent_.path() + "/copy";
  const EtcdMembers etcd_{1};
};

TEST_F(ReplicaTest, AKilledServerComesBackWithAllThatItHasAcknowledged) {
  std::unique_ptr<ServerProcess> server = Start(directory_);
  Create(*server);
  EXPECT_EQ(Append(*server), 1u);
  EXPECT_EQ(server->Stop(SIGKILL), 128 + SIGKILL);
  server = Start(directory_);
  EXPECT_EQ(Append(*server), 2u);
  EXPECT_EQ(server->Stop(SIGTERM), 0);
  EXPECT_EQ(Append(*Start(directory_)), 3u);
}

// The first server does not run for longer than its lease, as if its machine had been suspended.
TEST_F(ReplicaTest, AServerThatWakesAfterAnotherTookOverEnds) {
  std::unique_ptr<ServerProcess> first = Start(directory_);
  Create(*first);
  EXPECT_EQ(Append(*first), 1u);
  kill(first->pid(), SIGSTOP);
  std::filesystem::copy(directory_, copy_);
  std::unique_ptr<ServerProcess> second = Start(copy_);
  EXPECT_EQ(Append(*second), 2u);
  kill(first->pid(), SIGCONT);
  EXPECT_EQ(first->Stop(0), 1);
  EXPECT_EQ(Append(*second), 3u);
  // The first directory is behind, and stays so.
  EXPECT_THAT(Run(Flags(directory_)).err, HasSubstr("the disk has lost it"));
}

TEST_F(ReplicaTest, AServerThatWaitsToBeThePrimaryStopsOnASignal) {
  const std::unique_ptr<ServerProcess> first = Start(directory_);
  kill(first->pid(), SIGSTOP);  // It writes to no file meanwhile.
  std::filesystem::copy(directory_, copy_);
  kill(first->pid(), SIGCONT);
  const std::string log = parent_.path() + "/log";
  const pid_t second = StartUnready(Flags(copy_), log);
  // It blocks the signal before it writes a line.
  AwaitLine(second, log, "is node n of group g");
  EXPECT_EQ(StopUnready(second), 0);
}

TEST_F(ReplicaTest, ANodeThatIsNotTheFounderWaitsToBeAdded) {
  const std::string log = parent_.path() + "/log";
  std::vector<std::string> flags = Flags(copy_);
  flags.back() = "o";
  flags.insert(flags.end(), {"--founder", "n", "--cluster-listen", "127.0.0.1:0"});
  const pid_t other = StartUnready(flags, log);
  AwaitLine(other, log, "no node has founded the group yet");
  flags = Flags(directory_);
  flags.insert(flags.end(), {"--founder", "n", "--cluster-listen", "127.0.0.1:0"});
  const ServerProcess founder(flags);
  AwaitLine(other, log, "node o is no replica of this group, whose replicas are n; add it first");
  // A new primary changes nothing before it has read what it has made of the group.
  EXPECT_TRUE(AwaitThat([&] {
    return RunCommand({ToolBinary(), "--server", founder.grpc_address(), "cluster", "add", "o"})
               .exit_code == 0;
  }));
  AwaitLine(other, log, "follows node n");
  EXPECT_EQ(StopUnready(other), 0);
}

TEST_F(ReplicaTest, OnlyTheReplicaOpensItsDirectory) {
  Create(*Start(directory_));
  CommandResult result = Run({"--data-dir", directory_});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("belongs to node n of group g of cluster c"));
  std::vector<std::string> flags = Flags(directory_);
  flags.back() = "o";
  result = Run(flags);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("belongs to node n of group g of cluster c"));
  flags[1] = copy_;  // A new directory.
  result = Run(flags);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("node o is no replica of this group"));
  EXPECT_EQ(RunCommand({ServerBinary(), "--verify", "--data-dir", directory_}).exit_code, 0);
}

TEST(ReplicaOverTlsTest, EtcdIsSpokenToOverTlsWithAClientCertificate) {
  const SecurityFiles files;
  const EtcdMembers etcd(1, EtcdTls{.ca = files.Path("tls/ca.pem"),
                                    .certificate = files.Path("tls/server.pem"),
                                    .key = files.Path("tls/server-key.pem")});
  const TemporaryDirectory parent;
  const auto flags = [&](const std::string& ca) -> std::vector<std::string> {
    return {"--data-dir",
            parent.path() + "/data",
            "--cluster-etcd",
            etcd.endpoints()[0],
            "--cluster",
            "c",
            "--group",
            "g",
            "--node",
            "n",
            "--cluster-etcd-ca",
            files.Path(ca),
            "--cluster-etcd-certificate",
            files.Path("tls/client.pem"),
            "--cluster-etcd-key",
            files.Path("tls/client-key.pem")};
  };
  // It is ready once it is the primary.
  EXPECT_EQ(ServerProcess(flags("tls/ca.pem")).Stop(SIGTERM), 0);

  // A member of another authority is not believed. The server says so, and waits.
  files.MakeAuthority("other");
  const std::string log = parent.path() + "/log";
  const pid_t server = StartUnready(flags("other/ca.pem"), log);
  AwaitLine(server, log, "etcd does not answer");
  EXPECT_EQ(StopUnready(server), 0);
}

// The steps out of it are those of docs/cluster.md.
TEST_F(ReplicaTest, AFullEtcdIsNamedAndWritesGoOnOnceThereIsRoom) {
  const EtcdMembers etcd(1, std::nullopt, "--quota-backend-bytes=1000000");
  const std::string log = parent_.path() + "/log";
  std::vector<std::string> flags = Flags(etcd, directory_);
  flags.insert(flags.end(), {"--log-level", "info"});
  const ServerProcess server(flags, log);
  Create(server);
  const auto etcdctl = [&](const std::vector<std::string>& arguments,
                           const std::string& input = "") {
    return RunEtcdctl(etcd.endpoints()[0], arguments, /*seconds=*/60, input);
  };
  const std::string filler(100'000, 'x');
  EXPECT_TRUE(AwaitThat([&] {
    return absl::StrContains(etcdctl({"put", "filler"}, filler).err, "database space exceeded");
  }));

  CallContext context;
  v1::AppendResponse response;
  const grpc::Status refused = StubOf(server)->Append(&context, OneRow(), &response);
  EXPECT_THAT(refused, IsGrpcError(grpc::StatusCode::UNAVAILABLE, "etcd does not answer"));
  EXPECT_TRUE(AwaitThat([&] {
    return absl::StrContains(
        Contents(log), "etcd takes no writes: etcd: etcdserver: mvcc: database space exceeded");
  })) << Contents(log);
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_queries() = Message({1}, 1);
  CallContext lookup_context;
  v1::LookupResponse answer;
  EXPECT_THAT(StubOf(server)->Lookup(&lookup_context, lookup, &answer), IsGrpcOk());

  // Nor can another group be founded.
  const std::string other_log = parent_.path() + "/other-log";
  const pid_t other = StartUnready(Flags(etcd, copy_, "other"), other_log);
  AwaitLine(other, other_log, "etcd takes no writes");
  EXPECT_EQ(StopUnready(other), 0);

  const std::string fields = etcdctl({"get", "filler", "--write-out=fields"}).out;
  const std::string name = "\"Revision\" : ";
  const std::size_t begin = fields.find(name) + name.size();
  const std::string revision = fields.substr(begin, fields.find('\n', begin) - begin);
  ASSERT_EQ(etcdctl({"compact", "--physical", revision}).exit_code, 0) << fields;
  ASSERT_EQ(etcdctl({"defrag"}).exit_code, 0);
  ASSERT_EQ(etcdctl({"alarm", "disarm"}).exit_code, 0);
  EXPECT_TRUE(AwaitThat([&] {
    CallContext again_context;
    return StubOf(server)->Append(&again_context, OneRow(), &response).ok();
  })) << Contents(log);
  EXPECT_TRUE(AwaitThat([&] { return absl::StrContains(Contents(log), "etcd answers again"); }));
}

TEST_F(ReplicaTest, ATenantThatAnotherGroupHasIsServedAndToldButGetsNoMoreStores) {
  {
    const ServerProcess alone({"--data-dir", directory_});
    Client client = *Client::Connect(alone.grpc_address(), PatientOptions());
    ASSERT_THAT(client.CreateStore(StoreMessage("acme/old", 1, 1)), IsOk());
    ASSERT_THAT(client.CreateStore(StoreMessage("s", 1, 1)), IsOk());
  }
  const ServerProcess other(Flags(copy_, "other"));
  ASSERT_THAT(Client::Connect(other.grpc_address(), PatientOptions())
                  ->CreateStore(StoreMessage("acme/new", 1, 1)),
              IsOk());
  const std::string log = parent_.path() + "/log";
  ServerProcess server(Flags(directory_), log);
  AwaitLine(server.pid(), log, "tenant acme has stores here");
  Client client = *Client::Connect(server.grpc_address(), PatientOptions());
  const absl::Status refused = client.CreateStore(StoreMessage("acme/more", 1, 1)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
  EXPECT_EQ(ErrorReason(refused), "TENANT_ELSEWHERE");
  EXPECT_EQ(ErrorMetadata(refused)["group"], "other");
  EXPECT_THAT(client.GetStore("acme/old"), IsOk());
  EXPECT_EQ(Append(server), 1u);
  const CommandResult tool =
      RunCommand({ToolBinary(), "--server", server.grpc_address(), "store", "create", "acme/more",
                  "--key-dim", "1", "--value-dim", "1"});
  EXPECT_NE(tool.exit_code, 0);
  EXPECT_THAT(tool.err, HasSubstr("belongs to group other"));
  EXPECT_EQ(server.Stop(SIGTERM), 0);
  const std::string told = Contents(log);
  const std::string line = "tenant acme has stores here and does not belong to this group";
  EXPECT_EQ(told.find(line), told.rfind(line)) << "it is told twice";
}

}  // namespace
}  // namespace softlookup::testing
