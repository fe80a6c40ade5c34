#include "tests/fuzz/seed_files.h"

#include <google/protobuf/text_format.h>

#include <memory>
#include <vector>

#include "core/engine/put_records.h"
#include "core/storage/records.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "server/rpc/ranges_codec.h"
#include "softlookup/admin/v1/admin.pb.h"
#include "softlookup/v1/lookup.pb.h"
#include "softlookup/v1/memory.pb.h"
#include "softlookup/v1/row.pb.h"
#include "softlookup/v1/store.pb.h"
#include "tests/fuzz/request_fuzz.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/seed_corpus.h"
#include "tests/fuzz/store_log.h"

namespace softlookup::fuzz {
namespace {

using Files = std::map<std::string, std::string>;

template <typename Request>
void AddRequest(const std::string& name, const char* text, Files& files) {
  Request request;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &request));
  files["request/" + name] = RequestInput(request);
}

// Those that the engine's seeds are not.
void AddRequests(Files& files) {
  AddRequest<v1::GetStoreRequest>("get_store", "name: 's'", files);
  AddRequest<v1::ListStoresRequest>("list_stores", "page_size: 10 page_token: 'a' prefix: 'acme/'",
                                    files);
  AddRequest<v1::DeleteStoreRequest>("delete_store", "name: 's'", files);
  AddRequest<v1::CreateStoreRequest>("create_projection", R"(
      store { name: "p" key_dim: 1 value_dim: 1 projection {
        query { rows: 1 cols: 2 values: [1, 2] } key { rows: 1 cols: 2 values: [3, 4] }
        value { rows: 1 cols: 2 values: [5, 6] } } })",
                                     files);
  AddRequest<v1::AppendRequest>("append_tagged", R"(
      store: "s" keys { rows: 2 cols: 1 values: [1, 2] } values { rows: 2 cols: 1 values: [3, 4] }
      ids: [7, 8] on_conflict: ON_CONFLICT_REPLACE row_labels { labels: "a" labels: "b" }
      row_labels {} writer: "w" sequence: 3)",
                                files);
  AddRequest<v1::AppendRequest>("append_inputs", "inputs { rows: 1 cols: 3 values: [1, 2, 3] }",
                                files);
  AddRequest<v1::ReadRowsRequest>("read_rows", R"(
      store: "s" filter { begin: 1 end: 9 any_labels: "a" no_labels: "b" ids: [1, 2]
      exclude_ids: 3 } page_rows: 5 read_mask { paths: "id" paths: "key" paths: "labels"
      paths: "position" paths: "value" })",
                                  files);
  AddRequest<v1::DeleteRowsRequest>("delete_rows", "store: 's' filter { ids: [300, 4] last: 2 }",
                                    files);
  AddRequest<v1::LookupRequest>("lookup_inputs", R"(
      inputs { rows: 1 cols: 1 element_type: ELEMENT_TYPE_BFLOAT16 data: "\200\077" }
      source: SOURCE_ROWS_AND_MEMORY memory: "average" filter { any_labels: "x" })",
                                files);
  AddRequest<v1::AttendRequest>("attend", R"(
      queries { rows: 1 cols: 2 values: [1, 2] } keys { rows: 1 cols: 2 values: [3, 4] }
      values { rows: 1 cols: 2 element_type: ELEMENT_TYPE_FLOAT64
        data: "\000\000\000\000\000\000\360\077\000\000\000\000\000\000\360\077" }
      num_heads: 2 options { score: SCORE_DOT causal: true })",
                                files);
  AddRequest<v1::AttendRequest>("attend_self", R"(
      inputs { rows: 1 cols: 1 values: 1 } self: true projection {
        query { rows: 1 cols: 1 values: 1 } key { rows: 1 cols: 1 values: 2 }
        value { rows: 1 cols: 1 values: 3 } })",
                                files);
  AddRequest<v1::WatchMemoryRequest>("watch_memory",
                                     "store: 's' name: 'average' min_interval_ms: 100", files);
  AddRequest<v1::GetWriterRequest>("get_writer", "store: 's' writer: 'w'", files);
  AddRequest<admin::v1::CreateBackupRequest>("create_backup", "name: 'b'", files);
  AddRequest<admin::v1::ListBackupsRequest>("list_backups", "", files);
  AddRequest<grpc::health::v1::HealthCheckRequest>("health", "service: 's'", files);
  AddRequest<grpc::reflection::v1alpha::ServerReflectionRequest>(
      "reflection", "host: 'h' file_by_filename: 'f'", files);
}

