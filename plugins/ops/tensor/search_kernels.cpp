// Along one axis: ArgMax, ArgMin, TopK, CumSum, CumProd, Hardmax. NaN is the largest number of all; ties go
// to the lower index unless select_last_index says otherwise.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct AxisState : Base {
  int64_t size = 0, inner = 1;
  bool largest = true, last = false, sorted = true, exclusive = false, reverse = false, multiply = false,
       one_hot = false;
  int64_t k = 0;
};
void axis_from(AxisState& s, int64_t axis) noexcept {
  const auto& x = s.in[0].dims;
  if (x.empty()) {
    s.size = 1;
    return;
  }
  s.size = x[static_cast<size_t>(axis)];
  s.inner = product(x, static_cast<size_t>(axis) + 1, x.size());
}
template <class C>
bool is_nan(C x) noexcept {
  return x != x;
}
/// a comes before b when looking for the largest.
template <class C>
bool greater(C a, C b) noexcept {
  return is_nan(a) ? !is_nan(b) : a > b;
}
template <class C>
bool before(bool largest, C a, C b) noexcept {
  return largest ? greater(a, b) : !is_nan(a) && (is_nan(b) || a < b);
}

template <class C>
int arg_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<AxisState>(a);
  const auto r =
      tile_range(s.one_hot ? (s.size ? s.in[0].count / s.size : 0) : s.out[0].count, s.tiles, tile);
  const auto load = loader<C>(s.in[0].dtype);
  C x[block];
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t at = row / s.inner * s.size * s.inner + row % s.inner;
    C best{};
    int64_t index = 0;
    for (int64_t i = 0; i < s.size; i += block) {
      const int64_t n = std::min(block, s.size - i);
      load(a->inputs[0], at + i * s.inner, s.inner, n, x);
      for (int64_t k = 0; k < n; ++k) {
        // As numpy: NaN is what both look for.
        const bool nan_first = is_nan(x[k]) && !is_nan(best),
                   better = nan_first || (!is_nan(best) && (s.largest ? x[k] > best : x[k] < best));
        const bool equal = x[k] == best || (is_nan(x[k]) && is_nan(best));
        if (i + k == 0 || better || (s.last && equal)) {
          best = x[k];
          index = i + k;
        }
      }
    }
    if (s.one_hot) {
      const auto store = storer<double>(s.out[0].dtype);
      for (int64_t k = 0; k < s.size; ++k) {
        const double one = k == index ? 1 : 0;
        store(&one, 1, a->outputs[0], at + k * s.inner);
      }
    } else {
      out<int64_t>(a)[row] = index;
    }
  }
  return run_ok;
}
void plan_arg(const PlanView& v, Planned& p) {
  auto s = make_state<AxisState>(v);
  const auto op = v.op_name();
  s->one_hot = op == "Hardmax";
  axis_from(*s,
            s->in[0].rank() ? axis_of(v.attrs().get_int("axis", s->one_hot ? -1 : 0), s->in[0].rank()) : 0);
  s->largest = op != "ArgMin";
  s->last = v.attrs().get_int("select_last_index", 0) != 0;
  if (s->size == 0 && s->out[0].count) fail(std::string(op) + " over an empty axis has no answer");
  const int64_t units = s->one_hot ? (s->size ? s->out[0].count / s->size : 0) : s->out[0].count,
                work = s->in[0].count * 4;
  visit_domain(s->in[0].dtype, [&](auto c) { finish(v, p, arg_fn<decltype(c)>, std::move(s), units, work); });
}

