#include "core/runtime/cpu_features.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <tenon/abi/kernels.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <thread>
#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

namespace tenon {
namespace {

constexpr uint64_t sse42_set = TN_CPU_SSE42;
constexpr uint64_t avx2_set = sse42_set | TN_CPU_AVX2 | TN_CPU_FMA | TN_CPU_F16C;
constexpr uint64_t avx512_set = avx2_set | TN_CPU_AVX512;
constexpr uint64_t vnni_set =
    avx512_set | TN_CPU_AVX512_VNNI | TN_CPU_AVX_VNNI | TN_CPU_AVX512_BF16 | TN_CPU_AVX512_FP16;
constexpr uint64_t amx_bits = TN_CPU_AMX_INT8 | TN_CPU_AMX_BF16;
constexpr uint64_t x86_set = vnni_set | amx_bits;

struct Cap {
  const char* word;
  uint64_t x86;
};
constexpr Cap caps[] = {
    {"sse42", sse42_set}, {"avx2", avx2_set}, {"avx512", avx512_set}, {"vnni", vnni_set}, {"amx", x86_set}};

#if defined(__x86_64__)
uint64_t extended_control() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<uint64_t>(high) << 32) | low;
}

// Linux hands out the 8 KB tile state on request only. Without it the first tile instruction is a fault.
bool tile_state_granted() {
#if defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
  return granted;
#else
  return false;
#endif
}

uint64_t detect() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return 0;
  uint64_t features = 0;
  if (c & (1u << 20)) features |= TN_CPU_SSE42;
  const uint64_t state = (c & (1u << 27)) != 0 ? extended_control() : 0;
  const bool ymm = (state & 0x6) == 0x6, zmm = (state & 0xe6) == 0xe6, tiles = (state & 0x60000) == 0x60000;
  const uint32_t c1 = c;
  uint32_t a7 = 0, b7 = 0, c7 = 0, d7 = 0;
  if (!ymm || __get_cpuid_count(7, 0, &a7, &b7, &c7, &d7) == 0) return features;
  if (b7 & (1u << 5)) features |= TN_CPU_AVX2;
  if (c1 & (1u << 12)) features |= TN_CPU_FMA;
  if (c1 & (1u << 29)) features |= TN_CPU_F16C;
  uint32_t a71 = 0, b71 = 0, c71 = 0, d71 = 0;
  if (a7 >= 1) __get_cpuid_count(7, 1, &a71, &b71, &c71, &d71);
  if (a71 & (1u << 4)) features |= TN_CPU_AVX_VNNI;
  constexpr uint32_t needed =
      (1u << 16) | (1u << 17) | (1u << 28) | (1u << 30) | (1u << 31);  // F DQ CD BW VL
  if (zmm && (b7 & needed) == needed) {
    features |= TN_CPU_AVX512;
    if (c7 & (1u << 11)) features |= TN_CPU_AVX512_VNNI;
    if (a71 & (1u << 5)) features |= TN_CPU_AVX512_BF16;
    if (d7 & (1u << 23)) features |= TN_CPU_AVX512_FP16;
    if (tiles && (d7 & (1u << 24)) && tile_state_granted()) {
      if (d7 & (1u << 25)) features |= TN_CPU_AMX_INT8;
      if (d7 & (1u << 22)) features |= TN_CPU_AMX_BF16;
    }
  }
  return features;
}
#elif defined(__aarch64__)
uint64_t detect() { return TN_CPU_NEON; }
#else
uint64_t detect() { return 0; }
#endif

uint64_t detected() {
  static const uint64_t features = detect();
  return features;
}

// The cgroup's processor quota, rounded up; 0 when there is none.
unsigned quota_processors() {
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == nullptr) return 0;
  long long quota = 0, period = 0;
  const bool limited = std::fscanf(file, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0;
  std::fclose(file);
  return limited ? static_cast<unsigned>((quota + period - 1) / period) : 0;
}

}  // namespace

uint64_t cpu_features_capped(const std::string& cap) {
  if (cap.empty()) return detected();
  for (const Cap& entry : caps) {
    if (cap == entry.word) return detected() & (entry.x86 | ~x86_set);
  }
  std::fprintf(stderr, "TENON_MAX_ISA is '%s'; expected sse42, avx2, avx512, vnni or amx. It is ignored.\n",
               cap.c_str());
  return detected();
}

bool isa_word_is_known(const std::string& word) {
  return std::any_of(std::begin(caps), std::end(caps), [&](const Cap& entry) { return word == entry.word; });
}

uint64_t cpu_features() {
  static const uint64_t features = [] {
    const char* cap = std::getenv("TENON_MAX_ISA");
    return cpu_features_capped(cap == nullptr ? "" : cap);
  }();
  return features;
}

std::string cpu_feature_names(uint64_t features) {
  static constexpr struct {
    uint64_t bit;
    const char* name;
  } names[] = {{TN_CPU_SSE42, "sse4.2"},
               {TN_CPU_AVX2, "avx2"},
               {TN_CPU_FMA, "fma"},
               {TN_CPU_F16C, "f16c"},
               {TN_CPU_AVX_VNNI, "avx_vnni"},
               {TN_CPU_AVX512, "avx512"},
               {TN_CPU_AVX512_VNNI, "avx512_vnni"},
               {TN_CPU_AVX512_BF16, "avx512_bf16"},
               {TN_CPU_AVX512_FP16, "avx512_fp16"},
               {TN_CPU_AMX_INT8, "amx_int8"},
               {TN_CPU_AMX_BF16, "amx_bf16"},
               {TN_CPU_NEON, "neon"},
               {TN_CPU_SVE, "sve"}};
  std::string text;
  for (const auto& entry : names) {
    if ((features & entry.bit) == 0) continue;
    if (!text.empty()) text += ' ';
    text += entry.name;
  }
  return text.empty() ? "none" : text;
}

std::string isa_name(uint64_t features) {
  if (features & amx_bits) return "amx";
  if (features & TN_CPU_AVX512_VNNI) return "vnni";
  if (features & TN_CPU_AVX512) return "avx512";
  if (features & TN_CPU_AVX2) return "avx2";
  if (features & TN_CPU_SSE42) return "sse42";
  if (features & TN_CPU_NEON) return "neon";
  return "baseline";
}

unsigned usable_processors() {
  unsigned count = std::max(1u, std::thread::hardware_concurrency());
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    count = static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
#endif
  const unsigned quota = quota_processors();
  return quota == 0 ? count : std::max(1u, std::min(count, quota));
}

#if defined(__x86_64__)
uint64_t fp_control() { return _mm_getcsr(); }
void set_fp_control(uint64_t control) { _mm_setcsr(static_cast<unsigned>(control)); }
uint64_t fp_control_flushing(uint64_t control) { return control | 0x8040u; }  // FTZ, DAZ
#elif defined(__aarch64__)
uint64_t fp_control() {
  uint64_t control;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  return control;
}
void set_fp_control(uint64_t control) { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
uint64_t fp_control_flushing(uint64_t control) { return control | (uint64_t{1} << 24); }  // FZ
#else
uint64_t fp_control() { return 0; }
void set_fp_control(uint64_t) {}
uint64_t fp_control_flushing(uint64_t control) { return control; }
#endif

}  // namespace tenon