void AddLogRecords(Files& files) {
  const auto add = [&](const char* name, char kind, const std::string& value) {
    files[std::string("log_record/") + name] = kind + value;
  };
  add("key", 0, EncodeKey({.store = 1, .kind = RecordKind::kRows, .number = 16}));
  add("key_of_writer", 0, EncodeKey({.store = 1, .kind = RecordKind::kWriter, .writer = "w"}));
  auto projection = std::make_shared<Projection>();
  *projection = {.input_dim = 1, .query = {1, 2}, .key = {3, 4}, .value = {5}};
  add("config", 1,
      EncodeConfig({.config = {.name = "s",
                               .key_dim = 2,
                               .value_dim = 1,
                               .storage_type = StorageType::kInt8,
                               .memories = {{.name = "m",
                                             .kind = MemoryKind::kGated,
                                             .decay = 0.5,
                                             .gate = {1, 2, 3}}},
                               .projection = projection,
                               .labels = {{"team", "search"}}},
                    .create_time = absl::FromUnixNanos(1)}));
  add("revision", 2, EncodeRevision({.revision = 2, .row_count = 3}));
  add("block_start", 3, EncodeBlockStart({.memories = {1, 2}, .bounds = {3, 4}}));
  add("live_rows", 4, EncodeLiveRows({.live = {1, 2, 3}}));
  add("live_rows_compacted", 4,
      EncodeLiveRows({.live = {1, 2}, .kept = LiveRowsRecord::Mask{3, 2, 1}}));
  add("rows", 5,
      EncodeRows({.row_count = 2,
                  .components = "abcdefghijkl",
                  .ids = {5, 6},
                  .row_labels = {{"x", "yz"}, {}}}));
  add("rows_compacted", 5,
      EncodeRows({.row_count = 2,
                  .components = "abcdefghijkl",
                  .ids = {5},
                  .has_id = {false, true},
                  .row_labels = {{"x", "yz"}, {}}}));
  add("writer", 6, EncodeWriter({.last_sequence = 7, .last_position = 9}));
  add("format", 7, EncodeFormat());
  add("name", 8, EncodeName("s"));
  add("key_of_name", 9, KeyOfName(1));
}

// A store as the engine logs it: three appends, tags, a writer, a deletion. With `compacts`, block
// 0 is then compacted, and loses another row. The appends must fill it.
std::string StoreLogText(StoreConfig config, std::int64_t row_count, bool compacts = false) {
  MemoryLog log;
  StoreEditor editor(std::move(config));
  PutNewStore(1, *editor.newest(), absl::FromUnixNanos(1), *log.NewBatch());
  const std::int64_t key_dim = editor.newest()->config().key_dim;
  const std::int64_t value_dim = editor.newest()->config().value_dim;
  const std::vector<float> numbers(static_cast<std::size_t>(row_count * (key_dim + value_dim)),
                                   0.25f);
  const std::vector<std::uint64_t> ids = {7};
  const std::vector<std::vector<std::string>> labels = {{"a", "b"}};
  const auto append = [&](std::int64_t count, bool is_tagged) {
    RowBatch rows{.keys = {numbers.data(), count, key_dim},
                  .values = {numbers.data(), count, value_dim}};
    if (is_tagged) {
      rows.ids = ids;
      rows.row_labels = labels;
      rows.writer = "w";
      rows.sequence = 1;
    }
    const auto appended = editor.Append(rows);
    REQUIRE(appended.ok());
    PutAppend(1, *appended, rows, is_tagged ? editor.FindWriter("w") : nullptr, *log.NewBatch());
  };
  append(1, /*is_tagged=*/true);
  append(row_count, /*is_tagged=*/false);
  append(1, /*is_tagged=*/false);
  const auto deleted = editor.Delete({.begin = 1, .end = 3});
  REQUIRE(deleted.ok());
  PutDeletion(1, *deleted, *log.NewBatch());
  if (compacts) {
    const auto others = editor.Delete({.begin = 5, .end = 1000});
    REQUIRE(others.ok());
    PutDeletion(1, *others, *log.NewBatch());
    const RowSpan spans[] = {
        {.first_position = 0, .row_count = 1},
        {.first_position = 1, .row_count = static_cast<std::uint64_t>(row_count)}};
    PutCompaction(1, editor.Compact(0, 1), 0, 1, spans, *log.NewBatch());
    const auto last = editor.Delete({.begin = 4, .end = 5});
    REQUIRE(last.ok());
    PutDeletion(1, *last, *log.NewBatch());
  }
  return log.LogText();
}

