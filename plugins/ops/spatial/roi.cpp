// RoiAlign and MaxRoiPool: regions of feature maps [N, C, H, W] brought to one size.
//
// RoiAlign averages (or takes the largest of) points of a regular grid in every bin; a point is interpolated
// between the four elements around it, and is 0 when it lies more than one element outside. In mode max the
// largest of the four weighted elements stands for the point, as the standard's tests have it.
#include "families.hpp"
#include "support/define.hpp"
#include "support/run_errors.hpp"

namespace tenon::reference {
namespace {

struct RoiState : Base {
  bool largest = false;
  double offset = 0, scale = 1;
  int64_t ratio = 0, channels = 0, height = 0, width = 0, out_height = 0, out_width = 0;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};

/// Points of one bin along one axis.
struct Points {
  double start = 0, step = 0, count = 0;  // point i lies at start + (i + 1/2) * step
  int64_t first = 0, end = 0;             // those that may be inside
};
Points points_of(double roi_start, double bin, int64_t index, int64_t ratio, int64_t size) noexcept {
  Points p;
  p.count = ratio > 0 ? static_cast<double>(ratio) : std::ceil(bin);
  if (!(p.count > 0) || p.count > 0x1p53) return p;  // of so many, those inside weigh nothing
  p.start = roi_start + static_cast<double>(index) * bin;
  p.step = bin / p.count;
  double low = 0, high = p.count;
  if (p.step != 0) {
    double a = (-1 - p.start) / p.step, b = (static_cast<double>(size) - p.start) / p.step;
    if (a > b) std::swap(a, b);
    low = std::min(std::max(low, std::floor(a) - 2), high);
    high = std::max(std::min(high, std::ceil(b) + 2), low);
  }
  p.first = static_cast<int64_t>(low);
  p.end = static_cast<int64_t>(high);
  return p;
}

struct Neighbours {
  int64_t low, high;
  double weight_low, weight_high;
};
/// False: outside.
bool neighbours(const Points& p, int64_t i, int64_t size, Neighbours& n) noexcept {
  double at = p.start + (static_cast<double>(i) + 0.5) * p.step;
  if (!(at >= -1 && at <= static_cast<double>(size))) return false;
  at = std::max(at, 0.0);
  n.low = static_cast<int64_t>(at);
  if (n.low >= size - 1) {
    n = {size - 1, size - 1, 1, 0};
    return true;
  }
  n.high = n.low + 1;
  n.weight_high = at - static_cast<double>(n.low);
  n.weight_low = 1 - n.weight_high;
  return true;
}

/// One bin of every channel into `sums`.
void align_bin(const RoiState& s, const void* x, int64_t image, const Points& py, const Points& px,
               double* sums) noexcept {
  const int64_t plane = s.height * s.width;
  std::fill(sums, sums + s.channels, 0.0);
  double taken = 0;
  for (int64_t iy = py.first; iy < py.end; ++iy) {
    Neighbours y, z;
    if (!neighbours(py, iy, s.height, y)) continue;
    for (int64_t ix = px.first; ix < px.end; ++ix) {
      if (!neighbours(px, ix, s.width, z)) continue;
      const int64_t places[4] = {y.low * s.width + z.low, y.low * s.width + z.high, y.high * s.width + z.low,
                                 y.high * s.width + z.high};
      const double weights[4] = {y.weight_low * z.weight_low, y.weight_low * z.weight_high,
                                 y.weight_high * z.weight_low, y.weight_high * z.weight_high};
      for (int64_t c = 0; c < s.channels; ++c) {
        double point = 0;
        for (int k = 0; k < 4; ++k) {
          double value;
          s.load(x, (image * s.channels + c) * plane + places[k], 1, 1, &value);
          value *= weights[k];
          if (s.largest)
            point = k == 0 ? value : std::max(point, value);
          else
            point += value;
        }
        if (s.largest)
          sums[c] = taken == 0 ? point : std::max(sums[c], point);
        else
          sums[c] += point;
      }
      ++taken;
    }
  }
  const double all = py.count > 0 && px.count > 0 ? py.count * px.count : 0;
  for (int64_t c = 0; c < s.channels; ++c) {
    if (!s.largest)
      sums[c] /= std::max(all, 1.0);
    else if (taken > 0 && taken < all)
      sums[c] = std::max(sums[c], 0.0);  // those outside are 0
  }
}

int align_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<RoiState>(a);
  const auto r = tile_range(s.in[1].dims[0], s.tiles, tile);
  double* sums = workspace<double>(a, worker);
  for (int64_t roi = r.begin; roi < r.end; ++roi) {
    const int64_t image = integer_at(a->inputs[2], s.in[2].dtype, roi);
    if (image < 0 || image >= s.in[0].dims[0])
      return value_fail(a, "RoiAlign: operand batch_indices", image, 0, s.in[0].dims[0] - 1);
    double box[4];
    s.load(a->inputs[1], roi * 4, 1, 4, box);
    for (double& edge : box) {
      if (!std::isfinite(edge))
        return run_fail(a, run_bad_operand, "RoiAlign: operand rois holds a number that is not finite");
      edge = edge * s.scale - s.offset;
    }
    double width = box[2] - box[0], height = box[3] - box[1];
    if (s.offset == 0) {  // the older convention has no region below one element
      width = std::max(width, 1.0);
      height = std::max(height, 1.0);
    }
    const double bin_height = height / static_cast<double>(s.out_height),
                 bin_width = width / static_cast<double>(s.out_width);
    for (int64_t h = 0; h < s.out_height; ++h) {
      const Points py = points_of(box[1], bin_height, h, s.ratio, s.height);
      for (int64_t w = 0; w < s.out_width; ++w) {
        align_bin(s, a->inputs[0], image, py, points_of(box[0], bin_width, w, s.ratio, s.width), sums);
        for (int64_t c = 0; c < s.channels; ++c)
          s.store(sums + c, 1, a->outputs[0], ((roi * s.channels + c) * s.out_height + h) * s.out_width + w);
      }
    }
  }
  return run_ok;
}

// Every bin covers whole elements: floor of its start to ceil of its end, in exact integers; an empty one
// yields 0.
int max_pool_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<RoiState>(a);
  const auto r = tile_range(s.in[1].dims[0], s.tiles, tile);
  for (int64_t roi = r.begin; roi < r.end; ++roi) {
    double row[5];
    s.load(a->inputs[1], roi * 5, 1, 5, row);
    const int64_t images = s.in[0].dims[0];
    if (!(row[0] >= 0 && row[0] < static_cast<double>(images)))
      return value_fail(a, "MaxRoiPool: the first column of operand rois", saturate_to<int64_t>(row[0]), 0,
                        images - 1);
    const auto image = static_cast<int64_t>(row[0]);
    int64_t box[4];
    for (int k = 0; k < 4; ++k) {
      const double edge = std::round(row[k + 1] * s.scale);
      if (!(std::fabs(edge) < 1e9))
        return run_fail(a, run_bad_operand, "MaxRoiPool: operand rois holds a coordinate beyond 1e9");
      box[k] = static_cast<int64_t>(edge);
    }
    const int64_t width = std::max<int64_t>(box[2] - box[0] + 1, 1),
                  height = std::max<int64_t>(box[3] - box[1] + 1, 1);
    const auto bounds = [](int64_t start, int64_t size, int64_t i, int64_t bins, int64_t limit) {
      const int64_t first = start + i * size / bins, end = start + ((i + 1) * size + bins - 1) / bins;
      return Range{std::min(std::max<int64_t>(first, 0), limit), std::min(std::max<int64_t>(end, 0), limit)};
    };
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t h = 0; h < s.out_height; ++h)
        for (int64_t w = 0; w < s.out_width; ++w) {
          const Range rows = bounds(box[1], height, h, s.out_height, s.height),
                      columns = bounds(box[0], width, w, s.out_width, s.width);
          double best = 0, value;
          bool any = false;
          for (int64_t y = rows.begin; y < rows.end; ++y)
            for (int64_t x = columns.begin; x < columns.end; ++x) {
              s.load(a->inputs[0], ((image * s.channels + c) * s.height + y) * s.width + x, 1, 1, &value);
              if (!any || value > best || (value != value && best == best)) best = value;
              any = true;
            }
          s.store(&best, 1, a->outputs[0], ((roi * s.channels + c) * s.out_height + h) * s.out_width + w);
        }
  }
  return run_ok;
}

