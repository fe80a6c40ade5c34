// What /metrics says, beside what was asked of the server and what docs/metrics.md says of it.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "softlookup/admin/v1/admin.grpc.pb.h"
#include "tests/integration/integration_test.h"
#include "tests/integration/scrape.h"
#include "tests/testing/passing_time.h"
#include "tests/testing/patient_options.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temporary_directory.h"

namespace softlookup::testing {
namespace {

using ::testing::StartsWith;

std::string Calls(const std::string& method, const std::string& code) {
  return absl::StrCat("softlookup_calls_total{method=\"", method, "\",code=\"", code, "\"}");
}

std::string DurationCount(const std::string& method) {
  return absl::StrCat("softlookup_call_duration_seconds_count{method=\"", method, "\"}");
}

std::string InProgress(const std::string& method) {
  return absl::StrCat("softlookup_calls_in_progress{method=\"", method, "\"}");
}

std::string Rejected(const std::string& reason) {
  return absl::StrCat("softlookup_rejected_total{reason=\"", reason, "\"}");
}

class MetricsTest : public IntegrationTest {
 protected:
  explicit MetricsTest(const std::vector<std::string>& flags = {}) : IntegrationTest(flags) {}

  MetricsText Scrape() const { return testing::Scrape(server_); }
  MetricsText ScrapeUntil(absl::FunctionRef<bool(const MetricsText&)> holds) const {
    MetricsText metrics = Scrape();
    EXPECT_TRUE(AwaitThat([&] {
      metrics = Scrape();
      return holds(metrics);
    }));
    return metrics;
  }

  grpc::Status LookUp(const std::string& store, const std::vector<float>& queries,
                      std::int64_t key_dim) {
    v1::LookupRequest request;
    request.set_store(store);
    *request.mutable_queries() = Message(queries, key_dim);
    v1::LookupResponse response;
    return Lookup(request, &response);
  }
};

// The families that docs/metrics.md has a row for.
std::map<std::string, MetricsText::Family> DocumentedFamilies() {
  std::map<std::string, MetricsText::Family> families;
  std::ifstream file(SOFTLOOKUP_SOURCE_DIR "/docs/metrics.md");
  const auto word = [](absl::string_view cell) {
    cell = absl::StripAsciiWhitespace(cell);
    absl::ConsumePrefix(&cell, "`");
    absl::ConsumeSuffix(&cell, "`");
    return std::string(cell);
  };
  for (std::string line; std::getline(file, line);) {
    if (!absl::StartsWith(line, "| `")) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    EXPECT_EQ(cells.size(), 8u) << line;
    MetricsText::Family family{.type = word(cells[2])};
    for (const absl::string_view label : absl::StrSplit(cells[4], ',', absl::SkipWhitespace())) {
      family.label_names.insert(word(label));
    }
    EXPECT_TRUE(families.emplace(word(cells[1]), family).second) << line;
  }
  return families;
}

constexpr char kBackupFree[] = "softlookup_disk_free_bytes{directory=\"backup\"}";
constexpr char kNewestBackup[] = "softlookup_newest_backup_time_seconds";

// A server that keeps its stores and makes backups.
class DiskMetricsTest : public HasDirectory, public MetricsTest {
 protected:
  DiskMetricsTest() : MetricsTest({"--data-dir", Path("data"), "--backup-dir", Path("backups")}) {}

  // Scrapes until the server has read the figures of its disks that hold `metric`.
  MetricsText ScrapeOnceThereIs(const std::string& metric) const {
    return ScrapeUntil([&](const MetricsText& metrics) { return metrics.Value(metric, -1) != -1; });
  }
  // Scrapes until the server has read that there is a backup.
  MetricsText ScrapeOnceThereIsABackup() const {
    return ScrapeUntil(
        [](const MetricsText& metrics) { return metrics.Value(kNewestBackup, 0) > 0; });
  }

