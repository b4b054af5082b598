// What reads a shape, or moves and repeats elements along axes: Shape, Size, Transpose, Expand, Tile.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_shape(Infer& c) {
  if (!c.has_rank(0)) {
    const tn_dim length = c.data_dependent(0, 0, 0, INT32_MAX);
    return c.set(0, TN_INT64, {&length, 1});
  }
  const int64_t rank = c.rank(0);
  const auto clamp = [&](int64_t v) { return std::max<int64_t>(0, std::min(rank, v < 0 ? v + rank : v)); };
  const int64_t start = clamp(c.attrs().get_int("start", 0)), end = clamp(c.attrs().get_int("end", rank));
  const auto dims = c.dims(0);
  std::vector<tn_dim> e;
  for (int64_t i = start; i < end; ++i) e.push_back(dims[static_cast<size_t>(i)]);
  const tn_dim length = static_cast<tn_dim>(e.size());
  c.set(0, TN_INT64, {&length, 1});
  set_known(c, 0, e);
}

void infer_size(Infer& c) {
  c.set(0, TN_INT64, Span<const tn_dim>());
  if (c.has_rank(0)) set_known(c, 0, {c.product(c.dims(0))});
}

void infer_transpose(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  const auto dims = c.dims(0);
  Dims perm = c.attrs().get_ints("perm").copy();
  if (!c.attrs().has("perm"))
    for (size_t i = dims.size(); i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  std::vector<bool> seen(dims.size(), false);
  bool good = perm.size() == dims.size();
  std::vector<tn_dim> out;
  for (size_t i = 0; good && i < perm.size(); ++i) {
    good = perm[i] >= 0 && perm[i] < static_cast<int64_t>(dims.size()) && !seen[static_cast<size_t>(perm[i])];
    if (!good) break;
    seen[static_cast<size_t>(perm[i])] = true;
    out.push_back(dims[static_cast<size_t>(perm[i])]);
  }
  if (!good)
    fail("attribute 'perm' is " + dims_text(perm) + "; expected every axis of " + c.text(dims) + " once");
  c.set(0, dtype, out);
  const auto k = known(c, 0);
  if (!k) return;
  Dims stride(dims.size(), 1), at(dims.size(), 0);
  for (size_t i = dims.size(); i-- > 1;) stride[i - 1] = stride[i] * k->dims[i];
  std::vector<tn_dim> e;
  for (size_t n = 0; n < k->at.size(); ++n) {
    int64_t offset = 0;
    for (size_t i = 0; i < at.size(); ++i) offset += at[i] * stride[static_cast<size_t>(perm[i])];
    e.push_back(k->at[static_cast<size_t>(offset)]);
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < k->dims[static_cast<size_t>(perm[i])]) break;
      at[i] = 0;
    }
  }
  set_known(c, 0, e);
}

/// The result's rank from the length of a shape operand whose contents are not known.
std::optional<uint32_t> length_of(Infer& c, uint32_t i) {
  if (!c.has_rank(i) || c.rank(i) != 1) return std::nullopt;
  const auto n = c.number(c.dims(i)[0]);
  if (!n || *n > 64) return std::nullopt;
  return static_cast<uint32_t>(*n);
}

void infer_expand(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  const auto dims = c.dims(0);
  ranked(c, 1, "shape", 1, 1);
  const auto shape = c.elements(1);
  if (!shape) {
    const auto length = length_of(c, 1);
    if (!length) return c.set_unranked(0, dtype);
    const uint32_t rank = std::max(*length, static_cast<uint32_t>(dims.size()));
    std::vector<tn_dim> out;
    for (uint32_t i = 0; i < rank;
         ++i) {  // dims beyond the shape's length are the operand's; so are numbers above 1
      const tn_dim own = i + dims.size() >= rank ? dims[i + dims.size() - rank] : 1;
      out.push_back(own > 1 || i < rank - *length ? own : c.data_dependent(0, i));
    }
    return c.set(0, dtype, out);
  }
  for (tn_dim d : *shape)
    if (const auto v = c.number(d); v && *v < 0)
      fail("operand shape holds " + text_of(*v) + "; expected dimensions of 0 or more");
  const auto out = c.broadcast(dims, *shape);
  c.set(0, dtype, out);
  const auto k = known(c, 0);
  const auto target = numbers(c, out);
  if (!k || !target || !count_up_to(*target, max_known)) return;
  std::vector<tn_dim> e;
  for (int64_t i : broadcast_index(k->dims, *target)) e.push_back(k->at[static_cast<size_t>(i)]);
  set_known(c, 0, e);
}

