// Joining, cutting and padding along axes: Concat, Split, Pad.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void concat_known(Infer& c, size_t axis) {
  std::vector<Known> parts;
  for (uint32_t i = 0; i < c.input_count(); ++i) {
    auto k = known(c, i);
    if (!k) return;
    parts.push_back(std::move(*k));
  }
  int64_t outer = 1, total = 0;
  for (size_t i = 0; i < axis; ++i) outer *= parts[0].dims[i];
  for (const auto& p : parts) total += static_cast<int64_t>(p.at.size());
  if (total > max_known) return;
  std::vector<tn_dim> e;
  for (int64_t o = 0; o < outer; ++o)
    for (const auto& p : parts) {
      const auto block = static_cast<ptrdiff_t>(p.at.size()) / outer;
      e.insert(e.end(), p.at.begin() + o * block, p.at.begin() + (o + 1) * block);
    }
  set_known(c, 0, e);
}

void infer_concat(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  std::vector<tn_dim> out;
  size_t axis = 0;
  for (uint32_t i = 0; i < c.input_count(); ++i) {
    if (!ranked(c, i, "inputs", 1)) return c.set_unranked(0, dtype);
    const auto d = c.dims(i);
    if (i == 0) {
      axis = static_cast<size_t>(Infer::axis(required_int(c.attrs(), "axis"), c.rank(0)));
      out = d;
      continue;
    }
    require(d.size() == out.size(), "operand " + text_of(i) + " has shape " + c.text(d) +
                                        "; those before have rank " +
                                        text_of(static_cast<int64_t>(out.size())));
    for (size_t a = 0; a < d.size(); ++a) {
      if (a == axis) {
        out[a] = c.add(out[a], d[a]);
        continue;
      }
      require(!c.differ(out[a], d[a]), "operand " + text_of(i) + " has shape " + c.text(d) +
                                           ", which differs from " + c.text(out) + " off axis " +
                                           text_of(static_cast<int64_t>(axis)));
      if (out[a] < 0 && d[a] >= 0) out[a] = d[a];  // equal, and known here
    }
  }
  c.set(0, dtype, out);
  concat_known(c, axis);
}
void upgrade_concat(Editor& e, const Node& n) {
  if (!n.attrs().has("axis")) e.set_attr(n.id(), AttrValue::of("axis", int64_t{1}));  // opset 1's default
  upgrade_version_only(e, e.graph().node(n.id()));
}

// ---- Split
// ----------------------------------------------------------------------------------------------------------

/// Sizes of the parts; unset where they depend on data.
std::optional<std::vector<tn_dim>> part_sizes(Infer& c, tn_dim length) {
  const uint32_t parts = c.output_count();
  if (c.has_input(1)) {
    ranked(c, 1, "split", 1, 1);
    const auto sizes = c.elements(1);
    if (!sizes) return std::nullopt;
    require(sizes->size() == parts,
            format("operand split has %zu numbers; the node has %u results", sizes->size(), parts));
    tn_dim sum = 0;
    for (tn_dim s : *sizes) {
      if (const auto v = c.number(s))
        require(*v >= 0, "operand split holds " + text_of(*v) + "; expected 0 or more");
      sum = c.add(sum, s);
    }
    require(!c.differ(sum, length),
            "operand split sums to " + c.text(sum) + "; the axis has " + c.text(length));
    return sizes;
  }
  const int64_t wanted = c.attrs().get_int("num_outputs", parts);
  require(wanted == static_cast<int64_t>(parts) && parts > 0,
          "attribute 'num_outputs' is " + text_of(wanted) + format("; the node has %u results", parts));
  const tn_dim chunk = c.ceildiv(length, parts),
               last = c.sub(length, c.mul(chunk, static_cast<tn_dim>(parts) - 1));
  if (const auto v = c.number(last))
    require(*v >= 0, "an axis of " + c.text(length) +
                         format(" cannot be split into %u parts of equal size but the last", parts));
  std::vector<tn_dim> r(parts, chunk);
  r.back() = parts == 1 ? length : last;
  return r;
}

void infer_split(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const uint32_t parts = c.output_count();
  if (!ranked(c, 0, "input", 1)) {
    for (uint32_t i = 0; i < parts; ++i) c.set_unranked(i, dtype);
    return;
  }
  const auto dims = c.dims(0);
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", 0), c.rank(0)));
  const auto sizes = part_sizes(c, dims[axis]);
  const auto k = known(c, 0);
  int64_t outer = 1, inner = 1, offset = 0;
  if (k) {
    for (size_t i = 0; i < axis; ++i) outer *= k->dims[i];
    for (size_t i = axis + 1; i < k->dims.size(); ++i) inner *= k->dims[i];
  }
  for (uint32_t i = 0; i < parts; ++i) {
    auto out = dims;
    out[axis] = sizes ? (*sizes)[i] : c.data_dependent(i, static_cast<uint32_t>(axis));
    c.set(i, dtype, out);
    const auto size = c.number(out[axis]);
    if (!k || !size || offset + *size > k->dims[axis]) continue;
    std::vector<tn_dim> e;
    for (int64_t o = 0; o < outer; ++o) {
      const auto from = k->at.begin() + (o * k->dims[axis] + offset) * inner;
      e.insert(e.end(), from, from + *size * inner);
    }
    offset += *size;
    set_known(c, i, e);
  }
}

