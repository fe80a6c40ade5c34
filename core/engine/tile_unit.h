#ifndef SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_
#define SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_

#include <optional>

#include "core/kernels/amx/tile_scan.h"
#include "softlookup/kernel.h"

namespace softlookup {

// Returns the unit that multiplies tiles for `kernel`, or nothing if `kernel` uses vector registers
// alone. `kernel` must come from ChooseKernel, which makes sure that the machine has the unit.
std::optional<kernels::TileUnit> TileUnitOf(Kernel kernel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_
