#include "tests/exactness/oracle.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <tuple>

namespace softlookup::exactness {
namespace {

constexpr long double kLongInfinity = std::numeric_limits<long double>::infinity();
// The relative error of one float64 operation.
constexpr long double kRounding = 0x1p-53L;

// Whether float64 adds up multiples of 2^quantum, of these sizes in all, without rounding.
bool SumIsExact(long double sizes, int quantum) {
  return sizes < std::ldexp(1.0L, 53 + std::clamp(quantum, -16000, 16000));
}

// What the product of a query and a key is multiplied by. Without a default, so that the compiler
// warns of a score that has no definition here.
long double FactorOf(v1::Score score, std::int64_t dim) {
  switch (score) {
    case v1::SCORE_DOT:
      return 1;
    case v1::SCORE_SCALED_DOT:
      return 1 / std::sqrt(static_cast<long double>(dim));
    case v1::SCORE_COSINE:
    case v1::SCORE_EUCLIDEAN:
    case v1::SCORE_SQUARED_EUCLIDEAN:
    case v1::SCORE_UNSPECIFIED:
    case v1::Score_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Score_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  std::abort();  // No multiple of the product.
}

}  // namespace

v1::Score Question::score() const {
  if (options().score() != v1::SCORE_UNSPECIFIED) return options().score();
  const v1::Score score = store->config().score();
  return score == v1::SCORE_UNSPECIFIED ? v1::SCORE_SCALED_DOT : score;
}

v1::Mode Question::mode() const {
  return options().mode() == v1::MODE_UNSPECIFIED ? v1::MODE_SOFT : options().mode();
}

double Question::temperature() const {
  if (options().has_temperature()) return options().temperature();
  return store->config().has_temperature() ? store->config().temperature() : 1;
}

Oracle::Oracle(const Question& question)
    : question_(question), query_quantum_(QuantumOf(question.query, question.key_dim())) {
  const v1::LookupRequest& request = *question.request;
  std::tie(begin_, end_) = question.store->RangeOf(request.filter(), question.revision);
  if (request.source() == v1::SOURCE_MEMORY) {
    AddMemory(end_, 1);
  } else {
    if (request.source() == v1::SOURCE_ROWS_AND_MEMORY) {
      AddMemory(begin_, static_cast<long double>(begin_));
    }
    AddRows();
  }
}

bool Oracle::IsSeen(std::uint64_t position) const {
  const v1::AttentionOptions& options = question_.options();
  return !options.causal() || position <= question_.query_index ||
         position - question_.query_index <= options.causal_offset();
}

void Oracle::AddRows() {
  const KeptStore& store = *question_.store;
  for (std::uint64_t position = begin_; position < end_; ++position) {
    if (!IsSeen(position) ||
        !store.Passes(question_.request->filter(), position, question_.revision)) {
      continue;
    }
    Candidate candidate{.position = position};
    Score(store.key(position) + question_.head * question_.key_dim(), store.row(position).quantum,
          0, candidate);
    MakeLogit(end_, candidate);
    candidates_.push_back(candidate);
  }
}

void Oracle::AddMemory(std::uint64_t end, long double multiplicity) {
  if (end == 0 || !IsSeen(end - 1)) return;
  const bool is_named = question_.request->source() == v1::SOURCE_MEMORY;
  memory_ = question_.store->MemoryOf(is_named ? question_.request->memory() : "", 0, end);
  Candidate candidate{.position = end - 1, .is_memory = true, .multiplicity = multiplicity};
  Score(memory_.key.data() + question_.head * question_.key_dim(), -16000, memory_.key_size,
        candidate);
  MakeLogit(end_, candidate);
  candidates_.push_back(candidate);
}

template <typename Key>
void Oracle::Score(const Key* key, int quantum, long double key_size, Candidate& candidate) const {
  const std::int64_t dim = question_.key_dim();
  const auto dims = static_cast<long double>(dim);
  const float* query = question_.query;
  // A memory's key is rounded once, and added up before.
  const long double key_error = 4 * kRounding * key_size;
  long double product = 0, sizes = 0, query_square = 0, key_square = 0, query_sizes = 0;
  const v1::Score score = question_.score();
  if (score == v1::SCORE_EUCLIDEAN || score == v1::SCORE_SQUARED_EUCLIDEAN) {
    long double square = 0, sums = 0;
    for (std::int64_t i = 0; i < dim; ++i) {
      const long double q = query[i], k = key[i], difference = q - k;
      square += difference * difference;
      const long double sum = std::abs(q) + std::abs(k);
      sums += sum * sum;
    }
    candidate.is_exact = SumIsExact(sums, 2 * std::min(quantum, query_quantum_));
    const long double distance = std::sqrt(square);
    const long double off = key_error * std::sqrt(dims);
    if (score == v1::SCORE_EUCLIDEAN) {
      candidate.score = -distance;
      const bool root_is_exact =
          candidate.is_exact && distance * distance == square &&
          static_cast<long double>(static_cast<double>(distance)) == distance;
      candidate.score_noise = root_is_exact ? 0 : (dims + 8) * kRounding * distance + off;
    } else {
      candidate.score = -square;
      candidate.score_noise =
          candidate.is_exact ? 0 : (dims + 8) * kRounding * square + off * (2 * distance + off);
    }
    return;
  }
  for (std::int64_t i = 0; i < dim; ++i) {
    const long double q = query[i], k = key[i];
    product += q * k;
    sizes += std::abs(q * k);
    query_sizes += std::abs(q);
    query_square += q * q;
    key_square += k * k;
  }
  candidate.is_exact = SumIsExact(sizes, quantum + query_quantum_);
  const long double noise =
      (candidate.is_exact ? 0 : (dims + 4) * kRounding * sizes) + key_error * query_sizes;
  if (score == v1::SCORE_COSINE) {
    candidate.is_exact = false;
    const long double norms = std::sqrt(query_square) * std::sqrt(key_square);
    if (norms == 0) return;
    candidate.score = product / norms;
    const long double key_norm_error = key_error * std::sqrt(dims / key_square);
    candidate.score_noise =
        noise / norms + std::abs(candidate.score) * ((dims + 8) * kRounding + key_norm_error);
    return;
  }
  const long double scale = FactorOf(score, dim);
  candidate.score = product * scale;
  candidate.score_noise =
      noise * scale + (scale == 1 ? 0 : 3 * kRounding * std::abs(candidate.score));
}

void Oracle::MakeLogit(std::uint64_t age_end, Candidate& candidate) const {
  const long double temperature = question_.temperature();
  const long double scaled = candidate.score / temperature;
  long double decay = 0;
  if (question_.options().has_recency_decay()) {
    decay = (static_cast<long double>(age_end) - 1 - static_cast<long double>(candidate.position)) *
            std::log(static_cast<long double>(question_.options().recency_decay()));
  }
  const long double multiple =
      question_.mode() == v1::MODE_LINEAR ? 0 : std::log(candidate.multiplicity);
  candidate.logit = scaled + decay + multiple;
  candidate.logit_noise = candidate.score_noise / temperature +
                          4 * kRounding * (std::abs(scaled) + std::abs(decay) + multiple);
}

bool Oracle::AreTied(const Candidate& a, const Candidate& b) const {
  if (question_.options().has_recency_decay() && question_.options().recency_decay() != 1) {
    return false;
  }
  if (a.is_memory || b.is_memory || a.score != b.score) return false;
  if (a.is_exact && b.is_exact) return true;
  const std::int64_t dim = question_.key_dim();
  const float* key_a = question_.store->key(a.position) + question_.head * dim;
  const float* key_b = question_.store->key(b.position) + question_.head * dim;
  return std::equal(key_a, key_a + dim, key_b);
}

long double Oracle::Value(const Candidate& candidate, std::int64_t component) const {
  const std::int64_t index = question_.head * question_.value_dim() + component;
  return candidate.is_memory ? memory_.value[index]
                             : question_.store->value(candidate.position)[index];
}

ExactAnswer Oracle::Weigh(std::vector<Candidate>& counted, std::size_t winner) const {
  const std::int64_t dim = question_.value_dim();
  const v1::Mode mode = question_.mode();
  ExactAnswer answer{.log_sum_exp = -kLongInfinity, .max_logit = -kLongInfinity};
  answer.values.resize(dim);
  answer.value_sizes.resize(dim);
  answer.value_noises.resize(dim);
  long double reach = -kLongInfinity;
  for (const Candidate& row : counted) {
    answer.max_logit = std::max(answer.max_logit, row.logit);
    reach = std::max(reach, row.logit + row.logit_noise);
  }
  if (counted.empty()) return answer;
  answer.max_logit_noise = reach - answer.max_logit;
  long double sum = 0;
  for (std::size_t i = 0; i < counted.size(); ++i) {
    Candidate& row = counted[i];
    if (mode == v1::MODE_HARD) {
      row.weight = i == winner ? 1 : 0;
    } else if (mode == v1::MODE_LINEAR) {
      row.weight = row.logit * row.multiplicity;
    } else {
      row.weight = std::exp(row.logit - answer.max_logit);
      sum += row.weight;
    }
    answer.max_logit_noise = row.logit == answer.max_logit
                                 ? std::max(answer.max_logit_noise, row.logit_noise)
                                 : answer.max_logit_noise;
  }
  if (mode == v1::MODE_SOFT) answer.log_sum_exp = answer.max_logit + std::log(sum);
  for (Candidate& row : counted) {
    if (mode == v1::MODE_SOFT) {
      row.weight /= sum;
      if (row.weight > 0) answer.entropy -= row.weight * std::log(row.weight);
      answer.weight_noise += row.weight * std::expm1(std::min(2 * row.logit_noise, 100.0L));
    }
    answer.weight_sizes += std::abs(row.weight);
    if (row.is_memory) {
      answer.memory_noise = 8 * kRounding * memory_.value_size * std::abs(row.weight);
    }
    const bool weighs = std::abs(row.weight) > 1e-40L || mode == v1::MODE_LINEAR;
    for (std::int64_t i = 0; i < dim; ++i) {
      const long double value = Value(row, i);
      answer.value_magnitude = std::max(answer.value_magnitude, std::abs(value));
      if (!weighs) continue;
      answer.values[i] += row.weight * value;
      answer.value_sizes[i] += std::abs(row.weight * value);
      answer.value_noises[i] += row.logit_noise * row.multiplicity * std::abs(value);
    }
  }
  return answer;
}

}  // namespace softlookup::exactness