// TopK: k comes with the planned shape. The row and its order live in the workspace.
template <class C>
int top_k_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<AxisState>(a);
  const auto r = tile_range(s.size ? s.in[0].count / s.size : 0, s.tiles, tile);
  const auto load = loader<C>(s.in[0].dtype);
  const auto store = storer<C>(s.in[0].dtype);
  C* x = workspace<C>(a, worker);
  auto* order = reinterpret_cast<int64_t*>(x + s.size);
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t outer = row / s.inner, inner = row % s.inner;
    load(a->inputs[0], outer * s.size * s.inner + inner, s.inner, s.size, x);
    for (int64_t i = 0; i < s.size; ++i) order[i] = i;
    std::partial_sort(order, order + s.k, order + s.size, [&](int64_t i, int64_t j) {
      if (before(s.largest, x[i], x[j])) return true;
      if (before(s.largest, x[j], x[i])) return false;
      return i < j;
    });
    for (int64_t i = 0; i < s.k; ++i) {
      const int64_t to = (outer * s.k + i) * s.inner + inner;
      if (s.has_out(0)) store(x + order[i], 1, a->outputs[0], to);
      if (s.has_out(1)) out<int64_t>(a, 1)[to] = order[i];
    }
  }
  return run_ok;
}
void plan_top_k(const PlanView& v, Planned& p) {
  auto s = make_state<AxisState>(v);
  if (s->in[0].rank() == 0) fail("TopK needs an operand of rank 1 or more");
  const int64_t axis = axis_of(v.attrs().get_int("axis", -1), s->in[0].rank());
  axis_from(*s, axis);
  const Shape& y = s->has_out(0) ? s->out[0] : s->out.at(1);
  s->k = y.dim(static_cast<int>(axis));
  if (s->k > s->size)
    fail(format("TopK's k is %lld, but axis %lld has %lld elements", static_cast<long long>(s->k),
                static_cast<long long>(axis), static_cast<long long>(s->size)));
  s->largest = v.attrs().get_int("largest", 1) != 0;
  const int64_t units = s->size ? s->in[0].count / s->size : 0, work = s->in[0].count * 16;
  const auto bytes = static_cast<uint64_t>(checked_mul(s->size, 16));
  visit_domain(s->in[0].dtype,
               [&](auto c) { finish(v, p, top_k_fn<decltype(c)>, std::move(s), units, work, bytes); });
}

// CumSum, CumProd: the axis is an operand.
template <class C>
int cumulate_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<AxisState>(a);
  const int rank = s.in[0].rank();
  int64_t size = 1, inner = 1;
  if (rank > 0) {
    const int64_t raw = integer_at(a->inputs[1], s.in[1].dtype, 0), axis = raw < 0 ? raw + rank : raw;
    if (axis < 0 || axis >= rank) return index_fail(a, "a cumulation's axis", raw, rank);
    size = s.in[0].dim(static_cast<int>(axis));
    inner = product(s.in[0].dims, static_cast<size_t>(axis) + 1, s.in[0].dims.size());
  }
  const auto load = loader<C>(s.in[0].dtype);
  const auto store = storer<C>(s.out[0].dtype);
  const auto combine = [&](C x, C y) {
    if constexpr (std::is_same_v<C, double>)
      return s.multiply ? x * y : x + y;
    else
      return static_cast<C>(s.multiply ? static_cast<uint64_t>(x) * static_cast<uint64_t>(y)
                                       : static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  };
  for (int64_t row = 0, rows = size ? s.in[0].count / size : 0; row < rows; ++row) {
    const int64_t at = row / inner * size * inner + row % inner;
    C sum = s.multiply ? 1 : 0;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t place = at + (s.reverse ? size - 1 - i : i) * inner;
      C x;
      load(a->inputs[0], place, 1, 1, &x);
      const C with = combine(sum, x);
      store(s.exclusive ? &sum : &with, 1, a->outputs[0], place);
      sum = with;
    }
  }
  return run_ok;
}
void plan_cumulate(const PlanView& v, Planned& p) {
  auto s = make_state<AxisState>(v);
  s->multiply = v.op_name() == "CumProd";
  s->exclusive = v.attrs().get_int("exclusive", 0) != 0;
  s->reverse = v.attrs().get_int("reverse", 0) != 0;
  if (s->in.at(1).count != 1) fail("a cumulation's axis must be one number");
  (void)storer<double>(s->in[0].dtype);
  visit_domain(s->in[0].dtype, [&](auto c) { finish(v, p, cumulate_fn<decltype(c)>, std::move(s), 1, 1); });
}

}  // namespace

void provide_search(Plugin& p) {
  for (const char* op : {"ArgMax", "ArgMin", "Hardmax"}) reference_kernel(p, op).plan<plan_arg>();
  reference_kernel(p, "TopK").plan<plan_top_k>();
  reference_kernel(p, "CumSum").plan<plan_cumulate>();
  reference_kernel(p, "CumProd").plan<plan_cumulate>();
}

}  // namespace tenon::reference
