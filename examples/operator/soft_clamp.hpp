// com.acme::SoftClamp: Y = limit * tanh(X / limit), element by element. It keeps small values as they are and
// never leaves [-limit, limit]; language models cap their logits and attention scores with it. NaN gives NaN,
// infinities give +-limit, the sign of zero is kept.
#pragma once
#include <cstdint>

#include "tenon/sdk/plugin.hpp"

namespace acme {

void add_operator(tenon::sdk::Plugin& plugin);
void add_kernel(tenon::sdk::Plugin& plugin);

/// The computation itself; y may be x.
void soft_clamp(const float* x, float* y, int64_t count, float limit) noexcept;

}  // namespace acme
