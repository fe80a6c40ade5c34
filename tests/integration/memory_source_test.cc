// Lookups of a memory, and of rows beside one.
#include <algorithm>
#include <cmath>

#include "tests/integration/integration_test.h"

namespace softlookup::testing {
namespace {

using ::testing::ElementsAre;

// A pair to attend to, in float64, that stands for `multiplicity` rows.
struct Pair {
  std::vector<double> key, value;
  double multiplicity = 1;
};

struct PairAnswer {
  std::vector<double> values;
  std::vector<double> log_sum_exp;
};

// The definition, of one query at a time.
PairAnswer AttendToPairs(const std::vector<float>& queries, const std::vector<Pair>& pairs,
                         v1::Score score, double temperature, v1::Mode mode, std::int64_t num_heads,
                         std::int64_t key_dim, std::int64_t value_dim) {
  PairAnswer answer;
  const std::int64_t d = key_dim / num_heads, dv = value_dim / num_heads;
  for (std::size_t t = 0; t < queries.size(); t += key_dim) {
    for (std::int64_t head = 0; head < num_heads; ++head) {
      std::vector<double> logits;
      double best = -kInfinity;
      for (const Pair& pair : pairs) {
        double dot = 0, qq = 0, kk = 0, distance = 0;
        for (std::int64_t i = 0; i < d; ++i) {
          const double q = queries[t + head * d + i], k = pair.key[head * d + i];
          dot += q * k;
          qq += q * q;
          kk += k * k;
          distance += (q - k) * (q - k);
        }
        const double s = score == v1::SCORE_DOT      ? dot
                         : score == v1::SCORE_COSINE ? (qq * kk > 0 ? dot / std::sqrt(qq * kk) : 0)
                         : score == v1::SCORE_EUCLIDEAN         ? -std::sqrt(distance)
                         : score == v1::SCORE_SQUARED_EUCLIDEAN ? -distance
                                                                : dot / std::sqrt(d);
        logits.push_back(s / temperature);
        best = std::max(best, logits.back());
      }
      double sum = 0;
      std::vector<double> values(dv);
      for (std::size_t j = 0; j < pairs.size(); ++j) {
        const double weight = pairs[j].multiplicity *
                              (mode == v1::MODE_LINEAR ? logits[j] : std::exp(logits[j] - best));
        sum += weight;
        for (std::int64_t i = 0; i < dv; ++i) values[i] += weight * pairs[j].value[head * dv + i];
      }
      const bool linear = mode == v1::MODE_LINEAR;
      for (const double value : values) answer.values.push_back(linear ? value : value / sum);
      answer.log_sum_exp.push_back(linear ? -kInfinity : best + std::log(sum));
    }
  }
  return answer;
}

class MemorySourceTest : public IntegrationTest {};

TEST_F(MemorySourceTest, AMemoryOrRowsAndAMemoryAnswerAsDefined) {
  const std::uint64_t first_seed = FirstSeed();
  for (int i = 0; i < 60 && !HasFailure(); ++i) {
    SCOPED_TRACE("SOFTLOOKUP_TEST_SEED=" + std::to_string(first_seed + i));
    Draw draw(first_seed + i);
    const std::int64_t num_heads = draw.Int(1, 3), key_dim = num_heads * draw.Int(1, 8);
    const std::int64_t value_dim = num_heads * draw.Int(1, 5);
    const std::int64_t row_count = i % 10 == 0 ? draw.Int(1000, 2500) : draw.Int(1, 60);
    v1::Store store = StoreMessage("s" + std::to_string(i), key_dim, value_dim, num_heads);
    const std::vector<float> gate = draw.Normal(key_dim + 1);
    for (int kind = v1::MEMORY_KIND_AVERAGE; kind <= v1::MEMORY_KIND_GATED_AVERAGE; ++kind) {
      v1::MemorySpec* spec = store.add_memories();
      spec->set_name("kind" + std::to_string(kind));
      spec->set_kind(static_cast<v1::MemoryKind>(kind));
      if (kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_DECAYED_AVERAGE) {
        spec->set_decay(0.75);
      }
      if (kind >= v1::MEMORY_KIND_GATED) *spec->mutable_gate() = Message(gate, key_dim + 1);
    }
    ASSERT_THAT(CreateStore(store), IsGrpcOk());
    const std::vector<float> keys = draw.Normal(row_count * key_dim, 0.7);
    const std::vector<float> values = draw.Normal(row_count * value_dim);
    const std::vector<float> queries = draw.Normal(3 * key_dim, 0.7);
    v1::AppendRequest append;
    append.set_store(store.name());
    *append.mutable_keys() = Message(keys, key_dim);
    *append.mutable_values() = Message(values, value_dim);
    ASSERT_THAT(Append(append), IsGrpcOk());

    const auto pair_of = [&](std::int64_t row) {
      return Pair{
          .key = {keys.begin() + row * key_dim, keys.begin() + (row + 1) * key_dim},
          .value = {values.begin() + row * value_dim, values.begin() + (row + 1) * value_dim}};
    };
    // A memory as of `end`, by its recurrence.
    const auto memory_of = [&](int kind, std::int64_t end) {
      Pair memory{.key = std::vector<double>(key_dim), .value = std::vector<double>(value_dim)};
      double weight = 0;
      for (std::int64_t row = 0; row < end; ++row) {
        const Pair x = pair_of(row);
        double keep = 1;
        if (kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_DECAYED_AVERAGE) {
          keep = 0.75;
        } else if (kind >= v1::MEMORY_KIND_GATED) {
          double sum = gate[0];
          for (std::int64_t c = 0; c < key_dim; ++c) sum += gate[c + 1] * x.key[c];
          keep = 1 / (1 + std::exp(-sum));
        }
        for (std::int64_t c = 0; c < key_dim; ++c) memory.key[c] = keep * memory.key[c] + x.key[c];
        for (std::int64_t c = 0; c < value_dim; ++c) {
          memory.value[c] = keep * memory.value[c] + x.value[c];
        }
        weight = keep * weight + 1;
      }
      const bool sums = kind == v1::MEMORY_KIND_DECAYED_SUM || kind == v1::MEMORY_KIND_GATED;
      for (double& c : memory.key) c /= sums ? 1 : weight;
      for (double& c : memory.value) c /= sums ? 1 : weight;
      return memory;
    };

    v1::LookupRequest lookup;
    lookup.set_store(store.name());
    *lookup.mutable_queries() = Message(queries, key_dim);
    const auto score = static_cast<v1::Score>(draw.Int(1, 5));
    const v1::Mode mode = draw.Int(0, 3) == 0 ? v1::MODE_LINEAR : v1::MODE_SOFT;
    lookup.mutable_options()->set_score(score);
    lookup.mutable_options()->set_mode(mode);
    lookup.mutable_options()->set_temperature(0.7);
    const auto check = [&](const std::vector<Pair>& pairs) {
      v1::LookupResponse answer;
      ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
      const PairAnswer expected =
          AttendToPairs(queries, pairs, score, 0.7, mode, num_heads, key_dim, value_dim);
      double scale = 1;  // LINEAR weights are not normalised, and of both signs.
      for (const double value : expected.values) scale = std::max(scale, std::abs(value));
      if (mode == v1::MODE_LINEAR) scale *= std::sqrt(static_cast<double>(row_count));
      const std::vector<float> actual = Floats(answer.values());
      ASSERT_EQ(actual.size(), expected.values.size());
      for (std::size_t c = 0; c < actual.size(); ++c) {
        ASSERT_NEAR(actual[c], expected.values[c], 1e-5 * scale) << "component " << c;
      }
      ASSERT_EQ(answer.stats_size(), static_cast<int>(expected.log_sum_exp.size()));
      for (int lane = 0; lane < answer.stats_size(); ++lane) {
        if (pairs.size() == 1) {
          EXPECT_EQ(answer.stats(lane).counted_rows(), 1u);
        }
        const double lse = expected.log_sum_exp[lane];
        if (std::isinf(lse)) {
          EXPECT_EQ(answer.stats(lane).log_sum_exp(), lse);
        } else {
          EXPECT_NEAR(answer.stats(lane).log_sum_exp(), lse, 1e-5 * std::max(1.0, std::abs(lse)));
        }
      }
    };

    lookup.set_source(v1::SOURCE_MEMORY);
    for (int kind = 0; kind <= v1::MEMORY_KIND_GATED_AVERAGE; ++kind) {  // 0: the built-in one.
      SCOPED_TRACE("memory of kind " + std::to_string(kind));
      lookup.set_memory(kind > 0 ? "kind" + std::to_string(kind) : draw.Coin() ? "" : "average");
      std::int64_t end = row_count;
      lookup.clear_filter();
      if (draw.Coin()) {
        end = draw.Int(1, row_count);
        lookup.mutable_filter()->set_end(end);
      }
      check({memory_of(kind, end)});
    }

    SCOPED_TRACE("rows and memory");
    lookup.set_source(v1::SOURCE_ROWS_AND_MEMORY);
    lookup.clear_memory();
    for (int round = 0; round < 4; ++round) {
      const std::int64_t end = draw.Coin() ? row_count : draw.Int(1, row_count);
      const std::int64_t begin = draw.Int(0, end);
      lookup.clear_filter();
      if (end != row_count) lookup.mutable_filter()->set_end(end);
      if (draw.Coin()) {
        lookup.mutable_filter()->set_begin(begin);
      } else {
        lookup.mutable_filter()->set_last(end - begin);
      }
      std::vector<Pair> pairs;
      if (begin > 0) {
        pairs.push_back(memory_of(v1::MEMORY_KIND_AVERAGE, begin));
        pairs.back().multiplicity = static_cast<double>(begin);
      }
      for (std::int64_t row = begin; row < end; ++row) pairs.push_back(pair_of(row));
      check(pairs);
    }
  }
}

TEST_F(MemorySourceTest, AMemoryOfNoRowsIsAnEmptyAnswer) {
  Create("s", 1, 1);
  v1::LookupRequest lookup = OneQuery();
  v1::LookupResponse answer;
  for (const auto source : {v1::SOURCE_MEMORY, v1::SOURCE_ROWS_AND_MEMORY}) {
    lookup.set_source(source);
    ASSERT_THAT(Lookup(lookup, &answer), IsGrpcOk());
    EXPECT_TRUE(answer.stats(0).empty());
    EXPECT_EQ(answer.stats(0).log_sum_exp(), -kInfinity);
    EXPECT_THAT(Floats(answer.values()), ElementsAre(0));
  }
}

}  // namespace
}  // namespace softlookup::testing