void infer_tile(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  const auto dims = c.dims(0);
  ranked(c, 1, "repeats", 1, 1);
  const auto repeats = c.elements(1);
  if (!repeats) return c.set_unknown_dims(0, dtype, static_cast<uint32_t>(dims.size()));
  if (repeats->size() != dims.size())
    fail(format("operand repeats has %zu numbers; expected one for each of the %zu axes of ", repeats->size(),
                dims.size()) +
         c.text(dims));
  std::vector<tn_dim> out;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (const auto v = c.number((*repeats)[i]); v && *v < 0)
      fail("operand repeats holds " + text_of(*v) + "; expected 0 or more");
    out.push_back(c.mul(dims[i], (*repeats)[i]));
  }
  c.set(0, dtype, out);
  const auto k = known(c, 0);
  const auto target = numbers(c, out);
  if (!k || !target || !count_up_to(*target, max_known)) return;
  Dims at(dims.size(), 0);
  std::vector<tn_dim> e;
  const int64_t n = element_count(*target);
  for (int64_t j = 0; j < n; ++j) {
    int64_t offset = 0;
    for (size_t i = 0; i < at.size(); ++i) offset = offset * k->dims[i] + at[i] % k->dims[i];
    e.push_back(k->at[static_cast<size_t>(offset)]);
    for (size_t i = at.size(); i-- > 0;) {
      if (++at[i] < (*target)[i]) break;
      at[i] = 0;
    }
  }
  set_known(c, 0, e);
}

/// Tile of opset 1 took one axis and one count.
void upgrade_tile(Editor& e, const Node& n) {
  if (n.version() >= 6) return upgrade_version_only(e, n);
  Rewrite w(e, n);
  const auto axis = e.graph().constant(w.input(2));
  const int32_t rank = w.rank_or_wait(w.input(0));
  if (!axis || axis->count() != 1 || rank < 0)
    cannot_upgrade(n, "the axis is no constant, or the operand's rank is not known");
  const int64_t a = axis->int_at(0);
  if (a < 0 || a >= rank)
    cannot_upgrade(n, format("axis %lld is outside the operand's rank %d", static_cast<long long>(a), rank));
  const tn_value count = w.make(
      "Reshape", {w.make("Cast", {w.input(1)}, {AttrValue::of("to", onnx_of_dtype(TN_INT64))}), w.ints({1})});
  const tn_value repeats = w.make(
      "Concat",
      {w.ints(Dims(static_cast<size_t>(a), 1)), count, w.ints(Dims(static_cast<size_t>(rank - a - 1), 1))},
      {AttrValue::of("axis", int64_t{0})});
  w.become(0, w.make("Tile", {w.input(0), repeats}));
  w.erase();
}

}  // namespace

void add_shape_ops(Plugin& p) {
  define(p, "Shape").flags(TN_OP_SHAPE_ONLY).infer<infer_shape>().alias("shape_of");
  define(p, "Size").flags(TN_OP_SHAPE_ONLY).infer<infer_size>();
  define(p, "Transpose").flags(TN_OP_MOVES).infer<infer_transpose>().alias("permute");
  define(p, "Expand").flags(TN_OP_MOVES).infer<infer_expand>().alias("broadcast_to");
  define(p, "Tile").flags(TN_OP_MOVES).infer<infer_tile>().upgrade<upgrade_tile>();
}

}  // namespace tenon::ops
