// Windows that slide over an image: what convolutions and pools share.
#pragma once
#include "support/define.hpp"

namespace tenon::ops {

enum class AutoPad { notset, same_upper, same_lower, valid };

struct Window {
  std::vector<tn_dim> kernel;  // numbers, or expressions where the weights' dims are
  Dims strides, dilations;
  Dims pads;  // begin of every axis, then end of every axis
  AutoPad auto_pad = AutoPad::notset;
  size_t axes() const { return kernel.size(); }
};

/// Reads and checks strides, dilations, pads and auto_pad for these window sizes (each checked to be 1 or
/// more).
Window read_window(Infer& c, std::vector<tn_dim> kernel);
/// The `kernel_shape` attribute for so many axes; unset when the node has none.
std::optional<std::vector<tn_dim>> kernel_shape(Infer& c, size_t axes);
/// dilation * (kernel - 1) + 1 of axis i.
tn_dim extent(Infer& c, const Window& w, size_t i);
/// How many windows lie along axis i of an image of `size`; Failure when none does.
tn_dim window_count(Infer& c, const Window& w, size_t i, tn_dim size, bool round_up);

}  // namespace tenon::ops
