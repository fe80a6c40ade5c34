// Holds an answer against the exact one.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_JUDGE_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_JUDGE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "softlookup/v1/soft_lookup.pb.h"
#include "tests/exactness/oracle.h"

namespace softlookup::exactness {

// The bound that the contract has where no `max_error` is asked for.
inline constexpr double kErrorDefault = 1e-5;
// Logits up to this size have the bound itself; larger ones have one in proportion.
inline constexpr double kLogitSize = 128;

// What has been judged so far.
struct Tally {
  std::uint64_t answers = 0;          // Of one query and head.
  std::uint64_t comparisons = 0;      // Of single numbers.
  std::uint64_t close_calls = 0;      // Answers where float64 cannot tell which rows count.
  std::uint64_t blurred_answers = 0;  // Answers whose weights float64 itself does not have to 1e-6.
  std::uint64_t skipping_answers = 0;  // Answers that leave values of rows out.
  // By what is compared: the largest error as a part of its bound, less what float64 and the
  // answer's own rounding make of it.
  std::map<std::string, double> worst;
};

// Judges one query and head.
class Judge {
 public:
  Judge(const Question& question, const v1::QueryStats& stats, const float* values,
        const v1::QueryWeights* weights, Tally& tally);

  // Returns what is wrong; empty if nothing is.
  std::vector<std::string> Verdict();

 private:
  // Decides which rows count. Returns false if float64 cannot tell, and the answer does not either.
  bool ChooseRows();
  bool ApplyMinScore();
  bool ApplyTopK();
  bool ChooseWinner();
  // Takes the rows that the answer lists for those that count, if it lists all of them.
  bool TakeListedRows();
  void CheckStats();
  void CheckSoftStats();
  void CheckValues();
  void CheckSummedRows();
  void CheckWeights();
  void CheckListedRow(int index, const Candidate& row);
  void CheckListedTies();
  void CheckUnlistedRows(const std::vector<bool>& listed);
  // The counted row at this position, or the first one after it.
  std::vector<Candidate>::const_iterator RowAt(std::uint64_t position) const;

  // Fails if `actual` is further than bound + slack from `expected`. The bound is what the contract
  // allows, the slack is float64's own rounding.
  void CheckNear(const std::string& what, double actual, long double expected, long double bound,
                 long double slack);
  void Require(bool holds, const std::string& what);
  // Whether every score that matters is formed in float64.
  bool ScoresAreExact() const;

  const Question& question_;
  const v1::AttentionOptions& options_;
  const v1::QueryStats& stats_;
  const float* const values_;
  const v1::QueryWeights* const weights_;
  Tally& tally_;
  const v1::Mode mode_;
  Oracle oracle_;
  std::vector<Candidate> counted_;  // By position.
  std::size_t winner_ = 0;
  std::vector<std::size_t> winners_;  // HARD: those that float64 can take for the largest.
  ExactAnswer exact_;
  double error_max_ = 0;    // What the contract allows where logits are small.
  double size_factor_ = 1;  // By how much more it allows because logits are large.
  std::vector<std::string> failures_;
};

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_JUDGE_H_
