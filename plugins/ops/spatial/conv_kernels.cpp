// Conv, FusedConv: a product of the weights [channels out][channels in x kernel] with windows
// that are laid out on the fly, block by block.
#include "families.hpp"
#include "math/activation_kernels.hpp"
#include "spatial/window_kernels.hpp"
#include "support/blocked.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct ConvState : Base {
  Window w;
  int64_t batch = 0, groups = 1, in_channels = 0, out_channels = 0;  // channels of one group
  bool has_bias = false, has_residual = false;
  Load<double> load_x = nullptr, load_w = nullptr, load_bias = nullptr, load_residual = nullptr;
  Store<double> store = nullptr;
  Activation activation;
  int64_t depth() const noexcept { return in_channels * w.kernel_count(); }
};

/// Row k of the windows for results [first, first + count): one tap of one channel, `padding` outside.
void windows_row(const ConvState& s, const void* x, int64_t plane, int64_t k, int64_t first, int64_t count,
                 double* to) noexcept {
  const Window& w = s.w;
  const int64_t kw = k % w.kernel[2], kh = k / w.kernel[2] % w.kernel[1],
                kd = k / (w.kernel[2] * w.kernel[1]) % w.kernel[0], channel = k / w.kernel_count();
  const int64_t base = plane + channel * w.in_count();
  int64_t ow = first % w.out[2], oh = first / w.out[2] % w.out[1], od = first / (w.out[2] * w.out[1]);
  while (count > 0) {
    const int64_t n = std::min(count, w.out[2] - ow);
    const int64_t id = od * w.stride[0] - w.pad[0] + kd * w.dilation[0],
                  ih = oh * w.stride[1] - w.pad[1] + kh * w.dilation[1];
    if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1]) {
      std::fill(to, to + n, 0.0);
    } else {
      const int64_t start = ow * w.stride[2] - w.pad[2] + kw * w.dilation[2], step = w.stride[2];
      int64_t before = start < 0 ? std::min(n, (-start + step - 1) / step) : 0;
      int64_t inside = start + before * step < w.in[2]
                           ? std::min(n - before, (w.in[2] - 1 - start - before * step) / step + 1)
                           : 0;
      std::fill(to, to + before, 0.0);
      if (inside > 0)
        s.load_x(x, base + (id * w.in[1] + ih) * w.in[2] + start + before * step, step, inside, to + before);
      std::fill(to + before + inside, to + n, 0.0);
    }
    to += n;
    count -= n;
    ow = 0;
    if (++oh == w.out[1]) {
      oh = 0;
      ++od;
    }
  }
}

int conv_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<ConvState>(a);
  const int64_t points = s.w.out_count(), rows = (s.out_channels + tile_m - 1) / tile_m,
                columns = (points + tile_n - 1) / tile_n;
  const auto r = tile_range(s.batch * s.groups * rows * columns, s.tiles, tile);
  double* scratch = workspace<double>(a, worker);
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const int64_t i0 = unit % rows * tile_m, j0 = unit / rows % columns * tile_n,
                  group = unit / (rows * columns) % s.groups, image = unit / (rows * columns * s.groups);
    const int64_t m = std::min(tile_m, s.out_channels - i0), n = std::min(tile_n, points - j0);
    const int64_t first_channel = group * s.out_channels + i0, depth = s.depth();
    const int64_t plane = (image * s.groups + group) * s.in_channels * s.w.in_count();
    const auto load_w = [&](int64_t i, int64_t k0, int64_t kc, double* to) {
      s.load_w(a->inputs[1], (first_channel + i) * depth + k0, 1, kc, to);
    };
    const auto load_windows = [&](int64_t k, double* to) {
      windows_row(s, a->inputs[0], plane, k, j0, n, to);
    };
    double* c = multiply<false>(m, n, depth, scratch, load_w, load_windows);
    double residual[tile_n];
    for (int64_t i = 0; i < m; ++i) {
      double* row = c + i * tile_n;
      const int64_t at = (image * s.groups * s.out_channels + first_channel + i) * points + j0;
      if (s.has_bias) {
        double bias;
        s.load_bias(a->inputs[2], first_channel + i, 1, 1, &bias);
        for (int64_t j = 0; j < n; ++j) row[j] += bias;
      }
      if (s.has_residual) {
        s.load_residual(a->inputs[3], at, 1, n, residual);
        for (int64_t j = 0; j < n; ++j) row[j] += residual[j];
      }
      s.activation(row, n);
      s.store(row, n, a->outputs[0], at);
    }
  }
  return run_ok;
}

void plan_conv(const PlanView& v, Planned& p) {
  auto s = make_state<ConvState>(v);
  const auto op = v.op_name();
  const auto &x = s->in[0].dims, &w = s->in[1].dims, &y = s->out[0].dims;
  if (x.size() < 3 || w.size() != x.size())
    fail(format("Conv needs X and W of one rank of at least 3; found %s and %s", dims_text(x).c_str(),
                dims_text(w).c_str()));
  s->groups = v.attrs().get_int("group", 1);
  if (s->groups < 1 || w[0] % s->groups || x[1] != checked_mul(w[1], s->groups))
    fail(format("Conv: X %s, W %s and group %lld do not fit: X must have %lld * group channels",
                dims_text(x).c_str(), dims_text(w).c_str(), static_cast<long long>(s->groups),
                static_cast<long long>(w[1])));
  s->w = window_of(v, x, y, Span<const int64_t>(w).subspan(2), false);
  s->batch = x[0];
  s->in_channels = w[1];
  s->out_channels = w[0] / s->groups;
  if (y[0] != x[0] || y[1] != w[0]) fail("Conv's result was planned with another batch or channel count");
  s->load_x = loader<double>(s->in[0].dtype);
  s->load_w = loader<double>(s->in[1].dtype);
  s->store = storer<double>(s->out[0].dtype);
  s->has_bias = s->has_in(2);
  if (s->has_bias && s->in[2].count != w[0])
    fail(format("Conv's bias has %lld elements; expected %lld", static_cast<long long>(s->in[2].count),
                static_cast<long long>(w[0])));
  if (s->has_bias) s->load_bias = loader<double>(s->in[2].dtype);
  if (op == "tenon::FusedConv") {
    s->has_residual = s->has_in(3);
    if (s->has_residual && s->in[3].dims != y)
      fail(format("FusedConv's residual %s must have the result's shape %s", dims_text(s->in[3].dims).c_str(),
                  dims_text(y).c_str()));
    if (s->has_residual) s->load_residual = loader<double>(s->in[3].dtype);
    s->activation = fused_activation(v);
  }
  const int64_t units = s->batch * s->groups * ((s->out_channels + tile_m - 1) / tile_m) *
                        ((s->w.out_count() + tile_n - 1) / tile_n);
  const int64_t work = s->out[0].count * std::max<int64_t>(s->depth() / 4, 1);
  finish(v, p, conv_fn, std::move(s), units, work, multiply_bytes);
}

}  // namespace

void provide_conv(Plugin& p) {
  reference_kernel(p, "Conv").plan<plan_conv>();
  reference_kernel(p, "tenon::FusedConv").plan<plan_conv>();
}

}  // namespace tenon::reference
