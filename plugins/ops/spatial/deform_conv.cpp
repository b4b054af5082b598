// DeformConv: a convolution whose taps are moved by offsets, and weighted by a mask.
//
// A tap at fractional coordinates is interpolated linearly between the elements around it; elements outside
// are 0, and so is a tap whose coordinate is not a number. Sums run in float64 in the order of channels, then
// taps.
#include "families.hpp"
#include "spatial/conv.hpp"
#include "spatial/window_kernels.hpp"
#include "support/blocked.hpp"
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct DeformState : Base {
  int axes = 0;
  Dims strides, dilations, pads;
  int64_t groups = 1, offset_groups = 1, in_channels = 0, out_channels = 0;  // channels of one group
  int64_t taps = 1, points = 1, plane = 1;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};

/// One element between the others of a plane.
double interpolate(const DeformState& s, const void* x, int64_t plane, const double* at) noexcept {
  int64_t low[max_rank];
  double part[max_rank];
  for (int k = 0; k < s.axes; ++k) {
    if (!(at[k] > -1 && at[k] < static_cast<double>(s.in[0].dim(k + 2)))) return 0;
    const double base = std::floor(at[k]);
    low[k] = static_cast<int64_t>(base);
    part[k] = at[k] - base;
  }
  double sum = 0;
  for (int corner = 0; corner < 1 << s.axes; ++corner) {
    double weight = 1;
    int64_t place = 0;
    bool inside = true;
    for (int k = 0; k < s.axes; ++k) {
      const bool high = (corner >> k & 1) != 0;
      const int64_t i = low[k] + high, size = s.in[0].dim(k + 2);
      weight *= high ? part[k] : 1 - part[k];
      inside = inside && i >= 0 && i < size;
      place = place * size + i;
    }
    if (!inside || weight == 0) continue;
    double value;
    s.load(x, plane + place, 1, 1, &value);
    sum += weight * value;
  }
  return sum;
}

/// Row k (a channel of the group and a tap) of the moved windows, for results [first, first + count).
void moved_row(const DeformState& s, const tn_kernel_args* a, int64_t image, int64_t group, int64_t k,
               int64_t first, int64_t count, double* to) noexcept {
  const int64_t tap = k % s.taps, channel = group * s.in_channels + k / s.taps,
                channels = s.groups * s.in_channels, offset_group = channel / (channels / s.offset_groups);
  const int64_t moved = (image * s.offset_groups + offset_group) * s.taps + tap;
  double at[max_rank], offset, mask;
  for (int64_t j = 0; j < count; ++j) {
    int64_t point = first + j, rest_tap = tap;
    for (int d = s.axes; d-- > 0;) {
      const auto u = static_cast<size_t>(d);
      const int64_t size = s.out[0].dim(d + 2), kernel = s.in[1].dim(d + 2);
      s.load(a->inputs[2], (moved * s.axes + d) * s.points + first + j, 1, 1, &offset);
      at[d] =
          static_cast<double>(point % size * s.strides[u] - s.pads[u] + rest_tap % kernel * s.dilations[u]) +
          offset;
      point /= size;
      rest_tap /= kernel;
    }
    to[j] = interpolate(s, a->inputs[0], (image * channels + channel) * s.plane, at);
    if (!s.has_in(4)) continue;
    s.load(a->inputs[4], moved * s.points + first + j, 1, 1, &mask);
    to[j] *= mask;
  }
}

int deform_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<DeformState>(a);
  const int64_t columns = (s.points + tile_n - 1) / tile_n, rows = (s.out_channels + tile_m - 1) / tile_m,
                depth = s.in_channels * s.taps;
  const auto r = tile_range(s.in[0].dims[0] * s.groups * rows * columns, s.tiles, tile);
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const int64_t i0 = unit % rows * tile_m, j0 = unit / rows % columns * tile_n,
                  group = unit / (rows * columns) % s.groups, image = unit / (rows * columns * s.groups);
    const int64_t m = std::min(tile_m, s.out_channels - i0), n = std::min(tile_n, s.points - j0),
                  channel = group * s.out_channels + i0;
    double* c = multiply<false>(
        m, n, depth, workspace<double>(a, worker),
        [&](int64_t i, int64_t k0, int64_t kc, double* to) {
          s.load(a->inputs[1], (channel + i) * depth + k0, 1, kc, to);
        },
        [&](int64_t k, double* to) { moved_row(s, a, image, group, k, j0, n, to); });
    for (int64_t i = 0; i < m; ++i) {
      double* row = c + i * tile_n;
      if (s.has_in(3)) {
        double bias;
        s.load(a->inputs[3], channel + i, 1, 1, &bias);
        for (int64_t j = 0; j < n; ++j) row[j] += bias;
      }
      s.store(row, n, a->outputs[0], (image * s.groups * s.out_channels + channel + i) * s.points + j0);
    }
  }
  return run_ok;
}