  admin::v1::Backup MakeBackup(const std::string& name) {
    CallContext context;
    admin::v1::CreateBackupRequest request;
    request.set_name(name);
    admin::v1::Backup backup;
    EXPECT_THAT(
        admin::v1::Admin::NewStub(Channel(server_))->CreateBackup(&context, request, &backup),
        IsGrpcOk());
    return backup;
  }
};

TEST_F(DiskMetricsTest, TheDiskAndTheNewestBackupAreShown) {
  const MetricsText before = ScrapeOnceThereIs(kNewestBackup);
  const double free = before.Value("softlookup_disk_free_bytes{directory=\"data\"}");
  EXPECT_GT(free, 0);
  EXPECT_GE(before.Value("softlookup_disk_size_bytes{directory=\"data\"}"), free);
  EXPECT_GT(before.Value(kBackupFree), 0);
  EXPECT_EQ(before.Value(kNewestBackup, -1), 0);

  const admin::v1::Backup backup = MakeBackup("first");
  const MetricsText after = ScrapeOnceThereIsABackup();
  EXPECT_NEAR(after.Value(kNewestBackup), static_cast<double>(backup.create_time().seconds()), 1);
}

TEST_F(DiskMetricsTest, RestoresOfStoresAreCountedByTheirEnd) {
  const auto count = [this](const std::string& result) {
    return Scrape().Value(absl::StrCat("softlookup_store_restores_total{result=\"", result, "\"}"),
                          -1);
  };
  EXPECT_EQ(count("ok"), 0);
  EXPECT_EQ(count("failed"), 0);
  Create("s", 2, 1);
  MakeBackup("first");
  const auto restore = [this](const std::string& store, const std::string& name) {
    CallContext context;
    admin::v1::RestoreStoreRequest request;
    request.set_backup("first");
    request.set_store(store);
    request.set_name(name);
    admin::v1::RestoreStoreResponse response;
    return admin::v1::Admin::NewStub(Channel(server_))->RestoreStore(&context, request, &response);
  };
  EXPECT_THAT(restore("s", "t"), IsGrpcOk());
  EXPECT_THAT(restore("none", "u"), IsGrpcError(grpc::NOT_FOUND, ""));
  EXPECT_THAT(restore("s", ".."), IsGrpcError(grpc::INVALID_ARGUMENT, ""));
  EXPECT_EQ(count("ok"), 1);
  EXPECT_EQ(count("failed"), 1);
}

TEST_F(DiskMetricsTest, WhatIsNoBackupDoesNotCountAndHoldsNobodyUp) {
  MakeBackup("first");
  const double newest = ScrapeOnceThereIsABackup().Value(kNewestBackup);
  for (const char* name : {"pipe", "future", "broken"}) {
    std::filesystem::create_directory(Path("backups/" + std::string(name)));
  }
  ASSERT_EQ(mkfifo(Path("backups/pipe/BACKUP.json").c_str(), 0600), 0);
  std::ofstream(Path("backups/future/BACKUP.json"))
      << R"({"format_version": 2, "create_time": "9999-01-01T00:00:00Z"})";
  std::ofstream(Path("backups/broken/BACKUP.json")) << "{";
  const admin::v1::Backup backup = MakeBackup("second");
  const MetricsText metrics =
      ScrapeUntil([&](const MetricsText& read) { return read.Value(kNewestBackup) != newest; });
  EXPECT_NEAR(metrics.Value(kNewestBackup), static_cast<double>(backup.create_time().seconds()), 1);
}

TEST_F(MetricsTest, WithoutADiskThereAreNoFiguresOfOne) {
  const MetricsText metrics = Scrape();
  EXPECT_EQ(metrics.Value("softlookup_disk_free_bytes{directory=\"data\"}", -1), -1);
  EXPECT_EQ(metrics.Value("softlookup_newest_backup_time_seconds", -1), -1);
}

TEST_F(DiskMetricsTest, TheDocumentHasEveryMetricWithItsTypeAndLabels) {
  MakeBackup("first");
  const MetricsText metrics = ScrapeOnceThereIs(kBackupFree);
  const auto documented = DocumentedFamilies();
  EXPECT_GT(documented.size(), 30u);
  std::set<std::string> names;
  for (const auto& [name, family] : documented) {
    if (!name.starts_with("softlookup_router_")) names.insert(name);  // Those are of routers.
  }
  for (const auto& [name, family] : metrics.families) names.insert(name);
  for (const std::string& name : names) {
    ASSERT_TRUE(documented.contains(name)) << name << " is not in docs/metrics.md";
    ASSERT_TRUE(metrics.families.contains(name)) << name << " is not in /metrics";
    EXPECT_EQ(metrics.families.at(name).type, documented.at(name).type) << name;
    // This server is no replica, so there is no sample of this one, which would have its labels.
    if (name == "softlookup_replication_info") continue;
    EXPECT_EQ(metrics.families.at(name).label_names, documented.at(name).label_names) << name;
  }
}

TEST_F(MetricsTest, CallsAreCountedByMethodAndCode) {
  Create("s", 2, 1);
  EXPECT_THAT(CreateStore(StoreMessage("s", 2, 1)), IsGrpcError(grpc::ALREADY_EXISTS, ""));
  ASSERT_THAT(Append(TwoRows()), IsGrpcOk());
  for (int i = 0; i < 3; ++i) EXPECT_THAT(LookUp("s", {1, 2}, 2), IsGrpcOk());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(LookUp("t", {1, 2}, 2), IsGrpcError(grpc::NOT_FOUND, ""));
  }
  EXPECT_THAT(LookUp("s", {1, 2, 3}, 3), IsGrpcError(grpc::INVALID_ARGUMENT, ""));
  GetStore("s");
  EXPECT_EQ(RowsOf("s").size(), 2u);
  v1::Memory memory;
  EXPECT_THAT(GetMemory("s", "", std::nullopt, std::nullopt, &memory), IsGrpcOk());

