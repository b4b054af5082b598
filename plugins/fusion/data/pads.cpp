// Pads: two that are one, and one that the convolution or pooling behind it does itself.
#include <cmath>
#include <iterator>

#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// A Pad with one value: how much before and after each axis.
struct Padding {
  Dims before, after;
  double value = 0;
};

std::optional<Padding> padding_of(const Context& c, const Node& n) {
  if (n.attrs().get_string("mode", "constant") != "constant") return std::nullopt;
  const int64_t rank = c.type(n.input(0)).rank;
  const auto pads = c.integers(n.input(1));
  if (!pads || rank < 0) return std::nullopt;
  Dims axes;
  if (n.input(3) != TN_NONE) {
    const auto given = c.axes(n, 3, rank);
    if (!given) return std::nullopt;
    axes = *given;
  } else {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  if (pads->size() != 2 * axes.size()) return std::nullopt;
  Padding r{Dims(static_cast<size_t>(rank), 0), Dims(static_cast<size_t>(rank), 0)};
  for (size_t i = 0; i < axes.size(); ++i) {
    r.before[static_cast<size_t>(axes[i])] += (*pads)[i];
    r.after[static_cast<size_t>(axes[i])] += (*pads)[i + axes.size()];
    if ((*pads)[i] < 0 || (*pads)[i + axes.size()] < 0) return std::nullopt;  // it cuts off instead
  }
  if (n.input(2) != TN_NONE) {
    const auto value = c.graph.uniform_number(n.input(2));
    if (!value) return std::nullopt;
    r.value = *value;
  }
  return r;
}

tn_value pad_of_pad(Context& c, const Node& n, bool* done) {
  c.step = "merge Pads";
  const auto inner = c.producer(n.input(0), c.ops.pad);
  if (!inner) return TN_NONE;
  const auto outer_pads = padding_of(c, n), inner_pads = padding_of(c, *inner);
  if (!outer_pads || !inner_pads || outer_pads->value != inner_pads->value ||
      std::signbit(outer_pads->value) != std::signbit(inner_pads->value))
    return TN_NONE;
  Dims pads;
  for (size_t i = 0; i < outer_pads->before.size(); ++i)
    pads.push_back(outer_pads->before[i] + inner_pads->before[i]);
  for (size_t i = 0; i < outer_pads->after.size(); ++i)
    pads.push_back(outer_pads->after[i] + inner_pads->after[i]);
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  const Node made = edit.create({"Pad",
                                 {inner->input(0), edit.vector<int64_t>(pads), n.input(2)},
                                 1,
                                 {},
                                 n.region(),
                                 n.id(),
                                 n.name(),
                                 {inner->id(), n.id()}});
  edit.replace_uses(n.output(0), made.output(0));
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// What the operator's own pads become, or none: the Pad reaches beyond the spatial axes, or auto_pad decides.
std::optional<Dims> joined_pads(const Node& n, const Padding& pad) {
  const size_t rank = pad.before.size();
  if (rank < 3 || n.attrs().get_string("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
  if (pad.before[0] || pad.before[1] || pad.after[0] || pad.after[1]) return std::nullopt;
  Dims own = n.attrs().get_ints("pads").copy();
  const size_t spatial = rank - 2;
  if (own.empty()) own.assign(2 * spatial, 0);
  if (own.size() != 2 * spatial) return std::nullopt;
  for (size_t i = 0; i < spatial; ++i) {
    own[i] += pad.before[i + 2];
    own[i + spatial] += pad.after[i + 2];
  }
  return own;
}

tn_value with_pads(Context& c, const Node& n, const Node& pad, const Dims& pads, bool count, bool* done) {
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  edit.set_input(n.id(), 0, pad.input(0));
  edit.set_attr(n.id(), AttrValue::of("pads", Span<const int64_t>(pads)));
  if (count) edit.set_attr(n.id(), AttrValue::of("count_include_pad", int64_t{1}));
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// Zeros beside the data are what a convolution pads with. Exact: the same products are added up.
tn_value pad_into_conv(Context& c, const Node& n, bool* done) {
  c.step = "pad in the convolution";
  const auto pad = c.producer(n.input(0), c.ops.pad);
  if (!pad) return TN_NONE;
  const auto padding = padding_of(c, *pad);
  if (!padding || padding->value != 0) return TN_NONE;
  const auto pads = joined_pads(n, *padding);
  if (!pads) return TN_NONE;
  return with_pads(c, n, *pad, *pads, false, done);
}

/// A pool whose windows all lie on padded data, and no window on padding alone.
bool pool_takes(const Node& n, const Dims& pads) {
  if (n.attrs().get_int("ceil_mode", 0) != 0) return false;
  const auto kernel = n.attrs().get_ints("kernel_shape");
  const auto dilations = n.attrs().get_ints("dilations");
  if (pads.size() != 2 * kernel.size()) return false;
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (!dilations.empty() && dilations[i] != 1) return false;
    if (pads[i] >= kernel[i] || pads[i + kernel.size()] >= kernel[i]) return false;
  }
  return true;
}

tn_value pad_into_average(Context& c, const Node& n, bool* done) {
  c.step = "pad in the average pooling";
  const auto pad = c.producer(n.input(0), c.ops.pad);
  if (!pad) return TN_NONE;
  const auto padding = padding_of(c, *pad);
  if (!padding || padding->value != 0) return TN_NONE;
  const auto pads = joined_pads(n, *padding);
  if (!pads || !pool_takes(n, *pads)) return TN_NONE;
  // The operator's own pads must count as data, as the Pad's zeros do.
  if (n.attrs().get_int("count_include_pad", 0) == 0)
    for (int64_t p : n.attrs().get_ints("pads"))
      if (p != 0) return TN_NONE;
  return with_pads(c, n, *pad, *pads, true, done);
}

tn_value pad_into_max(Context& c, const Node& n, bool* done) {
  c.step = "pad in the max pooling";
  const auto pad = c.producer(n.input(0), c.ops.pad);
  if (!pad || !c.is_float(n.input(0))) return TN_NONE;
  const auto padding = padding_of(c, *pad);
  if (!padding || !(std::isinf(padding->value) && padding->value < 0)) return TN_NONE;
  // The second result counts places in the padded tensor.
  for (uint32_t i = 1; i < n.outputs().size(); ++i)
    if (n.output(i) != TN_NONE && c.graph.value(n.output(i)).use_count != 0) return TN_NONE;
  const auto pads = joined_pads(n, *padding);
  if (!pads || !pool_takes(n, *pads)) return TN_NONE;
  return with_pads(c, n, *pad, *pads, false, done);
}

constexpr SimplifierEntry entries[] = {{"Pad", pad_of_pad},
                                       {"Conv", pad_into_conv},
                                       {"AveragePool", pad_into_average},
                                       {"MaxPool", pad_into_max}};

}  // namespace

Table pad_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
