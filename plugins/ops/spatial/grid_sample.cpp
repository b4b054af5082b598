// GridSample and AffineGrid.
//
// A coordinate of the grid is brought to the operand's axis (a border or reflection first moves it inside),
// then each axis contributes its taps, (index, weight); a result is the sum over the product of the axes'
// taps. nearest rounds half to even and moves elements as they are, of any type; the other modes compute in
// float64, and cast integers at the end. A coordinate that is not a number lies outside: 0 with zeros, else
// the first element's.
#include "families.hpp"
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

enum class Sampling { nearest, linear, cubic };
enum class Outside { zeros, border, reflection };

struct Tap {
  int64_t place;  // -1: outside
  double weight;
};

struct SampleState : Base {
  Sampling mode = Sampling::linear;
  Outside outside = Outside::zeros;
  bool align_corners = false;
  int axes = 0;
  int64_t points = 0, plane = 0, most_taps = 1, bytes = 0, lanes = 1;
  Load<double> load = nullptr, load_grid = nullptr;
  Store<double> store = nullptr;
};

/// Back and forth between the borders.
double reflect(double x, double low, double high) noexcept {
  const double range = high - low;
  if (!(range > 0) || !std::isfinite(x)) return low;
  if (x >= low && x <= high) return x;
  const double distance = x < low ? low - x : x - high;
  double rest = std::fmod(distance, 2 * range);  // exact, however far away
  if (rest > range) rest = 2 * range - rest;
  return x < low ? low + rest : high - rest;
}

/// Taps of one axis for a coordinate of the grid.
int taps_of(const SampleState& s, double at, int64_t size, Tap (&taps)[4]) noexcept {
  const auto length = static_cast<double>(size);
  const double low = s.align_corners ? 0 : -0.5, high = s.align_corners ? length - 1 : length - 0.5;
  double x = s.align_corners ? (at + 1) / 2 * (length - 1) : ((at + 1) * length - 1) / 2;
  if (s.mode == Sampling::nearest) x = std::nearbyint(x);
  if (s.outside == Outside::zeros)
    x = x == x ? std::min(std::max(x, -8.0), length + 8) : -8;  // far outside, and an integer
  else if (x != x)
    x = 0;
  else if (x < low || x > high)
    x = s.outside == Outside::border ? std::min(std::max(x, 0.0), length - 1) : reflect(x, low, high);
  const auto padded = [&](int64_t i) -> int64_t {
    if (i >= 0 && i < size) return i;
    if (s.outside == Outside::zeros) return -1;
    if (s.outside == Outside::border) return i < 0 ? 0 : size - 1;
    const auto inside = static_cast<int64_t>(reflect(static_cast<double>(i), low, high));
    return std::min(std::max<int64_t>(inside, 0), size - 1);
  };
  const double base = std::floor(x), t = x - base;
  const auto first = static_cast<int64_t>(base);
  if (s.mode == Sampling::nearest) {
    taps[0] = {padded(first), 1};
    return 1;
  }
  if (s.mode == Sampling::linear) {
    taps[0] = {padded(first), 1 - t};
    taps[1] = {padded(first + 1), t};
    return 2;
  }
  constexpr double a = -0.75;  // Keys' cubic convolution
  const auto near_weight = [](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far_weight = [](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  taps[0] = {padded(first - 1), far_weight(t + 1)};
  taps[1] = {padded(first), near_weight(t)};
  taps[2] = {padded(first + 1), near_weight(1 - t)};
  taps[3] = {padded(first + 2), far_weight(2 - t)};
  return 4;
}

/// The places in a plane, with their weights, that one point of the grid sums; those of weight 0 left out.
int64_t gather_taps(const SampleState& s, const void* grid, int64_t point, Tap* to) noexcept {
  int64_t count = 1;
  to[0] = {0, 1};
  for (int k = 0; k < s.axes; ++k) {
    double at;
    s.load_grid(grid, point * s.axes + (s.axes - 1 - k), 1, 1,
                &at);  // the grid names the innermost axis first
    const int64_t size = s.in[0].dim(k + 2);
    Tap axis[4];
    const int n = taps_of(s, at, size, axis);
    int64_t kept = 0;
    for (int q = 0; q < n; ++q) kept += axis[q].place >= 0 && axis[q].weight != 0;
    // In place from the back: every tap so far becomes `kept` of them.
    for (int64_t i = count; i-- > 0;) {
      const Tap before = to[i];
      int64_t slot = (i + 1) * kept;
      for (int q = n; q-- > 0;)
        if (axis[q].place >= 0 && axis[q].weight != 0)
          to[--slot] = {before.place * size + axis[q].place, before.weight * axis[q].weight};
    }
    count *= kept;
  }
  return count;
}

int sample_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<SampleState>(a);
  const auto r = tile_range(s.in[0].dims[0] * s.points, s.tiles, tile);
  const int64_t channels = s.in[0].dims[1];
  Tap* taps = workspace<Tap>(a, worker);
  for (int64_t at = r.begin; at < r.end; ++at) {
    const int64_t count = gather_taps(s, a->inputs[1], at, taps), image = at / s.points;
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t from = (image * channels + c) * s.plane,
                    to = (image * channels + c) * s.points + at % s.points;
      if (s.mode == Sampling::nearest) {
        if (count == 0)
          std::memset(out<char>(a) + to * s.bytes, 0, static_cast<size_t>(s.bytes));
        else
          std::memcpy(out<char>(a) + to * s.bytes, in<char>(a, 0) + (from + taps[0].place) * s.bytes,
                      static_cast<size_t>(s.bytes));
        continue;
      }
      for (int64_t lane = 0; lane < s.lanes; ++lane) {
        double y = 0, x;
        for (int64_t q = 0; q < count; ++q) {
          s.load(a->inputs[0], (from + taps[q].place) * s.lanes + lane, 1, 1, &x);
          y += taps[q].weight * x;
        }
        s.store(&y, 1, a->outputs[0], to * s.lanes + lane);
      }
    }
  }
  return run_ok;
}

