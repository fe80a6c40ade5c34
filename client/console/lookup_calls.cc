#include "client/console/lookup_calls.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/console/lookup_fields.h"
#include "client/console/query_terms.h"
#include "client/console/request_reader.h"
#include "client/cpp/status_macros.h"
#include "client/output/vocabulary.h"

namespace softlookup::console {
namespace {

using output::Json;

constexpr std::uint64_t kDimMax = 65536;
constexpr std::uint64_t kTopMax = 1024;
constexpr std::uint64_t kBlocksMax = 64;
// For the weight over positions, which is drawn as bars of some pixels.
constexpr double kMassMaxError = 1e-4;

Json StatsJson(const v1::QueryStats& stats) {
  return {{"log_sum_exp", stats.log_sum_exp()},
          {"max_logit", stats.max_logit()},
          {"entropy", stats.entropy()},
          {"counted_rows", stats.counted_rows()},
          {"summed_rows", stats.summed_rows()},
          {"error_bound", stats.error_bound()},
          {"empty", stats.empty()}};
}

// Returns the listed rows. Ids are texts, because JavaScript has no whole numbers of 64 bits.
Json WeightsJson(const v1::QueryWeights& weights) {
  Json ids = Json::array();
  for (int i = 0; i < weights.ids_size(); ++i) {
    const bool has_id = weights.has_ids_size() == 0 || weights.has_ids(i);
    ids.push_back(has_id ? Json(std::to_string(weights.ids(i))) : Json());
  }
  const auto list = [](const auto& numbers) {
    return Json(std::vector(numbers.begin(), numbers.end()));
  };
  return {{"positions", list(weights.positions())},
          {"ids", std::move(ids)},
          {"weights", list(weights.weights())},
          {"scores", list(weights.scores())},
          {"remaining", weights.remaining_weight()}};
}

struct Question {
  std::string store;
  FloatMatrix query;
  LookupOptions options;
};

// Reads what Lookup() and MassByPosition() have in common.
absl::StatusOr<Question> ReadQuestion(RequestReader* reader) {
  Question question{.store = reader->Text("store")};
  question.query = reader->Matrix(
      "query", static_cast<std::uint32_t>(reader->Count("dim", kDimMax).value_or(0)));
  question.options.attention = ReadAttention(reader);
  question.options.filter = ReadFilter(reader);
  if (question.query.rows != 1) reader->Refuse("query", "one row of dim numbers");
  CLIENT_RETURN_IF_ERROR(reader->status());
  return question;
}

}  // namespace

absl::StatusOr<Json> MakeQuery(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  const std::string store = reader.Text("store");
  const auto dim = static_cast<std::uint32_t>(reader.Count("dim", kDimMax).value_or(0));
  CLIENT_RETURN_IF_ERROR(reader.status());
  CLIENT_ASSIGN_OR_RETURN(const std::vector<float> query,
                          SumOfTerms(backend.client, store, dim, reader.Field("terms")));
  return Json{{"query", FloatsText(query)}};
}

absl::StatusOr<Json> Lookup(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  CLIENT_ASSIGN_OR_RETURN(Question question, ReadQuestion(&reader));
  const std::string source = reader.Text("source");
  question.options.source = output::FromWord<v1::Source>(source);
  if (!source.empty() && question.options.source == v1::SOURCE_UNSPECIFIED) {
    reader.Refuse("source", "rows, memory or rows-and-memory");
  }
  question.options.memory = reader.Text("memory");
  const auto top = static_cast<std::uint32_t>(reader.Count("top", kTopMax).value_or(0));
  CLIENT_RETURN_IF_ERROR(reader.status());
  if (top > 0) {
    question.options.attention.set_weights(v1::WEIGHTS_MODE_TOP);
    question.options.attention.set_top_weights(top);
  }
  CLIENT_ASSIGN_OR_RETURN(const LookupAnswer answer,
                          backend.client->Lookup(question.store, question.query, question.options));
  Json stats = Json::array();
  for (const v1::QueryStats& head : answer.stats) stats.push_back(StatsJson(head));
  Json weights = Json::array();
  for (const v1::QueryWeights& head : answer.weights) weights.push_back(WeightsJson(head));
  return Json{{"values", FloatsText(answer.values.data)},
              {"stats", std::move(stats)},
              {"weights", std::move(weights)},
              {"revision", answer.revision},
              {"row_count", answer.row_count}};
}

absl::StatusOr<Json> MassByPosition(const Backend& backend, const Json& request) {
  RequestReader reader(request);
  CLIENT_ASSIGN_OR_RETURN(Question question, ReadQuestion(&reader));
  const std::uint64_t blocks = reader.Count("blocks", kBlocksMax).value_or(kBlocksMax);
  const std::size_t head = reader.Count("head").value_or(0);
  v1::AttentionOptions& attention = question.options.attention;
  v1::RowFilter& filter = question.options.filter;
  if (blocks == 0) reader.Refuse("blocks", "at least 1");
  if (attention.top_k() > 0) reader.Refuse("top_k", "0: what counts in a block is not what counts");
  if (attention.mode() != v1::MODE_UNSPECIFIED && attention.mode() != v1::MODE_SOFT) {
    reader.Refuse("mode", "soft: other modes have no log-sum-exp");
  }
  if (!filter.has_end()) reader.Refuse("end", "the row count of the answer");
  CLIENT_RETURN_IF_ERROR(reader.status());
  if (filter.begin() > filter.end()) reader.Refuse("begin", "at most end");
  CLIENT_RETURN_IF_ERROR(reader.status());
  attention.set_max_error(std::max(attention.max_error(), kMassMaxError));
  const std::uint64_t end = filter.end();
  std::uint64_t begin = filter.begin();
  if (filter.has_last()) begin = std::max(begin, end - std::min(end, filter.last()));
  filter.clear_last();
  const std::vector<std::uint64_t> edges = BlockEdges(begin, end, blocks);
  Json sums = Json::array();
  Json counts = Json::array();
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    if (*backend.stopping) return absl::CancelledError("the console stops");
    filter.set_begin(edges[i]);
    filter.set_end(edges[i + 1]);
    CLIENT_ASSIGN_OR_RETURN(
        const LookupAnswer answer,
        backend.client->Lookup(question.store, question.query, question.options));
    if (head >= answer.stats.size()) {
      return absl::InvalidArgumentError("head must be below the number of heads");
    }
    const v1::QueryStats& stats = answer.stats[head];
    sums.push_back(stats.log_sum_exp() + RecencyShift(attention, edges[i + 1], end));
    counts.push_back(stats.counted_rows());
  }
  return Json{{"edges", edges}, {"log_sum_exp", std::move(sums)}, {"counted", std::move(counts)}};
}

}  // namespace softlookup::console
