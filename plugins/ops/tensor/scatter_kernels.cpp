// Writing by index: ScatterElements, ScatterND. The updates are applied one after another in their order, so
// that repeated indices give one result: the last, or the whole reduction.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

enum class Combine { replace, add, mul, max, min };
Combine combine_of(const PlanView& v) {
  const auto r = v.attrs().get_string("reduction", "none");
  if (r == "none") return Combine::replace;
  if (r == "add") return Combine::add;
  if (r == "mul") return Combine::mul;
  if (r == "max") return Combine::max;
  if (r == "min") return Combine::min;
  fail("reduction is '" + std::string(r) + "'; expected none, add, mul, max or min");
}

struct ScatterState : Base {
  Combine combine = Combine::replace;
  size_t axis = 0;
  int64_t bytes = 0, width = 0, slice = 1;
};

template <class C>
C combined(Combine how, C a, C b) noexcept {
  constexpr bool real = std::is_same_v<C, double>;
  switch (how) {
    case Combine::add:
      if constexpr (real)
        return a + b;
      else
        return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    case Combine::mul:
      if constexpr (real)
        return a * b;
      else
        return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    case Combine::max:
      return a >= b || a != a ? a : b;
    case Combine::min:
      return a <= b || a != a ? a : b;
    default:
      return b;
  }
}
/// count elements from `update` into the result at `at`.
void apply(const ScatterState& s, const tn_kernel_args* a, int64_t update, int64_t at, int64_t count) {
  if (s.combine == Combine::replace) {
    std::memcpy(out<char>(a) + at * s.bytes, in<char>(a, 2) + update * s.bytes,
                static_cast<size_t>(count * s.bytes));
    return;
  }
  visit_domain(s.out[0].dtype, [&](auto c) {
    using C = decltype(c);
    const auto load = loader<C>(s.out[0].dtype);
    const auto store = storer<C>(s.out[0].dtype);
    C x, y;
    for (int64_t i = 0; i < count; ++i) {
      load(a->outputs[0], at + i, 1, 1, &x);
      load(a->inputs[2], update + i, 1, 1, &y);
      x = combined(s.combine, x, y);
      store(&x, 1, a->outputs[0], at + i);
    }
  });
}
void copy_data(const ScatterState& s, const tn_kernel_args* a) {
  if (s.out[0].count && a->outputs[0] != a->inputs[0])
    std::memcpy(a->outputs[0], a->inputs[0], static_cast<size_t>(s.out[0].count * s.bytes));
}

int scatter_elements_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<ScatterState>(a);
  copy_data(s, a);
  const Shape &x = s.in[0], &i = s.in[1];
  int64_t strides[max_rank], stride = 1;
  for (int k = x.rank(); k-- > 0; stride *= x.dim(k)) strides[k] = stride;
  Walk<1> walk;  // of the data, the axis itself left out
  for (int k = 0; k < i.rank(); ++k) walk.axis(i.dim(k), {k == static_cast<int>(s.axis) ? 0 : strides[k]});
  const int64_t size = x.dims[s.axis];
  int code = run_ok;
  walk.rows(0, i.count, [&](int64_t at, const int64_t(&offset)[1], int64_t n) {
    for (int64_t k = 0; k < n && code == run_ok; ++k) {
      const int64_t raw = integer_at(a->inputs[1], i.dtype, at + k), index = raw < 0 ? raw + size : raw;
      if (index < 0 || index >= size)
        code = index_fail(a, "ScatterElements: index", raw, size);
      else
        apply(s, a, at + k, offset[0] + k * walk.inner_stride(0) + index * strides[s.axis], 1);
    }
  });
  return code;
}
void plan_scatter_elements(const PlanView& v, Planned& p) {
  auto s = make_state<ScatterState>(v);
  const Shape &x = s->in[0], &i = s->in[1];
  if (x.rank() == 0 || i.rank() != x.rank() || s->in.at(2).dims != i.dims || s->out[0].dims != x.dims)
    fail("ScatterElements needs data, indices and updates of one rank, and updates of the indices' shape");
  s->axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", 0), x.rank()));
  for (size_t k = 0; k < x.dims.size(); ++k)
    if (k != s->axis && i.dims[k] > x.dims[k])
      fail(format("ScatterElements' indices %s reach outside data %s", dims_text(i.dims).c_str(),
                  dims_text(x.dims).c_str()));
  s->combine = combine_of(v);
  s->bytes = element_bytes(x.dtype);
  finish(v, p, scatter_elements_fn, std::move(s), 1, 1);
}

int scatter_nd_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<ScatterState>(a);
  copy_data(s, a);
  const int64_t tuples = s.width ? s.in[1].count / s.width : 0;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t offset = 0;
    for (int64_t k = 0; k < s.width; ++k) {
      const int64_t size = s.in[0].dim(static_cast<int>(k)),
                    raw = integer_at(a->inputs[1], s.in[1].dtype, t * s.width + k),
                    index = raw < 0 ? raw + size : raw;
      if (index < 0 || index >= size) return index_fail(a, "ScatterND: index", raw, size);
      offset = offset * size + index;
    }
    apply(s, a, t * s.slice, offset * s.slice, s.slice);
  }
  return run_ok;
}
void plan_scatter_nd(const PlanView& v, Planned& p) {
  auto s = make_state<ScatterState>(v);
  const Shape &x = s->in[0], &i = s->in[1];
  if (x.rank() < 1 || i.rank() < 1 || i.dim(-1) > x.rank() || s->out[0].dims != x.dims)
    fail(format("ScatterND's indices %s do not fit data %s", dims_text(i.dims).c_str(),
                dims_text(x.dims).c_str()));
  s->width = i.dim(-1);
  s->slice = product(x.dims, static_cast<size_t>(s->width), x.dims.size());
  if (s->in.at(2).count != checked_mul(product(i.dims, 0, i.dims.size() - 1), s->slice))
    fail("ScatterND's updates do not fit its indices");
  s->combine = combine_of(v);
  s->bytes = element_bytes(x.dtype);
  finish(v, p, scatter_nd_fn, std::move(s), 1, 1);
}

}  // namespace

void provide_scatter(Plugin& p) {
  reference_kernel(p, "ScatterElements").in_place(0, 0).plan<plan_scatter_elements>();
  reference_kernel(p, "ScatterND").in_place(0, 0).plan<plan_scatter_nd>();
}

}  // namespace tenon::reference