void plan_sample(const PlanView& v, Planned& p) {
  auto s = make_state<SampleState>(v);
  const auto &x = s->in[0].dims, &grid = s->in[1].dims, &y = s->out[0].dims;
  if (x.size() < 3 || grid.size() != x.size() || y.size() != x.size() || grid[0] != x[0] ||
      grid.back() != static_cast<int64_t>(x.size()) - 2)
    fail("GridSample: operand grid " + dims_text(grid) + " does not fit operand X " + dims_text(x));
  const auto mode = v.attrs().get_string("mode", "linear"),
             padding = v.attrs().get_string("padding_mode", "zeros");
  s->mode = mode == "nearest" ? Sampling::nearest : mode == "cubic" ? Sampling::cubic : Sampling::linear;
  s->outside = padding == "border"       ? Outside::border
               : padding == "reflection" ? Outside::reflection
                                         : Outside::zeros;
  s->align_corners = v.attrs().get_int("align_corners", 0) != 0;
  s->axes = static_cast<int>(x.size()) - 2;
  s->plane = product(x, 2, x.size());
  s->points = product(y, 2, y.size());
  if (s->plane == 0 && s->out[0].count > 0)
    fail("GridSample: operand X has shape " + dims_text(x) + ", which holds nothing to sample");
  const int per_axis = s->mode == Sampling::cubic ? 4 : s->mode == Sampling::linear ? 2 : 1;
  for (int k = 0; k < s->axes; ++k) s->most_taps *= per_axis;
  if (s->most_taps > (1 << 20))
    throw Failure(TN_ERR_LIMIT, format("GridSample would sum %lld elements for each result; the most is %d",
                                       static_cast<long long>(s->most_taps), 1 << 20));
  tn_dtype part = s->in[0].dtype;
  s->bytes = element_bytes(part);
  if (s->mode != Sampling::nearest) {
    if (part == TN_COMPLEX64 || part == TN_COMPLEX128) {
      s->lanes = 2;
      part = part == TN_COMPLEX64 ? TN_FLOAT32 : TN_FLOAT64;
    }
    s->load = loader<double>(part);
    s->store = storer<double>(part);
  }
  s->load_grid = loader<double>(s->in[1].dtype);
  const int64_t units = x[0] * s->points, work = units * s->most_taps * (x[1] + 8) * 2;
  const auto bytes = static_cast<uint64_t>(s->most_taps) * sizeof(Tap);
  finish(v, p, sample_fn, std::move(s), units, work, bytes);
}

// AffineGrid: theta times the position of every point, (x, y, 1) or (x, y, z, 1), in float64.
struct AffineState : Base {
  bool align_corners = false;
  int axes = 0;
  int64_t points = 0;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};
