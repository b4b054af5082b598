#include "simd.hpp"

#include <hwy/targets.h>

#include "tenon/abi/kernels.h"

namespace tenon::cpu {

void allow_simd(uint64_t features) {
  int64_t disabled = 0;
#if HWY_ARCH_X86
  if (!(features & TN_CPU_AVX512)) disabled |= HWY_AVX3;
  if (!(features & TN_CPU_AVX2)) disabled |= HWY_AVX2;
#else
  (void)features;
#endif
  static int64_t current = -1;
  if (current == disabled) return;
  current = disabled;
  hwy::DisableTargets(disabled);
  hwy::GetChosenTarget().DeInit();
}

}  // namespace tenon::cpu
