// Reading by index: Gather, GatherElements, GatherND, OneHot. Indices may be negative, and are checked in the
// run.
#include "families.hpp"
#include "support/moving.hpp"

namespace tenon::reference {
namespace {

struct GatherState : Base {
  int64_t outer = 1, size = 0, inner_bytes = 0;  // rows before the axis, the axis, bytes after it
  size_t axis = 0;
};
int gather_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<GatherState>(a);
  const int64_t indices = s.in[1].count;
  const auto r = tile_range(s.outer * indices, s.tiles, tile);
  const char* x = in<char>(a, 0);
  char* y = out<char>(a);
  for (int64_t i = r.begin; i < r.end; ++i) {
    const int64_t raw = integer_at(a->inputs[1], s.in[1].dtype, i % indices),
                  at = raw < 0 ? raw + s.size : raw;
    if (at < 0 || at >= s.size) return index_fail(a, "Gather: index", raw, s.size);
    if (s.inner_bytes)
      std::memcpy(y + i * s.inner_bytes, x + ((i / indices) * s.size + at) * s.inner_bytes,
                  static_cast<size_t>(s.inner_bytes));
  }
  return run_ok;
}
void plan_gather(const PlanView& v, Planned& p) {
  auto s = make_state<GatherState>(v);
  const Shape& x = s->in[0];
  s->axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", 0), x.rank()));
  s->outer = product(x.dims, 0, s->axis);
  s->size = x.dims[s->axis];
  s->inner_bytes = product(x.dims, s->axis + 1, x.dims.size()) * element_bytes(x.dtype);
  if (s->outer == 0 || s->inner_bytes == 0) {  // nothing to copy, but a wrong index is still one
    s->outer = 1;
    s->inner_bytes = 0;
  }
  const int64_t units = s->outer * s->in[1].count, work = s->out[0].count + units * 4;
  finish(v, p, gather_fn, std::move(s), units, work);
}

template <class T>
int gather_elements(const tn_kernel_args* a, const GatherState& s, Range r) {
  const Shape &x = s.in[0], &i = s.in[1];
  const int rank = i.rank();
  int64_t strides[max_rank], stride = 1;
  for (int k = rank; k-- > 0; stride *= x.dim(k)) strides[k] = stride;
  Walk<1> walk;  // of the data, with the axis itself left out
  for (int k = 0; k < rank; ++k) walk.axis(i.dim(k), {k == static_cast<int>(s.axis) ? 0 : strides[k]});
  const T* from = in<T>(a, 0);
  T* to = out<T>(a);
  int code = run_ok;
  walk.rows(r.begin, r.end, [&](int64_t at, const int64_t(&offset)[1], int64_t n) {
    for (int64_t k = 0; k < n && code == run_ok; ++k) {
      const int64_t raw = integer_at(a->inputs[1], i.dtype, at + k), index = raw < 0 ? raw + s.size : raw;
      if (index < 0 || index >= s.size)
        code = index_fail(a, "GatherElements: index", raw, s.size);
      else
        to[at + k] = from[offset[0] + k * walk.inner_stride(0) + index * strides[s.axis]];
    }
  });
  return code;
}
struct Bytes16 {
  uint64_t a, b;
};
int gather_elements_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<GatherState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  switch (s.inner_bytes) {
    case 1:
      return gather_elements<uint8_t>(a, s, r);
    case 2:
      return gather_elements<uint16_t>(a, s, r);
    case 4:
      return gather_elements<uint32_t>(a, s, r);
    case 8:
      return gather_elements<uint64_t>(a, s, r);
    default:
      return gather_elements<Bytes16>(a, s, r);
  }
}
void plan_gather_elements(const PlanView& v, Planned& p) {
  auto s = make_state<GatherState>(v);
  const Shape &x = s->in[0], &i = s->in[1];
  if (x.rank() != i.rank() || x.rank() == 0)
    fail("GatherElements needs data and indices of one rank, at least 1");
  s->axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", 0), x.rank()));
  for (size_t k = 0; k < x.dims.size(); ++k)
    if (k != s->axis && i.dims[k] > x.dims[k])
      fail(format("GatherElements' indices %s reach outside data %s", dims_text(i.dims).c_str(),
                  dims_text(x.dims).c_str()));
  s->size = x.dims[s->axis];
  s->inner_bytes = element_bytes(x.dtype);
  const int64_t n = s->out[0].count;
  finish(v, p, gather_elements_fn, std::move(s), n, n * 4);
}

