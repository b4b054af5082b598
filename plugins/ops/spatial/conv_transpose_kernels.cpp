// ConvTranspose: each result element gathers the operand elements whose windows reach it, as a product of the
// weights with rows laid out on the fly.
#include "families.hpp"
#include "spatial/window_kernels.hpp"
#include "support/blocked.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct TransposeState : Base {
  Window w;                                                          // out is the result's size
  int64_t batch = 0, groups = 1, in_channels = 0, out_channels = 0;  // channels of one group
  Load<double> load_x = nullptr, load_w = nullptr, load_bias = nullptr;
  Store<double> store = nullptr;
};

/// Operand coordinate that tap `k` brings to result coordinate o; -1: none.
int64_t source(const Window& w, int axis, int64_t o, int64_t k) noexcept {
  const int64_t t = o + w.pad[axis] - k * w.dilation[axis];
  if (t < 0 || t % w.stride[axis]) return -1;
  const int64_t i = t / w.stride[axis];
  return i < w.in[axis] ? i : -1;
}

int conv_transpose_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<TransposeState>(a);
  const Window& w = s.w;
  const int64_t points = w.out_count(), taps = w.kernel_count(),
                rows = (s.out_channels + tile_m - 1) / tile_m, columns = (points + tile_n - 1) / tile_n;
  const auto r = tile_range(s.batch * s.groups * rows * columns, s.tiles, tile);
  double* scratch = workspace<double>(a, worker);
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const int64_t i0 = unit % rows * tile_m, j0 = unit / rows % columns * tile_n,
                  group = unit / (rows * columns) % s.groups, image = unit / (rows * columns * s.groups);
    const int64_t m = std::min(tile_m, s.out_channels - i0), n = std::min(tile_n, points - j0);
    const auto load_w = [&](int64_t i, int64_t k0, int64_t kc,
                            double* to) {  // W is [channels in][channels out][taps]
      for (int64_t q = 0; q < kc;) {
        const int64_t channel = (k0 + q) / taps, tap = (k0 + q) % taps, count = std::min(kc - q, taps - tap);
        s.load_w(a->inputs[1], ((group * s.in_channels + channel) * s.out_channels + i0 + i) * taps + tap, 1,
                 count, to + q);
        q += count;
      }
    };
    const auto load_x = [&](int64_t k, double* to) {
      const int64_t kw = k % w.kernel[2], kh = k / w.kernel[2] % w.kernel[1],
                    kd = k / (w.kernel[2] * w.kernel[1]) % w.kernel[0];
      const int64_t plane = ((image * s.groups + group) * s.in_channels + k / taps) * w.in_count();
      for (int64_t j = 0; j < n; ++j) {
        const int64_t o = j0 + j;
        const int64_t x = source(w, 2, o % w.out[2], kw), y = source(w, 1, o / w.out[2] % w.out[1], kh),
                      z = source(w, 0, o / (w.out[2] * w.out[1]), kd);
        if (x < 0 || y < 0 || z < 0)
          to[j] = 0;
        else
          s.load_x(a->inputs[0], plane + (z * w.in[1] + y) * w.in[2] + x, 1, 1, to + j);
      }
    };
    double* c = multiply<false>(m, n, s.in_channels * taps, scratch, load_w, load_x);
    for (int64_t i = 0; i < m; ++i) {
      const int64_t channel = group * s.out_channels + i0 + i;
      double* row = c + i * tile_n;
      if (s.load_bias) {
        double bias;
        s.load_bias(a->inputs[2], channel, 1, 1, &bias);
        for (int64_t j = 0; j < n; ++j) row[j] += bias;
      }
      s.store(row, n, a->outputs[0], (image * s.groups * s.out_channels + channel) * points + j0);
    }
  }
  return run_ok;
}

void plan_conv_transpose(const PlanView& v, Planned& p) {
  auto s = make_state<TransposeState>(v);
  const auto &x = s->in[0].dims, &k = s->in[1].dims, &y = s->out[0].dims;
  if (x.size() < 3 || x.size() > 5 || k.size() != x.size() || y.size() != x.size())
    throw Failure(TN_ERR_UNSUPPORTED,
                  format("ConvTranspose is computed for 1 to 3 spatial axes; found X %s and W %s",
                         dims_text(x).c_str(), dims_text(k).c_str()));
  s->groups = v.attrs().get_int("group", 1);
  if (s->groups < 1 || x[1] != k[0] || x[1] % s->groups || y[0] != x[0] ||
      y[1] != checked_mul(k[1], s->groups))
    fail(format("ConvTranspose: X %s, W %s and group %lld do not fit", dims_text(x).c_str(),
                dims_text(k).c_str(), static_cast<long long>(s->groups)));
  const size_t axes = x.size() - 2;
  const Dims strides = window_list(v, "strides", axes, 1, 1),
             dilations = window_list(v, "dilations", axes, 1, 1),
             pads = window_list(v, "pads", 2 * axes, 0, 0),
             extra = window_list(v, "output_padding", axes, 0, 0);
  const auto auto_pad = v.attrs().get_string("auto_pad", "NOTSET");
  const bool given_size = !v.attrs().get_ints("output_shape").empty(),
             same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  for (size_t i = 0; i < axes; ++i) {
    const size_t to = 3 - axes + i;
    Window& w = s->w;
    w.in[to] = x[2 + i];
    w.out[to] = y[2 + i];
    w.kernel[to] = k[2 + i];
    w.stride[to] = strides[i];
    w.dilation[to] = dilations[i];
    const int64_t whole = strides[i] * (w.in[to] - 1) + extra[i] + (w.kernel[to] - 1) * dilations[i] + 1;
    if (given_size || same) {
      const int64_t total = std::max<int64_t>(0, whole - w.out[to]);
      w.pad[to] = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    } else {
      if (auto_pad != "VALID") w.pad[to] = pads[i];
      const int64_t wanted = whole - (auto_pad == "VALID" ? 0 : pads[i] + pads[axes + i]);
      if (wanted != w.out[to])
        fail(format("ConvTranspose on axis %zu yields %lld, but its result was planned with %lld", i,
                    static_cast<long long>(wanted), static_cast<long long>(w.out[to])));
    }
  }
  s->batch = x[0];
  s->in_channels = x[1] / s->groups;
  s->out_channels = k[1];
  s->load_x = loader<double>(s->in[0].dtype);
  s->load_w = loader<double>(s->in[1].dtype);
  if (s->has_in(2)) {
    if (s->in[2].count != y[1])
      fail("ConvTranspose's bias must have one element for each channel of the result");
    s->load_bias = loader<double>(s->in[2].dtype);
  }
  s->store = storer<double>(s->out[0].dtype);
  const int64_t units = s->batch * s->groups * ((s->out_channels + tile_m - 1) / tile_m) *
                        ((s->w.out_count() + tile_n - 1) / tile_n);
  const int64_t work = s->out[0].count * std::max<int64_t>(s->in_channels * s->w.kernel_count() / 4, 1);
  finish(v, p, conv_transpose_fn, std::move(s), units, work, multiply_bytes);
}

}  // namespace

void provide_conv_transpose(Plugin& p) { reference_kernel(p, "ConvTranspose").plan<plan_conv_transpose>(); }

}  // namespace tenon::reference
