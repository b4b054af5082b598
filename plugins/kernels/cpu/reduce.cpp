// Reductions of float32 over trailing axes, and means and maxima over image planes.
#include "families.hpp"
#include "reduce_rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct State {
  Reduction op;
  int64_t rows, n;
  uint32_t tiles;
};

int run(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  for (int64_t i = r.begin; i < r.end; ++i)
    out<float>(a)[i] = reduce_row(s.op, in<float>(a, 0) + i * s.n, s.n);
  return 0;
}

void set_rows(const PlanView& v, Planned& p, Reduction op, int64_t rows, int64_t n) {
  allow_simd(v.cpu_features());
  if (n == 0) decline("a reduction of nothing");
  const auto tiles = static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(rows * n, 8192, v.threads()), std::max<int64_t>(rows, 1)));
  p.set(run, std::make_unique<State>(State{op, rows, n, tiles}), tiles);
}

void plan_global_pool(const PlanView& v, Planned& p) {
  const auto x = v.input(0);
  if (x.rank() < 3) decline("an operand without spatial dimensions");
  int64_t n = 1;
  for (int i = 2; i < x.rank(); ++i) n *= x.dim(i);
  set_rows(v, p, v.op_name() == "GlobalMaxPool" ? Reduction::Max : Reduction::Mean, x.dim(0) * x.dim(1), n);
}

void plan_reduce(const PlanView& v, Planned& p) {
  const auto op = reduction_of(v.op_name());
  if (!op) decline("this kernel has no " + std::string(v.op_name()));
  const auto x = v.input(0);
  std::vector<bool> reduced(static_cast<size_t>(x.rank()), false);
  bool any = false;
  if (v.has_input(1)) {
    const auto axes = v.input(1);
    if (!axes.data<int64_t>()) decline("the axes are not known while planning");
    for (int64_t i = 0; i < axes.count(); ++i) {
      int64_t axis = axes.data<int64_t>()[i];
      axis += axis < 0 ? x.rank() : 0;
      if (axis < 0 || axis >= x.rank()) fail("an axis is outside the operand's rank");
      reduced[static_cast<size_t>(axis)] = any = true;
    }
  }
  if (!any) {
    if (v.attrs().get_int("noop_with_empty_axes", 0) != 0) decline("no axis is reduced");
    reduced.assign(reduced.size(), true);
  }
  int64_t rows = 1, n = 1;
  bool started = false;
  for (int i = 0; i < x.rank(); ++i) {
    if (started && !reduced[static_cast<size_t>(i)] && x.dim(i) != 1)
      decline("the reduced axes are not the last ones");
    started = started || reduced[static_cast<size_t>(i)];
    (reduced[static_cast<size_t>(i)] ? n : rows) *= x.dim(i);
  }
  set_rows(v, p, *op, rows, n);
}

}  // namespace

void provide_reduce(Plugin& p) {
  constexpr const char* pools[][2] = {{"average", "GlobalAveragePool"}, {"max", "GlobalMaxPool"}};
  for (const auto& [id, op] : pools)
    p.kernel(std::string("tenon.cpu.global_") + id + "_pool/1", op)
        .flags(TN_KERNEL_DETERMINISTIC)
        .input({TN_FLOAT32})
        .plan<plan_global_pool>();
  constexpr const char* names[][2] = {{"sum", "ReduceSum"},   {"mean", "ReduceMean"},
                                      {"max", "ReduceMax"},   {"min", "ReduceMin"},
                                      {"l1", "ReduceL1"},     {"l2", "ReduceL2"},
                                      {"prod", "ReduceProd"}, {"sum_square", "ReduceSumSquare"}};
  for (const auto& [id, op] : names)
    p.kernel(std::string("tenon.cpu.reduce_") + id + "/1", op)
        .flags(TN_KERNEL_DETERMINISTIC)
        .input({TN_FLOAT32})
        .input({TN_INT64})
        .plan<plan_reduce>();
}

}  // namespace tenon::cpu