void AddStoreLogs(Files& files) {
  files["store_log/float32"] =
      StoreLogText({.name = "s", .key_dim = 2, .value_dim = 1}, /*row_count=*/18);
  files["store_log/int8_heads"] =
      StoreLogText({.name = "s",
                    .key_dim = 2,
                    .value_dim = 2,
                    .num_heads = 2,
                    .storage_type = StorageType::kInt8,
                    .memories = {{.name = "sum", .kind = MemoryKind::kDecayedSum, .decay = 0.5}}},
                   /*row_count=*/33);
  // Over a block's end.
  files["store_log/bfloat16_blocks"] = StoreLogText(
      {.name = "s", .key_dim = 1, .value_dim = 1, .storage_type = StorageType::kBfloat16},
      /*row_count=*/1030);
  files["store_log/compacted_block"] =
      StoreLogText({.name = "s", .key_dim = 1, .value_dim = 1}, /*row_count=*/1030,
                   /*compacts=*/true);
}

// What one range with all rows answers, and what it may be asked then.
void AddRanges(Files& files) {
  const CountedRow best{.position = 9, .logit = 2, .score = 4};
  const CountedRow other{.position = 4, .logit = 1, .score = 2};
  const PartialState state{.max_logit = 2,
                           .weight = 1.5,
                           .weighted = -0.5,
                           .counted_rows = 2,
                           .max_position = 9,
                           .summed_rows = 2,
                           .left_out = 1e-7};
  PartialLookup soft{.shape = {.query_count = 1,
                               .num_heads = 2,
                               .value_dim = 4,
                               .weights = WeightsMode::kTop,
                               .top_weights = 3},
                     .attended = {.begin = 3, .end = 12},
                     .revision = 5,
                     .row_count = 12,
                     .answers = {{.state = state,
                                  .sum = {1, -2},
                                  .rows = {.best = {best, other}, .first = {other, best}},
                                  .arithmetic_error = 1e-6},
                                 {}},
                     .ids = {{.position = 4, .id = 70}, {.position = 9, .id = 3}}};
  PartialLookup hard = soft;
  hard.shape.mode = Mode::kHard;
  PartialLookup linear = soft;
  linear.shape.mode = Mode::kLinear;
  linear.shape.memory = MemoryRow{.position = 2, .multiplicity = 3};
  linear.answers[0].rows.first.clear();
  linear.answers[0].rows.unranked_memory = CountedRow{.position = 2, .logit = -1, .score = -1};
  PartialLookup all = soft;
  all.shape.weights = WeightsMode::kAll;
  all.shape.top_weights = 0;
  all.answers[0].rows = {.best = {other, best}};
  PartialLookup selected = soft;
  selected.shape.selected_max = 3;
  selected.answers[0] = {.rows = {.best = {best, other}}};
  selected.ids.clear();
  PartialLookup plain = soft;
  plain.shape.weights = WeightsMode::kNone;
  plain.shape.top_weights = 0;
  plain.answers[0].rows = {};
  plain.ids.clear();
  for (const auto& [name, lookup] : std::map<std::string, PartialLookup>{{"soft", soft},
                                                                         {"hard", hard},
                                                                         {"linear", linear},
                                                                         {"all", all},
                                                                         {"selected", selected},
                                                                         {"plain", plain}}) {
    files["ranges/" + name] =
        std::string(1, '\0') + server::EncodePartialLookup(lookup).SerializeAsString();
  }
  const RowSumsRequest request{.rows = {{{.position = 9, .weight = 1}}, {}},
                               .id_positions = {4, 9}};
  files["ranges/sums_request"] =
      std::string(1, '\1') + server::EncodeRowSumsRequest(request).SerializeAsString();
  const RowSums sums{.sums = {1, -2, 0, 0}, .ids = {{.position = 4, .id = 70}}};
  files["ranges/sums"] = std::string(1, '\2') + server::EncodeRowSums(sums).SerializeAsString();
}

}  // namespace

Files SeedFiles() {
  Files files;
  int index = 0;
  for (const auto& message : SeedCorpus()) {
    const std::string name = "seed-" + std::to_string(index++);
    files["engine/" + name] = message->SerializeAsString();
    files["request/" + name] = RequestInput(*message);
  }
  AddRequests(files);
  AddLogRecords(files);
  AddStoreLogs(files);
  AddRanges(files);
  return files;
}

}  // namespace softlookup::fuzz