void plan_deform(const PlanView& v, Planned& p) {
  auto s = make_state<DeformState>(v);
  const auto &x = s->in[0].dims, &w = s->in[1].dims, &y = s->out[0].dims;
  if (x.size() < 3 || w.size() != x.size() || y.size() != x.size())
    fail("DeformConv's operands must have one rank of 3 or more");
  const size_t axes = x.size() - 2;
  s->axes = static_cast<int>(axes);
  s->strides = window_list(v, "strides", axes, 1, 1);
  s->dilations = window_list(v, "dilations", axes, 1, 1);
  s->pads = window_list(v, "pads", 2 * axes, 0, 0);
  s->groups = v.attrs().get_int("group", 1);
  s->offset_groups = v.attrs().get_int("offset_group", 1);
  if (s->groups < 1 || s->offset_groups < 1 || w[0] % s->groups || x[1] != checked_mul(w[1], s->groups) ||
      x[1] % s->offset_groups)
    fail("DeformConv: operands X " + dims_text(x) + " and W " + dims_text(w) + " do not fit its groups");
  s->in_channels = w[1];
  s->out_channels = w[0] / s->groups;
  s->taps = product(w, 2, w.size());
  s->points = product(y, 2, y.size());
  s->plane = product(x, 2, x.size());
  Dims offset{x[0], checked_mul(checked_mul(s->offset_groups, s->taps), static_cast<int64_t>(axes))};
  offset.insert(offset.end(), y.begin() + 2, y.end());
  if (s->in[2].dims != offset)
    fail("DeformConv: operand offset has shape " + dims_text(s->in[2].dims) + "; expected " +
         dims_text(offset));
  offset[1] = s->offset_groups * s->taps;
  if (s->has_in(4) && s->in[4].dims != offset)
    fail("DeformConv: operand mask has shape " + dims_text(s->in[4].dims) + "; expected " +
         dims_text(offset));
  if (s->has_in(3) && s->in[3].count != w[0])
    fail("DeformConv: operand B has shape " + dims_text(s->in[3].dims) +
         "; expected one number for each filter");
  if (y[0] != x[0] || y[1] != w[0]) fail("DeformConv's result was planned with another shape");
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t units =
      x[0] * s->groups * ((s->out_channels + tile_m - 1) / tile_m) * ((s->points + tile_n - 1) / tile_n);
  const int64_t work = x[0] * x[1] * s->taps * s->points * (8 << std::min(s->axes, 8)) + s->out[0].count;
  finish(v, p, deform_fn, std::move(s), units, work, multiply_bytes);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_deform_conv(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 3) || !ranked(c, 1, "W", 3)) return c.set_unranked(0, dtype);
  // Everything but the offsets is a convolution's.
  infer_convolution(c, 0, 1, c.has_input(3) ? std::optional<uint32_t>(3) : std::nullopt, dtype);
  const auto x = c.dims(0), w = c.dims(1);
  const int64_t groups = c.attrs().get_int("offset_group", 1), axes = c.rank(0) - 2;
  require(groups >= 1, "attribute 'offset_group' is " + text_of(groups) + "; expected 1 or more");
  if (const auto channels = c.number(x[1]))
    require(*channels % groups == 0, "operand X has " + text_of(*channels) + " channels, which " +
                                         text_of(groups) + " offset groups cannot share");
  tn_dim taps = groups;
  for (size_t i = 2; i < w.size(); ++i) taps = c.mul(taps, w[i]);
  const std::pair<uint32_t, tn_dim> moving[] = {{2, c.mul(taps, axes)}, {4, taps}};
  for (const auto& [operand, wanted] : moving) {
    const char* name = operand == 2 ? "offset" : "mask";
    if (!c.has_input(operand) || !ranked(c, operand, name, c.rank(0), c.rank(0))) continue;
    const auto given = c.dims(operand);
    require(!c.differ(given[1], wanted) && !c.differ(given[0], x[0]),
            std::string("operand ") + name + " has shape " + c.text(given) + "; expected [" + c.text(x[0]) +
                ", " + c.text(wanted) + ", ...]");
  }
}

}  // namespace

void add_deform_conv(Plugin& p) {
  define(p, "DeformConv").infer<infer_deform_conv>();
  reference::reference_kernel(p, "DeformConv").plan<reference::plan_deform>();
}

}  // namespace tenon::ops
