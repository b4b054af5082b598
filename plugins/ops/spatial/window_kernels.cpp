#include "spatial/window_kernels.hpp"

namespace tenon::reference {

Dims window_list(const PlanView& v, const char* name, size_t count, int64_t otherwise, int64_t lowest) {
  Dims r = v.attrs().get_ints(name).copy();
  if (r.empty()) r.assign(count, otherwise);
  if (r.size() != count)
    fail(format("%s's %s has %zu numbers; expected %zu", std::string(v.op_name()).c_str(), name, r.size(),
                count));
  for (int64_t i : r)
    if (i < lowest || i > (int64_t{1} << 40))
      fail(format("%s's %s holds %lld; expected at least %lld", std::string(v.op_name()).c_str(), name,
                  static_cast<long long>(i), static_cast<long long>(lowest)));
  return r;
}

Window window_of(const PlanView& v, const Dims& x, const Dims& y, Span<const int64_t> kernel,
                 bool ceil_allowed) {
  const std::string op(v.op_name());
  if (x.size() < 3 || x.size() > 5 || y.size() != x.size())
    throw Failure(TN_ERR_UNSUPPORTED, format("%s is computed for 1 to 3 spatial axes; operand %s", op.c_str(),
                                             dims_text(x).c_str()));
  Window w;
  w.axes = static_cast<int>(x.size()) - 2;
  const auto axes = static_cast<size_t>(w.axes);
  Dims k = v.attrs().get_ints("kernel_shape").copy();
  if (k.empty()) k = kernel.copy();
  if (k.size() != axes || (!kernel.empty() && k != kernel.copy()))
    fail(format("%s's kernel_shape %s does not fit its operands", op.c_str(), dims_text(k).c_str()));
  const Dims strides = window_list(v, "strides", axes, 1, 1),
             dilations = window_list(v, "dilations", axes, 1, 1),
             pads = window_list(v, "pads", 2 * axes, 0, 0);
  const auto auto_pad = v.attrs().get_string("auto_pad", "NOTSET");
  if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER" &&
      !auto_pad.empty())
    fail(op + "'s auto_pad is '" + std::string(auto_pad) +
         "'; expected NOTSET, VALID, SAME_UPPER or SAME_LOWER");
  const bool ceil_mode = ceil_allowed && v.attrs().get_int("ceil_mode", 0) != 0;
  for (size_t i = 0; i < axes; ++i) {
    const size_t to = 3 - axes + i;
    w.in[to] = x[2 + i];
    w.out[to] = y[2 + i];
    w.kernel[to] = k[i];
    w.stride[to] = strides[i];
    w.dilation[to] = dilations[i];
    if (k[i] < 1) fail(op + "'s kernel must have at least one element on each axis");
    const int64_t reach = checked_mul(k[i] - 1, dilations[i]) + 1;
    int64_t wanted;
    if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
      wanted = (w.in[to] + strides[i] - 1) / strides[i];
      const int64_t total = std::max<int64_t>(0, (wanted - 1) * strides[i] + reach - w.in[to]);
      w.pad[to] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
      w.pad_end[to] = total - w.pad[to];
    } else {
      if (auto_pad != "VALID") {
        w.pad[to] = pads[i];
        w.pad_end[to] = pads[axes + i];
      }
      const int64_t room = w.in[to] + w.pad[to] + w.pad_end[to] - reach;
      wanted = room < 0 ? 0 : (ceil_mode ? (room + strides[i] - 1) / strides[i] : room / strides[i]) + 1;
      // The last window must begin inside the operand or its leading padding.
      if (ceil_mode && wanted > 0 && (wanted - 1) * strides[i] >= w.in[to] + w.pad[to]) --wanted;
    }
    if (wanted != w.out[to])
      fail(format("%s on axis %zu yields %lld, but its result was planned with %lld", op.c_str(), i,
                  static_cast<long long>(wanted), static_cast<long long>(w.out[to])));
  }
  return w;
}

}  // namespace tenon::reference
