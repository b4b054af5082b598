// Resize: each axis has a table of taps, (input index, weight) for every output coordinate; a result element
// is the sum over the product of its axes' taps.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

enum class Mode { nearest, linear, cubic };
enum class Coordinates {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_crop_and_resize
};
enum class Nearest { prefer_floor, prefer_ceil, floor, ceil };

struct ResizeState : Base {
  Mode mode = Mode::nearest;
  Coordinates coordinates = Coordinates::half_pixel;
  Nearest nearest = Nearest::prefer_floor;
  bool antialias = false, exclude_outside = false;
  double cubic = -0.75, extrapolation = 0;
  Dims axes;
  enum { stretch, not_larger, not_smaller } policy = stretch;
  int64_t taps[max_rank] = {},
          table[max_rank] = {};  // room for taps an output coordinate; place of the table
  Load<double> load = nullptr;
  Store<double> store = nullptr;
  int64_t moved_bytes = 0;  // of elements that are no numbers: text, complex ones; nearest only moves them
  alignas(16) unsigned char outside_element[16] = {};
};

struct Tap {
  int64_t index;
  double weight;
};

double coordinate(const ResizeState& s, int64_t x, int64_t in_size, int64_t out_size, double scale,
                  double roi_start, double roi_end) noexcept {
  const auto in_d = static_cast<double>(in_size), at = static_cast<double>(x), resized = scale * in_d;
  switch (s.coordinates) {
    case Coordinates::align_corners:
      return resized == 1 ? 0 : at * (in_d - 1) / (resized - 1);
    case Coordinates::asymmetric:
      return at / scale;
    case Coordinates::tf_crop_and_resize:
      return roi_start * (in_d - 1) + (resized == 1
                                           ? (roi_end - roi_start) * (in_d - 1) / 2
                                           : at * (roi_end - roi_start) * (in_d - 1) / (resized - 1));
    case Coordinates::pytorch_half_pixel:
      return out_size > 1 ? (at + 0.5) / scale - 0.5 : 0;
    case Coordinates::half_pixel_symmetric:
      return in_d / 2 * (1 - static_cast<double>(out_size) / resized) + (at + 0.5) / scale - 0.5;
    default:
      return (at + 0.5) / scale - 0.5;
  }
}
double round_nearest(const ResizeState& s, double x) noexcept {
  switch (s.nearest) {
    case Nearest::floor:
      return std::floor(x);
    case Nearest::ceil:
      return std::ceil(x);
    case Nearest::prefer_ceil:
      return std::floor(x + 0.5);
    default:
      return std::ceil(x - 0.5);
  }
}
double filter(const ResizeState& s, double x) noexcept {
  x = std::fabs(x);
  if (s.mode == Mode::linear) return std::max(0.0, 1 - x);
  const double a = s.cubic;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

/// The taps of one output coordinate, padded with weight 0 to the axis' room. False: outside, extrapolated.
bool fill_taps(const ResizeState& s, int64_t x, int64_t in_size, int64_t out_size, double scale,
               double roi_start, double roi_end, int64_t room, Tap* taps) noexcept {
  const double at = coordinate(s, x, in_size, out_size, scale, roi_start, roi_end);
  const auto last = static_cast<double>(in_size - 1);
  if (s.coordinates == Coordinates::tf_crop_and_resize && (at < 0 || at > last)) return false;
  const auto clamp = [&](double i) { return static_cast<int64_t>(std::min(std::max(i, 0.0), last)); };
  if (s.mode == Mode::nearest) {
    taps[0] = {clamp(round_nearest(s, at)), 1};
    return true;
  }
  const double shrink = s.antialias ? std::min(scale, 1.0) : 1.0,
               support = (s.mode == Mode::linear ? 1 : 2) / shrink;
  const double first = std::floor(at) + std::floor(-support) + 1;
  double sum = 0;
  for (int64_t k = 0; k < room; ++k) {
    const double i = first + static_cast<double>(k);
    double weight = filter(s, (i - at) * shrink);
    if (s.exclude_outside && (i < 0 || i > last)) weight = 0;
    taps[k] = {clamp(i), weight};
    sum += weight;
  }
  if ((s.antialias || s.exclude_outside) && sum != 0)
    for (int64_t k = 0; k < room; ++k) taps[k].weight /= sum;
  return true;
}

/// Scale of every axis, from the operands of this run.
void scales_of(const ResizeState& s, const tn_kernel_args* a, double (&scale)[max_rank]) noexcept {
  std::fill(scale, scale + max_rank, 1.0);
  if (s.has_in(3) && s.in[3].count > 0) {
    double common = 0;
    for (size_t i = 0; i < s.axes.size(); ++i) {
      const auto axis = static_cast<size_t>(s.axes[i]);
      const double ratio =
          static_cast<double>(integer_at(a->inputs[3], s.in[3].dtype, static_cast<int64_t>(i))) /
          static_cast<double>(s.in[0].dims[axis]);
      scale[axis] = ratio;
      common = i == 0                                ? ratio
               : s.policy == ResizeState::not_larger ? std::min(common, ratio)
                                                     : std::max(common, ratio);
    }
    if (s.policy != ResizeState::stretch)
      for (int64_t axis : s.axes) scale[axis] = common;
  } else {
    for (size_t i = 0; i < s.axes.size(); ++i)
      scale[s.axes[i]] = real_at(a->inputs[2], s.in[2].dtype, static_cast<int64_t>(i));
  }
}

int resize_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<ResizeState>(a);
  const int rank = s.in[0].rank();
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  if (r.begin >= r.end) return run_ok;
  double scale[max_rank];
  scales_of(s, a, scale);
  Tap* tables = workspace<Tap>(a, worker);
  for (int i = 0; i < rank; ++i) {
    if (s.taps[i] == 0) continue;
    if (!(scale[i] > 0)) return run_fail(a, run_bad_operand, "Resize: a scale is not positive");
    double start = 0, end = 1;
    if (s.coordinates == Coordinates::tf_crop_and_resize && s.has_in(1)) {
      for (size_t k = 0; k < s.axes.size(); ++k)
        if (s.axes[k] == i) {
          start = real_at(a->inputs[1], s.in[1].dtype, static_cast<int64_t>(k));
          end = real_at(a->inputs[1], s.in[1].dtype, static_cast<int64_t>(k + s.axes.size()));
        }
    }
    for (int64_t x = 0; x < s.out[0].dim(i); ++x) {
      Tap* to = tables + s.table[i] + x * s.taps[i];
      if (!fill_taps(s, x, s.in[0].dim(i), s.out[0].dim(i), scale[i], start, end, s.taps[i], to))
        to[0].index = -1;
    }
  }
  int64_t strides[max_rank], stride = 1, index[max_rank], rest = r.begin;
  for (int i = rank; i-- > 0; stride *= s.in[0].dim(i)) strides[i] = stride;
  for (int i = rank; i-- > 0; rest /= s.out[0].dim(i)) index[i] = rest % s.out[0].dim(i);
  for (int64_t at = r.begin; at < r.end; ++at) {
    // Axes with one tap only move the place; the others are summed over.
    int64_t base = 0;
    const Tap* taps[max_rank];
    int summed[max_rank], count = 0;
    bool outside = false;
    for (int i = 0; i < rank; ++i) {
      if (s.taps[i] == 0) {
        base += index[i] * strides[i];
        continue;
      }
      taps[i] = tables + s.table[i] + index[i] * s.taps[i];
      outside = outside || taps[i][0].index < 0;
      if (s.taps[i] == 1)
        base += taps[i][0].index * strides[i];
      else
        summed[count++] = i;
    }
    double y = 0;
    if (s.moved_bytes) {
      char* to = out<char>(a) + at * s.moved_bytes;
      const auto bytes = static_cast<size_t>(s.moved_bytes);
      if (outside)
        std::memcpy(to, s.outside_element, bytes);
      else
        std::memcpy(to, in<char>(a, 0) + base * s.moved_bytes, bytes);
    } else if (outside) {
      y = s.extrapolation;
    } else if (count == 0) {
      s.load(a->inputs[0], base, 1, 1, &y);
    } else {
      int64_t k[max_rank] = {};
      for (bool more = true; more;) {
        double weight = 1, x;
        int64_t place = base;
        for (int q = 0; q < count; ++q) {
          const Tap& t = taps[summed[q]][k[q]];
          weight *= t.weight;
          place += t.index * strides[summed[q]];
        }
        if (weight != 0) {
          s.load(a->inputs[0], place, 1, 1, &x);
          y += weight * x;
        }
        more = false;
        for (int q = count; q-- > 0 && !more;) {
          if (++k[q] < s.taps[summed[q]])
            more = true;
          else
            k[q] = 0;
        }
      }
    }
    if (!s.moved_bytes) s.store(&y, 1, a->outputs[0], at);
    for (int i = rank; i-- > 0;) {
      if (++index[i] < s.out[0].dim(i)) break;
      index[i] = 0;
    }
  }
  return run_ok;
}

