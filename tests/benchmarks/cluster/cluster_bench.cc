// What a group of replicas on three members of etcd takes, all on this machine, beside a server
// that is in no cluster: rows in bulk, and etcd's share of the CPU meanwhile; durable appends of a
// single row at a group of one, at a group of three with all replicas, with one that has lost its
// disk, and while that one copies all data, each beside a transaction of etcd alone; and the memory
// of etcd's members over time.
#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstddef>
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
#include "server/cluster/etcd/etcd.grpc.pb.h"
#include "softlookup/v1/soft_lookup.grpc.pb.h"
#include "tests/benchmarks/cluster/process_use.h"
#include "tests/benchmarks/cluster/repeated_call.h"
#include "tests/benchmarks/measuring.h"
#include "tests/testing/etcd_members.h"
#include "tests/testing/server_process.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

constexpr int kMembers = 3;
constexpr std::uint32_t kDim = 128;
constexpr char kStore[] = "s";
constexpr double kRowBytes = 2 * kDim * sizeof(float);
constexpr std::size_t kTransactionBytes = 300;
// Before calls are counted: what went before has to end.
constexpr absl::Duration kSettle = absl::Seconds(2);

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

void Print(const char* what, const RepeatedCall::Times& times) {
  std::printf("%s: %zu, %d failed, p50 %.2f ms, p99 %.2f ms, longest %.0f ms\n", what,
              times.milliseconds.size(), times.failed, times.Quantile(0.5), times.Quantile(0.99),
              times.Quantile(1));
}

std::unique_ptr<v1::SoftLookup::Stub> NewStub(const ServerProcess& server) {
  return v1::SoftLookup::NewStub(
      grpc::CreateChannel(server.grpc_address(), grpc::InsecureChannelCredentials()));
}

void CreateStore(const ServerProcess& server) {
  grpc::ClientContext context;
  v1::CreateStoreRequest request;
  request.mutable_store()->set_name(kStore);
  request.mutable_store()->set_key_dim(kDim);
  request.mutable_store()->set_value_dim(kDim);
  v1::Store response;
  Check(NewStub(server)->CreateStore(&context, request, &response).ok(), "CreateStore");
}

// Returns an append of `rows` equal rows.
v1::AppendRequest MakeAppend(std::uint32_t rows) {
  v1::AppendRequest request;
  request.set_store(kStore);
  const std::vector<float> components(std::size_t{rows} * kDim, 0.25f);
  for (v1::Matrix* const matrix : {request.mutable_keys(), request.mutable_values()}) {
    matrix->set_rows(rows);
    matrix->set_cols(kDim);
    matrix->set_data(components.data(), components.size() * sizeof(float));
  }
  return request;
}

// Appends rows one by one.
std::unique_ptr<RepeatedCall> AppendSingleRows(const ServerProcess& server) {
  return std::make_unique<RepeatedCall>(
      [row = MakeAppend(1), stub = std::shared_ptr(NewStub(server))] {
        grpc::ClientContext context;
        v1::AppendResponse response;
        return stub->Append(&context, row, &response).ok();
      });
}

// Runs transactions of etcd that are as large as the one that names an entry, and nothing else.
std::unique_ptr<RepeatedCall> RunTransactions(const EtcdMembers& etcd) {
  etcdserverpb::TxnRequest txn;
  etcdserverpb::Compare& compare = *txn.add_compare();
  compare.set_key("bench");
  compare.set_result(etcdserverpb::Compare::GREATER);
  compare.set_target(etcdserverpb::Compare::VERSION);
  compare.set_version(-1);
  txn.add_success()->mutable_request_put()->set_key("bench");
  txn.mutable_success(0)->mutable_request_put()->set_value(std::string(kTransactionBytes, 'x'));
  return std::make_unique<RepeatedCall>(
      [txn, stub = std::shared_ptr(etcdserverpb::KV::NewStub(
                grpc::CreateChannel(etcd.endpoints()[0], grpc::InsecureChannelCredentials())))] {
        grpc::ClientContext context;
        etcdserverpb::TxnResponse response;
        return stub->Txn(&context, txn, &response).ok() && response.succeeded();
      });
}

