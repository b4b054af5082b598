// The same elements under other dims: Reshape, Flatten, Squeeze, Unsqueeze, and the two that fold space into
// depth.
#include <algorithm>

#include "support/define.hpp"

namespace tenon::ops {
namespace {

constexpr int64_t largest_count = INT64_MAX / 16;  // elements beyond this cannot be bytes

void pass_elements(Infer& c) {
  if (const auto e = c.elements(0)) set_known(c, 0, *e);
}

/// The dim that -1 stands for: all elements over the product of the others, equal dims struck out on both
/// sides first.
tn_dim remaining_dim(Infer& c, std::vector<tn_dim> all, std::vector<tn_dim> others, const std::string& what) {
  for (size_t i = 0; i < others.size();) {
    const auto same = std::find(all.begin(), all.end(), others[i]);
    if (same == all.end()) {
      ++i;
      continue;
    }
    all.erase(same);
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
  }
  const tn_dim total = c.product(all), divisor = c.product(others);
  const auto n = c.number(total), d = c.number(divisor);
  if (d == 0) {
    if (n == 0 || !n) return 0;
    fail(what + ": a dimension of 0 leaves no place for the operand's elements");
  }
  if (n && d) {
    require(*n % *d == 0, what + ": " + text_of(*n) + " is not divisible by " + text_of(*d));
    return *n / *d;
  }
  return c.floordiv(total, divisor);
}

/// A shape operand that is not known: its length gives the rank.
void infer_unknown_reshape(Infer& c) {
  const auto length = c.has_rank(1) && c.rank(1) == 1 ? c.number(c.dims(1)[0]) : std::nullopt;
  if (length && *length <= 64)
    c.set_unknown_dims(0, c.dtype(0), static_cast<uint32_t>(*length));
  else
    c.set_unranked(0, c.dtype(0));
}

void infer_reshape(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  ranked(c, 1, "shape", 1, 1);
  const auto shape = c.elements(1);
  if (!shape) return infer_unknown_reshape(c);
  const bool zero_is_zero = c.attrs().get_int("allowzero", 0) != 0, has_rank = c.has_rank(0);
  const auto in = has_rank ? c.dims(0) : std::vector<tn_dim>();
  std::vector<tn_dim> out = *shape, others;
  std::optional<size_t> open;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto v = c.number(out[i]);
    if (v == 0 && !zero_is_zero) {  // copied from the operand
      if (!has_rank) {
        out[i] = c.data_dependent(0, static_cast<uint32_t>(i));
      } else {
        require(i < in.size(), "operand shape holds 0 at place " + text_of(static_cast<int64_t>(i)) +
                                   ", which copies a dimension that " + c.text(in) + " does not have");
        out[i] = in[i];
      }
    } else if (v == -1) {
      require(!open, "operand shape holds -1 twice; at most one dimension may be left open");
      open = i;
      continue;
    } else if (v && *v < 0) {
      fail("operand shape holds " + text_of(*v) + "; expected -1, 0 or more");
    }
    others.push_back(out[i]);
  }
  const std::string what =
      "cannot reshape " + (has_rank ? c.text(in) : "the operand") + " to " + c.text(*shape);
  if (open) {
    require(!zero_is_zero || std::none_of(others.begin(), others.end(), [](tn_dim d) { return d == 0; }),
            what + ": with allowzero a 0 and a -1 exclude each other");
    out[*open] =
        has_rank ? remaining_dim(c, in, others, what) : c.data_dependent(0, static_cast<uint32_t>(*open));
  } else if (has_rank) {
    const auto from = c.number(c.product(in)), to = c.number(c.product(out));
    require(!from || !to || *from == *to,
            what + ": " + (from ? text_of(*from) : "") + " elements against " + (to ? text_of(*to) : ""));
  }
  if (const auto n = c.number(c.product(out)); n && *n > largest_count)
    fail(what + ": more elements than memory can hold");
  c.set(0, dtype, out);
  pass_elements(c);
}

void upgrade_reshape(Editor& e, const Node& n) {
  const auto shape = n.attrs().get_ints("shape").copy();
  const bool had = n.attrs().has("shape");
  Rewrite w(e, n);
  drop_attr(e, n, "consumed_inputs");
  if (had) {  // opset 1
    e.remove_attr(w.id(), "shape");
    e.set_input(w.id(), 1, w.ints(shape));
  }
  w.finish();
}

void infer_flatten(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0)) {
    const tn_dim out[] = {c.data_dependent(0, 0), c.data_dependent(0, 1)};
    return c.set(0, dtype, Span<const tn_dim>(out, 2));
  }
  const auto dims = c.dims(0);
  const auto rank = static_cast<int64_t>(dims.size());
  int64_t axis = c.attrs().get_int("axis", 1);
  if (axis < -rank || axis > rank) {
    require(rank == 0 && axis == 1,
            format("attribute 'axis' is %lld; expected %lld to %lld", static_cast<long long>(axis),
                   static_cast<long long>(-rank), static_cast<long long>(rank)));
    axis = 0;  // the default on a scalar
  }
  if (axis < 0) axis += rank;
  const Span<const tn_dim> all(dims);
  const tn_dim out[] = {c.product(all.subspan(0, static_cast<size_t>(axis))),
                        c.product(all.subspan(static_cast<size_t>(axis)))};
  c.set(0, dtype, Span<const tn_dim>(out, 2));
  pass_elements(c);
}