template <class E>
E choice(const PlanView& v, const char* name, const char* otherwise,
         std::initializer_list<std::pair<const char*, E>> known) {
  const auto text = v.attrs().get_string(name, otherwise);
  std::string names;
  for (const auto& k : known) {
    if (text == k.first) return k.second;
    names += (names.empty() ? "" : ", ") + std::string(k.first);
  }
  fail("Resize's " + std::string(name) + " is '" + std::string(text) + "'; expected one of " + names);
}

void plan_resize(const PlanView& v, Planned& p) {
  auto s = make_state<ResizeState>(v);
  const int rank = s->in[0].rank();
  if (s->out[0].rank() != rank) fail("Resize keeps the rank; its result was planned with another one");
  s->mode = choice<Mode>(v, "mode", "nearest",
                         {{"nearest", Mode::nearest}, {"linear", Mode::linear}, {"cubic", Mode::cubic}});
  s->coordinates = choice<Coordinates>(v, "coordinate_transformation_mode", "half_pixel",
                                       {{"half_pixel", Coordinates::half_pixel},
                                        {"half_pixel_symmetric", Coordinates::half_pixel_symmetric},
                                        {"pytorch_half_pixel", Coordinates::pytorch_half_pixel},
                                        {"align_corners", Coordinates::align_corners},
                                        {"asymmetric", Coordinates::asymmetric},
                                        {"tf_crop_and_resize", Coordinates::tf_crop_and_resize}});
  s->nearest = choice<Nearest>(v, "nearest_mode", "round_prefer_floor",
                               {{"round_prefer_floor", Nearest::prefer_floor},
                                {"round_prefer_ceil", Nearest::prefer_ceil},
                                {"floor", Nearest::floor},
                                {"ceil", Nearest::ceil}});
  const auto policy = v.attrs().get_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    fail("Resize's keep_aspect_ratio_policy is '" + std::string(policy) +
         "'; expected stretch, not_larger or not_smaller");
  s->policy = policy == "not_larger"    ? ResizeState::not_larger
              : policy == "not_smaller" ? ResizeState::not_smaller
                                        : ResizeState::stretch;
  s->antialias = v.attrs().get_int("antialias", 0) != 0 && s->mode != Mode::nearest;
  s->exclude_outside = v.attrs().get_int("exclude_outside", 0) != 0;
  s->cubic = v.attrs().get_float("cubic_coeff_a", -0.75);
  s->extrapolation = v.attrs().get_float("extrapolation_value", 0);
  for (int64_t axis : v.attrs().get_ints("axes"))
    s->axes.push_back(axis_of(axis, rank, "an element of Resize's axes"));
  if (s->axes.empty())
    for (int i = 0; i < rank; ++i) s->axes.push_back(i);
  const bool sizes = s->has_in(3) && s->in[3].count > 0, scales = s->has_in(2) && s->in[2].count > 0;
  if (!sizes && !scales) fail("Resize needs scales or sizes");
  if (s->in[sizes ? 3 : 2].count != static_cast<int64_t>(s->axes.size()))
    fail(format("Resize's %s must have %zu elements", sizes ? "sizes" : "scales", s->axes.size()));
  if (s->coordinates == Coordinates::tf_crop_and_resize &&
      (!s->has_in(1) || s->in[1].count != 2 * static_cast<int64_t>(s->axes.size())))
    fail("Resize with tf_crop_and_resize needs roi with two numbers for each axis");
  int64_t room = 0;
  for (int64_t axis : s->axes) {
    const int64_t in_size = s->in[0].dim(static_cast<int>(axis)),
                  out_size = s->out[0].dim(static_cast<int>(axis));
    if (out_size > 0 && in_size == 0) fail("Resize cannot make elements out of none");
    int64_t taps = s->mode == Mode::nearest ? 1 : s->mode == Mode::linear ? 2 : 4;
    // A filter that covers what it shrinks; two more for a scale that was rounded.
    if (s->antialias && out_size > 0 && out_size < in_size) taps = taps * (in_size / out_size + 1) + 2;
    s->taps[axis] = taps;
    s->table[axis] = room;
    room += checked_mul(taps, out_size);
  }
  const tn_dtype dtype = s->in[0].dtype;
  if (dtype == TN_STRING || dtype == TN_COMPLEX64 || dtype == TN_COMPLEX128) {
    if (s->mode != Mode::nearest)
      fail(format("Resize's mode '%s' computes with numbers, not with elements of type %s; expected nearest",
                  std::string(v.attrs().get_string("mode", "nearest")).c_str(), dtype_name(dtype)));
    s->moved_bytes = element_bytes(dtype);
    if (dtype != TN_STRING)  // the real part
      storer<double>(dtype == TN_COMPLEX64 ? TN_FLOAT32 : TN_FLOAT64)(&s->extrapolation, 1,
                                                                      s->outside_element, 0);
  } else {
    s->load = loader<double>(dtype);
    s->store = storer<double>(dtype);
  }
  const int64_t n = s->out[0].count;
  const auto bytes = static_cast<uint64_t>(checked_mul(room, sizeof(Tap)));
  finish(v, p, resize_fn, std::move(s), n, n * 16, bytes);
}

}  // namespace

void provide_resize(Plugin& p) { reference_kernel(p, "Resize").plan<plan_resize>(); }

}  // namespace tenon::reference
