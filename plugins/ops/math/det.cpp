// Det: the determinant of each matrix, from its LU factors with partial pivoting in float64. That of no rows
// is 1.
#include "families.hpp"
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct DetState : Base {
  int64_t n = 0;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};
double determinant(double* m, int64_t n) noexcept {
  double result = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t pivot = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(m[i * n + k]) > std::fabs(m[pivot * n + k])) pivot = i;
    if (pivot != k) {
      std::swap_ranges(m + k * n, m + (k + 1) * n, m + pivot * n);
      result = -result;
    }
    const double d = m[k * n + k];
    result *= d;
    if (d == 0) return 0;
    for (int64_t i = k + 1; i < n; ++i) {
      const double f = m[i * n + k] / d;
      if (f == 0) continue;
      for (int64_t j = k + 1; j < n; ++j) m[i * n + j] -= f * m[k * n + j];
    }
  }
  return result;
}
int det_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<DetState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  double* m = workspace<double>(a, worker);
  for (int64_t i = r.begin; i < r.end; ++i) {
    s.load(a->inputs[0], i * s.n * s.n, 1, s.n * s.n, m);
    const double y = determinant(m, s.n);
    s.store(&y, 1, a->outputs[0], i);
  }
  return run_ok;
}
void plan_det(const PlanView& v, Planned& p) {
  auto s = make_state<DetState>(v);
  const auto& x = s->in[0].dims;
  if (x.size() < 2 || x.back() != x[x.size() - 2])
    fail("Det: operand X has shape " + dims_text(x) + "; expected square matrices");
  s->n = x.back();
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t n = s->n, count = s->out[0].count;
  finish(v, p, det_fn, std::move(s), count, count * n * n * (n / 2 + 1),
         static_cast<uint64_t>(checked_mul(checked_mul(n, n), sizeof(double))));
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_det(Infer& c) {
  if (!ranked(c, 0, "X", 2)) return c.set_unranked(0, c.dtype(0));
  auto out = c.dims(0);
  require(!c.differ(out[out.size() - 1], out[out.size() - 2]),
          "operand X has shape " + c.text(out) + "; expected square matrices in its last two dimensions");
  out.resize(out.size() - 2);
  c.set(0, c.dtype(0), out);
}

}  // namespace

void add_det(Plugin& p) {
  define(p, "Det").infer<infer_det>();
  reference::reference_kernel(p, "Det").plan<reference::plan_det>();
}

}  // namespace tenon::ops
