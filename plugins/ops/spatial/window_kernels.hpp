// Sliding windows over one to three axes: convolution, transposed convolution and pooling share it. Fewer
// axes are three with leading ones.
#pragma once
#include "support/kernel.hpp"

namespace tenon::reference {

struct Window {
  int axes = 0;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1},
          dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  int64_t pad_end[3] = {0, 0, 0};
  int64_t in_count() const noexcept { return in[0] * in[1] * in[2]; }
  int64_t out_count() const noexcept { return out[0] * out[1] * out[2]; }
  int64_t kernel_count() const noexcept { return kernel[0] * kernel[1] * kernel[2]; }
};

/// From attributes kernel_shape, strides, dilations, pads, auto_pad. x and y are [N, C, spatial...]; `kernel`
/// the weight's spatial dims, used where kernel_shape is absent. Checks that the result's size is the one
/// these give.
Window window_of(const PlanView& v, const Dims& x, const Dims& y, Span<const int64_t> kernel,
                 bool ceil_allowed);

/// The list an attribute gives for `axes` axes, or `otherwise` for each.
Dims window_list(const PlanView& v, const char* name, size_t count, int64_t otherwise, int64_t lowest);

}  // namespace tenon::reference
