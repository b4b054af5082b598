// Reading and writing at computed places: Gather and Scatter and their kin, OneHot.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_gather(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "data", 1) || !c.has_rank(1)) return c.set_unranked(0, dtype);
  const auto data = c.dims(0), indices = c.dims(1);
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", 0), c.rank(0)));
  std::vector<tn_dim> out(data.begin(), data.begin() + static_cast<ptrdiff_t>(axis));
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + static_cast<ptrdiff_t>(axis) + 1, data.end());
  c.set(0, dtype, out);
  const auto from = known(c, 0), at = known(c, 1);
  if (!from || !at) return;
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= from->dims[i];
  for (size_t i = axis + 1; i < from->dims.size(); ++i) inner *= from->dims[i];
  const int64_t length = from->dims[axis];
  if (outer * inner > 0 && static_cast<int64_t>(at->at.size()) > max_known / (outer * inner)) return;
  std::vector<tn_dim> e;
  for (int64_t o = 0; o < outer; ++o)
    for (tn_dim where : at->at) {
      auto i = c.number(where);
      if (!i) return;
      if (*i < 0) *i += length;
      if (*i < 0 || *i >= length) return;  // the kernel reports it, if the node ever runs
      for (int64_t k = 0; k < inner; ++k)
        e.push_back(from->at[static_cast<size_t>((o * length + *i) * inner + k)]);
    }
  set_known(c, 0, e);
}

void infer_gather_elements(Infer& c) {
  ranked(c, 0, "data", 1);
  if (c.has_rank(0)) {
    Infer::axis(c.attrs().get_int("axis", 0), c.rank(0));
    ranked(c, 1, "indices", c.rank(0), c.rank(0));
  }
  same_shape(c, 0, 1, c.dtype(0));
}

void infer_gather_nd(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "data", 1) || !ranked(c, 1, "indices", 1)) return c.set_unranked(0, dtype);
  const auto data = c.dims(0), indices = c.dims(1);
  const int64_t batch = c.attrs().get_int("batch_dims", 0);
  require(batch >= 0 && batch < c.rank(0) && batch < c.rank(1),
          "attribute 'batch_dims' is " + text_of(batch) + "; expected less than both ranks, of " +
              c.text(data) + " and " + c.text(indices));
  for (size_t i = 0; i < static_cast<size_t>(batch); ++i)
    require(!c.differ(data[i], indices[i]),
            "batch dimensions differ: " + c.text(data) + " against " + c.text(indices));
  const auto width = c.number(indices.back());
  if (!width) return c.set_unranked(0, dtype);
  require(*width >= 1 && *width <= c.rank(0) - batch,
          "indices have " + text_of(*width) + " numbers a place; data of shape " + c.text(data) + " has " +
              text_of(c.rank(0) - batch) + " axes to index");
  std::vector<tn_dim> out(indices.begin(), indices.end() - 1);
  out.insert(out.end(), data.begin() + static_cast<ptrdiff_t>(batch + *width), data.end());
  c.set(0, dtype, out);
  const auto from = known(c, 0), at = known(c, 1);
  if (!from || !at || batch != 0 || *width != c.rank(0)) return;
  std::vector<tn_dim> e;
  for (size_t p = 0; p + static_cast<size_t>(*width) <= at->at.size(); p += static_cast<size_t>(*width)) {
    int64_t offset = 0;
    for (size_t k = 0; k < static_cast<size_t>(*width); ++k) {
      auto i = c.number(at->at[p + k]);
      if (!i) return;
      if (*i < 0) *i += from->dims[k];
      if (*i < 0 || *i >= from->dims[k]) return;
      offset = offset * from->dims[k] + *i;
    }
    e.push_back(from->at[static_cast<size_t>(offset)]);
  }
  set_known(c, 0, e);
}

void check_reduction(Infer& c) {
  const auto r = c.attrs().get_string("reduction", "none");
  for (const char* good : {"none", "add", "mul", "min", "max"})
    if (r == good) return;
  fail("attribute 'reduction' is '" + std::string(r) + "'; expected none, add, mul, min or max");
}

