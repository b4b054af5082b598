// Softmax and LogSoftmax along one axis, less the row's largest. A row of -inf only gives NaN, as the formula
// does.
#include "families.hpp"
#include "nn/rounding.hpp"

namespace tenon::reference {
namespace {

struct SoftmaxState : Base {
  int64_t size = 0, inner = 1;
  bool log = false;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
  Round round = nullptr;
};
int softmax_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<SoftmaxState>(a);
  const auto r = tile_range(s.size ? s.out[0].count / s.size : 0, s.tiles, tile);
  double* x = workspace<double>(a, worker);
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t at = row / s.inner * s.size * s.inner + row % s.inner;
    s.load(a->inputs[0], at, s.inner, s.size, x);
    if (s.log) {
      subtract_largest(x, s.size, s.round);
      double shift = 0;
      for (int64_t i = 0; i < s.size; ++i) {
        double e = std::exp(x[i]);
        if (s.round) s.round(&e, 1);
        shift += e;
      }
      if (s.round) s.round(&shift, 1);
      shift = std::log(shift);
      if (s.round) s.round(&shift, 1);
      for (int64_t i = 0; i < s.size; ++i) x[i] -= shift;
    } else {
      softmax_row(x, s.size, s.round);
    }
    if (s.inner == 1)
      s.store(x, s.size, a->outputs[0], at);
    else
      for (int64_t i = 0; i < s.size; ++i) s.store(x + i, 1, a->outputs[0], at + i * s.inner);
  }
  return run_ok;
}
void plan_softmax(const PlanView& v, Planned& p) {
  auto s = make_state<SoftmaxState>(v);
  const auto& x = s->in[0].dims;
  if (x.empty()) {
    s->size = 1;
  } else {
    const auto axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", -1), s->in[0].rank()));
    s->size = x[axis];
    s->inner = product(x, axis + 1, x.size());
  }
  s->log = v.op_name() == "LogSoftmax";
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  s->round = step_rounding(s->in[0].dtype);
  const int64_t n = s->out[0].count, rows = s->size ? n / s->size : 0;
  const auto bytes = static_cast<uint64_t>(checked_mul(s->size, sizeof(double)));
  finish(v, p, softmax_fn, std::move(s), rows, n * 16, bytes);
}

}  // namespace

void provide_softmax(Plugin& p) {
  reference_kernel(p, "Softmax").in_place(0, 0).plan<plan_softmax>();
  reference_kernel(p, "LogSoftmax").in_place(0, 0).plan<plan_softmax>();
}

}  // namespace tenon::reference
