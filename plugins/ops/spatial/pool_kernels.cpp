// MaxPool, AveragePool, LpPool, their global forms, and LRN.
#include "families.hpp"
#include "spatial/window_kernels.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct PoolState : Base {
  Window w;
  int64_t planes = 0;
  bool include_pad = false, column_major = false;
  double p = 2;  // of LpPool
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};

/// f(result point, taps) with the input range of each axis: first tap inside, taps inside.
template <class F>
void for_windows(const Window& w, F&& f) {
  int64_t point = 0;
  for (int64_t d = 0; d < w.out[0]; ++d)
    for (int64_t h = 0; h < w.out[1]; ++h)
      for (int64_t x = 0; x < w.out[2]; ++x, ++point) {
        const int64_t o[3] = {d, h, x};
        int64_t first[3], taps[3], padded = 1;
        for (int i = 0; i < 3; ++i) {
          const int64_t start = o[i] * w.stride[i] - w.pad[i];
          const int64_t skip = start < 0 ? (-start + w.dilation[i] - 1) / w.dilation[i] : 0;
          first[i] = start + skip * w.dilation[i];
          taps[i] = first[i] < w.in[i]
                        ? std::max<int64_t>(
                              0, std::min(w.kernel[i] - skip, (w.in[i] - 1 - first[i]) / w.dilation[i] + 1))
                        : 0;
          // Taps on the operand or its padding; what ceil_mode adds beyond is neither.
          padded *= std::min(w.kernel[i], (w.in[i] + w.pad_end[i] - 1 - start) / w.dilation[i] + 1);
        }
        f(point, first, taps, padded);
      }
}

int max_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<PoolState>(a);
  const Window& w = s.w;
  const auto r = tile_range(s.planes, s.tiles, tile);
  int64_t* indices = s.has_out(1) ? out<int64_t>(a, 1) : nullptr;
  for (int64_t plane = r.begin; plane < r.end; ++plane) {
    const int64_t base = plane * w.in_count();
    for_windows(w, [&](int64_t point, const int64_t(&first)[3], const int64_t(&taps)[3], int64_t) {
      double best = -std::numeric_limits<double>::infinity(), row[64];
      int64_t where = 0;
      bool any = false;
      for (int64_t d = 0; d < taps[0]; ++d)
        for (int64_t h = 0; h < taps[1]; ++h) {
          const int64_t id = first[0] + d * w.dilation[0], ih = first[1] + h * w.dilation[1],
                        at = (id * w.in[1] + ih) * w.in[2] + first[2];
          for (int64_t t = 0; t < taps[2]; t += 64) {
            const int64_t n = std::min<int64_t>(64, taps[2] - t);
            s.load(a->inputs[0], base + at + t * w.dilation[2], w.dilation[2], n, row);
            for (int64_t k = 0; k < n; ++k)
              if (!any || row[k] > best || (row[k] != row[k] && best == best)) {
                any = true;
                best = row[k];
                const int64_t iw = first[2] + (t + k) * w.dilation[2];
                where =
                    s.column_major ? (iw * w.in[1] + ih) * w.in[0] + id : (id * w.in[1] + ih) * w.in[2] + iw;
              }
          }
        }
      s.store(&best, 1, a->outputs[0], plane * w.out_count() + point);
      if (indices) indices[plane * w.out_count() + point] = base + where;
    });
  }
  return run_ok;
}

template <bool Lp>
int average_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<PoolState>(a);
  const Window& w = s.w;
  const auto r = tile_range(s.planes, s.tiles, tile);
  for (int64_t plane = r.begin; plane < r.end; ++plane) {
    const int64_t base = plane * w.in_count();
    for_windows(w, [&](int64_t point, const int64_t(&first)[3], const int64_t(&taps)[3], int64_t padded) {
      double sum = 0, row[64];
      for (int64_t d = 0; d < taps[0]; ++d)
        for (int64_t h = 0; h < taps[1]; ++h) {
          const int64_t at =
              ((first[0] + d * w.dilation[0]) * w.in[1] + first[1] + h * w.dilation[1]) * w.in[2] + first[2];
          for (int64_t t = 0; t < taps[2]; t += 64) {
            const int64_t n = std::min<int64_t>(64, taps[2] - t);
            s.load(a->inputs[0], base + at + t * w.dilation[2], w.dilation[2], n, row);
            for (int64_t k = 0; k < n; ++k) sum += Lp ? std::pow(std::fabs(row[k]), s.p) : row[k];
          }
        }
      const double y = Lp ? std::pow(sum, 1 / s.p)
                          : sum / static_cast<double>(s.include_pad ? padded : taps[0] * taps[1] * taps[2]);
      s.store(&y, 1, a->outputs[0], plane * w.out_count() + point);
    });
  }
  return run_ok;
}