void plan_roi(const PlanView& v, Planned& p) {
  auto s = make_state<RoiState>(v);
  const std::string op(v.op_name());
  const bool align = op == "RoiAlign";
  const auto &x = s->in[0].dims, &rois = s->in[1].dims, &y = s->out[0].dims;
  if (x.size() != 4 || rois.size() != 2 || rois[1] != (align ? 4 : 5))
    fail(op + ": operands have shapes " + dims_text(x) + " and " + dims_text(rois) +
         "; expected [N, C, H, W] and [regions, " + (align ? "4]" : "5]"));
  if (align && s->in[2].dims != Dims{rois[0]})
    fail("RoiAlign: operand batch_indices has shape " + dims_text(s->in[2].dims) +
         "; expected one number for each region");
  if (y.size() != 4 || y[0] != rois[0] || y[1] != x[1]) fail(op + "'s result was planned with another shape");
  if (s->out[0].count > 0 && s->in[0].count == 0)
    fail(op + ": operand X has shape " + dims_text(x) + ", which is empty");
  s->channels = x[1];
  s->height = x[2];
  s->width = x[3];
  s->out_height = y[2];
  s->out_width = y[3];
  s->scale = v.attrs().get_float("spatial_scale", 1);
  s->ratio = v.attrs().get_int("sampling_ratio", 0);
  s->largest = v.attrs().get_string("mode", "avg") == "max";
  s->offset = v.attrs().get_string("coordinate_transformation_mode", "half_pixel") == "half_pixel" ? 0.5 : 0;
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t n = rois[0], work = s->out[0].count * 64;
  const auto bytes = static_cast<uint64_t>(s->channels) * sizeof(double);
  finish(v, p, align ? align_fn : max_pool_fn, std::move(s), n, work, bytes);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void set_roi_result(Infer& c, int64_t row, int64_t height, int64_t width) {
  const bool has_x = ranked(c, 0, "X", 4, 4), has_rois = ranked(c, 1, "rois", 2, 2);
  if (has_rois)
    require(!c.differ(c.dims(1)[1], row),
            "operand rois has shape " + c.text(c.dims(1)) + "; expected [regions, " + text_of(row) + "]");
  if (c.has_input(2) && ranked(c, 2, "batch_indices", 1, 1) && has_rois)
    require(!c.differ(c.dims(2)[0], c.dims(1)[0]), "operand batch_indices has shape " + c.text(c.dims(2)) +
                                                       "; operand rois has " + c.text(c.dims(1)[0]) +
                                                       " regions");
  c.set(0, c.dtype(0),
        std::vector<tn_dim>{has_rois ? c.dims(1)[0] : c.data_dependent(0, 0),
                            has_x ? c.dims(0)[1] : c.data_dependent(0, 1), height, width});
}

void infer_roi_align(Infer& c) {
  const auto size = [&](const char* name) {
    const int64_t v = c.attrs().get_int(name, 1);
    require(v >= 1, std::string("attribute '") + name + "' is " + text_of(v) + "; expected 1 or more");
    return v;
  };
  const auto mode = c.attrs().get_string("mode", "avg"),
             convention = c.attrs().get_string("coordinate_transformation_mode", "half_pixel");
  require(mode == "avg" || mode == "max",
          "attribute 'mode' is '" + std::string(mode) + "'; expected avg or max");
  require(convention == "half_pixel" || convention == "output_half_pixel",
          "attribute 'coordinate_transformation_mode' is '" + std::string(convention) +
              "'; expected half_pixel or output_half_pixel");
  const int64_t ratio = c.attrs().get_int("sampling_ratio", 0);
  require(ratio >= 0 && ratio <= 4096,
          "attribute 'sampling_ratio' is " + text_of(ratio) + "; expected 0 to 4096");
  set_roi_result(c, 4, size("output_height"), size("output_width"));
}
/// Before 16 the input's coordinates were not shifted.
void upgrade_roi_align(Editor& e, const Node& n) {
  if (n.version() < 16)
    e.set_attr(n.id(), AttrValue::of("coordinate_transformation_mode", "output_half_pixel"));
  upgrade_version_only(e, e.graph().node(n.id()));
}

void infer_max_roi_pool(Infer& c) {
  const Dims size = list_attr(c, "pooled_shape", 2, 1, 1);
  require(c.attrs().has("pooled_shape"), "attribute 'pooled_shape' is missing");
  set_roi_result(c, 5, size[0], size[1]);
}

}  // namespace

void add_roi(Plugin& p) {
  define(p, "RoiAlign").infer<infer_roi_align>().upgrade<upgrade_roi_align>();
  reference::reference_kernel(p, "RoiAlign").plan<reference::plan_roi>();
  define(p, "MaxRoiPool").infer<infer_max_roi_pool>();
  reference::reference_kernel(p, "MaxRoiPool").plan<reference::plan_roi>();
}

}  // namespace tenon::ops