  const MetricsText metrics = Scrape();
  const std::map<std::string, double> expected = {
      {Calls("CreateStore", "OK"), 1},   {Calls("CreateStore", "ALREADY_EXISTS"), 1},
      {Calls("Append", "OK"), 1},        {Calls("Lookup", "OK"), 3},
      {Calls("Lookup", "NOT_FOUND"), 2}, {Calls("Lookup", "INVALID_ARGUMENT"), 1},
      {Calls("GetStore", "OK"), 1},      {Calls("ReadRows", "OK"), 1},
      {Calls("GetMemory", "OK"), 1}};
  std::map<std::string, double> actual;
  double calls = 0, durations = 0;
  for (const auto& [sample, value] : metrics.samples) {
    if (absl::StartsWith(sample, "softlookup_calls_total") && value > 0) {
      actual[sample] = value;
      calls += value;
    }
    if (absl::StartsWith(sample, "softlookup_call_duration_seconds_count")) durations += value;
  }
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(durations, calls);
  EXPECT_EQ(metrics.Value(DurationCount("Lookup")), 6);
  EXPECT_GT(metrics.Value("softlookup_call_duration_seconds_sum{method=\"Lookup\"}"), 0);
}

TEST_F(MetricsTest, MessagesOfStreamsAreCalls) {
  Create("s", 2, 1);
  {
    CallContext context;
    const auto stream = stub_->StreamAppend(&context);
    v1::AppendRequest request = TwoRows();
    v1::AppendResponse response;
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(stream->Write(request));
      ASSERT_TRUE(stream->Read(&response));
    }
    EXPECT_EQ(Scrape().Value(InProgress("StreamAppend")), 1);
    request.clear_values();
    stream->Write(request);
    stream->Write(TwoRows());  // Comes too late.
    stream->WritesDone();
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_THAT(stream->Finish(), IsGrpcError(grpc::INVALID_ARGUMENT, ""));
  }
  {
    CallContext context;
    const auto stream = stub_->StreamLookup(&context);
    v1::LookupRequest request = OneQuery();
    *request.mutable_queries() = Message({1, 2}, 2);
    v1::LookupResponse response;
    for (const double temperature : {1, -1, 1}) {
      request.mutable_options()->set_temperature(temperature);
      ASSERT_TRUE(stream->Write(request));
      ASSERT_TRUE(stream->Read(&response));
    }
    EXPECT_EQ(Scrape().Value(InProgress("StreamLookup")), 1);
    stream->WritesDone();
    EXPECT_THAT(stream->Finish(), IsGrpcOk());
  }
  {
    CallContext context;
    v1::WatchMemoryRequest request;
    request.set_store("s");
    const auto watch = stub_->WatchMemory(&context, request);
    v1::Memory memory;
    ASSERT_TRUE(watch->Read(&memory));
    EXPECT_EQ(Scrape().Value(DurationCount("WatchMemory")), 0);
    ASSERT_THAT(DeleteStore("s"), IsGrpcOk());
    EXPECT_FALSE(watch->Read(&memory));
    EXPECT_THAT(watch->Finish(), IsGrpcError(grpc::NOT_FOUND, ""));
  }
  const MetricsText metrics = Scrape();
  EXPECT_EQ(metrics.Value(Calls("StreamAppend", "OK")), 2);
  EXPECT_EQ(metrics.Value(Calls("StreamAppend", "INVALID_ARGUMENT")), 1);
  EXPECT_EQ(metrics.Value(DurationCount("StreamAppend")), 3);
  EXPECT_EQ(metrics.Value(Calls("StreamLookup", "OK")), 2);
  EXPECT_EQ(metrics.Value(Calls("StreamLookup", "INVALID_ARGUMENT")), 1);
  EXPECT_EQ(metrics.Value(DurationCount("StreamLookup")), 3);
  EXPECT_EQ(metrics.Value(Calls("WatchMemory", "NOT_FOUND")), 1);
}

