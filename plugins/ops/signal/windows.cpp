// HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix.
//
// A window is a0 - a1 cos t + a2 cos 2t with t = 2 pi k / size, or size - 1 where it is not periodic. A
// symmetric window of one element is 1: the formula divides by 0 there.
#include "families.hpp"
#include "signal/scalar_operand.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct WindowState : Base {
  double a0 = 0, a1 = 0, a2 = 0, period = 1;
  Store<double> store = nullptr;
};
int window_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<WindowState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  for (int64_t k = r.begin; k < r.end; ++k) {
    const double t = 6.283185307179586476925287 * static_cast<double>(k) / s.period;
    const double y = s.period > 0 ? s.a0 - s.a1 * std::cos(t) + s.a2 * std::cos(2 * t) : 1;
    s.store(&y, 1, a->outputs[0], k);
  }
  return run_ok;
}
void plan_window(const PlanView& v, Planned& p) {
  auto s = make_state<WindowState>(v);
  const auto op = v.op_name();
  if (op == "HannWindow") {
    s->a0 = s->a1 = 0.5;
  } else if (op == "HammingWindow") {
    s->a0 = 25.0 / 46.0;
    s->a1 = 1 - s->a0;
  } else {
    s->a0 = 0.42;
    s->a1 = 0.5;
    s->a2 = 0.08;
  }
  const int64_t n = s->out[0].count;
  s->period = static_cast<double>(v.attrs().get_int("periodic", 1) != 0 ? n : n - 1);
  s->store = storer<double>(s->out[0].dtype);
  finish(v, p, window_fn, std::move(s), n, n * 32);
}

// Column i of the matrix is the triangle over bins [edge i, edge i+1, edge i+2]; edges are evenly spaced in
// mel.
struct MelState : Base {
  Store<double> store = nullptr;
};
int mel_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<MelState>(a);
  const int64_t bins = s.out[0].dims[0], columns = s.out[0].dims[1];
  const int64_t length = integer_at(a->inputs[1], s.in[1].dtype, 0),
                rate = integer_at(a->inputs[2], s.in[2].dtype, 0);
  const double lower = real_at(a->inputs[3], s.in[3].dtype, 0),
               upper = real_at(a->inputs[4], s.in[4].dtype, 0);
  if (integer_at(a->inputs[0], s.in[0].dtype, 0) != columns || length < 0 || length / 2 + 1 != bins)
    return run_fail(a, run_bad_operand,
                    "MelWeightMatrix: operands num_mel_bins and dft_length are not those of the plan");
  if (rate < 1) return run_fail(a, run_bad_operand, "MelWeightMatrix: operand sample_rate is below 1");
  if (!(lower >= 0) || !std::isfinite(lower))
    return run_fail(
        a, run_bad_operand,
        "MelWeightMatrix: operand lower_edge_hertz is no frequency; expected a finite number of 0 or more");
  if (!(upper >= lower) || !std::isfinite(upper))
    return run_fail(a, run_bad_operand,
                    "MelWeightMatrix: operand upper_edge_hertz is no frequency of lower_edge_hertz or more");
  const double zero = 0;
  for (int64_t i = 0; i < bins * columns; ++i) s.store(&zero, 1, a->outputs[0], i);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel(lower), step = (mel(upper) - low) / static_cast<double>(columns + 2);
  const auto edge = [&](int64_t i) {
    const double hertz = 700 * (std::pow(10.0, (low + static_cast<double>(i) * step) / 2595) - 1);
    return std::floor((static_cast<double>(length) + 1) * hertz / static_cast<double>(rate));
  };
  // Edges rise; past the last centre a triangle may end one bin behind the spectrum.
  if (columns > 0 &&
      (edge(columns) >= static_cast<double>(bins) || edge(columns + 1) > static_cast<double>(bins)))
    return run_fail(
        a, run_bad_operand,
        "MelWeightMatrix: operand upper_edge_hertz lies beyond the spectrum; expected at most half of "
        "sample_rate");
  for (int64_t i = 0; i < columns; ++i) {
    const auto left = static_cast<int64_t>(edge(i)), centre = static_cast<int64_t>(edge(i + 1)),
               right = static_cast<int64_t>(edge(i + 2));
    const auto put = [&](int64_t bin, double y) { s.store(&y, 1, a->outputs[0], bin * columns + i); };
    for (int64_t k = left; k < centre; ++k)
      put(k, static_cast<double>(k - left) / static_cast<double>(centre - left));
    put(centre, 1);
    for (int64_t k = centre + 1; k < right; ++k)
      put(k, static_cast<double>(right - k) / static_cast<double>(right - centre));
  }
  return run_ok;
}
void plan_mel(const PlanView& v, Planned& p) {
  auto s = make_state<MelState>(v);
  for (const Shape& operand : s->in)
    if (operand.count != 1)
      fail("MelWeightMatrix: an operand has shape " + dims_text(operand.dims) + "; expected scalars");
  if (s->out[0].rank() != 2) fail("MelWeightMatrix's result was planned with another rank");
  s->store = storer<double>(s->out[0].dtype);
  finish(v, p, mel_fn, std::move(s), 1, 1);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

tn_dtype output_type(Infer& c) {
  const tn_dtype dtype = dtype_of_onnx(c.attrs().get_int("output_datatype", 1), "output_datatype");
  require(visit_number(dtype, [](auto) {}) && dtype != TN_BOOL,
          std::string("attribute 'output_datatype' is ") + dtype_name(dtype) + "; expected a number type");
  return dtype;
}

void infer_window(Infer& c) {
  const auto n = scalar_operand(c, 0, "size", 0);
  const tn_dim dim = n ? *n : c.data_dependent(0, 0);
  c.set(0, output_type(c), {&dim, 1});
}

void infer_mel(Infer& c) {
  const auto columns = scalar_operand(c, 0, "num_mel_bins", 0),
             length = scalar_operand(c, 1, "dft_length", 0);
  const std::vector<tn_dim> out{length ? c.add(c.floordiv(*length, 2), 1) : c.data_dependent(0, 0),
                                columns ? *columns : c.data_dependent(0, 1)};
  c.set(0, output_type(c), out);
}

}  // namespace

void add_window_function(Plugin& p) {
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    define(p, op).infer<infer_window>();
    reference::reference_kernel(p, op).plan<reference::plan_window>();
  }
  define(p, "MelWeightMatrix").infer<infer_mel>();
  reference::reference_kernel(p, "MelWeightMatrix").plan<reference::plan_mel>();
}

}  // namespace tenon::ops
