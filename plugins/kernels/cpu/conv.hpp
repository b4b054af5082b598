// What all convolution kernels share: the node's numbers, checked.
#pragma once
#include "activation.hpp"

namespace tenon::cpu {

/// Two-dimensional view of a convolution; one-dimensional ones get height 1. Input [n, c, h, w], weights
/// [m, c/group, kh, kw], output [n, m, oh, ow].
struct Conv {
  int64_t n = 0, c = 0, h = 0, w = 0, m = 0, oh = 0, ow = 0, group = 1;
  int64_t kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  bool bias = false, residual = false;
  Activation act;
  int64_t multiply_adds() const { return n * m * oh * ow * (c / group) * kh * kw; }
  bool depthwise() const { return group == c && group == m && group > 1; }
  bool pointwise() const {
    return kh == 1 && kw == 1 && sh == 1 && sw == 1 && !top && !left && !bottom && !right && group == 1;
  }
};

/// All but bias, residual and activation, of a node whose operand `weights` are its weights. Declines what
/// these kernels cannot do; needs the result's shape.
Conv read_conv_shape(const sdk::PlanView& view, uint32_t weights);
/// Conv or tenon::FusedConv (operands X, W, B?, R?), as above.
Conv read_conv(const sdk::PlanView& view);

void plan_conv_pointwise(const Conv&, const sdk::PlanView&, sdk::Planned&);
void plan_conv_depthwise(const Conv&, const sdk::PlanView&, sdk::Planned&);
void plan_conv_onednn(const Conv&, const sdk::PlanView&, sdk::Planned&);

}  // namespace tenon::cpu