TEST_F(MetricsTest, RowsAreCountedAsTheyComeAreScannedAndGo) {
  constexpr double kRowBytes = (2 + 1) * 4;
  Create("s", 2, 1);
  ASSERT_THAT(Append(TwoRows()), IsGrpcOk());
  ASSERT_THAT(LookUp("s", {1, 2, 3, 4, 5, 6}, 2), IsGrpcOk());  // 3 queries.
  ASSERT_THAT(LookUp("s", {1, 2}, 2), IsGrpcOk());
  MetricsText metrics = Scrape();
  EXPECT_EQ(metrics.Value("softlookup_appended_rows_total"), 2);
  EXPECT_EQ(metrics.Value("softlookup_appended_bytes_total"), 2 * kRowBytes);
  EXPECT_EQ(metrics.Value("softlookup_scanned_rows_total"), 4);
  EXPECT_EQ(metrics.Value("softlookup_scanned_bytes_total"), 4 * kRowBytes);
  EXPECT_GE(metrics.Value("softlookup_summed_rows_total"), 4);  // At least one for each query.
  EXPECT_LE(metrics.Value("softlookup_summed_rows_total"), 8);
  EXPECT_EQ(metrics.Value("softlookup_pass_queries_sum"), 4);
  EXPECT_EQ(metrics.Value("softlookup_pass_queries_count"), 2);
  EXPECT_EQ(metrics.Value("softlookup_pass_queries_bucket{le=\"1\"}"), 1);
  EXPECT_EQ(metrics.Value("softlookup_pass_queries_bucket{le=\"4\"}"), 2);
  EXPECT_EQ(metrics.Value("softlookup_pass_lookups_sum"), 2);
  EXPECT_EQ(metrics.Value("softlookup_lookup_queue_seconds_count"), 2);
  EXPECT_EQ(metrics.Value("softlookup_lookup_compute_seconds_count"), 2);
  EXPECT_GT(metrics.Value("softlookup_lookup_compute_seconds_sum"), 0);
  EXPECT_LT(metrics.Value("softlookup_lookup_compute_seconds_sum"), 60);
  EXPECT_EQ(metrics.Value("softlookup_stores"), 1);
  EXPECT_EQ(metrics.Value("softlookup_rows"), 2);
  EXPECT_EQ(metrics.Value("softlookup_live_rows"), 2);
  EXPECT_EQ(metrics.Value("softlookup_store_bytes"),
            static_cast<double>(GetStore("s").byte_size()));

  v1::RowFilter first;
  first.set_end(1);
  v1::DeleteRowsResponse deleted;
  ASSERT_THAT(DeleteRows("s", first, &deleted), IsGrpcOk());
  metrics = Scrape();
  EXPECT_EQ(metrics.Value("softlookup_rows"), 2);
  EXPECT_EQ(metrics.Value("softlookup_live_rows"), 1);
  ASSERT_THAT(DeleteStore("s"), IsGrpcOk());
  metrics = Scrape();
  EXPECT_EQ(metrics.Value("softlookup_stores"), 0);
  EXPECT_EQ(metrics.Value("softlookup_rows"), 0);
  EXPECT_EQ(metrics.Value("softlookup_live_rows"), 0);
  EXPECT_EQ(metrics.Value("softlookup_store_bytes"), 0);
  EXPECT_EQ(metrics.Value("softlookup_appended_rows_total"), 2);
}

class CompactionMetricsTest : public MetricsTest {
 protected:
  CompactionMetricsTest() : MetricsTest({"--compact-above", "0.5"}) {}
};

