// Functions of one real number, by the name of their operator: the unary kernels and the activations of fused
// ones.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

/// May work in place. alpha and beta are the operator's attributes of those names.
using RealBlock = void (*)(const double* x, double* y, int64_t count, double alpha, double beta);

struct Activation {
  RealBlock apply = nullptr;  // NULL: none
  double alpha = 0, beta = 0;
  void operator()(double* x, int64_t count) const noexcept {
    if (apply) apply(x, x, count, alpha, beta);
  }
};

struct RealFunction {
  const char* op;
  RealBlock apply;
  float alpha, beta;  // the standard's defaults: attributes are float32
};
const RealFunction* find_real_function(std::string_view op) noexcept;

/// The functions of recurrent cells, those of each direction in turn: attributes `activations`,
/// `activation_alpha` and `activation_beta`, else the standard ones.
std::vector<Activation> recurrent_activations(const PlanView& v, const std::vector<const char*>& standard,
                                              int64_t directions);

/// Attributes `activation`, `alpha`, `beta` of a fused node; Failure for an activation nobody knows.
Activation fused_activation(const PlanView& v);

}  // namespace tenon::reference
