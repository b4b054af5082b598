// Failing a run over one number of an operand.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

/// "<what> holds <value>; expected <low> to <high>".
inline int value_fail(const tn_kernel_args* a, const char* what, int64_t value, int64_t low,
                      int64_t high) noexcept {
  char text[240];
  std::snprintf(text, sizeof text, "%s holds %lld; expected %lld to %lld", what,
                static_cast<long long>(value), static_cast<long long>(low), static_cast<long long>(high));
  return run_fail(a, run_index_out_of_range, text);
}

}  // namespace tenon::reference
