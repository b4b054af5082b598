#include "conv.hpp"

#include "families.hpp"
#include "onednn.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

/// The four (two) pads, resolved from auto_pad.
void read_pads(const Attributes& attrs, Conv& c, int spatial) {
  const auto mode = attrs.get_string("auto_pad", "NOTSET");
  if (mode == "VALID") return;
  if (mode == "NOTSET") {
    const auto p = attrs.get_ints("pads");
    if (p.empty()) return;
    if (static_cast<int>(p.size()) != 2 * spatial) decline("pads has a wrong number of entries");
    for (int64_t x : p)
      if (x < 0) decline("a pad is negative");
    c.left = p[spatial - 1], c.right = p[2 * spatial - 1];
    if (spatial == 2) c.top = p[0], c.bottom = p[2];
    return;
  }
  const auto split = [&](int64_t in, int64_t out, int64_t k, int64_t s, int64_t d, int64_t* lo, int64_t* hi) {
    const int64_t total = std::max<int64_t>(0, (out - 1) * s + (k - 1) * d + 1 - in);
    *lo = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    *hi = total - *lo;
  };
  split(c.h, c.oh, c.kh, c.sh, c.dh, &c.top, &c.bottom);
  split(c.w, c.ow, c.kw, c.sw, c.dw, &c.left, &c.right);
}

}  // namespace

Conv read_conv_shape(const PlanView& v, uint32_t weights) {
  const auto x = v.input(0), w = v.input(weights), y = v.output();
  if (!x.is_static() || !w.is_static() || !y.is_static()) decline("its shape is not known");
  const int spatial = x.rank() - 2;
  if (spatial != 1 && spatial != 2)
    decline(format("%d spatial dimensions, this kernel has 1 and 2", spatial));
  if (w.rank() != x.rank() || y.rank() != x.rank()) decline("ranks differ");
  const auto attrs = v.attrs();
  Conv c;
  c.n = x.dim(0), c.c = x.dim(1), c.w = x.dim(-1), c.m = w.dim(0), c.kw = w.dim(-1), c.ow = y.dim(-1);
  c.h = c.oh = 1;
  if (spatial == 2) c.h = x.dim(2), c.kh = w.dim(2), c.oh = y.dim(2);
  c.group = attrs.get_int("group", 1);
  if (c.group < 1 || c.c % c.group || c.m % c.group || w.dim(1) * c.group != c.c)
    decline("groups and channels do not fit");
  const auto strides = attrs.get_ints("strides"), dilations = attrs.get_ints("dilations");
  if (!strides.empty()) c.sw = strides[spatial - 1], c.sh = spatial == 2 ? strides[0] : 1;
  if (!dilations.empty()) c.dw = dilations[spatial - 1], c.dh = spatial == 2 ? dilations[0] : 1;
  read_pads(attrs, c, spatial);
  if (y.count() == 0 || x.count() == 0) decline("a tensor without elements");
  return c;
}

Conv read_conv(const PlanView& v) {
  Conv c = read_conv_shape(v, 1);
  c.bias = v.has_input(2);
  c.residual = v.has_input(3);
  c.act = fused_activation(v.attrs());
  return c;
}

namespace {

void match_conv(const PlanView& v) {
  if (v.has_input(2) && v.input(2).rank() > 1) decline("the bias has more than one dimension");
  fused_activation(v.attrs());
  if (v.input(0).rank() > 4 || (v.input(0).rank() >= 0 && v.input(0).rank() < 3))
    decline("1 or 2 spatial dimensions are wanted");
}

void plan_conv(const PlanView& v, Planned& p) {
  allow_isa(v.cpu_features());
  const Conv c = read_conv(v);
  if (c.pointwise()) return plan_conv_pointwise(c, v, p);
  if (c.depthwise()) return plan_conv_depthwise(c, v, p);
  plan_conv_onednn(c, v, p);
}

}  // namespace

void provide_conv(Plugin& p) {
  const std::vector<tn_dtype> f32{TN_FLOAT32};
  p.kernel("tenon.cpu.conv/1", "Conv")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32, TN_OPERAND_CONSTANT)
      .input(f32)
      .match<match_conv>()
      .plan<plan_conv>();
  p.kernel("tenon.cpu.fused_conv/1", "tenon::FusedConv")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32, TN_OPERAND_CONSTANT)
      .input(f32)
      .input(f32)
      .match<match_conv>()
      .plan<plan_conv>();
}

}  // namespace tenon::cpu
