// Activations that other kernels apply at their end, and the element-wise kernels that run through the same
// code.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "tenon/sdk/kernels.hpp"

namespace tenon::cpu {

enum class Act : uint32_t {
  None,
  Relu,
  LeakyRelu,
  Clip,
  Sigmoid,
  Tanh,
  HardSigmoid,
  HardSwish,
  Swish,
  Gelu,
  GeluTanh,
  Elu,
  Mish,
  Softplus,
  Exp,
  Log,
  Sqrt,
  Reciprocal,
  Neg,
  Abs,
  Erf,
  Floor,
  Ceil,
  Round,
  Square
};

struct Activation {
  Act kind = Act::None;
  float alpha = 0,
        beta = 0;  // LeakyRelu, Swish, Elu: alpha; Clip: alpha = min, beta = max; HardSigmoid: both
};

/// What a node of this operator does to its one operand; nothing when this plugin does not have it.
std::optional<Activation> activation_of(std::string_view op, const sdk::Attributes& attrs);
/// The activation of a fused node: attributes activation, approximate (of Gelu), and its parameters under the
/// names given. Declines what this plugin does not have.
Activation fused_activation(const sdk::Attributes& attrs, std::string_view alpha = "alpha",
                            std::string_view beta = "beta");
/// y[i] = act(x[i]); y may be x. Vectorised for the best instruction set that is allowed.
void apply(const Activation& a, const float* x, float* y, int64_t n) noexcept;
/// y[i] = act(y[i] + bias + r[i]); r may be NULL.
void finish_row(const Activation& a, float* y, float bias, const float* r, int64_t n) noexcept;
/// y[i] = act(y[i] + bias[i]); bias may be NULL.
void finish_columns(const Activation& a, float* y, const float* bias, int64_t n) noexcept;

}  // namespace tenon::cpu
