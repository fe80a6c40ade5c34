#ifndef SOFTLOOKUP_CORE_ATTENTION_LOOK_TILE_H_
#define SOFTLOOKUP_CORE_ATTENTION_LOOK_TILE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/attention/block_scan.h"
#include "core/attention/logit_bounds.h"
#include "core/kernels/panel_bounds.h"

namespace softlookup {

// Up to kTileQueries head queries of one plan, for which a first look bounds the panels of a block
// together.
class LookTile {
 public:
  // The queries must outlive this object. sketches[i] must have the bounds over all sketches that
  // query i looks at.
  LookTile(const ScanPlan& plan, std::vector<const HeadQuery*> queries,
           absl::Span<const SketchBounds> sketches);

  const ScanPlan& plan() const { return plan_; }
  int count() const { return static_cast<int>(queries_.size()); }
  const HeadQuery& query(int i) const { return *queries_[static_cast<std::size_t>(i)]; }
  const LogitBounds& bounds(int i) const { return bounds_[static_cast<std::size_t>(i)]; }
  // Returns bounds(i).LowerOf as a function, valid while this object lives.
  auto lower_of(int i) const {
    return [this, i](double upper) { return bounds(i).LowerOf(upper); };
  }
  // The reference of the query's masses: a row's mass is exp(logit - reference).
  float reference(int i) const { return references_[static_cast<std::size_t>(i)]; }
  void SetReference(int i, double reference) {
    references_[static_cast<std::size_t>(i)] = static_cast<float>(reference);
  }

 private:
  friend class PanelBounder;

  ScanPlan plan_;
  std::vector<const HeadQuery*> queries_;
  kernels::SketchQueries packed_;  // All queries.
  std::vector<LogitBounds> bounds_;
  std::vector<kernels::BoundFactors> factors_;
  std::vector<float> references_;
};

// Computes bounds of a block's panels for the queries of a tile. Keeps the terms of the last block
// whose sketch it used. Calls of Bound for the same block, score and temperature use these terms
// again.
class PanelBounder {
 public:
  static constexpr std::int64_t kStride = kernels::kBlockRowsMax / kernels::kPanelRows;

  // Returns upper bounds for the panels of `block` and the queries [begin, end) of a tile, valid
  // until the next call. Those of query begin + i start at element i * kStride, one for each panel.
  // A bound is on the panel's mass if `form` is kMass, and on its largest logit if `form` is
  // kLargest. For a panel without rows that count, it is 0 for a mass, and -inf for a logit. It is
  // infinity for a panel of which nothing is known, or whose bound float32 cannot hold.
  const float* Bound(const LookTile& tile, kernels::PanelBound form, const PositionedBlock& block,
                     int begin, int end);

 private:
  void Prepare(const ScanPlan& plan, const PositionedBlock& block);
  // Sets the bounds of a panel to `none` if the block's mask leaves out all rows of the panel.
  void ClearMaskedPanels(const PositionedBlock& block, float none, int query_count);

  // What terms_ were prepared for. A null block_: nothing yet.
  const PositionedBlock* block_ = nullptr;
  Score score_ = Score::kUnspecified;
  double temperature_ = 0;
  SketchTerms terms_;
  std::array<float, kernels::kTileQueries * kStride> bounds_;
};

// Returns true if the block has a sketch, and all its rows are at positions that the query attends
// to. Otherwise the sketch's bounds would include other rows.
bool IsSketched(const PositionedBlock& block, const HeadQuery& query);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ATTENTION_LOOK_TILE_H_
