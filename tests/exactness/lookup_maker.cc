#include "tests/exactness/lookup_maker.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/exactness/oracle.h"
#include "tests/exactness/wire_matrix.h"

namespace softlookup::exactness {
namespace {

// A min_score at, just above or just below the score of some row, or between two.
void SetMinScore(Draw& draw, const KeptStore& store, const std::vector<float>& queries,
                 v1::LookupRequest& request) {
  const Question question{
      .store = &store, .request = &request, .query = queries.data(), .revision = store.revision()};
  const Oracle oracle(question);
  if (oracle.candidates().empty()) {
    request.mutable_options()->set_min_score(draw.Real(-1, 1));
    return;
  }
  const auto last = static_cast<std::int64_t>(oracle.candidates().size()) - 1;
  const Candidate& row = oracle.candidates()[draw.Int(0, last)];
  const Candidate& other = oracle.candidates()[draw.Int(0, last)];
  auto score = static_cast<double>(row.score);
  if (!row.is_exact) score = static_cast<double>((row.score + other.score) / 2);
  const double how = draw.Real(0, 1);
  if (how < 0.25) score = std::nextafter(score, std::numeric_limits<double>::infinity());
  if (how > 0.9) score = std::nextafter(score, -std::numeric_limits<double>::infinity());
  request.mutable_options()->set_min_score(score);
}

// What lookups in large stores are mostly like: at a low temperature few rows weigh anything, so
// that the server can leave out the others.
void MakePlain(StoreMaker& maker, v1::AttentionOptions& options) {
  Draw& draw = maker.draw();
  if (draw.Chance(0.7)) options.set_temperature(std::exp(draw.Real(std::log(1e-3), 0)));
  if (maker.is_tight()) {
    // The deviation of the logits is a few units, so that the rows around the cut weigh the most.
    const auto dim = static_cast<double>(maker.config().key_dim());
    options.set_score(v1::SCORE_COSINE);
    options.set_temperature(1 / (std::sqrt(dim) * draw.Real(1.5, 7)));
    return;
  }
  const double how = draw.Real(0, 1);
  if (how < 0.1) options.set_mode(v1::MODE_HARD);
  if (how > 0.8) options.set_top_k(static_cast<std::uint32_t>(draw.Int(1, 60)));
}

void SetMaxError(Draw& draw, v1::AttentionOptions& options) {
  constexpr double kMaxErrors[] = {0, 1e-7, 1e-5, 3e-5, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.3, 0.5, 1};
  options.set_max_error(kMaxErrors[draw.Int(0, 11)]);
}

void SetSource(Draw& draw, const KeptStore& store, v1::LookupRequest& request) {
  if (draw.Chance(0.5)) {
    request.set_source(v1::SOURCE_ROWS_AND_MEMORY);
    return;
  }
  request.set_source(v1::SOURCE_MEMORY);
  const int count = store.config().memories_size();
  if (count > 0 && draw.Chance(0.8)) {
    request.set_memory(store.config().memories(static_cast<int>(draw.Int(0, count - 1))).name());
  }
}

}  // namespace

v1::LookupRequest MakeLookup(StoreMaker& maker, const KeptStore& store) {
  constexpr std::int64_t kCounts[] = {1, 1, 2, 3, 5, 8, 15, 16, 17, 20};
  Draw& draw = maker.draw();
  v1::LookupRequest request;
  request.set_store(store.name());
  std::vector<float> queries;
  std::int64_t count = kCounts[draw.Int(0, maker.is_large() ? 7 : 9)];
  // More queries than one pass over the rows takes.
  if (store.row_count() < 100 && draw.Chance(0.05)) count = draw.Int(250, 300);
  for (std::int64_t i = count; i > 0; --i) {
    const std::vector<float> query = maker.MakeQuery(store);
    queries.insert(queries.end(), query.begin(), query.end());
  }
  *request.mutable_queries() = MatrixOf(draw, queries, store.key_dim());
  v1::AttentionOptions& options = *request.mutable_options();
  if (draw.Chance(0.7)) options.set_score(static_cast<v1::Score>(draw.Int(1, v1::Score_MAX)));
  if (draw.Chance(0.7)) options.set_temperature(maker.MakeTemperature());
  if (draw.Chance(0.4)) SetMaxError(draw, options);
  if (maker.is_large() && draw.Chance(0.6)) {
    MakePlain(maker, options);
    if (draw.Chance(0.3)) *request.mutable_filter() = maker.MakeFilter(store.row_count());
    return request;
  }
  const double mode = draw.Real(0, 1);
  if (mode < 0.25) options.set_mode(v1::MODE_HARD);
  if (mode > 1 - 0.2) options.set_mode(v1::MODE_LINEAR);
  if (draw.Chance(0.25)) {
    const auto rows = static_cast<std::int64_t>(store.row_count());
    options.set_top_k(
        static_cast<std::uint32_t>(draw.Coin() ? draw.Int(1, 20) : draw.Int(1, rows + 2)));
  }
  if (draw.Chance(0.4)) *request.mutable_filter() = maker.MakeFilter(store.row_count());
  if (draw.Chance(0.2)) {
    options.set_recency_decay(draw.Chance(0.2) ? 1
                              : draw.Coin()    ? draw.Real(0.5, 1)
                                               : 1 - std::exp(draw.Real(-12, -3)));
  }
  if (draw.Chance(0.15)) {
    options.set_causal(true);
    options.set_causal_offset(
        static_cast<std::uint64_t>(draw.Int(0, static_cast<std::int64_t>(store.row_count()))));
  }
  if (draw.Chance(0.5)) {
    options.set_weights(draw.Coin() ? v1::WEIGHTS_MODE_ALL : v1::WEIGHTS_MODE_TOP);
    if (draw.Coin()) options.set_top_weights(static_cast<std::uint32_t>(draw.Int(1, 40)));
  }
  if (draw.Chance(0.25)) SetSource(draw, store, request);
  if (draw.Chance(0.2)) SetMinScore(draw, store, queries, request);
  if (draw.Chance(0.2)) request.set_min_revision(store.revision());
  request.set_tag(static_cast<std::uint64_t>(draw.Int(0, 1000)));
  return request;
}

}  // namespace softlookup::exactness
