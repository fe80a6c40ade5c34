#include "core/kernels/amx/tiles.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace softlookup::kernels {
namespace {

#if defined(__x86_64__)

// Bits of CPUID leaf 7, EDX (AMX), and leaf 1, ECX (OSXSAVE).
constexpr unsigned kAmxTileBit = 1u << 24;
constexpr unsigned kAmxInt8Bit = 1u << 25;
constexpr unsigned kOsxsaveBit = 1u << 27;

// The XSAVE state components of tiles: their configuration and their contents.
constexpr int kTileConfigComponent = 17;
constexpr int kTileDataComponent = 18;
constexpr unsigned kTileComponents = 1u << kTileConfigComponent | 1u << kTileDataComponent;

bool CpuHasAmxInt8() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kAmxTileBit) != 0 &&
         (d & kAmxInt8Bit) != 0;
}

bool KernelKeepsTiles() {
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kOsxsaveBit) == 0) return false;
  asm volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
  return (a & kTileComponents) == kTileComponents;
}

// Linux keeps the tiles' 8 KiB only for processes that have asked for permission. The permission
// holds for all threads of the process, also for those created later.
bool KernelPermitsTiles() {
#if defined(__linux__)
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM of <asm/prctl.h>, since 5.16.
  return syscall(SYS_arch_prctl, kRequestPermission, kTileDataComponent) == 0;
#else
  return true;
#endif
}

const char* FindWhyNotAmx() {
  if (!CpuHasAmxInt8()) return "the CPU (or the hypervisor) shows no AMX-INT8";
  if (!KernelKeepsTiles()) return "the kernel does not keep the tiles' state";
  if (!KernelPermitsTiles()) return "the kernel refuses permission to use tiles";
  return nullptr;
}

#else

const char* FindWhyNotAmx() { return "only x86-64 CPUs have AMX"; }

#endif

}  // namespace

const char* WhyNotAmx() {
  static const char* const reason = FindWhyNotAmx();
  return reason;
}

}  // namespace softlookup::kernels
