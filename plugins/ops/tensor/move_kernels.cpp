// Data moved by fixed strides: Transpose, Expand, Tile, Slice, DepthToSpace, SpaceToDepth; Concat, Split;
// Pad; Trilu.
#include "families.hpp"
#include "support/moving.hpp"

namespace tenon::reference {
namespace {

/// result[i...] = operand[offset + strides * i].
struct MoveState : Base {
  Walk<1> walk;
  int64_t bytes = 0;
};
int move_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<MoveState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  strided_copy(s.walk, s.bytes, a->inputs[0], 0, a->outputs[0], r.begin, r.end);
  return run_ok;
}
Dims dense_strides(const Dims& dims) {
  Dims s(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) s[i - 1] = s[i] * dims[i];
  return s;
}
void finish_move(const PlanView& v, Planned& p, std::unique_ptr<MoveState> s) {
  s->bytes = element_bytes(s->out[0].dtype);
  if (s->walk.count != s->out[0].count)
    fail(format("%s yields %lld elements, but its result was planned as %s", std::string(v.op_name()).c_str(),
                static_cast<long long>(s->walk.count), dims_text(s->out[0].dims).c_str()));
  const int64_t n = s->out[0].count;
  finish(v, p, move_fn, std::move(s), n, n);
}

void plan_transpose(const PlanView& v, Planned& p) {
  auto s = make_state<MoveState>(v);
  const auto& dims = s->in[0].dims;
  Dims perm = v.attrs().get_ints("perm").copy();
  if (!v.attrs().has("perm"))
    for (size_t i = dims.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  if (perm.size() != dims.size())
    fail(format("Transpose's perm %s does not fit rank %zu", dims_text(perm).c_str(), dims.size()));
  const Dims strides = dense_strides(dims);
  std::vector<bool> seen(dims.size());
  for (int64_t raw : perm) {
    const auto axis = static_cast<size_t>(axis_of(raw, s->in[0].rank(), "an element of Transpose's perm"));
    if (seen[axis]) fail(format("Transpose's perm %s names an axis twice", dims_text(perm).c_str()));
    seen[axis] = true;
    s->walk.axis(dims[axis], {strides[axis]});
  }
  finish_move(v, p, std::move(s));
}
void plan_expand(const PlanView& v, Planned& p) {
  auto s = make_state<MoveState>(v);
  s->walk = broadcast_walk<1>(s->out[0].dims, {&s->in[0].dims});
  finish_move(v, p, std::move(s));
}
void plan_tile(const PlanView& v, Planned& p) {
  auto s = make_state<MoveState>(v);
  const Dims strides = dense_strides(s->in[0].dims);
  if (s->in[0].rank() != s->out[0].rank())
    fail("Tile keeps the rank; its result was planned with another one");
  for (size_t i = 0; i < strides.size(); ++i) {
    const int64_t d = s->in[0].dims[i], o = s->out[0].dims[i];
    s->walk.axis(d ? o / d : 0, {0});
    s->walk.axis(d, {strides[i]});
  }
  finish_move(v, p, std::move(s));
}
// Both reorder channels and blocks of pixels: one transposition of a six-axis view.
void plan_depth_to_space(const PlanView& v, Planned& p) {
  auto s = make_state<MoveState>(v);
  const int64_t b = v.attrs().get_int("blocksize", 0);
  if (s->in[0].rank() != 4 || b < 1)
    fail("DepthToSpace and SpaceToDepth need four axes and a positive blocksize");
  const auto& d = s->in[0].dims;
  const int64_t n = d[0], c = d[1], h = d[2], w = d[3];
  const auto mode = v.attrs().get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD")
    fail(std::string(v.op_name()) + "'s mode is '" + std::string(mode) + "'; expected DCR or CRD");
  const bool crd = mode == "CRD";
  if (v.op_name() == "SpaceToDepth") {
    if (h % b || w % b) fail("SpaceToDepth's height and width must be multiples of blocksize");
    s->walk.axis(n, {c * h * w});
    if (crd) s->walk.axis(c, {h * w});
    s->walk.axis(b, {w});
    s->walk.axis(b, {1});
    if (!crd) s->walk.axis(c, {h * w});
    s->walk.axis(h / b, {b * w});
    s->walk.axis(w / b, {b});
  } else {
    if (c % (b * b)) fail("DepthToSpace's channels must be a multiple of blocksize squared");
    const int64_t depth = c / (b * b);
    const int64_t image = h * w, c_stride = crd ? b * b * image : image,
                  row_stride = crd ? b * image : b * depth * image,
                  column_stride = crd ? image : depth * image;
    s->walk.axis(n, {c * image});
    s->walk.axis(depth, {c_stride});
    s->walk.axis(h, {w});
    s->walk.axis(b, {row_stride});
    s->walk.axis(w, {1});
    s->walk.axis(b, {column_stride});
  }
  finish_move(v, p, std::move(s));
}

// Slice: starts, ends, axes, steps are read in the run; the result's dims were planned.
struct SliceState : Base {
  int64_t bytes = 0;
};
int slice_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<SliceState>(a);
  const int rank = s.in[0].rank();
  int64_t start[max_rank] = {}, step[max_rank];
  std::fill(step, step + max_rank, 1);
  for (int64_t i = 0; i < s.in[1].count; ++i) {
    int64_t axis = s.has_in(3) ? integer_at(a->inputs[3], s.in[3].dtype, i) : i;
    if (axis < -rank || axis >= rank) return index_fail(a, "Slice: axis", axis, rank);
    axis += axis < 0 ? rank : 0;
    const int64_t size = s.in[0].dim(static_cast<int>(axis));
    const int64_t by = s.has_in(4) ? integer_at(a->inputs[4], s.in[4].dtype, i) : 1;
    if (by == 0) return run_fail(a, run_bad_operand, "Slice: a step is 0; expected any other number");
    int64_t from = integer_at(a->inputs[1], s.in[1].dtype, i);
    if (from < 0) from += size;
    from =
        by > 0 ? std::min(std::max<int64_t>(from, 0), size) : std::min(std::max<int64_t>(from, 0), size - 1);
    start[axis] = from;
    step[axis] = by;
  }
  Walk<1> walk;
  int64_t offset = 0, stride = 1, strides[max_rank] = {};
  for (int i = rank; i-- > 0;) {
    const int64_t n = s.out[0].dim(i), size = s.in[0].dim(i);
    strides[i] = step[i] * stride;
    // The plan and the operands must agree, or the copy would leave the operand.
    if (n > 0) {
      int64_t last = 0;
      if (__builtin_mul_overflow(n - 1, step[i], &last) || __builtin_add_overflow(last, start[i], &last) ||
          last < 0 || last >= size || start[i] < 0 || start[i] >= size)
        return run_fail(a, run_bad_operand,
                        "Slice: starts and steps do not yield the shape that was planned");
    }
    offset += start[i] * stride;
    stride *= size;
  }
  if (s.out[0].count == 0) return run_ok;
  for (int i = 0; i < rank; ++i) walk.axis(s.out[0].dim(i), {strides[i]});
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  strided_copy(walk, s.bytes, a->inputs[0], offset, a->outputs[0], r.begin, r.end);
  return run_ok;
}
void plan_slice(const PlanView& v, Planned& p) {
  auto s = make_state<SliceState>(v);
  s->bytes = element_bytes(s->out[0].dtype);
  if (s->in.size() < 3 || s->in[1].rank() != 1 || s->in[2].count != s->in[1].count ||
      (s->has_in(3) && s->in[3].count != s->in[1].count) ||
      (s->has_in(4) && s->in[4].count != s->in[1].count))
    fail("Slice's starts, ends, axes and steps must be lists of one length");
  if (s->in[0].rank() != s->out[0].rank())
    fail("Slice keeps the rank; its result was planned with another one");
  const int64_t n = s->out[0].count;
  finish(v, p, slice_fn, std::move(s), n, n);
}

// Concat and Split: blocks of consecutive bytes.
struct JoinState : Base {
  int64_t outer = 1, whole = 0;     // rows, bytes of a row of the joined tensor
  std::vector<int64_t> at, length;  // of each part, within a row
};
template <bool Split>
int join_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<JoinState>(a);
  const auto r = tile_range(s.outer, s.tiles, tile);
  for (size_t k = 0; k < s.at.size(); ++k) {
    if (s.length[k] == 0) continue;
    char* part = static_cast<char*>(Split ? a->outputs[k] : a->inputs[k]);
    char* joined = static_cast<char*>(Split ? a->inputs[0] : a->outputs[0]) + s.at[k];
    if (!part) continue;  // a part of Split nobody wants
    for (int64_t i = r.begin; i < r.end; ++i)
      std::memcpy(Split ? part + i * s.length[k] : joined + i * s.whole,
                  Split ? joined + i * s.whole : part + i * s.length[k], static_cast<size_t>(s.length[k]));
  }
  return run_ok;
}
void plan_concat(const PlanView& v, Planned& p) {
  auto s = make_state<JoinState>(v);
  const Shape& y = s->out[0];
  const auto axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", 0), y.rank()));
  const int64_t inner = product(y.dims, axis + 1, y.dims.size()) * element_bytes(y.dtype);
  s->outer = product(y.dims, 0, axis);
  for (const auto& x : s->in) {
    if (x.rank() != y.rank()) fail("Concat's operands must have one rank");
    for (size_t i = 0; i < axis; ++i)
      if (x.dims[i] != y.dims[i])
        fail(format("Concat's operand %s does not fit its result %s", dims_text(x.dims).c_str(),
                    dims_text(y.dims).c_str()));
    if (product(x.dims, axis + 1, x.dims.size()) != product(y.dims, axis + 1, y.dims.size()))
      fail("Concat's operands differ outside the axis");
    s->at.push_back(s->whole);
    s->length.push_back(x.dims[axis] * inner);
    s->whole += s->length.back();
  }
  if (s->whole != y.dims[axis] * inner) fail("Concat's operands do not add up to its result");
  const int64_t units = s->outer, work = y.count;
  finish(v, p, join_fn<false>, std::move(s), units, work);
}
void plan_split(const PlanView& v, Planned& p) {
  auto s = make_state<JoinState>(v);
  const Shape& x = s->in[0];
  const auto axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", 0), x.rank()));
  const int64_t inner = product(x.dims, axis + 1, x.dims.size()) * element_bytes(x.dtype);
  s->outer = product(x.dims, 0, axis);
  // A result nobody wants has no shape, so the sizes come from `split` or from the rule of equal parts.
  const auto parts = static_cast<int64_t>(s->out.size());
  const int64_t chunk = parts ? (x.dims[axis] + parts - 1) / parts : 0;
  for (size_t k = 0; k < s->out.size(); ++k) {
    int64_t size = std::max<int64_t>(0, std::min(chunk, x.dims[axis] - static_cast<int64_t>(k) * chunk));
    if (s->out[k].present)
      size = s->out[k].dims.at(axis);
    else if (v.has_input(1)) {
      if (!v.input(1).data<void>())
        throw Failure(
            TN_ERR_UNSUPPORTED,
            "Split with sizes known only in the run and a result nobody wants is not computed here");
      size = integer_at(v.input(1).data<void>(), s->in[1].dtype, static_cast<int64_t>(k));
    }
    s->at.push_back(s->whole);
    s->length.push_back(size * inner);
    s->whole += size * inner;
  }
  if (s->whole != x.dims[axis] * inner)
    fail(format("Split's parts do not add up to %lld, the size of axis %zu",
                static_cast<long long>(x.dims[axis]), axis));
  const int64_t units = s->outer, work = x.count;
  finish(v, p, join_fn<true>, std::move(s), units, work);
}

