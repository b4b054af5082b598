// LpNormalization, MeanVarianceNormalization, Shrink.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct LineState : Base {
  int64_t size = 0, inner = 1, p = 2;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};
int lp_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<LineState>(a);
  const auto r = tile_range(s.size ? s.out[0].count / s.size : 0, s.tiles, tile);
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t at = row / s.inner * s.size * s.inner + row % s.inner;
    double sum = 0, x;
    for (int64_t i = 0; i < s.size; ++i) {
      s.load(a->inputs[0], at + i * s.inner, 1, 1, &x);
      sum += s.p == 1 ? std::fabs(x) : x * x;
    }
    const double norm = s.p == 1 ? sum : std::sqrt(sum);
    for (int64_t i = 0; i < s.size; ++i) {
      s.load(a->inputs[0], at + i * s.inner, 1, 1, &x);
      x = norm == 0 ? 0 : x / norm;
      s.store(&x, 1, a->outputs[0], at + i * s.inner);
    }
  }
  return run_ok;
}
void plan_lp(const PlanView& v, Planned& p) {
  auto s = make_state<LineState>(v);
  if (s->in[0].rank() == 0) fail("LpNormalization needs an operand of rank 1 or more");
  const auto axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", -1), s->in[0].rank()));
  s->size = s->in[0].dims[axis];
  s->inner = product(s->in[0].dims, axis + 1, s->in[0].dims.size());
  s->p = v.attrs().get_int("p", 2);
  if (s->p != 1 && s->p != 2)
    fail(format("LpNormalization's p is %lld; expected 1 or 2", static_cast<long long>(s->p)));
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t n = s->out[0].count, units = s->size ? n / s->size : 0;
  finish(v, p, lp_fn, std::move(s), units, n * 4);
}

// MeanVarianceNormalization: (x - mean) / (deviation + 1e-9), the two over the attribute's axes.
struct MomentState : Base {
  Walk<1> kept, gone;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};
int moment_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<MomentState>(a);
  const auto r = tile_range(s.kept.count, s.tiles, tile);
  s.kept.rows(r.begin, r.end, [&](int64_t, const int64_t(&offset)[1], int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const auto each = [&](auto&& f) {
        s.gone.rows(0, s.gone.count, [&](int64_t, const int64_t(&o)[1], int64_t m) {
          for (int64_t k = 0; k < m; ++k) {
            const int64_t at = offset[0] + i * s.kept.inner_stride(0) + o[0] + k * s.gone.inner_stride(0);
            double x;
            s.load(a->inputs[0], at, 1, 1, &x);
            f(x, at);
          }
        });
      };
      double mean = 0, square = 0;
      const auto count = static_cast<double>(s.gone.count);
      each([&](double x, int64_t) { mean += x / count; });
      each([&](double x, int64_t) { square += (x - mean) * (x - mean) / count; });
      const double divisor = std::sqrt(square) + 1e-9;
      each([&](double x, int64_t at) {
        const double y = (x - mean) / divisor;
        s.store(&y, 1, a->outputs[0], at);
      });
    }
  });
  return run_ok;
}
void plan_moment(const PlanView& v, Planned& p) {
  auto s = make_state<MomentState>(v);
  const int rank = s->in[0].rank();
  Dims axes = v.attrs().get_ints("axes").copy();
  if (!v.attrs().has("axes")) axes = {0, 2, 3};
  bool reduced[max_rank] = {};
  for (int64_t axis : axes) reduced[axis_of(axis, rank)] = true;
  int64_t strides[max_rank] = {}, stride = 1;
  for (int i = rank; i-- > 0; stride *= s->in[0].dim(i)) strides[i] = stride;
  for (int i = 0; i < rank; ++i) (reduced[i] ? s->gone : s->kept).axis(s->in[0].dim(i), {strides[i]});
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t units = s->kept.count, work = s->out[0].count * 4;
  finish(v, p, moment_fn, std::move(s), units, work);
}

// Shrink: x - bias above lambd, x + bias below -lambd, 0 between.
struct ShrinkState : Base {
  double bias = 0, lambd = 0.5;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};
int shrink_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ShrinkState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  double x[block];
  for (int64_t i = r.begin; i < r.end; i += block) {
    const int64_t n = std::min(block, r.end - i);
    s.load(a->inputs[0], i, 1, n, x);
    for (int64_t k = 0; k < n; ++k)
      x[k] = x[k] < -s.lambd ? x[k] + s.bias : x[k] > s.lambd ? x[k] - s.bias : 0;
    s.store(x, n, a->outputs[0], i);
  }
  return run_ok;
}
void plan_shrink(const PlanView& v, Planned& p) {
  auto s = make_state<ShrinkState>(v);
  s->bias = v.attrs().get_float("bias", 0);
  s->lambd = v.attrs().get_float("lambd", 0.5);
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t n = s->out[0].count;
  finish(v, p, shrink_fn, std::move(s), n, n);
}

}  // namespace

void provide_norms(Plugin& p) {
  reference_kernel(p, "LpNormalization").plan<plan_lp>();
  reference_kernel(p, "MeanVarianceNormalization").plan<plan_moment>();
  reference_kernel(p, "Shrink").plan<plan_shrink>();
}

}  // namespace tenon::reference