TEST_F(CompactionMetricsTest, CompactionsAreCountedWithTheRowsThatTheyDrop) {
  constexpr int kBlockRows = 1024;
  Create("s", 2, 1);
  v1::AppendRequest request;
  request.set_store("s");
  *request.mutable_keys() = Message(std::vector<float>(4 * kBlockRows, 1), 2);
  *request.mutable_values() = Message(std::vector<float>(2 * kBlockRows, 1), 1);
  ASSERT_THAT(Append(request), IsGrpcOk());
  EXPECT_EQ(Scrape().Value("softlookup_compactions_total", -1), 0);
  EXPECT_EQ(Scrape().Value("softlookup_compacted_rows_total", -1), 0);
  v1::RowFilter first;
  first.set_end(kBlockRows);
  v1::DeleteRowsResponse deleted;
  ASSERT_THAT(DeleteRows("s", first, &deleted), IsGrpcOk());
  const MetricsText metrics = ScrapeUntil(
      [](const MetricsText& read) { return read.Value("softlookup_compactions_total") > 0; });
  EXPECT_EQ(metrics.Value("softlookup_compactions_total"), 1);
  EXPECT_EQ(metrics.Value("softlookup_compacted_rows_total"), kBlockRows);
  EXPECT_EQ(metrics.Value("softlookup_failed_compactions_total", -1), 0);
  EXPECT_EQ(metrics.Value("softlookup_rows"), 2 * kBlockRows);
  EXPECT_EQ(metrics.Value("softlookup_live_rows"), kBlockRows);
}

TEST_F(MetricsTest, TheProcessTellsOfItself) {
  const MetricsText metrics = Scrape();
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(metrics.Value("process_max_fds"), static_cast<double>(limit.rlim_cur));
  EXPECT_GT(metrics.Value("process_open_fds"), 5);
  EXPECT_LT(metrics.Value("process_open_fds"), 1000);
  EXPECT_GT(metrics.Value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(metrics.Value("process_cpu_seconds_total"), 0);
  const double now = absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch());
  EXPECT_NEAR(metrics.Value("process_start_time_seconds"), now, 120);
  EXPECT_EQ(metrics.Value("softlookup_ready"), 1);
  EXPECT_EQ(metrics.Value("softlookup_log_failed", -1), 0);
  EXPECT_EQ(metrics.Value("softlookup_damaged_stores", -1), 0);

  // A connection more is a descriptor more.
  const auto channel =
      grpc::CreateCustomChannel(server_.grpc_address(), grpc::InsecureChannelCredentials(), [] {
        grpc::ChannelArguments arguments;
        arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
        return arguments;
      }());
  ASSERT_TRUE(channel->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(30))));
  CallContext context;
  v1::ListStoresResponse response;
  ASSERT_THAT(v1::SoftLookup::NewStub(channel)->ListStores(&context, {}, &response), IsGrpcOk());
  EXPECT_GT(Scrape().Value("process_open_fds"), metrics.Value("process_open_fds"));
}

class RejectionsTest : public MetricsTest {
 protected:
  RejectionsTest()
      : MetricsTest(
            {"--max-stores", "1", "--max-message-bytes", "100000", "--memory-limit", "200000"}) {}
};

