// Resize, GridSample and RoiAlign.
#include <algorithm>
#include <cmath>

#include "older_form.hpp"

namespace tenon::onnx {
namespace {

bool grid_sample(OlderForm& f) {
  if (f.rank(0) != 4) return f.refuse("it samples no images of two dimensions");
  const auto mode = f.node.attrs().get_string("mode", "linear");
  f.set("mode", mode == "linear" ? "bilinear" : mode == "cubic" ? "bicubic" : mode);
  return true;
}

/// Boxes were never moved by half a pixel.
bool roi_align(OlderForm& f) {
  if (f.node.attrs().get_string("coordinate_transformation_mode", "half_pixel") != "output_half_pixel")
    return f.refuse("its boxes are moved by half a pixel");
  f.remove("coordinate_transformation_mode");
  return true;
}

/// Scales of all axes, from the scales or sizes of some.
std::optional<std::vector<double>> scales_of(const OlderForm& f, const std::vector<int64_t>& axes) {
  const tn_type t = f.type(0);
  std::vector<double> all(static_cast<size_t>(t.rank), 1.0);
  const auto scales = f.numbers(2);
  const auto sizes = f.integers(3);
  const size_t given = f.has(2) && scales && !scales->empty() ? scales->size() : sizes ? sizes->size() : 0;
  if (given != axes.size()) return std::nullopt;
  for (size_t i = 0; i < given; ++i) {
    const auto axis = static_cast<size_t>(axes[i]);
    if (axis >= all.size()) return std::nullopt;
    if (scales && !scales->empty()) {
      all[axis] = (*scales)[i];
    } else {
      if (t.dims[axis] <= 0) return std::nullopt;
      all[axis] = static_cast<double>((*sizes)[i]) / static_cast<double>(t.dims[axis]);
      // The size must come out of the rounded scale again.
      const auto rounded = static_cast<double>(static_cast<float>(all[axis]));
      if (std::floor(rounded * static_cast<double>(t.dims[axis])) != static_cast<double>((*sizes)[i]))
        return std::nullopt;
    }
  }
  return all;
}

Place floats_constant(OlderForm& f, const std::vector<double>& values) {
  sdk::OwnedTensor t(TN_FLOAT32, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) t.data<float>()[i] = static_cast<float>(values[i]);
  return f.before.constant(std::move(t));
}

/// Does nearest sampling give the same as index = floor(place / scale)? It does for whole scales, whichever
/// way coordinates count and are rounded, but not where halves are rounded up.
bool is_plain_nearest(std::string_view coordinates, std::string_view rounding,
                      const std::optional<std::vector<double>>& scales) {
  if (coordinates == "asymmetric" && rounding == "floor") return true;
  if (!scales) return false;
  const bool whole = std::all_of(scales->begin(), scales->end(), [](double s) { return s == std::trunc(s); });
  const bool middle = coordinates == "half_pixel" || coordinates == "pytorch_half_pixel";
  return whole && middle && (rounding == "round_prefer_floor" || rounding == "round_prefer_ceil");
}

/// Opset 10: (X, scales), plain nearest or asymmetric linear; before: Upsample, which only enlarges.
bool to_upsample(OlderForm& f, const std::vector<int64_t>& axes) {
  const auto a = f.node.attrs();
  const auto mode = a.get_string("mode", "nearest");
  const auto coordinates = a.get_string("coordinate_transformation_mode", "half_pixel");
  const auto scales = scales_of(f, axes);
  const bool computed = !scales && f.has(2) && !f.graph.is_constant(f.node.input(2)) && !a.has("axes");
  if (!scales && !(computed && f.opset >= 9))
    return f.refuse("its scales are computed, or do not give its sizes");
  const bool plain =
      mode == "nearest"
          ? is_plain_nearest(coordinates, a.get_string("nearest_mode", "round_prefer_floor"), scales)
          : mode == "linear" && coordinates == "asymmetric";
  if (!plain)
    return f.refuse("mode '" + std::string(mode) + "' with coordinates '" + std::string(coordinates) +
                    "' came later");
  const bool enlarges =
      computed || std::all_of(scales->begin(), scales->end(), [](double s) { return s >= 1; });
  if (f.opset < 10 && !enlarges) return f.refuse("it makes smaller");
  const Place x = f.itself.inputs[0];
  f.itself.attrs.clear();
  f.set("mode", mode);
  f.itself.op = f.opset >= 10 ? "Resize" : "Upsample";
  if (f.opset >= 9) {
    f.itself.inputs = {x, computed ? f.itself.inputs[2] : floats_constant(f, *scales)};
  } else {
    f.itself.inputs = {x};
    f.set("scales", *scales);
  }
  return true;
}

bool resize(OlderForm& f) {
  const auto a = f.node.attrs();
  if (a.get_int("antialias", 0) != 0) return f.refuse("it smooths (antialias)");
  if (a.get_string("keep_aspect_ratio_policy", "stretch") != "stretch")
    return f.refuse("it keeps the ratio of its sides");
  std::vector<int64_t> axes = a.get_ints("axes").copy();
  const int32_t rank = f.rank(0);
  if (rank < 0) return f.refuse("its rank is not known");
  if (!from_the_front(axes, rank)) return f.refuse("its rank is not known");
  const bool some = a.has("axes");
  if (!some)
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  if (f.opset < 11) return to_upsample(f, axes);
  f.remove("antialias");
  f.remove("keep_aspect_ratio_policy");
  f.remove("axes");
  f.itself.inputs.resize(4);
  if (some) {
    if (f.has(1)) return f.refuse("its region is of some axes");
    const auto scales = f.has(2) ? scales_of(f, axes) : std::nullopt;
    const auto sizes = f.integers(3);
    const tn_type t = f.type(0);
    if (scales) {
      f.itself.inputs[2] = floats_constant(f, *scales);
    } else if (sizes && sizes->size() == axes.size()) {
      std::vector<int64_t> all(t.dims, t.dims + rank);
      for (size_t i = 0; i < axes.size(); ++i) all[static_cast<size_t>(axes[i])] = (*sizes)[i];
      if (std::any_of(all.begin(), all.end(), [](int64_t d) { return d < 0; }))
        return f.refuse("a size that stays is not known");
      f.itself.inputs[3] = f.integers_constant(all);
    } else {
      return f.refuse("its scales or sizes are of some axes, and computed");
    }
  }
  // Before 13 the region and the scales had to be there, if empty.
  if (f.opset < 13) {
    if (!f.has(1)) f.itself.inputs[1] = floats_constant(f, {});
    if (!f.has(2)) f.itself.inputs[2] = floats_constant(f, {});
  }
  while (!f.itself.inputs.back().present()) f.itself.inputs.pop_back();
  return true;
}

}  // namespace

const OlderMaker sampling_makers[] = {{"GridSample", 20, grid_sample},
                                      {"Resize", 18, resize},
                                      {"RoiAlign", 16, roi_align},
                                      {nullptr, 0, nullptr}};

}  // namespace tenon::onnx