// Trilu: the triangle is copied, the rest is zero.
struct TriluState : Base {
  int64_t bytes = 0;
  bool upper = true;
};
int trilu_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<TriluState>(a);
  const int64_t rows = s.in[0].dim(-2), columns = s.in[0].dim(-1);
  if (s.in[0].count == 0) return run_ok;
  const int64_t raw = s.has_in(1) ? integer_at(a->inputs[1], s.in[1].dtype, 0) : 0;
  const int64_t k = std::min(std::max(raw, -rows), columns);
  const auto r = tile_range(s.in[0].count / columns, s.tiles, tile);
  for (int64_t i = r.begin; i < r.end; ++i) {
    const int64_t edge = std::min(std::max<int64_t>(i % rows + k + (s.upper ? 0 : 1), 0), columns);
    const char* x = in<char>(a, 0) + i * columns * s.bytes;
    char* y = out<char>(a) + i * columns * s.bytes;
    const auto kept_at = static_cast<size_t>((s.upper ? edge : 0) * s.bytes),
               kept = static_cast<size_t>((s.upper ? columns - edge : edge) * s.bytes);
    const auto zero_at = static_cast<size_t>((s.upper ? 0 : edge) * s.bytes),
               zeros = static_cast<size_t>((s.upper ? edge : columns - edge) * s.bytes);
    std::memcpy(y + kept_at, x + kept_at, kept);
    std::memset(y + zero_at, 0, zeros);
  }
  return run_ok;
}
void plan_trilu(const PlanView& v, Planned& p) {
  auto s = make_state<TriluState>(v);
  if (s->in[0].rank() < 2) fail("Trilu needs at least two axes");
  s->bytes = element_bytes(s->in[0].dtype);
  s->upper = v.attrs().get_int("upper", 1) != 0;
  const int64_t n = s->in[0].count, rows = n ? n / s->in[0].dim(-1) : 0;
  finish(v, p, trilu_fn, std::move(s), rows, n);
}

}  // namespace

void provide_move(Plugin& p) {
  reference_kernel(p, "Transpose").plan<plan_moving<plan_transpose>>();
  reference_kernel(p, "Expand").plan<plan_moving<plan_expand>>();
  reference_kernel(p, "Tile").plan<plan_moving<plan_tile>>();
  reference_kernel(p, "DepthToSpace").plan<plan_moving<plan_depth_to_space>>();
  reference_kernel(p, "SpaceToDepth").plan<plan_moving<plan_depth_to_space>>();
  reference_kernel(p, "Slice").plan<plan_moving<plan_slice>>();
  reference_kernel(p, "Concat").plan<plan_moving<plan_concat>>();
  reference_kernel(p, "Split").plan<plan_moving<plan_split>>();
  reference_kernel(p, "Trilu").plan<plan_moving<plan_trilu>>();
}

}  // namespace tenon::reference
