// Makes random stores and what is written to them.
#ifndef SOFTLOOKUP_TESTS_EXACTNESS_STORE_MAKER_H_
#define SOFTLOOKUP_TESTS_EXACTNESS_STORE_MAKER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "softlookup/v1/soft_lookup.pb.h"
#include "tests/exactness/kept_store.h"
#include "tests/testing/random.h"

namespace softlookup::exactness {

using ::softlookup::testing::Draw;

// What the keys of a store are like.
enum class Keys {
  kNormal,
  kClusters,    // Around a few centres.
  kRuns,        // Around a few centres, of which each has many rows in a row.
  kDuplicates,  // Few different ones, which tie.
  kDominated,   // One in many has most of the weight.
  kConstant,    // All components of a key are equal.
  kZeros,       // All or some keys are 0.
  kSubnormal,   // All or some components are subnormal.
  kHuge,        // Norms of about 1e18.
  kMixedNorms,  // Neighbours have norms of very different sizes.
  kOpposite,    // Pairs of opposite keys, whose sums cancel.
  kIntegers,    // Different ones tie.
  kSigns,       // Components of one size.
  kOrthogonal,  // To most queries, up to rounding: products cancel.
  kCount
};

// What its values are like.
enum class Values {
  kNormal,
  kPosition,
  kSigns,
  kConstant,
  kLarge,
  kTiny,
  kOutlier,
  kZero,
  kFarApart,  // 1 where the key is much like most queries, else -1.
  kCount
};

// One store's random rows, queries and options, all from one seed.
class StoreMaker {
 public:
  // With `may_be_cut`, most stores have rows enough for several ranges.
  StoreMaker(std::uint64_t seed, const std::string& name, bool may_be_cut);

  v1::Store config() const { return config_; }
  std::string description() const;
  // The rows that it begins with, in as many appends.
  const std::vector<std::int64_t>& first_appends() const { return first_appends_; }

  // An append of `count` new rows. `rows_before` are there already.
  v1::AppendRequest MakeAppend(std::int64_t count, std::uint64_t rows_before);
  // Rows that a deletion or a lookup can name. Never empty, and valid for `row_count` rows.
  v1::RowFilter MakeFilter(std::uint64_t row_count);
  std::vector<float> MakeQuery(const KeptStore& store);
  double MakeTemperature();
  Draw& draw() { return draw_; }
  bool is_large() const { return is_large_; }
  // Whether bounds on errors can be reached: a sketch holds the keys without an error, and the
  // values of rows that are left out are as far from the others as can be.
  bool is_tight() const { return is_tight_; }

 private:
  void MakeShape(bool may_be_cut);
  void MakeMemories();
  std::vector<float> MakeKey();
  std::vector<float> MakeValue(const std::vector<float>& key, std::uint64_t position);
  std::vector<float> Normals(double scale);

  Draw draw_;
  v1::Store config_;
  Keys keys_;
  Values values_;
  bool is_large_ = false;
  bool is_tight_ = false;
  bool is_variant_ = false;  // Which of two variants of its kind the store is.
  bool has_ids_ = false;
  bool has_labels_ = false;
  std::vector<std::int64_t> first_appends_;
  double scale_ = 1;
  std::vector<float> aim_;  // What most queries are near to.
  std::vector<std::vector<float>> centres_;
  double aim_margin_ = 0;     // The products of far keys with it are smaller.
  std::size_t run_rows_ = 1;  // Of a centre, one after another.
  std::size_t made_key_count_ = 0;
  std::vector<float> last_key_;
  std::vector<float> constant_value_;
  std::uint64_t next_id_ = 1;
};

}  // namespace softlookup::exactness

#endif  // SOFTLOOKUP_TESTS_EXACTNESS_STORE_MAKER_H_
