#ifndef SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_
#define SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_

#include <optional>

#include "core/kernels/tile_scan.h"
#include "softlookup/kernel.h"

namespace softlookup {

// The unit that multiplies tiles for `kernel`, which ChooseKernel chose. Null: it uses vectors
// alone.
std::optional<kernels::TileUnit> TileUnitOf(Kernel kernel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_
