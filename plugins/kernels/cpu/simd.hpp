// Which of the compiled instruction sets the vector code may use.
#pragma once
#include <cstdint>

namespace tenon::cpu {

/// Keeps Highway from choosing beyond what the plan allows (TENON_MAX_ISA). [main]; the last call in the
/// process holds.
void allow_simd(uint64_t cpu_features);

}  // namespace tenon::cpu
