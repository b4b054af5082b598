// Max, Min, Sum, Mean of any number of operands, and Where.
#include "families.hpp"
#include "support/moving.hpp"

namespace tenon::reference {
namespace {

template <class C>
using Fold = void (*)(C* acc, const C* x, int64_t n);
template <class C>
void fold_sum(C* acc, const C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if constexpr (std::is_same_v<C, double>)
      acc[i] += x[i];
    else
      acc[i] = static_cast<C>(static_cast<uint64_t>(acc[i]) + static_cast<uint64_t>(x[i]));
}
// NaN wins, wherever it comes from.
template <class C>
void fold_max(C* acc, const C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] = acc[i] >= x[i] || acc[i] != acc[i] ? acc[i] : x[i];
}
template <class C>
void fold_min(C* acc, const C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) acc[i] = acc[i] <= x[i] || acc[i] != acc[i] ? acc[i] : x[i];
}

template <class C>
struct FoldState : Base {
  std::vector<Walk<1>> walks;
  Load<C> load;
  Store<C> store;
  Fold<C> fold;
  bool mean = false;
};
template <class C>
int fold_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<FoldState<C>>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  C acc[block], x[block];
  for (int64_t at = r.begin; at < r.end; at += block) {
    const int64_t end = std::min(r.end, at + block);
    for (size_t k = 0; k < s.walks.size(); ++k) {
      const int64_t stride = s.walks[k].inner_stride(0);
      s.walks[k].rows(at, end, [&](int64_t i, const int64_t(&offset)[1], int64_t n) {
        C* to = (k == 0 ? acc : x) + (i - at);
        s.load(a->inputs[k], offset[0], stride, n, to);
      });
      if (k > 0) s.fold(acc, x, end - at);
    }
    if (s.mean)
      for (int64_t i = 0; i < end - at; ++i) acc[i] /= static_cast<C>(s.walks.size());
    s.store(acc, end - at, a->outputs[0], at);
  }
  return run_ok;
}
void plan_fold(const PlanView& v, Planned& p) {
  visit_domain(v.input(0).dtype(), [&](auto c) {
    using C = decltype(c);
    auto s = make_state<FoldState<C>>(v);
    const auto op = v.op_name();
    s->load = loader<C>(s->in[0].dtype);
    s->store = storer<C>(s->out[0].dtype);
    s->fold = op == "Max" ? fold_max<C> : op == "Min" ? fold_min<C> : fold_sum<C>;
    s->mean = op == "Mean";
    for (const auto& i : s->in) s->walks.push_back(broadcast_walk<1>(s->out[0].dims, {&i.dims}));
    const int64_t n = s->out[0].count;
    finish(v, p, fold_fn<C>, std::move(s), n, n * static_cast<int64_t>(v.input_count() + 1));
  });
}

struct WhereState : Base {
  Walk<3> walk;
  int64_t bytes;
};
template <class T>
void choose(const WhereState& s, const tn_kernel_args* a, Range r) {
  const auto* condition = in<uint8_t>(a, 0);
  const auto *x = in<T>(a, 1), *y = in<T>(a, 2);
  auto* to = out<T>(a);
  const int64_t c = s.walk.inner_stride(0), d = s.walk.inner_stride(1), e = s.walk.inner_stride(2);
  s.walk.rows(r.begin, r.end, [&](int64_t at, const int64_t(&o)[3], int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[at + i] = condition[o[0] + i * c] ? x[o[1] + i * d] : y[o[2] + i * e];
  });
}
struct Bytes16 {
  uint64_t a, b;
};
int where_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<WhereState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  switch (s.bytes) {
    case 1:
      choose<uint8_t>(s, a, r);
      break;
    case 2:
      choose<uint16_t>(s, a, r);
      break;
    case 4:
      choose<uint32_t>(s, a, r);
      break;
    case 8:
      choose<uint64_t>(s, a, r);
      break;
    default:
      choose<Bytes16>(s, a, r);
      break;
  }
  return run_ok;
}
void plan_where(const PlanView& v, Planned& p) {
  auto s = make_state<WhereState>(v);
  s->walk = broadcast_walk<3>(s->out[0].dims, {&s->in[0].dims, &s->in[1].dims, &s->in[2].dims});
  s->bytes = element_bytes(s->out[0].dtype);
  const int64_t n = s->out[0].count;
  finish(v, p, where_fn, std::move(s), n, n * 2);
}

}  // namespace

void provide_variadic(Plugin& p) {
  for (const char* op : {"Max", "Min", "Sum", "Mean"})
    reference_kernel(p, op).in_place(0, 0).plan<plan_fold>();
  reference_kernel(p, "Where").plan<plan_moving<plan_where>>();
}

}  // namespace tenon::reference
