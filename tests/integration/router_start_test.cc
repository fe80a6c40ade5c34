// How a router starts and stops when there is nothing behind it yet, and which flags it takes. With
// the real server and a real etcd.
#include <fcntl.h>
#include <httplib.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/integration/router_cluster.h"
#include "tests/integration/secure_server.h"
#include "tests/testing/child_process.h"
#include "tests/testing/passing_time.h"

namespace softlookup::testing {
namespace {

using ::testing::HasSubstr;

// A router that does not get ready yet. Killed if it was not stopped.
class UnreadyRouter {
 public:
  // Its standard error goes to the file `log`, and its standard output to the file `log`.out.
  UnreadyRouter(std::vector<std::string> flags, const std::string& log) : log_(log) {
    flags.insert(flags.begin(), ServerBinary());
    flags.insert(flags.end(), {"--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"});
    const int err = open(log.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const int out = open((log + ".out").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    pid_ = StartChild(flags, {.out = out, .err = err});
    close(err);
    close(out);
  }
  ~UnreadyRouter() {
    if (pid_ > 0) Stop(SIGKILL);
  }

  // Waits until its file has `text`, or it has ended.
  void Await(const std::string& text, const std::string& suffix = "") const {
    siginfo_t ended = {};
    ASSERT_TRUE(AwaitThat([&] {
      waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
      return ended.si_pid != 0 || absl::StrContains(Contents(log_ + suffix), text);
    })) << Contents(log_);
    ASSERT_THAT(Contents(log_ + suffix), HasSubstr(text)) << Contents(log_);
  }
  // Returns its exit code; -1 if a signal ended it.
  int Stop(int signal) {
    kill(pid_, signal);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  const std::string log_;
  pid_t pid_ = -1;
};

TEST(RouterStartTest, ARouterWaitsForEtcdAndForANode) {
  RouterCluster cluster;
  cluster.etcd().Kill(0);
  UnreadyRouter router(cluster.RouterFlags(), cluster.Path("log"));
  router.Await("etcd does not answer");
  cluster.etcd().Start(0);
  router.Await("waits for a node of cluster c");
  EXPECT_EQ(Contents(cluster.Path("log.out")), "");
  cluster.Found("g", "n");
  router.Await("softlookup-server ready", ".out");
  EXPECT_EQ(router.Stop(SIGTERM), 0);
}

TEST(RouterStartTest, ARouterThatWaitsStopsOnASignal) {
  RouterCluster cluster;
  for (const bool has_etcd : {true, false}) {
    if (!has_etcd) cluster.etcd().Kill(0);
    const std::string log = cluster.Path(absl::StrCat("log", has_etcd));
    UnreadyRouter router(cluster.RouterFlags(), log);
    router.Await(has_etcd ? "waits for a node of cluster c" : "etcd does not answer");
    EXPECT_EQ(router.Stop(SIGTERM), 0);
  }
}

// Nobody is believed who has no certificate of the nodes' authority.
TEST(RouterStartTest, ANodeOfAnotherAuthorityIsNotCalled) {
  const SecurityFiles files;
  files.MakeAuthority("other");
  RouterCluster cluster;
  const auto links = [&](const std::string& directory) {
    return std::vector<std::string>{
        "--cluster-ca",          files.Path(directory + "/ca.pem"),
        "--cluster-certificate", files.Path(directory + "/server.pem"),
        "--cluster-key",         files.Path(directory + "/server-key.pem")};
  };
  cluster.Found("g", "n", links("tls"));
  for (const auto& flags : {links("other"), std::vector<std::string>()}) {
    std::vector<std::string> all = cluster.RouterFlags();
    all.insert(all.end(), flags.begin(), flags.end());
    const std::string log = cluster.Path(absl::StrCat("log", flags.size()));
    UnreadyRouter router(all, log);
    router.Await("waits for a node of cluster c");
    EXPECT_EQ(Contents(log + ".out"), "");
    EXPECT_EQ(router.Stop(SIGTERM), 0);
  }
  cluster.StartRouter(links("tls"));
}

TEST(RouterStartTest, ReadinessFollowsTheNodes) {
  RouterCluster cluster;
  cluster.Found("g", "n");
  cluster.StartRouter();
  httplib::Client http("http://" + cluster.router().http_address());
  EXPECT_EQ(http.Get("/readyz")->status, 200);
  EXPECT_EQ(http.Get("/healthz")->status, 200);
  cluster.node("n").Stop(SIGKILL);
  while (http.Get("/readyz")->status != 503) {
  }
  EXPECT_EQ(http.Get("/healthz")->status, 200);
  cluster.Restart("n");
  while (http.Get("/readyz")->status != 200) {
  }
  const auto stub = StubOf(cluster.router());
  EXPECT_THAT(CreateStore(*stub, "s"), IsGrpcOk());
}

TEST(RouterStartTest, FlagsOfANodeAreRefused) {
  const struct {
    const char* flags;
    const char* error;
  } kWrong[] = {
      {"--router", "--router"},
      {"--router --cluster c", "--cluster-etcd"},
      {"--router --cluster-etcd 127.0.0.1:1", "--cluster"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --data-dir d", "--data-dir"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --ephemeral", "--ephemeral"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --node n", "--node"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --group g", "--group"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --cluster-listen 127.0.0.1:0",
       "--cluster-listen"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --backup-dir b", "--backup-dir"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --verify", "--verify"},
      {"--router --cluster-etcd 10.0.0.1:1 --cluster c", "--cluster-etcd-ca"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --cluster-ca x", "--cluster-certificate"},
      {"--router --cluster-etcd 127.0.0.1:1 --cluster c --advertise 127.0.0.1:1", "--advertise"},
      {"--cluster-etcd 127.0.0.1:1 --cluster c", "--router"},
  };
  for (const auto& wrong : kWrong) {
    std::vector<std::string> command = {ServerBinary()};
    for (const absl::string_view flag : absl::StrSplit(wrong.flags, ' ')) {
      command.emplace_back(flag);
    }
    const CommandResult result = RunCommand(command);
    EXPECT_EQ(result.exit_code, 2) << wrong.flags;
    EXPECT_THAT(result.err, HasSubstr(wrong.error)) << wrong.flags;
  }
}

}  // namespace
}  // namespace softlookup::testing