TEST_F(RejectionsTest, AreCountedByReason) {
  Create("s", 2, 1);
  EXPECT_EQ(ReasonOf(CreateStore(StoreMessage("t", 2, 1))), "TOO_MANY_STORES");
  v1::AppendRequest request;
  request.set_store("s");
  *request.mutable_keys() = Message(std::vector<float>(2 * 5000, 1), 2);
  *request.mutable_values() = Message(std::vector<float>(5000, 1), 1);
  double refused = 0;
  for (int i = 0; i < 10; ++i) refused += ReasonOf(Append(request)) == "MEMORY_LIMIT";
  EXPECT_GT(refused, 0);
  *request.mutable_keys() = Message(std::vector<float>(25'000, 1), 2);
  EXPECT_EQ(ReasonOf(Append(request)), "MESSAGE_TOO_LARGE");
  // An answer within a stream is one, too.
  CallContext context;
  const auto stream = stub_->StreamLookup(&context);
  v1::LookupRequest lookup;
  lookup.set_store("s");
  *lookup.mutable_queries() = Message(std::vector<float>(2 * 1000, 1), 2);
  lookup.mutable_options()->set_weights(v1::WEIGHTS_MODE_ALL);
  v1::LookupResponse response;
  ASSERT_TRUE(stream->Write(lookup));
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.error().code(), grpc::RESOURCE_EXHAUSTED) << response.error().message();
  stream->WritesDone();
  EXPECT_THAT(stream->Finish(), IsGrpcOk());

  const MetricsText metrics = Scrape();
  EXPECT_EQ(metrics.Value(Rejected("TOO_MANY_STORES")), 1);
  EXPECT_EQ(metrics.Value(Rejected("MEMORY_LIMIT")), refused);
  EXPECT_EQ(metrics.Value(Rejected("MESSAGE_TOO_LARGE")), 1);
  EXPECT_EQ(metrics.Value(Rejected("ANSWER_TOO_LARGE")), 1);
  EXPECT_EQ(metrics.Value(Rejected("QUEUE_FULL"), -1), 0);
  EXPECT_EQ(metrics.Value(Rejected("OTHER"), -1), 0);
  EXPECT_EQ(metrics.Value("softlookup_memory_limit_bytes"), 200000);
  EXPECT_EQ(metrics.Value("softlookup_memory_used_bytes"), metrics.Value("softlookup_store_bytes"));
  EXPECT_GT(metrics.Value("softlookup_store_bytes"), 50'000);
}

TEST(KeptMetricsTest, SyncsAreTimedAndSumsAreThereAfterARestart) {
  const TemporaryDirectory directory;
  const std::vector<std::string> flags = {"--data-dir", directory.path() + "/data"};
  {
    ServerProcess server(flags);
    Client client = *Client::Connect(server.grpc_address(), PatientOptions());
    ASSERT_THAT(client.CreateStore(StoreMessage("s", 2, 1)), IsOk());
    const std::vector<float> keys = {1, 2, 3, 4}, values = {5, 6};
    ASSERT_THAT(client.Append("s", View(keys, 2), View(values, 1)), IsOk());
    const MetricsText metrics = Scrape(server);
    EXPECT_EQ(metrics.Value("softlookup_log_sync_seconds_count"), 2);
    EXPECT_GT(metrics.Value("softlookup_log_sync_seconds_sum"), 0);
    EXPECT_EQ(server.Stop(SIGTERM), 0);
  }
  const ServerProcess server(flags);
  const MetricsText metrics = Scrape(server);
  EXPECT_EQ(metrics.Value("softlookup_stores"), 1);
  EXPECT_EQ(metrics.Value("softlookup_rows"), 2);
  EXPECT_EQ(metrics.Value("softlookup_live_rows"), 2);
  EXPECT_EQ(metrics.Value("softlookup_appended_rows_total"), 0);
}

TEST(MetricsTextTest, TheParserIsStrict) {
  const std::string good =
      "# HELP a What.\n# TYPE a counter\na{x=\"1\",y=\"q\\\"\"} 1\na 2\n"
      "# HELP h What.\n# TYPE h histogram\nh_count 3\nh_sum 1.5\n"
      "h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 3\n";
  const absl::StatusOr<MetricsText> metrics = ParseMetricsText(good);
  ASSERT_THAT(metrics, IsOk());
  EXPECT_EQ(metrics->Value("a{x=\"1\",y=\"q\\\"\"}"), 1);
  EXPECT_EQ(metrics->families.at("h").type, "histogram");
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string text = good;
    return text.replace(text.find(what), what.size(), by);
  };
  for (const std::string& bad :
       {replaced("a 2", "a{x=\"1\",y=\"q\\\"\"} 2"), replaced("a 2", "b 2"),
        replaced("a 2", "a two"), replaced("a 2", "a -2"), replaced("a 2", "a{x=1} 2"),
        replaced("a 2", "a{x=\"\n\"} 2"), replaced("a 2", "a  2"), replaced("# HELP a What.\n", ""),
        replaced("# TYPE a counter\n", ""), replaced("counter", "meter"),
        replaced("h_count 3", "h_count 4"), replaced("h_sum 1.5\n", ""),
        replaced("\"1\"} 2", "\"1\"} 4"), replaced("+Inf", "2"),
        replaced("\"1\"} 2\n", "\"1\"} 2\n\n"), good.substr(0, good.size() - 1), std::string()}) {
    EXPECT_FALSE(ParseMetricsText(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace softlookup::testing
