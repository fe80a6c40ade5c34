#include "client/console/attention_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/console/lookup_fields.h"
#include "client/console/request_reader.h"
#include "client/cpp/status_macros.h"

namespace softlookup::console {
namespace {

using output::Json;

constexpr std::uint64_t kQueriesMax = 128;
constexpr std::uint64_t kColumnsMax = 256;
constexpr std::uint64_t kColumnBlocksMax = 64;
constexpr absl::Duration kAxisDeadline = absl::Seconds(10);
constexpr float kMasked = std::numeric_limits<float>::quiet_NaN();

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct HeatMap {
  std::string store;
  std::uint64_t head = 0;
  Range rows;        // That the queries attend to.
  Range query_rows;  // Whose keys are the queries, unless `queries` has some.
  FloatMatrix queries;
  // The queries that are shown, by their places in `queries`.
  std::vector<std::size_t> shown;
  bool self = false;
  v1::AttentionOptions attention;
};

// The rows of a range that are not deleted.
struct LiveRows {
  std::vector<std::uint64_t> positions;
  Json ids = Json::array();
  Json labels = Json::array();
  FloatMatrix keys;  // Only if asked for.
};

absl::StatusOr<LiveRows> ReadLive(const Backend& backend, const std::string& store, Range range,
                                  bool keys) {
  LiveRows live;
  ReadRowsOptions options{.read_mask = {"position", "id", "labels"}, .deadline = kAxisDeadline};
  if (keys) options.read_mask.push_back("key");
  v1::RowFilter filter;
  filter.set_begin(range.begin);
  filter.set_end(range.end);
  absl::Status status;
  std::uint64_t next = range.begin;
  const auto add = [&](const v1::Row& row) {
    if (row.position() < next || row.position() >= range.end) {
      return absl::InternalError("the server's answer has a row that was not asked for");
    }
    next = row.position() + 1;
    live.positions.push_back(row.position());
    live.ids.push_back(row.has_id() ? Json(std::to_string(row.id())) : Json());
    live.labels.push_back(std::vector<std::string>(row.labels().begin(), row.labels().end()));
    if (!keys) return absl::OkStatus();
    CLIENT_ASSIGN_OR_RETURN(const FloatMatrix key, FloatMatrix::FromProto(row.key()));
    if (key.rows != 1 || (live.keys.rows > 0 && key.cols != live.keys.cols)) {
      return absl::InternalError("the server's answer has a key of another size");
    }
    live.keys.cols = key.cols;
    ++live.keys.rows;
    live.keys.data.insert(live.keys.data.end(), key.data.begin(), key.data.end());
    return absl::OkStatus();
  };
  CLIENT_RETURN_IF_ERROR(backend.client->ReadRows(
      store, filter,
      [&](const v1::ReadRowsResponse& page) {
        for (const v1::Row& row : page.rows()) {
          if (status = add(row); !status.ok()) return false;
        }
        return !*backend.stopping;
      },
      options));
  CLIENT_RETURN_IF_ERROR(status);
  return live;
}

absl::StatusOr<HeatMap> ReadHeatMap(const Json& request) {
  RequestReader reader(request);
  HeatMap map{.store = reader.Text("store"), .head = reader.Count("head").value_or(0)};
  const auto dim = static_cast<std::uint32_t>(reader.Count("dim", 65536).value_or(0));
  map.queries = reader.Matrix("queries", dim);
  const auto range = [&](const char* begin, const char* end, std::uint64_t most) {
    const Range range{reader.Count(begin).value_or(0), reader.Count(end).value_or(0)};
    if (range.begin > range.end || range.end - range.begin > most) {
      reader.Refuse(end, absl::StrCat("from ", begin, " to ", begin, " + ", most));
    }
    return range;
  };
  map.rows = range("row_begin", "row_end", RequestReader::kCountMax);
  if (map.queries.rows == 0) map.query_rows = range("query_begin", "query_end", kQueriesMax);
  if (map.queries.rows > kQueriesMax) {
    reader.Refuse("queries", absl::StrCat("at most ", kQueriesMax, " rows"));
  }
  map.self = reader.Flag("self");
  if (map.self && map.rows.end - map.rows.begin > kQueriesMax) {
    reader.Refuse("row_end", absl::StrCat("at most row_begin + ", kQueriesMax, " with self"));
  }
  map.attention = ReadAttention(&reader);
  map.attention.set_causal(reader.Flag("causal"));
  map.attention.set_causal_offset(reader.Count("causal_offset").value_or(0));
  CLIENT_RETURN_IF_ERROR(reader.status());
  return map;
}

// Makes the keys of rows the queries. With a causal mask, query t sees the positions up to
// causal_offset + t. So the place of a deleted row has a query, too, which is not shown.
void AskWithRows(const LiveRows& rows, HeatMap* map) {
  map->queries = {.rows = 0, .cols = rows.keys.cols, .data = {}};
  for (std::uint32_t i = 0; i < rows.keys.rows; ++i) {
    const absl::Span<const float> key = rows.keys.Row(i);
    const std::uint64_t place =
        map->attention.causal() ? rows.positions[i] - map->query_rows.begin : i;
    while (map->queries.rows <= place) {
      map->queries.data.insert(map->queries.data.end(), key.begin(), key.end());
      ++map->queries.rows;
    }
    map->shown.push_back(place);
  }
}

// Returns the head queries of `map.head`: one for each query that is shown.
template <typename List>
absl::StatusOr<std::vector<typename List::value_type>> OfHead(const List& list,
                                                              const HeatMap& map) {
  const std::size_t heads = map.queries.rows == 0 ? 0 : list.size() / map.queries.rows;
  if (map.head >= heads) {
    return absl::InvalidArgumentError("head must be below the number of heads");
  }
  std::vector<typename List::value_type> chosen;
  for (const std::size_t t : map.shown) chosen.push_back(list[t * heads + map.head]);
  return chosen;
}

// Puts the listed weights of each query into a row of the picture. `columns` has the column of each
// listed position.
void Fill(const std::vector<v1::QueryWeights>& listed,
          const std::map<std::uint64_t, std::size_t>& columns, std::vector<float>* weights,
          std::vector<float>* scores) {
  weights->assign(listed.size() * columns.size(), 0);
  scores->assign(listed.size() * columns.size(), kMasked);
  for (std::size_t t = 0; t < listed.size(); ++t) {
    for (int i = 0; i < listed[t].positions_size(); ++i) {
      const auto column = columns.find(listed[t].positions(i));
      if (column == columns.end()) continue;  // A row that came or went meanwhile.
      const std::size_t cell = t * columns.size() + column->second;
      (*weights)[cell] = static_cast<float>(listed[t].weights(i));
      (*scores)[cell] = static_cast<float>(listed[t].scores(i));
    }
  }
}

struct Cells {
  std::vector<v1::QueryStats> stats;  // By query.
  std::vector<float> weights;
  std::vector<float> scores;  // NaN where a row does not count. Empty for blocks.
};

// Self attention over the keys of the rows, which the request carries.
absl::StatusOr<Cells> AttendToSelf(const Backend& backend, const HeatMap& map,
                                   const LiveRows& live) {
  CLIENT_ASSIGN_OR_RETURN(const v1::Store store, backend.client->GetStore(map.store));
  v1::AttendRequest request;
  CLIENT_RETURN_IF_ERROR(FloatMatrixView(map.queries).ToProto(request.mutable_inputs()));
  request.set_self(true);
  request.set_num_heads(store.num_heads());
  *request.mutable_options() = map.attention;
  v1::AttentionOptions& options = *request.mutable_options();
  if (options.score() == v1::SCORE_UNSPECIFIED) options.set_score(store.score());
  if (!options.has_temperature()) {
    options.set_temperature(store.has_temperature() ? store.temperature() : 1);
  }
  options.set_weights(v1::WEIGHTS_MODE_ALL);
  CLIENT_ASSIGN_OR_RETURN(const v1::AttendResponse answer, backend.client->Attend(request));
  std::map<std::uint64_t, std::size_t> columns;  // Attend counts the rows of the request.
  for (std::size_t i = 0; i < live.positions.size(); ++i) columns[i] = i;
  Cells cells;
  CLIENT_ASSIGN_OR_RETURN(cells.stats,
                          OfHead(std::vector(answer.stats().begin(), answer.stats().end()), map));
  CLIENT_ASSIGN_OR_RETURN(
      const auto listed,
      OfHead(std::vector(answer.weights().begin(), answer.weights().end()), map));
  Fill(listed, columns, &cells.weights, &cells.scores);
  return cells;
}

absl::StatusOr<LookupAnswer> LookUp(const Backend& backend, const HeatMap& map, Range rows,
                                    v1::WeightsMode weights) {
  LookupOptions options{.attention = map.attention};
  options.attention.set_weights(weights);
  options.filter.set_begin(rows.begin);
  options.filter.set_end(rows.end);
  return backend.client->Lookup(map.store, map.queries, options);
}

absl::StatusOr<Cells> AttendToRows(const Backend& backend, const HeatMap& map,
                                   const LiveRows& live) {
  CLIENT_ASSIGN_OR_RETURN(const LookupAnswer answer,
                          LookUp(backend, map, map.rows, v1::WEIGHTS_MODE_ALL));
  std::map<std::uint64_t, std::size_t> columns;
  for (std::size_t i = 0; i < live.positions.size(); ++i) columns[live.positions[i]] = i;
  Cells cells;
  CLIENT_ASSIGN_OR_RETURN(cells.stats, OfHead(answer.stats, map));
  CLIENT_ASSIGN_OR_RETURN(const auto listed, OfHead(answer.weights, map));
  Fill(listed, columns, &cells.weights, &cells.scores);
  return cells;
}

// The weight of a block is the part of all exp(logit) that its rows have.
absl::StatusOr<Cells> AttendToBlocks(const Backend& backend, const HeatMap& map,
                                     const std::vector<std::uint64_t>& edges) {
  if (map.attention.top_k() > 0 || map.attention.mode() > v1::MODE_SOFT) {
    return absl::InvalidArgumentError(
        absl::StrCat("over ", kColumnsMax,
                     " rows are shown as blocks, which takes mode soft and no "
                     "top_k; show fewer rows"));
  }
  const auto sums = [&](Range rows) -> absl::StatusOr<std::vector<v1::QueryStats>> {
    if (*backend.stopping) return absl::CancelledError("the console stops");
    CLIENT_ASSIGN_OR_RETURN(const LookupAnswer answer,
                            LookUp(backend, map, rows, v1::WEIGHTS_MODE_NONE));
    return OfHead(answer.stats, map);
  };
  Cells cells;
  CLIENT_ASSIGN_OR_RETURN(cells.stats, sums(map.rows));
  const std::size_t columns = edges.size() - 1;
  cells.weights.assign(map.shown.size() * columns, kMasked);
  for (std::size_t column = 0; column < columns; ++column) {
    CLIENT_ASSIGN_OR_RETURN(const std::vector<v1::QueryStats> block,
                            sums({edges[column], edges[column + 1]}));
    const double shift = RecencyShift(map.attention, edges[column + 1], map.rows.end);
    for (std::size_t t = 0; t < block.size(); ++t) {
      if (block[t].empty()) continue;
      cells.weights[t * columns + column] = static_cast<float>(
          std::exp(block[t].log_sum_exp() + shift - cells.stats[t].log_sum_exp()));
    }
  }
  return cells;
}

}  // namespace

absl::StatusOr<Json> Attention(const Backend& backend, const Json& request) {
  CLIENT_ASSIGN_OR_RETURN(HeatMap map, ReadHeatMap(request));
  const bool in_blocks = map.rows.end - map.rows.begin > kColumnsMax;
  LiveRows live;
  if (!in_blocks) {
    CLIENT_ASSIGN_OR_RETURN(live, ReadLive(backend, map.store, map.rows, map.self));
  }
  Json result = {{"kind", in_blocks ? "blocks" : "rows"}};
  if (map.self) {  // Attend counts the rows of the request.
    map.queries = live.keys;
  }
  if (map.self || map.queries.rows > 0) {
    map.shown.resize(map.queries.rows);
    std::iota(map.shown.begin(), map.shown.end(), 0);
  } else {
    CLIENT_ASSIGN_OR_RETURN(LiveRows queries,
                            ReadLive(backend, map.store, map.query_rows, /*keys=*/true));
    AskWithRows(queries, &map);
    result["queries"] = {{"positions", std::move(queries.positions)},
                         {"ids", std::move(queries.ids)},
                         {"labels", std::move(queries.labels)}};
  }
  if (map.queries.rows == 0) {
    return absl::NotFoundError("no row of the range is live, so that there is no query");
  }
  Cells cells;
  if (in_blocks) {
    const std::vector<std::uint64_t> edges =
        BlockEdges(map.rows.begin, map.rows.end, kColumnBlocksMax);
    CLIENT_ASSIGN_OR_RETURN(cells, AttendToBlocks(backend, map, edges));
    result["edges"] = edges;
  } else {
    CLIENT_ASSIGN_OR_RETURN(
        cells, map.self ? AttendToSelf(backend, map, live) : AttendToRows(backend, map, live));
    result["rows"] = {{"positions", std::move(live.positions)},
                      {"ids", std::move(live.ids)},
                      {"labels", std::move(live.labels)}};
    if (map.self) result["queries"] = result["rows"];
    result["scores"] = FloatsText(cells.scores);
  }
  result["weights"] = FloatsText(cells.weights);
  result["log_sum_exp"] = Json::array();
  result["entropy"] = Json::array();
  for (const v1::QueryStats& stats : cells.stats) {
    result["log_sum_exp"].push_back(stats.log_sum_exp());
    result["entropy"].push_back(stats.entropy());
  }
  return result;
}

}  // namespace softlookup::console
