// What a group of three on three members of etcd takes, all on this machine: durable single-row
// appends with all replicas, with one that has lost its disk, and while that one copies all data;
// etcd's share of the CPU while rows come in bulk; and the memory of etcd's members over time.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/benchmarks/cluster/process_use.h"
#include "tests/benchmarks/cluster/single_appends.h"
#include "tests/benchmarks/measuring.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr int kMembers = 3;
constexpr std::uint32_t kDim = 128;
constexpr char kStore[] = "s";

struct Options {
  std::uint32_t rows = 1'000'000;
  double seconds = 30;  // Of appends with nothing else, each time.
  int minutes = 10;     // Of the same appends afterwards.
};

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "cluster_bench: %s failed\n", what);
  std::abort();
}

void LetPass(absl::Duration time) {
  const absl::Notification never;
  never.WaitForNotificationWithTimeout(time);
}

void Print(const char* what, const SingleAppends::Times& times) {
  std::printf("%s: %zu appends, %d failed, p50 %.2f ms, p99 %.2f ms, longest %.0f ms\n", what,
              times.milliseconds.size(), times.failed, times.Quantile(0.5), times.Quantile(0.99),
              times.Quantile(1));
}

class Cluster {
 public:
  Cluster() {
    Start(0);
    for (int node = 1; node < kNodes; ++node) {
      while (RunCommand({ToolBinary(), "cluster", "add", NameOf(node), "--server",
                         nodes_[0]->grpc_address()})
                 .exit_code != 0) {
      }
      Start(node);
    }
  }

  static constexpr int kNodes = 3;

  std::unique_ptr<v1::SoftLookup::Stub> NewStub() const {
    return v1::SoftLookup::NewStub(
        grpc::CreateChannel(nodes_[0]->grpc_address(), grpc::InsecureChannelCredentials()));
  }
  // Starts a node, and waits until it serves.
  void Start(int node) {
    const std::string name = NameOf(node);
    nodes_[node] = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--data-dir", DataOf(node), "--cluster-etcd",
                                 absl::StrJoin(etcd_.endpoints(), ","), "--cluster", "c", "--group",
                                 "g", "--node", name, "--cluster-listen", "127.0.0.1:0",
                                 "--log-level", "info"},
        absl::StrCat(directory_.path(), "/", name, ".log"));
  }
  // The node ends, and loses its directory.
  void Lose(int node) {
    nodes_[node]->Stop(SIGTERM);
    std::filesystem::remove_all(DataOf(node));
  }
  std::vector<pid_t> members() const {
    std::vector<pid_t> processes;
    for (int member = 0; member < kMembers; ++member) processes.push_back(etcd_.pid(member));
    return processes;
  }
  std::vector<pid_t> nodes() const {
    std::vector<pid_t> processes;
    for (const auto& node : nodes_) processes.push_back(node->pid());
    return processes;
  }
  void PrintMemory(const char* when) const {
    std::printf("etcd's members have, %s,", when);
    for (const pid_t member : members()) std::printf(" %.0f", ResidentMib(member));
    std::printf(" MiB\n");
  }

 private:
  static std::string NameOf(int node) { return absl::StrCat("n", node + 1); }
  std::string DataOf(int node) const { return absl::StrCat(directory_.path(), "/", NameOf(node)); }

  const TemporaryDirectory directory_;
  EtcdMembers etcd_{kMembers};
  std::array<std::unique_ptr<ServerProcess>, kNodes> nodes_;
};

// Appends `rows` rows, by two clients at once.
void Fill(const Cluster& cluster, std::uint32_t rows) {
  constexpr std::uint32_t kRowsPerAppend = 2'000;
  std::vector<std::thread> clients;
  for (int client = 0; client < 2; ++client) {
    clients.emplace_back([&, stub = cluster.NewStub()] {
      const v1::AppendRequest request = MakeAppend(kStore, kRowsPerAppend, kDim);
      for (std::uint32_t sent = 0; sent < rows / 2; sent += kRowsPerAppend) {
        grpc::ClientContext context;
        v1::AppendResponse response;
        Check(stub->Append(&context, request, &response).ok(), "an append");
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

void Run(const Options& options) {
  Cluster cluster;
  cluster.PrintMemory("at first");
  {
    grpc::ClientContext context;
    v1::CreateStoreRequest request;
    request.mutable_store()->set_name(kStore);
    request.mutable_store()->set_key_dim(kDim);
    request.mutable_store()->set_value_dim(kDim);
    v1::Store response;
    Check(cluster.NewStub()->CreateStore(&context, request, &response).ok(), "CreateStore");
  }
  const double etcd_before = CpuSeconds(cluster.members());
  const double nodes_before = CpuSeconds(cluster.nodes());
  const double fill = Seconds([&] { Fill(cluster, options.rows); });
  const double etcd = CpuSeconds(cluster.members()) - etcd_before;
  const double nodes = CpuSeconds(cluster.nodes()) - nodes_before;
  std::printf("%u rows in bulk: %.1f s, %.0f rows/s; CPU of etcd %.1f s, of the nodes %.1f s: ",
              options.rows, fill, options.rows / fill, etcd, nodes);
  std::printf("etcd has %.1f %% of it\n", 100 * etcd / (etcd + nodes));
  cluster.PrintMemory("after these");

  SingleAppends appends(cluster.NewStub(), MakeAppend(kStore, 1, kDim));
  LetPass(absl::Seconds(2));
  appends.Take();
  LetPass(absl::Seconds(options.seconds));
  const SingleAppends::Times alone = appends.Take();
  Print("alone", alone);

  constexpr int kLost = Cluster::kNodes - 1;
  cluster.Lose(kLost);
  LetPass(absl::Seconds(2));
  appends.Take();
  // Each entry then waits for the one other replica, and not for the faster of two.
  LetPass(absl::Seconds(options.seconds));
  const SingleAppends::Times with_two = appends.Take();
  Print("with a replica lost", with_two);
  const double seconds = Seconds([&] { cluster.Start(kLost); });
  const SingleAppends::Times beside = appends.Take();
  std::printf("a lost replica serves again after %.1f s\n", seconds);
  Print("meanwhile", beside);
  std::printf("p99 is %.2f times that alone, %.2f times that with a replica lost\n",
              beside.Quantile(0.99) / alone.Quantile(0.99),
              beside.Quantile(0.99) / with_two.Quantile(0.99));

  for (int minute = 1; minute <= options.minutes; ++minute) {
    LetPass(absl::Minutes(1));
    Print("later", appends.Take());
    cluster.PrintMemory(absl::StrCat("after ", minute, " min").c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace softlookup::testing

int main(int argc, char** argv) {
  CLI::App app("Measures a group of three replicas on three members of etcd", "cluster_bench");
  app.option_defaults()->always_capture_default();
  softlookup::testing::Options options;
  app.add_option("--rows", options.rows, "Rows of 128 + 128 float32 in the store");
  app.add_option("--seconds", options.seconds, "Seconds of appends with nothing else, each time");
  app.add_option("--minutes", options.minutes, "Minutes of appends at the end, for etcd's memory");
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  softlookup::testing::Run(options);
}
