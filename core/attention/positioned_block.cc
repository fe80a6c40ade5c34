#include "core/attention/positioned_block.h"

namespace softlookup {

bool AreSameRows(const PositionedBlock& a, const PositionedBlock& b) {
  return a.view.full_panels == b.view.full_panels && a.view.partial_panel == b.view.partial_panel &&
         a.view.row_count == b.view.row_count && a.row_offsets == b.row_offsets &&
         a.row_mask == b.row_mask;
}

}  // namespace softlookup
