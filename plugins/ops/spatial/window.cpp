#include "spatial/window.hpp"

namespace tenon::ops {

std::optional<std::vector<tn_dim>> kernel_shape(Infer& c, size_t axes) {
  if (!c.attrs().has("kernel_shape")) return std::nullopt;
  const Dims given = list_attr(c, "kernel_shape", axes, 1, 1);
  return std::vector<tn_dim>(given.begin(), given.end());
}

Window read_window(Infer& c, std::vector<tn_dim> kernel) {
  Window w;
  for (tn_dim k : kernel)
    if (const auto v = c.number(k))
      require(*v >= 1, "the kernel has shape " + c.text(kernel) + "; expected sizes of 1 or more");
  const size_t n = kernel.size();
  w.kernel = std::move(kernel);
  w.strides = list_attr(c, "strides", n, 1, 1);
  w.dilations = list_attr(c, "dilations", n, 1, 1);
  w.pads = list_attr(c, "pads", 2 * n, 0, 0);
  const auto mode = c.attrs().get_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER")
    w.auto_pad = AutoPad::same_upper;
  else if (mode == "SAME_LOWER")
    w.auto_pad = AutoPad::same_lower;
  else if (mode == "VALID")
    w.auto_pad = AutoPad::valid;
  else
    require(mode == "NOTSET" || mode.empty(), "attribute 'auto_pad' is '" + std::string(mode) +
                                                  "'; expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  if (w.auto_pad != AutoPad::notset) w.pads.assign(2 * n, 0);
  return w;
}

tn_dim extent(Infer& c, const Window& w, size_t i) {
  return c.add(c.mul(c.sub(w.kernel[i], 1), w.dilations[i]), 1);
}

tn_dim window_count(Infer& c, const Window& w, size_t i, tn_dim size, bool round_up) {
  const int64_t stride = w.strides[i], begin = w.pads[i], end = w.pads[i + w.axes()];
  if (w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower)
    return stride == 1 ? size : c.ceildiv(size, stride);
  const tn_dim reach = extent(c, w, i), padded = c.add(size, begin + end);
  const tn_dim room = c.sub(padded, reach);
  if (const auto v = c.number(room))
    require(*v >= 0, "axis " + text_of(static_cast<int64_t>(i) + 2) + " of " + c.text(size) + " with pads " +
                         text_of(begin) + " and " + text_of(end) +
                         " is smaller than the kernel, which reaches over " + c.text(reach));
  if (!round_up) return c.add(stride == 1 ? room : c.floordiv(room, stride), 1);
  // Rounded up, but a window must start inside the image or the padding before it.
  return least(c, c.add(c.ceildiv(room, stride), 1), c.ceildiv(c.add(size, begin), stride));
}

}  // namespace tenon::ops
