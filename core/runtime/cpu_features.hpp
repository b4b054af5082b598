// What the processor can do, as TN_CPU_* bits (kernels.h). All [any].
#pragma once
#include <cstdint>
#include <string>

namespace tenon {

// Detected once, then capped by TENON_MAX_ISA = sse42 | avx2 | avx512 | vnni | amx (each includes those
// before it; an unknown word is reported once and ignored). AMX bits appear only when the kernel granted the
// tile state.
uint64_t cpu_features();
// The same for a given cap, "" for none. For tests and `tenon doctor`.
uint64_t cpu_features_capped(const std::string& cap);
// Whether it is one of the words of TENON_MAX_ISA.
bool isa_word_is_known(const std::string& word);
// "sse4.2 avx2 fma f16c avx512 ..."; "none" when empty.
std::string cpu_feature_names(uint64_t features);
// The highest word of TENON_MAX_ISA that these features reach: "amx", "vnni", ..., "baseline".
std::string isa_name(uint64_t features);

// Processors this process may run on, as the affinity mask and the cgroup's quota say; at least 1.
unsigned usable_processors();

// The calling thread's floating-point control word (MXCSR, FPCR): flushing of denormals is part of it.
uint64_t fp_control();
void set_fp_control(uint64_t control);
uint64_t fp_control_flushing(uint64_t control);  // the same with denormal inputs and results flushed to zero

// Flushes denormals for the scope when asked; the caller's word is restored.
class FpScope {
 public:
  explicit FpScope(bool flush) : saved_(fp_control()) {
    if (flush) set_fp_control(fp_control_flushing(saved_));
  }
  ~FpScope() { set_fp_control(saved_); }
  FpScope(const FpScope&) = delete;
  FpScope& operator=(const FpScope&) = delete;

 private:
  uint64_t saved_;
};

}  // namespace tenon
