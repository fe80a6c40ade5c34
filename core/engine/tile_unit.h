#ifndef SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_
#define SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_

#include <optional>

#include "core/kernels/tile_scan.h"
#include "softlookup/kernel.h"

namespace softlookup {

// What multiplies tiles for a kernel that ChooseKernel chose; null: it uses vectors alone.
std::optional<kernels::TileUnit> TileUnitOf(Kernel kernel);

}  // namespace softlookup

#endif  // SOFTLOOKUP_CORE_ENGINE_TILE_UNIT_H_
