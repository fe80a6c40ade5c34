#ifndef SOFTLOOKUP_CORE_KERNELS_AMX_TILES_H_
#define SOFTLOOKUP_CORE_KERNELS_AMX_TILES_H_

#include <cstdint>
#include <cstring>

#include "core/base/check.h"

namespace softlookup::kernels {

// The units below, PortableTiles and AmxTiles, multiply tiles of 8-bit integers. They add the
// products up in 32-bit integers, as AMX does (Intel SDM, volume 2, TDPBSSD). A tile here is a
// matrix of integers, not a tile of queries. Both units give the same results bit for bit. The
// interface of both:
//
//   Configure(rows)      must come first; sums and A operands have `rows` rows, in [1, 16]
//   Zero<c>()            sums c = 0
//   Load<t>(tile)        operand t = tile, for an A operand only its first `rows` rows
//   Dot<c, a, b>()       sums c [m][n] += sum over k of A[m][k] * B[k / 4][4 * n + k % 4]
//   Store<c>(tile)       the first `rows` rows of tile = sums c
//   Release()            must come last
//
// Registers have fixed roles: 0 to 4 hold sums, 5 holds an A operand, 6 and 7 hold B operands.
inline constexpr int kSumRegisters = 5;
inline constexpr int kFirstBRegister = 6;
inline constexpr int kTileRegisters = 8;

inline constexpr int kTileRows = 16;
inline constexpr int kTileRowBytes = 64;
inline constexpr int kTileColumns = kTileRowBytes / 4;  // Columns of a SumTile.

// An A operand [m][k], or a B operand [k / 4][4 * n + k % 4]. m and n are below 16, k is below 64.
struct alignas(64) Tile {
  std::int8_t bytes[kTileRows][kTileRowBytes];
};

struct alignas(64) SumTile {
  std::int32_t sums[kTileRows][kTileColumns];
};

// A unit in plain loops. AmxPassesSelfCheck compares the hardware with it.
class PortableTiles {
 public:
  void Configure(int rows) {
    SOFTLOOKUP_DCHECK(rows >= 1 && rows <= kTileRows) << rows << " rows";
    rows_ = rows;
  }

  template <int kRegister>
  void Zero() {
    static_assert(kRegister < kSumRegisters);
    std::memset(sums_[kRegister].sums, 0, sizeof(SumTile));
  }

  template <int kRegister>
  void Load(const Tile& tile) {
    static_assert(kRegister >= kSumRegisters && kRegister < kTileRegisters);
    const int rows = kRegister < kFirstBRegister ? rows_ : kTileRows;
    std::memcpy(operands_[kRegister - kSumRegisters].bytes, tile.bytes,
                static_cast<std::size_t>(rows) * kTileRowBytes);
  }

  // Sanitizers do not check the accesses of Dot(): Configure() bounds the rows, and constants bound
  // all other indexes. The checks would take half of the time that sanitized tests take for
  // lookups.
  template <int kSums, int kA, int kB>
  __attribute__((no_sanitize("address", "thread", "bounds"))) void Dot() {
    static_assert(kSums < kSumRegisters && kA >= kSumRegisters && kA < kFirstBRegister &&
                  kB >= kFirstBRegister);
    const Tile& a = operands_[kA - kSumRegisters];
    const Tile& b = operands_[kB - kSumRegisters];
    for (int m = 0; m < rows_; ++m) {
      std::int32_t* sums = sums_[kSums].sums[m];
      for (int row = 0; row < kTileRows; ++row) {
        const std::int8_t* four = a.bytes[m] + 4 * row;
        for (int n = 0; n < kTileColumns; ++n) {
          const std::int8_t* column = b.bytes[row] + 4 * n;
          sums[n] +=
              four[0] * column[0] + four[1] * column[1] + four[2] * column[2] + four[3] * column[3];
        }
      }
    }
  }

  template <int kRegister>
  void Store(SumTile& tile) const {
    std::memcpy(tile.sums, sums_[kRegister].sums, static_cast<std::size_t>(rows_) * kTileRowBytes);
  }

  void Release() {}

 private:
  int rows_ = 0;
  SumTile sums_[kSumRegisters];
  Tile operands_[kTileRegisters - kSumRegisters];
};

#if defined(__x86_64__)

// The unit that AMX implements. Its registers are state of the thread, so a thread may use only one
// AmxTiles at a time. AmxIsUsable() must hold. The class is written in assembly: intrinsics take no
// template parameter as a register number, and a function that uses them must be compiled for AMX.
class AmxTiles {
 public:
  void Configure(int rows) {
    struct alignas(64) {
      std::uint8_t palette = 1;
      std::uint8_t start_row = 0;
      std::uint8_t reserved[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } config;
    static_assert(sizeof(config) == 64);
    for (int i = 0; i < kTileRegisters; ++i) {
      config.row_bytes[i] = kTileRowBytes;
      config.rows[i] = static_cast<std::uint8_t>(i < kFirstBRegister ? rows : kTileRows);
    }
    asm volatile("ldtilecfg %0" : : "m"(config) : "memory");
  }

  template <int kRegister>
  void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kRegister) : "memory");
  }

  template <int kRegister>
  void Load(const Tile& tile) {
    asm volatile("tileloadd (%1,%2,1), %%tmm%c0"
                 :
                 : "i"(kRegister), "r"(tile.bytes), "r"(std::int64_t{kTileRowBytes})
                 : "memory");
  }

  template <int kSums, int kA, int kB>
  void Dot() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0"
                 :
                 : "i"(kSums), "i"(kA), "i"(kB)
                 : "memory");
  }

  template <int kRegister>
  void Store(SumTile& tile) const {
    asm volatile("tilestored %%tmm%c0, (%1,%2,1)"
                 :
                 : "i"(kRegister), "r"(tile.sums), "r"(std::int64_t{kTileRowBytes})
                 : "memory");
  }

  void Release() { asm volatile("tilerelease" : : : "memory"); }
};

#endif  // defined(__x86_64__)

// Returns a text for people that says why this process cannot use AmxTiles, or null if it can. The
// first call asks the operating system for permission, which then holds for all threads of the
// process. Thread-safe.
const char* WhyNotAmx();

inline bool AmxIsUsable() { return WhyNotAmx() == nullptr; }

}  // namespace softlookup::kernels

#endif  // SOFTLOOKUP_CORE_KERNELS_AMX_TILES_H_