struct GatherNdState : Base {
  int64_t batches = 1, tuples = 0, width = 0, inner_bytes = 0, batch_bytes = 0;
  size_t batch_dims = 0;
};
int gather_nd_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<GatherNdState>(a);
  const auto r = tile_range(s.batches * s.tuples, s.tiles, tile);
  for (int64_t i = r.begin; i < r.end; ++i) {
    int64_t offset = 0;
    for (int64_t k = 0; k < s.width; ++k) {
      const int64_t size = s.in[0].dims[s.batch_dims + static_cast<size_t>(k)];
      const int64_t raw = integer_at(a->inputs[1], s.in[1].dtype, i * s.width + k),
                    at = raw < 0 ? raw + size : raw;
      if (at < 0 || at >= size) return index_fail(a, "GatherND: index", raw, size);
      offset = offset * size + at;
    }
    std::memcpy(out<char>(a) + i * s.inner_bytes,
                in<char>(a, 0) + (i / s.tuples) * s.batch_bytes + offset * s.inner_bytes,
                static_cast<size_t>(s.inner_bytes));
  }
  return run_ok;
}
void plan_gather_nd(const PlanView& v, Planned& p) {
  auto s = make_state<GatherNdState>(v);
  const Shape &x = s->in[0], &i = s->in[1];
  const int64_t b = v.attrs().get_int("batch_dims", 0);
  if (x.rank() < 1 || i.rank() < 1 || b < 0 || b >= i.rank() || b >= x.rank())
    fail(format("GatherND's batch_dims %lld does not fit data %s and indices %s", static_cast<long long>(b),
                dims_text(x.dims).c_str(), dims_text(i.dims).c_str()));
  s->batch_dims = static_cast<size_t>(b);
  s->width = i.dim(-1);
  if (s->width < 1 || b + s->width > x.rank())
    fail(format("GatherND's indices have tuples of %lld; data %s allows 1 to %lld",
                static_cast<long long>(s->width), dims_text(x.dims).c_str(),
                static_cast<long long>(x.rank() - b)));
  for (size_t k = 0; k < s->batch_dims; ++k)
    if (x.dims[k] != i.dims[k]) fail("GatherND's batch axes of data and indices differ");
  s->batches = product(x.dims, 0, s->batch_dims);
  s->tuples = product(i.dims, s->batch_dims, i.dims.size() - 1);
  s->inner_bytes =
      product(x.dims, s->batch_dims + static_cast<size_t>(s->width), x.dims.size()) * element_bytes(x.dtype);
  s->batch_bytes = product(x.dims, s->batch_dims, x.dims.size()) * element_bytes(x.dtype);
  if (s->inner_bytes == 0) s->batches = 0;
  const int64_t units = s->batches * s->tuples, work = s->out[0].count + units * 4;
  finish(v, p, gather_nd_fn, std::move(s), units, work);
}

// OneHot(indices, depth, values [off, on]): indices outside [-depth, depth) give rows of "off", as the
// standard says.
struct OneHotState : Base {
  int64_t outer = 1, depth = 0, inner = 1, bytes = 0;
  Load<double> load;
};
int one_hot_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<OneHotState>(a);
  const auto r = tile_range(s.outer, s.tiles, tile);
  const char* values = in<char>(a, 2);
  char* y = out<char>(a);
  const auto bytes = static_cast<size_t>(s.bytes);
  for (int64_t o = r.begin; o < r.end; ++o)
    for (int64_t d = 0; d < s.depth; ++d)
      for (int64_t i = 0; i < s.inner; ++i) {
        double index = 0;
        s.load(a->inputs[0], o * s.inner + i, 1, 1, &index);
        index = std::trunc(index);
        if (index < 0) index += static_cast<double>(s.depth);
        std::memcpy(y + ((o * s.depth + d) * s.inner + i) * s.bytes,
                    values + (index == static_cast<double>(d) ? s.bytes : 0), bytes);
      }
  return run_ok;
}
void plan_one_hot(const PlanView& v, Planned& p) {
  auto s = make_state<OneHotState>(v);
  const auto axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", -1), s->out[0].rank()));
  if (s->in[2].count != 2) fail("OneHot's values must be two: off and on");
  s->outer = product(s->out[0].dims, 0, axis);
  s->depth = s->out[0].dims[axis];
  s->inner = product(s->out[0].dims, axis + 1, s->out[0].dims.size());
  s->bytes = element_bytes(s->out[0].dtype);
  s->load = loader<double>(s->in[0].dtype);
  const int64_t units = s->outer, work = s->out[0].count * 8;
  finish(v, p, one_hot_fn, std::move(s), units, work);
}

}  // namespace

void provide_gather(Plugin& p) {
  reference_kernel(p, "Gather").plan<plan_moving<plan_gather>>();
  reference_kernel(p, "GatherElements").plan<plan_moving<plan_gather_elements>>();
  reference_kernel(p, "GatherND").plan<plan_moving<plan_gather_nd>>();
  reference_kernel(p, "OneHot").plan<plan_moving<plan_one_hot>>();
}

}  // namespace tenon::reference