void infer_squeeze(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  const auto dims = c.dims(0);
  std::vector<tn_dim> out;
  if (!c.has_input(1)) {
    for (tn_dim d : dims) {
      if (d < 0 && !c.differ(d, 1)) return c.set_unranked(0, dtype);
      if (d != 1) out.push_back(d);
    }
  } else {
    const auto axes = integer_list(c, 1, "axes");
    if (!axes) {
      const auto count = c.has_rank(1) && c.rank(1) == 1 ? c.number(c.dims(1)[0]) : std::nullopt;
      if (count && *count <= c.rank(0))
        return c.set_unknown_dims(0, dtype, static_cast<uint32_t>(c.rank(0) - *count));
      return c.set_unranked(0, dtype);
    }
    std::vector<bool> gone(dims.size(), false);
    for (int64_t a : *axes) {
      const auto i = static_cast<size_t>(Infer::axis(a, c.rank(0), "operand axes: value"));
      require(!c.differ(dims[i], 1), "axis " + text_of(a) + " of " + c.text(dims) + " is " + c.text(dims[i]) +
                                         "; only a dimension of 1 can be squeezed");
      gone[i] = true;
    }
    for (size_t i = 0; i < dims.size(); ++i)
      if (!gone[i]) out.push_back(dims[i]);
  }
  c.set(0, dtype, out);
  pass_elements(c);
}

void infer_unsqueeze(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  const auto dims = c.dims(0);
  const auto axes = integer_list(c, 1, "axes");
  if (!axes) {
    const auto count = c.has_rank(1) && c.rank(1) == 1 ? c.number(c.dims(1)[0]) : std::nullopt;
    if (count && *count <= 64) return c.set_unknown_dims(0, dtype, static_cast<uint32_t>(c.rank(0) + *count));
    return c.set_unranked(0, dtype);
  }
  const size_t rank = dims.size() + axes->size();
  std::vector<bool> made(rank, false);
  for (int64_t a : *axes) {
    const auto i = static_cast<size_t>(Infer::axis(a, static_cast<int64_t>(rank), "operand axes: value"));
    require(!made[i], "operand axes names axis " + text_of(a) + " twice");
    made[i] = true;
  }
  std::vector<tn_dim> out;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) out.push_back(made[i] ? 1 : dims[next++]);
  c.set(0, dtype, out);
  pass_elements(c);
}

/// Axes were an attribute before 13.
void upgrade_axes(Editor& e, const Node& n) {
  const auto axes = n.attrs().get_ints("axes").copy();
  const bool had = n.attrs().has("axes");
  Rewrite w(e, n);
  if (had) {
    e.remove_attr(w.id(), "axes");
    e.set_input(w.id(), 1, w.ints(axes));
  }
  w.finish();
}