void plan_pool(const PlanView& v, Planned& p) {
  auto s = make_state<PoolState>(v);
  const std::string op(v.op_name());
  const auto &x = s->in[0].dims, &y = s->out[0].dims;
  s->planes = x.size() >= 2 ? x[0] * x[1] : 0;
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  s->p = static_cast<double>(v.attrs().get_int("p", 2));
  if (op.rfind("Global", 0) == 0) {
    if (x.size() < 2) fail(op + " needs an operand [N, C, ...]");
    // The whole plane is one long axis.
    s->w.in[2] = s->w.kernel[2] = product(x, 2, x.size());
    if (s->out[0].count != s->planes) fail(op + "'s result must have one element for each plane");
  } else {
    s->w = window_of(v, x, y, {}, true);
    s->include_pad = v.attrs().get_int("count_include_pad", 0) != 0;
    s->column_major = v.attrs().get_int("storage_order", 0) != 0;
    if (y[0] != x[0] || y[1] != x[1]) fail(op + "'s result was planned with another batch or channel count");
  }
  const int64_t units = s->planes, work = s->planes * s->w.out_count() * (s->w.kernel_count() + 8) * 2;
  const auto fn = op == "MaxPool" || op == "GlobalMaxPool" ? max_fn
                  : op == "LpPool" || op == "GlobalLpPool" ? average_fn<true>
                                                           : average_fn<false>;
  finish(v, p, fn, std::move(s), units, work);
}

// LRN: y = x / (bias + alpha / size * sum of squares over `size` channels)^beta.
struct LrnState : Base {
  int64_t channels = 0, inner = 1, before = 0, after = 0;
  double alpha = 0, beta = 0, bias = 0;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};
int lrn_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<LrnState>(a);
  const auto r = tile_range(s.in[0].count / std::max<int64_t>(s.inner, 1), s.tiles, tile);
  double x[block], sum[block];
  for (int64_t plane = r.begin; plane < r.end; ++plane) {
    const int64_t c = plane % s.channels, lo = std::max<int64_t>(0, c - s.before),
                  hi = std::min(s.channels - 1, c + s.after);
    for (int64_t i = 0; i < s.inner; i += block) {
      const int64_t n = std::min(block, s.inner - i);
      std::fill(sum, sum + n, 0.0);
      for (int64_t k = lo; k <= hi; ++k) {
        s.load(a->inputs[0], (plane - c + k) * s.inner + i, 1, n, x);
        for (int64_t q = 0; q < n; ++q) sum[q] += x[q] * x[q];
      }
      s.load(a->inputs[0], plane * s.inner + i, 1, n, x);
      for (int64_t q = 0; q < n; ++q) x[q] /= std::pow(s.bias + s.alpha * sum[q], s.beta);
      s.store(x, n, a->outputs[0], plane * s.inner + i);
    }
  }
  return run_ok;
}
void plan_lrn(const PlanView& v, Planned& p) {
  auto s = make_state<LrnState>(v);
  const auto& x = s->in[0].dims;
  const int64_t size = v.attrs().get_int("size", 0);
  if (x.size() < 2 || size < 1) fail("LRN needs an operand [N, C, ...] and a positive size");
  s->channels = x[1];
  s->inner = product(x, 2, x.size());
  s->before = (size - 1) / 2;
  s->after = size - 1 - s->before;
  s->alpha = v.attrs().get_float("alpha", 0.0001f) / static_cast<double>(size);
  s->beta = v.attrs().get_float("beta", 0.75);
  s->bias = v.attrs().get_float("bias", 1);
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t n = s->in[0].count, units = s->inner ? n / s->inner : 0;
  finish(v, p, lrn_fn, std::move(s), units, n * 16);
}

}  // namespace

void provide_pool(Plugin& p) {
  for (const char* op :
       {"MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"})
    reference_kernel(p, op).plan<plan_pool>();
  reference_kernel(p, "LRN").plan<plan_lrn>();
}

}  // namespace tenon::reference