/// Sizes were an attribute (or, in opset 1, an operand) before 13; equal parts are said by num_outputs
/// since 18.
void upgrade_split(Editor& e, const Node& n) {
  const auto sizes = n.attrs().get_ints("split").copy();
  const bool had = n.attrs().has("split"), number = n.version() < 2;  // opset 1's operand had the data's type
  Rewrite w(e, n);
  if (had) e.remove_attr(w.id(), "split");
  if (had && !sizes.empty())
    e.set_input(w.id(), 1, w.ints(sizes));
  else if (number && w.input(1) != TN_NONE)
    e.set_input(w.id(), 1, w.make("Cast", {w.input(1)}, {AttrValue::of("to", onnx_of_dtype(TN_INT64))}));
  else if (w.input(1) == TN_NONE && !e.graph().node(w.id()).attrs().has("num_outputs"))
    e.set_attr(w.id(), AttrValue::of("num_outputs", static_cast<int64_t>(w.output_count())));
  w.finish();
}

// ---- Pad
// ------------------------------------------------------------------------------------------------------------

void infer_pad(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const auto mode = c.attrs().get_string("mode", "constant");
  require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap",
          "attribute 'mode' is '" + std::string(mode) + "'; expected constant, reflect, edge or wrap");
  if (!c.has_rank(0)) return c.set_unranked(0, dtype);
  auto dims = c.dims(0);
  ranked(c, 1, "pads", 1, 1);
  one_number(c, 2, "constant_value");
  const auto pads = c.elements(1);
  Dims axes;
  if (c.has_input(3)) {
    const auto given = integer_list(c, 3, "axes");
    if (!given) return c.set_unknown_dims(0, dtype, static_cast<uint32_t>(dims.size()));
    for (int64_t a : *given) axes.push_back(Infer::axis(a, c.rank(0), "operand axes: value"));
  } else {
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  }
  if (pads)
    require(pads->size() == 2 * axes.size(),
            format("operand pads has %zu numbers; expected %zu, begin and end of %zu axes", pads->size(),
                   2 * axes.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    tn_dim& d = dims[static_cast<size_t>(axes[i])];
    const tn_dim before = d;
    if (!pads) {
      d = c.data_dependent(0, static_cast<uint32_t>(axes[i]));
      continue;
    }
    const tn_dim begin = (*pads)[i], end = (*pads)[i + axes.size()];
    d = c.add(d, c.add(begin, end));
    if (const auto v = c.number(d))
      require(*v >= 0, "axis " + text_of(axes[i]) + " of " + c.text(c.dims(0)) + " is cut to " + text_of(*v) +
                           " by pads of " + c.text(begin) + " and " + c.text(end));
    const auto size = c.number(before), b = c.number(begin), e = c.number(end);
    if (!size || !b || !e) continue;
    if (mode == "reflect")
      require((*b < *size && *e < *size) || (*b <= 0 && *e <= 0),
              "reflect needs pads smaller than the axis of " + text_of(*size) + "; found " + text_of(*b) +
                  " and " + text_of(*e));
    else if (mode != "constant")
      require(*size > 0 || (*b <= 0 && *e <= 0),
              "an empty axis cannot be padded by mode " + std::string(mode));
  }
  c.set(0, dtype, dims);
}

void upgrade_pad(Editor& e, const Node& n) {
  if (n.version() >= 11) return upgrade_version_only(e, n);
  const Attributes a = n.attrs();
  const auto pads = (a.has("pads") ? a.get_ints("pads") : a.get_ints("paddings")).copy();
  const bool constant = a.get_string("mode", "constant") == "constant";
  const double value = a.get_float("value", 0);
  Rewrite w(e, n);
  for (const char* name : {"pads", "paddings", "value"}) drop_attr(e, e.graph().node(w.id()), name);
  e.set_input(w.id(), 1, w.ints(pads));
  if (constant && value != 0) e.set_input(w.id(), 2, w.number_like(value, w.input(0)));
  w.finish();
}

}  // namespace

void add_join_split(Plugin& p) {
  define(p, "Concat").flags(TN_OP_MOVES).infer<infer_concat>().upgrade<upgrade_concat>().alias("concatenate");
  define(p, "Split").flags(TN_OP_MOVES).infer<infer_split>().upgrade<upgrade_split>();
  define(p, "Pad").flags(TN_OP_MOVES).infer<infer_pad>().upgrade<upgrade_pad>();
}

}  // namespace tenon::ops