int affine_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<AffineState>(a);
  const auto r = tile_range(s.in[0].dims[0] * s.points, s.tiles, tile);
  double theta[12], position[4], y[3];
  for (int64_t at = r.begin; at < r.end; ++at) {
    s.load(a->inputs[0], at / s.points * s.axes * (s.axes + 1), 1, s.axes * (s.axes + 1), theta);
    int64_t rest = at % s.points;
    for (int k = 0; k < s.axes; ++k) {  // the innermost axis is x
      const int64_t size = s.out[0].dim(s.axes - k);
      const auto i = static_cast<double>(rest % size), n = static_cast<double>(size);
      rest /= size;
      position[k] = !s.align_corners ? (2 * i + 1) / n - 1 : size > 1 ? 2 * i / (n - 1) - 1 : 0;
    }
    position[s.axes] = 1;
    for (int row = 0; row < s.axes; ++row) {
      y[row] = 0;
      for (int k = 0; k <= s.axes; ++k) y[row] += theta[row * (s.axes + 1) + k] * position[k];
    }
    s.store(y, s.axes, a->outputs[0], at * s.axes);
  }
  return run_ok;
}
void plan_affine(const PlanView& v, Planned& p) {
  auto s = make_state<AffineState>(v);
  const auto &theta = s->in[0].dims, &y = s->out[0].dims;
  s->axes = static_cast<int>(y.size()) - 2;
  if (s->axes < 2 || s->axes > 3 || theta != Dims{y[0], s->axes, s->axes + 1} || y.back() != s->axes)
    fail("AffineGrid: operand theta " + dims_text(theta) + " does not fit a grid of shape " + dims_text(y));
  s->points = product(y, 1, y.size() - 1);
  s->align_corners = v.attrs().get_int("align_corners", 0) != 0;
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t n = y[0] * s->points;
  finish(v, p, affine_fn, std::move(s), n, n * 16);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_grid_sample(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const auto mode = c.attrs().get_string("mode", "linear"),
             padding = c.attrs().get_string("padding_mode", "zeros");
  require(mode == "linear" || mode == "nearest" || mode == "cubic",
          "attribute 'mode' is '" + std::string(mode) + "'; expected linear, nearest or cubic");
  require(padding == "zeros" || padding == "border" || padding == "reflection",
          "attribute 'padding_mode' is '" + std::string(padding) + "'; expected zeros, border or reflection");
  require(dtype != TN_STRING || mode == "nearest", "operand X holds text, which mode '" + std::string(mode) +
                                                       "' cannot compute with; expected nearest");
  if (!ranked(c, 0, "X", 3) || !ranked(c, 1, "grid", 3)) return c.set_unranked(0, dtype);
  const auto x = c.dims(0), grid = c.dims(1);
  require(grid.size() == x.size(),
          "operand grid has shape " + c.text(grid) + "; expected the rank of X, whose shape is " + c.text(x));
  require(!c.differ(grid[0], x[0]),
          "operand grid has shape " + c.text(grid) + "; X has " + c.text(x[0]) + " images");
  const auto axes = static_cast<int64_t>(x.size()) - 2;
  require(!c.differ(grid.back(), axes), "operand grid has shape " + c.text(grid) + "; expected " +
                                            text_of(axes) +
                                            " coordinates in its last dimension, one for each axis of X");
  std::vector<tn_dim> out{x[0], x[1]};
  out.insert(out.end(), grid.begin() + 1, grid.end() - 1);
  c.set(0, dtype, out);
}

/// Opset 16 named the modes after images.
void upgrade_grid_sample(Editor& e, const Node& n) {
  const std::string mode(n.attrs().get_string("mode", "linear"));
  if (n.version() < 20 && (mode == "bilinear" || mode == "bicubic"))
    e.set_attr(n.id(), AttrValue::of("mode", mode == "bilinear" ? "linear" : "cubic"));
  upgrade_version_only(e, e.graph().node(n.id()));
}

void infer_affine_grid(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  ranked(c, 1, "size", 1, 1);
  const auto size = c.elements(1);
  std::optional<int64_t> length;
  if (size)
    length = static_cast<int64_t>(size->size());
  else if (c.has_rank(1))
    length = c.number(c.dims(1)[0]);
  require(!length || *length == 4 || *length == 5,
          "operand size has " + text_of(length.value_or(0)) +
              " numbers; expected 4, [N, C, H, W], or 5, [N, C, D, H, W]");
  const bool has_theta = ranked(c, 0, "theta", 3, 3);
  if (!length) return c.set_unranked(0, dtype);
  const int64_t axes = *length - 2;
  if (has_theta) {
    const auto theta = c.dims(0);
    require(!c.differ(theta[1], axes) && !c.differ(theta[2], axes + 1),
            "operand theta has shape " + c.text(theta) + "; expected [N, " + text_of(axes) + ", " +
                text_of(axes + 1) + "]");
    require(!size || !c.differ(theta[0], size->front()), "operand theta has shape " + c.text(theta) +
                                                             "; operand size asks for " +
                                                             c.text(size ? size->front() : 0) + " grids");
  }
  std::vector<tn_dim> out{has_theta ? c.dims(0)[0] : c.data_dependent(0, 0)};
  for (uint32_t i = 0; i < axes; ++i) {
    out.push_back(size ? (*size)[i + 2] : c.data_dependent(0, i + 1));
    if (const auto d = size ? c.number(out.back()) : std::nullopt)
      require(*d >= 0, "operand size is " + c.text(*size) + "; expected sizes of 0 or more");
  }
  out.push_back(axes);
  c.set(0, dtype, out);
}

}  // namespace

void add_grid_sample(Plugin& p) {
  define(p, "GridSample").infer<infer_grid_sample>().upgrade<upgrade_grid_sample>();
  reference::reference_kernel(p, "GridSample").plan<reference::plan_sample>();
  define(p, "AffineGrid").infer<infer_affine_grid>();
  reference::reference_kernel(p, "AffineGrid").plan<reference::plan_affine>();
}

}  // namespace tenon::ops