void infer_scatter_elements(Infer& c) {
  check_reduction(c);
  same_type(c, 0, 0);
  if (!ranked(c, 0, "data", 1)) return;
  Infer::axis(c.attrs().get_int("axis", 0), c.rank(0));
  ranked(c, 1, "indices", c.rank(0), c.rank(0));
  if (!c.has_rank(1) || !c.has_rank(2)) return;
  const auto indices = c.dims(1), updates = c.dims(2);
  bool same = indices.size() == updates.size();
  for (size_t i = 0; same && i < indices.size(); ++i) same = !c.differ(indices[i], updates[i]);
  require(same, "operands indices and updates have shapes " + c.text(indices) + " and " + c.text(updates) +
                    "; expected equal ones");
}

void infer_scatter_nd(Infer& c) {
  check_reduction(c);
  same_type(c, 0, 0);
  if (!ranked(c, 0, "data", 1) || !ranked(c, 1, "indices", 1)) return;
  const auto data = c.dims(0), indices = c.dims(1);
  const auto width = c.number(indices.back());
  if (!width) return;
  require(*width <= c.rank(0), "indices have " + text_of(*width) + " numbers a place; data of shape " +
                                   c.text(data) + " has " + text_of(c.rank(0)) + " axes");
  if (!c.has_rank(2)) return;
  std::vector<tn_dim> wanted(indices.begin(), indices.end() - 1);
  wanted.insert(wanted.end(), data.begin() + static_cast<ptrdiff_t>(*width), data.end());
  const auto updates = c.dims(2);
  bool same = wanted.size() == updates.size();
  for (size_t i = 0; same && i < wanted.size(); ++i) same = !c.differ(wanted[i], updates[i]);
  require(same, "operand updates has shape " + c.text(updates) + "; expected " + c.text(wanted));
}

/// Scatter, gone since opset 11, is ScatterElements.
void infer_scatter(Infer&) { fail("Scatter was removed in opset 11; use ScatterElements"); }
void upgrade_scatter(Editor& e, const Node& n) {
  const int64_t axis = n.attrs().get_int("axis", 0);
  Rewrite w(e, n);
  w.become(0, w.make("ScatterElements", w.inputs(), {AttrValue::of("axis", axis)}));
  w.erase();
}

void infer_one_hot(Infer& c) {
  const tn_dtype dtype = c.dtype(2);
  if (c.has_rank(2)) {
    const auto values = c.dims(2);
    require(values.size() == 1 && !c.differ(values[0], 2),
            "operand values has shape " + c.text(values) + "; expected [2], the off and the on value");
  }
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  auto out = c.dims(0);
  const auto axis =
      static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", -1), static_cast<int64_t>(out.size()) + 1));
  one_number(c, 1, "depth");
  tn_dim depth = 0;
  const auto e = whole_elements(c, 1);
  if (e && e->size() == 1) {
    depth = e->front();
    if (const auto v = c.number(depth))
      require(*v >= 0, "operand depth is " + text_of(*v) + "; expected 0 or more");
  } else if (const auto v = scalar_value(c, 1)) {
    require(*v >= 0 && *v < 9e18, "operand depth is no number of classes");
    depth = static_cast<tn_dim>(*v);  // as the runtime rounds a float depth
  } else {
    depth = c.data_dependent(0, static_cast<uint32_t>(axis));
  }
  out.insert(out.begin() + static_cast<ptrdiff_t>(axis), depth);
  c.set(0, dtype, out);
}

}  // namespace

void add_indexing(Plugin& p) {
  define(p, "Gather").flags(TN_OP_MOVES).infer<infer_gather>();
  define(p, "GatherElements").flags(TN_OP_MOVES).infer<infer_gather_elements>();
  define(p, "GatherND").flags(TN_OP_MOVES).infer<infer_gather_nd>().alias("gather_nd");
  define(p, "ScatterElements").flags(TN_OP_MOVES).infer<infer_scatter_elements>();
  define(p, "ScatterND").flags(TN_OP_MOVES).infer<infer_scatter_nd>().alias("scatter_nd");
  define(p, "Scatter").infer<infer_scatter>().upgrade<upgrade_scatter>();
  define(p, "OneHot").infer<infer_one_hot>().alias("one_hot");
}

}  // namespace tenon::ops