// Appends `rows` rows, by two clients at once, and returns how many that are each second.
double Fill(const ServerProcess& server, std::uint32_t rows) {
  constexpr std::uint32_t kRowsPerAppend = 2'000;
  const double seconds = Seconds([&] {
    std::vector<std::thread> clients;
    for (int client = 0; client < 2; ++client) {
      clients.emplace_back([&, stub = NewStub(server)] {
        const v1::AppendRequest request = MakeAppend(kRowsPerAppend);
        for (std::uint32_t sent = 0; sent < rows / 2; sent += kRowsPerAppend) {
          grpc::ClientContext context;
          v1::AppendResponse response;
          Check(stub->Append(&context, request, &response).ok(), "an append");
        }
      });
    }
    for (std::thread& client : clients) client.join();
  });
  return rows / seconds;
}

class Cluster {
 public:
  Cluster() { Start(0); }

  // From one node to all.
  void Grow() {
    for (int node = 1; node < kNodes; ++node) {
      while (RunCommand({ToolBinary(), "cluster", "add", NameOf(node), "--server",
                         nodes_[0]->grpc_address()})
                 .exit_code != 0) {
      }
      Start(node);
    }
  }

  static constexpr int kNodes = 3;

  const EtcdMembers& etcd() const { return etcd_; }
  const ServerProcess& primary() const { return *nodes_[0]; }
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

// Single appends at the primary, then transactions of etcd alone. Prints both, and returns the
// former.
RepeatedCall::Times MeasureAppends(const Cluster& cluster, const char* what, double seconds) {
  const auto measure = [&](std::unique_ptr<RepeatedCall> call) {
    LetPass(kSettle);
    call->Take();
    LetPass(absl::Seconds(seconds));
    return call->Take();
  };
  const RepeatedCall::Times appends = measure(AppendSingleRows(cluster.primary()));
  const RepeatedCall::Times alone = measure(RunTransactions(cluster.etcd()));
  Print(what, appends);
  Print("  a transaction of etcd alone", alone);
  std::printf("  appends take %.2f times as long\n", appends.Quantile(0.5) / alone.Quantile(0.5));
  return appends;
}

// Fills a server that is in no cluster, and returns how many rows it takes each second.
double FillOneServer(std::uint32_t rows) {
  const TemporaryDirectory directory;
  const ServerProcess server({"--data-dir", absl::StrCat(directory.path(), "/data")},
                             absl::StrCat(directory.path(), "/log"));
  CreateStore(server);
  return Fill(server, rows);
}

void Run(const Options& options) {
  const double of_one_server = FillOneServer(options.rows);
  std::printf("%u rows in bulk at one server: %.0f rows/s\n", options.rows, of_one_server);
  Cluster cluster;
  cluster.PrintMemory("at first");
  CreateStore(cluster.primary());
  MeasureAppends(cluster, "single appends at a group of one", options.seconds);

  cluster.Grow();
  const double etcd_before = CpuSeconds(cluster.members());
  const double nodes_before = CpuSeconds(cluster.nodes());
  const double of_group = Fill(cluster.primary(), options.rows);
  const double etcd = CpuSeconds(cluster.members()) - etcd_before;
  const double nodes = CpuSeconds(cluster.nodes()) - nodes_before;
  std::printf("as many at a group of three: %.0f rows/s, %.1f MB/s, %.2f of one server's rate; ",
              of_group, of_group * kRowBytes / 1e6, of_group / of_one_server);
  std::printf("CPU of etcd %.1f s, of the nodes %.1f s: etcd has %.1f %% of it\n", etcd, nodes,
              100 * etcd / (etcd + nodes));
  cluster.PrintMemory("after these");
  const RepeatedCall::Times alone =
      MeasureAppends(cluster, "single appends at a group of three", options.seconds);

  constexpr int kLost = Cluster::kNodes - 1;
  cluster.Lose(kLost);
  // Each entry then waits for the one other replica, and not for the faster of two.
  const RepeatedCall::Times with_two =
      MeasureAppends(cluster, "with a replica lost", options.seconds);
  const std::unique_ptr<RepeatedCall> appends = AppendSingleRows(cluster.primary());
  LetPass(kSettle);
  appends->Take();
  const double seconds = Seconds([&] { cluster.Start(kLost); });
  const RepeatedCall::Times beside = appends->Take();
  std::printf("a lost replica serves again after %.1f s\n", seconds);
  Print("meanwhile", beside);
  std::printf("p99 is %.2f times that alone, %.2f times that with a replica lost\n",
              beside.Quantile(0.99) / alone.Quantile(0.99),
              beside.Quantile(0.99) / with_two.Quantile(0.99));

  for (int minute = 1; minute <= options.minutes; ++minute) {
    LetPass(absl::Minutes(1));
    Print("later", appends->Take());
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
