// Resize, and Upsample, which it replaced.
//
// A result's size is floor(size * scale), in float32 as runtimes compute it; with sizes it is what they say,
// or, with keep_aspect_ratio_policy, round(size * the least or largest of the ratios).
#include <algorithm>
#include <cmath>

#include "support/define.hpp"
#include "support/own_attributes.hpp"

namespace tenon::ops {
namespace {

/// An operand of no elements counts as omitted: before 13 that was how to leave one out.
bool given(Infer& c, uint32_t i) {
  if (!c.has_input(i)) return false;
  return !(c.has_rank(i) && c.rank(i) == 1 && c.dims(i)[0] == 0);
}

/// floor(d * scale); unset when no expression says it.
std::optional<tn_dim> scaled(Infer& c, tn_dim d, double scale) {
  if (scale == 1) return d;
  if (const auto n = c.number(d)) {
    const float r = std::floor(static_cast<float>(*n) * static_cast<float>(scale));
    require(r >= 0 && r < 9e15f, "a dimension of " + text_of(*n) + format(" scaled by %g is no size", scale));
    return static_cast<tn_dim>(r);
  }
  for (int64_t q = 1; q <= 4096; q *= 2) {  // numbers of few bits multiply exactly
    const double p = scale * static_cast<double>(q);
    if (p == std::floor(p) && p <= 4096) return c.floordiv(c.mul(d, static_cast<tn_dim>(p)), q);
  }
  return std::nullopt;
}

void infer_by_scales(Infer& c, std::vector<tn_dim>& out, const Dims& axes) {
  ranked(c, 1, "roi", 1, 1);
  ranked(c, 2, "scales", 1, 1);
  const auto scales = float_list(c, 2);
  const bool crop =
      c.attrs().get_string("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize";
  const auto roi = crop ? float_list(c, 1) : std::nullopt;
  if (scales)
    require(scales->size() == axes.size(),
            format("operand scales has %zu numbers; expected %zu", scales->size(), axes.size()));
  if (roi)
    require(roi->size() == 2 * axes.size(),
            format("operand roi has %zu numbers; expected %zu", roi->size(), 2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    tn_dim& d = out[static_cast<size_t>(axes[i])];
    std::optional<tn_dim> size;
    if (scales) {
      const double s = (*scales)[i];
      require(s > 0 && std::isfinite(s), format("operand scales holds %g; expected numbers above 0", s));
      if (!crop)
        size = scaled(c, d, s);
      else if (roi)
        size = scaled(c, d,
                      static_cast<double>(static_cast<float>((*roi)[i + axes.size()] - (*roi)[i]) *
                                          static_cast<float>(s)));
    }
    d = size ? *size : c.data_dependent(0, static_cast<uint32_t>(axes[i]));
  }
}

void infer_by_sizes(Infer& c, std::vector<tn_dim>& out, const Dims& axes) {
  ranked(c, 3, "sizes", 1, 1);
  const auto sizes = c.elements(3);
  const auto policy = c.attrs().get_string("keep_aspect_ratio_policy", "stretch");
  require(policy == "stretch" || policy == "not_larger" || policy == "not_smaller",
          "attribute 'keep_aspect_ratio_policy' is '" + std::string(policy) +
              "'; expected stretch, not_larger or not_smaller");
  if (sizes) {
    require(sizes->size() == axes.size(),
            format("operand sizes has %zu numbers; expected %zu", sizes->size(), axes.size()));
    for (tn_dim s : *sizes)
      if (const auto v = c.number(s))
        require(*v >= 0, "operand sizes holds " + text_of(*v) + "; expected 0 or more");
  }
  if (sizes && policy == "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) out[static_cast<size_t>(axes[i])] = (*sizes)[i];
    return;
  }
  std::optional<float> ratio;
  const auto wanted = sizes ? numbers(c, *sizes) : std::nullopt;
  const auto have = numbers(c, out);
  if (wanted && have)
    for (size_t i = 0; i < axes.size(); ++i) {
      const int64_t d = (*have)[static_cast<size_t>(axes[i])];
      require(d > 0, "an empty axis has no aspect ratio to keep");
      const float r = static_cast<float>((*wanted)[i]) / static_cast<float>(d);
      ratio = !ratio ? r : policy == "not_larger" ? std::min(*ratio, r) : std::max(*ratio, r);
    }
  for (int64_t axis : axes) {
    tn_dim& d = out[static_cast<size_t>(axis)];
    d = ratio ? static_cast<tn_dim>(std::floor(static_cast<float>(d) * *ratio + 0.5f))
              : c.data_dependent(0, static_cast<uint32_t>(axis));
  }
}

void infer_resize(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const bool by_scales = given(c, 2), by_sizes = given(c, 3);
  require(!(by_scales && by_sizes), "operands scales and sizes are both given; expected one of them");
  require(by_scales || by_sizes, "neither operand scales nor operand sizes is given");
  if (!ranked(c, 0, "X", 1)) return c.set_unranked(0, dtype);
  auto out = c.dims(0);
  Dims axes = c.attrs().get_ints("axes").copy();
  if (axes.empty())
    for (int64_t i = 0; i < c.rank(0); ++i) axes.push_back(i);
  std::vector<bool> seen(out.size(), false);
  for (int64_t& a : axes) {
    a = Infer::axis(a, c.rank(0), "attribute 'axes': value");
    require(!seen[static_cast<size_t>(a)], "attribute 'axes' names axis " + text_of(a) + " twice");
    seen[static_cast<size_t>(a)] = true;
  }
  if (by_scales)
    infer_by_scales(c, out, axes);
  else
    infer_by_sizes(c, out, axes);
  c.set(0, dtype, out);
}

// ---- upgrades
// -------------------------------------------------------------------------------------------------------

/// Before 11 a nearest sample was rounded down when enlarging and up when shrinking, from asymmetric
/// coordinates.
void asymmetric_resize(Rewrite& w, tn_value scales, const std::string& mode) {
  const std::string now = mode == "bilinear" || mode == "trilinear" ? "linear" : mode;
  const auto resize = [&](tn_value x, tn_value by, const char* rounding) {
    return w.make("Resize", {x, TN_NONE, by},
                  {AttrValue::of("mode", now), AttrValue::of("coordinate_transformation_mode", "asymmetric"),
                   AttrValue::of("nearest_mode", rounding)});
  };
  std::vector<float> larger, smaller;
  if (const auto known_scales = w.editor().graph().constant(scales)) {
    for (int64_t i = 0, n = known_scales->count(); i < n; ++i) {
      const auto s = static_cast<float>(known_scales->float_at(i));
      larger.push_back(std::max(s, 1.0f));
      smaller.push_back(std::min(s, 1.0f));
    }
  }
  const auto moves = [](const std::vector<float>& v) {
    return std::any_of(v.begin(), v.end(), [](float s) { return s != 1.0f; });
  };
  tn_value y = w.input(0);
  if (now == "nearest" && moves(smaller)) {
    if (moves(larger)) y = resize(y, w.editor().vector(larger), "floor");
    y = resize(y, w.editor().vector(smaller), "ceil");
  } else {
    y = resize(y, scales, "floor");
  }
  w.become(0, y);
  w.erase();
}

void infer_upsample(Infer&) { fail("Upsample was removed in opset 10; use Resize"); }
void upgrade_upsample(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const std::string mode(a.get_string("mode", "nearest"));
  std::vector<float> scales;
  if (a.has("scales"))
    for (double s : a.get_floats("scales")) scales.push_back(static_cast<float>(s));
  else if (n.input(1) == TN_NONE)  // opset 1
    scales = {1, 1, static_cast<float>(a.get_float("height_scale", 1)),
              static_cast<float>(a.get_float("width_scale", 1))};
  Rewrite w(e, n);
  asymmetric_resize(w, scales.empty() ? w.input(1) : e.vector(scales), mode);
}

/// tf_half_pixel_for_nn samples at (x + 1/2) / scale = (2x + 1) / (2 scale): the odd places of a result twice
/// as large with asymmetric coordinates. An axis that keeps its size keeps its elements.
void odd_positions(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const int32_t rank = w.rank_or_wait(w.input(0));
  const bool by_sizes = w.input(3) != TN_NONE;
  const auto wanted = e.graph().constant(w.input(by_sizes ? 3 : 2));
  if (!wanted || rank < 0 || wanted->count() != rank)
    cannot_upgrade(
        n,
        "coordinate_transformation_mode 'tf_half_pixel_for_nn' in this combination has a meaning today only "
        "where scales or sizes are constant, one for each axis");
  const tn_type type = e.graph().value(w.input(0)).type;
  std::vector<int64_t> axes, sizes, starts, ends, steps;
  std::vector<float> scales;
  for (int32_t i = 0; i < rank; ++i) {
    const double number = by_sizes ? static_cast<double>(wanted->int_at(i)) : wanted->float_at(i);
    if (number == (by_sizes ? static_cast<double>(type.dims[i]) : 1.0)) continue;
    if (!(number > 0 && number < 1e15))
      cannot_upgrade(n, format("a scale or size is %g; expected a number above 0", number));
    axes.push_back(i);
    sizes.push_back(2 * static_cast<int64_t>(number));
    scales.push_back(2 * static_cast<float>(number));
    starts.push_back(1);
    ends.push_back(INT64_MAX);
    steps.push_back(2);
  }
  tn_value y = w.input(0);
  if (!axes.empty()) {
    OwnAttributes own(n, {"mode", "nearest_mode", "cubic_coeff_a", "exclude_outside"});
    own.values.push_back(AttrValue::of("coordinate_transformation_mode", "asymmetric"));
    own.values.push_back(AttrValue::of("axes", Span<const int64_t>(axes)));
    y = w.make("Resize",
               by_sizes ? std::vector<tn_value>{y, TN_NONE, TN_NONE, w.ints(sizes)}
                        : std::vector<tn_value>{y, TN_NONE, e.vector(scales)},
               own.values);
    y = w.make("Slice", {y, w.ints(starts), w.ints(ends), w.ints(axes), w.ints(steps)});
  }
  w.become(0, y);
  w.erase();
}

void upgrade_resize(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  if (n.version() < 11) {
    const std::string mode(a.get_string("mode", "nearest"));
    Rewrite w(e, n);
    return asymmetric_resize(w, w.input(1), mode);
  }
  if (n.version() < 13) {  // an empty tensor stood for an operand left out
    if (a.get_string("coordinate_transformation_mode", "half_pixel") == "tf_half_pixel_for_nn") {
      if (a.get_string("nearest_mode", "round_prefer_floor") != "floor" ||
          a.get_string("mode", "nearest") != "nearest")
        return odd_positions(e, n);
      e.set_attr(n.id(), AttrValue::of("coordinate_transformation_mode",
                                       "half_pixel"));  // floor(h + 1/2), h of half_pixel
      e.set_attr(n.id(), AttrValue::of("nearest_mode", "round_prefer_ceil"));
    }
    const tn_node id = n.id();
    for (uint32_t i = 1; i < 3; ++i) {
      const tn_value v = e.graph().node(id).input(i);
      if (v == TN_NONE) continue;
      const tn_type t = e.graph().value(v).type;
      if (t.kind == TN_KIND_TENSOR && t.rank == 1 && t.dims[0] == 0) e.set_input(id, i, TN_NONE);
    }
    return upgrade_version_only(e, e.graph().node(id));
  }
  upgrade_version_only(e, n);
}

}  // namespace

void add_resize(Plugin& p) {
  define(p, "Resize").infer<infer_resize>().upgrade<upgrade_resize>().alias("interpolate");
  define(p, "Upsample").infer<infer_upsample>().upgrade<upgrade_upsample>();
}

}  // namespace tenon::ops
