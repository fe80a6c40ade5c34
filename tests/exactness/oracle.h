// The answer to one query and head, by the definitions of the wire contract alone.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_ORACLE_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_ORACLE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "softlookup/v1/soft_lookup.pb.h"
#include "tests/exactness/kept_store.h"

namespace softlookup::exactness {

// One query and head of a lookup, and the snapshot that answered.
struct Question {
  const KeptStore* store = nullptr;
  const v1::LookupRequest* request = nullptr;
  const float* query = nullptr;  // This head's components.
  std::uint64_t query_index = 0;
  std::int64_t head = 0;
  std::uint64_t revision = 0;

  const v1::AttentionOptions& options() const { return request->options(); }
  std::int64_t key_dim() const { return store->key_dim() / store->num_heads(); }
  std::int64_t value_dim() const { return store->value_dim() / store->num_heads(); }
  v1::Score score() const;
  v1::Mode mode() const;
  double temperature() const;
};

// A row that may count, or the pair of a memory.
struct Candidate {
  std::uint64_t position = 0;
  bool is_memory = false;
  long double multiplicity = 1;
  long double score = 0;
  long double logit = 0;
  // Bounds on what float64 arithmetic, in any order, makes of them.
  long double score_noise = 0;
  long double logit_noise = 0;
  // The score is a function of a sum that float64 forms without rounding, in any order.
  bool is_exact = false;
  // The weight; set by Weigh().
  long double weight = 0;
};

// All that is known of the exact answer.
struct ExactAnswer {
  long double log_sum_exp = 0;
  long double max_logit = 0;
  long double max_logit_noise = 0;
  long double entropy = 0;
  long double value_magnitude = 0;  // The largest |component| of a counted value.
  long double weight_sizes = 0;     // The sum of |weights|.
  long double weight_noise = 0;     // How much float64 logits can move weights, in all.
  long double memory_noise = 0;     // How far float64 can move a memory's value.
  std::vector<long double> values;
  std::vector<long double> value_sizes;   // Of each component: the sum of |weight| |value|.
  std::vector<long double> value_noises;  // LINEAR: the sum of noise |value|.
};

class Oracle {
 public:
  explicit Oracle(const Question& question);

  // The rows that pass the filter and `causal`, and the memory's pair, by position.
  const std::vector<Candidate>& candidates() const { return candidates_; }
  // Whether two candidates have the same logit in any arithmetic that treats rows alike.
  bool AreTied(const Candidate& a, const Candidate& b) const;
  long double Value(const Candidate& candidate, std::int64_t component) const;

  // Weighs these rows, which are all that count. HARD: `winner` is an index into `counted`.
  ExactAnswer Weigh(std::vector<Candidate>& counted, std::size_t winner) const;

 private:
  void AddRows();
  void AddMemory(std::uint64_t end, long double multiplicity);
  template <typename Key>
  void Score(const Key* key, int quantum, long double key_size, Candidate& candidate) const;
  void MakeLogit(std::uint64_t age_end, Candidate& candidate) const;
  bool IsSeen(std::uint64_t position) const;

  const Question& question_;
  const int query_quantum_;
  std::uint64_t begin_ = 0, end_ = 0;
  KeptMemory memory_;
  std::vector<Candidate> candidates_;
};

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_ORACLE_H_