int64_t block_size(Infer& c) {
  const int64_t block = required_int(c.attrs(), "blocksize");
  require(block > 0 && block < 65536, "attribute 'blocksize' is " + text_of(block) + "; expected 1 or more");
  return block;
}
/// a / b, exact; Failure when both are numbers and it is not.
tn_dim exact_quotient(Infer& c, tn_dim a, int64_t b, const char* what) {
  const auto n = c.number(a);
  require(!n || *n % b == 0, std::string(what) + " is " + c.text(a) + ", not a multiple of " + text_of(b));
  return c.floordiv(a, b);
}
void infer_depth_to_space(Infer& c) {
  const int64_t block = block_size(c);
  const auto mode = c.attrs().get_string("mode", "DCR");
  require(mode == "DCR" || mode == "CRD",
          "attribute 'mode' is '" + std::string(mode) + "'; expected DCR or CRD");
  if (!ranked(c, 0, "input", 4, 4)) return c.set_unranked(0, c.dtype(0));
  const auto d = c.dims(0);
  const tn_dim out[] = {d[0], exact_quotient(c, d[1], block * block, "the number of channels"),
                        c.mul(d[2], block), c.mul(d[3], block)};
  c.set(0, c.dtype(0), Span<const tn_dim>(out, 4));
}
void infer_space_to_depth(Infer& c) {
  const int64_t block = block_size(c);
  if (!ranked(c, 0, "input", 4, 4)) return c.set_unranked(0, c.dtype(0));
  const auto d = c.dims(0);
  const tn_dim out[] = {d[0], c.mul(d[1], block * block), exact_quotient(c, d[2], block, "the height"),
                        exact_quotient(c, d[3], block, "the width")};
  c.set(0, c.dtype(0), Span<const tn_dim>(out, 4));
}

/// Both directions are Reshape, Transpose, Reshape over dims that must be numbers but for the first.
struct Image {
  int64_t channels, height, width;
};
Image image_of(Rewrite& w) {
  const tn_type t = w.editor().graph().value(w.input(0)).type;
  if (t.kind != TN_KIND_TENSOR || t.rank != 4 || t.dims[1] < 0 || t.dims[2] < 0 || t.dims[3] < 0)
    decline("channels, height or width are not known numbers");
  return {t.dims[1], t.dims[2], t.dims[3]};
}
void decompose_depth_to_space(Editor& e, const Node& n) {
  const int64_t b = required_int(n.attrs(), "blocksize");
  const bool dcr = n.attrs().get_string("mode", "DCR") == "DCR";
  Rewrite w(e, n);
  const Image i = image_of(w);
  const int64_t depth = i.channels / (b * b);
  const Dims split = dcr ? Dims{0, b, b, depth, i.height, i.width} : Dims{0, depth, b, b, i.height, i.width};
  const Dims perm = dcr ? Dims{0, 3, 4, 1, 5, 2} : Dims{0, 1, 4, 2, 5, 3};
  const tn_value moved = w.make("Transpose", {w.make("Reshape", {w.input(0), w.ints(split)})},
                                {AttrValue::of("perm", Span<const int64_t>(perm))});
  w.become(0, w.make("Reshape", {moved, w.ints({0, depth, i.height * b, i.width * b})}));
}
void decompose_space_to_depth(Editor& e, const Node& n) {
  const int64_t b = required_int(n.attrs(), "blocksize");
  Rewrite w(e, n);
  const Image i = image_of(w);
  const Dims perm{0, 3, 5, 1, 2, 4};
  const tn_value split =
      w.make("Reshape", {w.input(0), w.ints({0, i.channels, i.height / b, b, i.width / b, b})});
  const tn_value moved = w.make("Transpose", {split}, {AttrValue::of("perm", Span<const int64_t>(perm))});
  w.become(0, w.make("Reshape", {moved, w.ints({0, i.channels * b * b, i.height / b, i.width / b})}));
}

}  // namespace

void add_reshape(Plugin& p) {
  define(p, "Reshape").flags(TN_OP_VIEW).infer<infer_reshape>().upgrade<upgrade_reshape>();
  define(p, "Flatten").flags(TN_OP_VIEW).infer<infer_flatten>();
  define(p, "Squeeze").flags(TN_OP_VIEW).infer<infer_squeeze>().upgrade<upgrade_axes>();
  define(p, "Unsqueeze")
      .flags(TN_OP_VIEW)
      .infer<infer_unsqueeze>()
      .upgrade<upgrade_axes>()
      .alias("expand_dims");
  define(p, "DepthToSpace")
      .flags(TN_OP_MOVES)
      .infer<infer_depth_to_space>()
      .decompose<decompose_depth_to_space>()
      .alias("depth_to_space")
      .alias("pixel_shuffle");
  define(p, "SpaceToDepth")
      .flags(TN_OP_MOVES)
      .infer<infer_space_to_depth>()
      .decompose<decompose_space_to_depth>()
      .alias("space_to_depth");
}

}  // namespace tenon::ops
