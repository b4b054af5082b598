// DFT and STFT. Complex numbers are a last axis of two; real ones have one there. Everything is computed in
// float64 and rounded once.
//
// A signal shorter than the transform is padded with zeros, a longer one cut. onesided and inverse together
// read the lower half of a spectrum, n/2 + 1 bins, as that of a real signal: the imaginary parts of the bins
// that are their own mirror images are not read.
#include "families.hpp"
#include "signal/fft.hpp"
#include "signal/scalar_operand.hpp"
#include "support/kernel.hpp"
#include "support/own_attributes.hpp"

namespace tenon::reference {
namespace {

constexpr int64_t largest_length = int64_t{1} << 32;

int64_t lanes_of(Span<const int64_t> dims, const char* op, const char* operand) {
  const int64_t lanes = dims.empty() ? 0 : dims[dims.size() - 1];
  if (lanes != 1 && lanes != 2)
    fail(format("%s: operand %s has shape %s; its last dimension must be 1 (real) or 2 (complex)", op,
                operand, dims_text(dims).c_str()));
  return lanes;
}
void check_length(int64_t n, const char* op, const char* name) {
  if (n < 1 || n > largest_length)
    fail(format("%s: %s is %lld; expected 1 to %lld", op, name, static_cast<long long>(n),
                static_cast<long long>(largest_length)));
}

/// One transform of every line along an axis.
struct Lines {
  int64_t outer = 1, inner = 1, in_size = 0, out_size = 0, in_lanes = 1, out_lanes = 2, n = 0;
  bool inverse = false, onesided = false;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
  int64_t count() const noexcept { return outer * inner; }
};

/// The sizes for an operand of these dims. length < 0: as the operand says.
Lines lines_of(Span<const int64_t> dims, tn_dtype dtype, int64_t axis, int64_t length, bool inverse,
               bool onesided) {
  const auto rank = static_cast<int64_t>(dims.size());
  Lines t;
  t.in_lanes = lanes_of(dims, "DFT", "input");
  axis = axis_of(axis, rank, "DFT: operand axis");
  if (axis == rank - 1) fail("DFT: operand axis names the last axis, which holds real and imaginary parts");
  t.inverse = inverse;
  t.onesided = onesided;
  if (onesided && inverse != (t.in_lanes == 2))
    fail(inverse ? "DFT: operand input is real; onesided with inverse reads a complex spectrum"
                 : "DFT: operand input is complex; onesided expects a real signal");
  for (int64_t i = 0; i < axis; ++i) t.outer *= dims[static_cast<size_t>(i)];
  for (int64_t i = axis + 1; i < rank - 1; ++i) t.inner *= dims[static_cast<size_t>(i)];
  t.in_size = dims[static_cast<size_t>(axis)];
  t.n = length >= 0 ? length : onesided && inverse ? 2 * (t.in_size - 1) : t.in_size;
  check_length(t.n, "DFT", length >= 0 ? "operand dft_length" : "the length of the signal");
  t.out_size = onesided && !inverse ? t.n / 2 + 1 : t.n;
  t.out_lanes = onesided && inverse ? 1 : 2;
  t.load = loader<double>(dtype);
  t.store = storer<double>(dtype);
  return t;
}

void transform(const Lines& t, const Fft& fft, const void* from, void* to, Range range, Complex* x) noexcept {
  Complex* scratch = x + t.n;
  const bool half = t.inverse && t.onesided;
  const int64_t filled = std::min(t.in_size, half ? t.n / 2 + 1 : t.n);
  double piece[block];
  for (int64_t line = range.begin; line < range.end; ++line) {
    const int64_t o = line / t.inner, i = line % t.inner;
    std::fill(x, x + t.n, Complex());
    for (int64_t lane = 0; lane < t.in_lanes; ++lane)
      for (int64_t k = 0; k < filled; k += block) {
        const int64_t count = std::min(block, filled - k);
        t.load(from, ((o * t.in_size + k) * t.inner + i) * t.in_lanes + lane, t.inner * t.in_lanes, count,
               piece);
        for (int64_t q = 0; q < count; ++q) lane == 0 ? x[k + q].real(piece[q]) : x[k + q].imag(piece[q]);
      }
    if (half) {
      x[0].imag(0);
      if (t.n % 2 == 0) x[t.n / 2].imag(0);
      for (int64_t k = 1; 2 * k < t.n; ++k) x[t.n - k] = std::conj(x[k]);
    }
    if (t.inverse)
      fft.inverse(x, scratch);
    else
      fft.forward(x, scratch);
    for (int64_t k = 0; k < t.out_size; ++k) {
      const double parts[2] = {x[k].real(), x[k].imag()};
      t.store(parts, t.out_lanes, to, ((o * t.out_size + k) * t.inner + i) * t.out_lanes);
    }
  }
}

struct DftState : Base {
  Lines lines;
  std::optional<Fft> fft;
};
int dft_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<DftState>(a);
  transform(s.lines, *s.fft, a->inputs[0], a->outputs[0], tile_range(s.lines.count(), s.tiles, tile),
            workspace<Complex>(a, worker));
  return run_ok;
}
int64_t constant_integer(const PlanView& v, uint32_t i, int64_t otherwise) {
  return v.has_input(i) ? v.input(i).tensor().int_at(0) : otherwise;
}
void plan_dft(const PlanView& v, Planned& p) {
  auto s = make_state<DftState>(v);
  for (uint32_t i = 1; i < 3; ++i)
    if (s->has_in(i) && s->in[i].count != 1)
      fail(format("DFT: operand %s has shape %s; expected a scalar", i == 1 ? "dft_length" : "axis",
                  dims_text(s->in[i].dims).c_str()));
  s->lines = lines_of(s->in[0].dims, s->in[0].dtype, constant_integer(v, 2, -2), constant_integer(v, 1, -1),
                      v.attrs().get_int("inverse", 0) != 0, v.attrs().get_int("onesided", 0) != 0);
  const Lines& t = s->lines;
  if (s->out[0].count != t.count() * t.out_size * t.out_lanes)
    fail("DFT's result was planned with another shape");
  s->fft.emplace(t.n);
  const int64_t lines = t.count(), n = t.n;
  const auto bytes = static_cast<uint64_t>(n + s->fft->scratch()) * sizeof(Complex);
  finish(v, p, dft_fn, std::move(s), lines, lines * n * 8, bytes);
}
/// Length and axis are numbers of the plan; otherwise the record that reads them in the run takes the node.
template <uint32_t first, uint32_t last>
void match_constants(const PlanView& v) {
  for (uint32_t i = first; i <= last; ++i)
    if (v.has_input(i) && !v.input(i).constant()) decline(format("operand %u is no constant", i));
}

int64_t run_scalar(const Run& run, uint32_t i, int64_t otherwise, const char* what) {
  if (!run.has_input(i)) return otherwise;
  const TensorView t = run.input(i);
  if (t.count() != 1) fail(format("%s has shape %s; expected a scalar", what, dims_text(t.dims()).c_str()));
  return t.int_at(0);
}
struct RunState {
  bool inverse = false, onesided = false;
};
void dft_run(Run& run, const tn_kernel_args* a) {
  const auto& s = state<RunState>(a);
  const TensorView x = run.input(0);
  const int64_t axis = run_scalar(run, 2, -2, "DFT: operand axis"),
                length = run_scalar(run, 1, -1, "DFT: operand dft_length");
  if (run.has_input(1)) check_length(length, "DFT", "operand dft_length");
  const Lines t = lines_of(x.dims(), x.dtype(), axis, length, s.inverse, s.onesided);
  Dims dims = x.dims().copy();
  dims[static_cast<size_t>(axis_of(axis, static_cast<int64_t>(dims.size())))] = t.out_size;
  dims.back() = t.out_lanes;
  void* y = run.output(0, x.dtype(), dims);
  const Fft fft(t.n);
  std::vector<Complex> space(static_cast<size_t>(t.n + fft.scratch()));
  transform(t, fft, x.raw().data, y, {0, t.count()}, space.data());
}
void plan_run(const PlanView& v, Planned& p, tn_kernel_fn fn, int64_t onesided) {
  auto s = std::make_unique<RunState>();
  s->inverse = v.attrs().get_int("inverse", 0) != 0;
  s->onesided = v.attrs().get_int("onesided", onesided) != 0;
  p.set(fn, std::move(s));
}
void plan_dft_run(const PlanView& v, Planned& p) { plan_run(v, p, dynamic_kernel<dft_run>, 0); }

// ---- STFT: frames of the signal, each times the window, transformed.

struct Frames {
  int64_t batch = 0, signal = 0, frames = 0, bins = 0, n = 0, lanes = 1, window_lanes = 0;
  Load<double> load = nullptr, load_window = nullptr;
  Store<double> store = nullptr;
};
Frames frames_of(Span<const int64_t> x, tn_dtype dtype, int64_t n, bool onesided) {
  if (x.size() != 2 && x.size() != 3)
    fail("STFT: operand signal has shape " + dims_text(x) +
         "; expected [batch, length] or [batch, length, 1 or 2]");
  Frames t;
  if (x.size() == 3) t.lanes = lanes_of(x, "STFT", "signal");
  if (onesided && t.lanes == 2) fail("STFT: operand signal is complex; onesided expects a real signal");
  t.batch = x[0];
  t.signal = x[1];
  t.n = n;
  check_length(n, "STFT", "the length of a frame");
  if (n > t.signal)
    fail(format("STFT: a frame has %lld samples; operand signal %s has fewer", static_cast<long long>(n),
                dims_text(x).c_str()));
  t.bins = onesided ? n / 2 + 1 : n;
  t.load = loader<double>(dtype);
  t.store = storer<double>(dtype);
  return t;
}
void transform_frames(const Frames& t, const Fft& fft, int64_t step, const void* from, const double* window,
                      void* to, Range range, Complex* x) noexcept {
  Complex* scratch = x + t.n;
  double piece[block];
  for (int64_t frame = range.begin; frame < range.end; ++frame) {
    const int64_t first = frame / t.frames * t.signal + frame % t.frames * step;
    std::fill(x, x + t.n, Complex());
    for (int64_t lane = 0; lane < t.lanes; ++lane)
      for (int64_t k = 0; k < t.n; k += block) {
        const int64_t count = std::min(block, t.n - k);
        t.load(from, (first + k) * t.lanes + lane, t.lanes, count, piece);
        for (int64_t q = 0; q < count; ++q) {
          const double value = window ? piece[q] * window[k + q] : piece[q];
          lane == 0 ? x[k + q].real(value) : x[k + q].imag(value);
        }
      }
    fft.forward(x, scratch);
    for (int64_t k = 0; k < t.bins; ++k) {
      const double parts[2] = {x[k].real(), x[k].imag()};
      t.store(parts, 2, to, (frame * t.bins + k) * 2);
    }
  }
}

struct StftState : Base {
  Frames frames;
  std::optional<Fft> fft;
};
int stft_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<StftState>(a);
  const Frames& t = s.frames;
  const int64_t step = integer_at(a->inputs[1], s.in[1].dtype, 0);
  if (step < 1 || (t.frames > 1 && step > (t.signal - t.n) / (t.frames - 1)))
    return run_fail(a, run_bad_operand,
                    "STFT: operand frame_step does not give the frames that were planned");
  if (s.has_in(3) && integer_at(a->inputs[3], s.in[3].dtype, 0) != t.n)
    return run_fail(a, run_bad_operand,
                    "STFT: operand frame_length is not the length of operand window; make them equal");
  auto* x = workspace<Complex>(a, worker);
  double* window = nullptr;
  if (s.has_in(2)) {
    window = reinterpret_cast<double*>(x + t.n + s.fft->scratch());
    loader<double>(s.in[2].dtype)(a->inputs[2], 0, 1, t.n, window);
  }
  transform_frames(t, *s.fft, step, a->inputs[0], window, a->outputs[0],
                   tile_range(t.batch * t.frames, s.tiles, tile), x);
  return run_ok;
}
void plan_stft(const PlanView& v, Planned& p) {
  auto s = make_state<StftState>(v);
  if (s->in[1].count != 1 || (s->has_in(3) && s->in[3].count != 1))
    fail("STFT: operands frame_step and frame_length must be scalars");
  if (s->has_in(2) && s->in[2].rank() != 1)
    fail("STFT: operand window has shape " + dims_text(s->in[2].dims) + "; expected a vector");
  const int64_t signal = s->in[0].rank() >= 2 ? s->in[0].dims[1] : 0;
  const int64_t n = s->has_in(2) ? s->in[2].count : constant_integer(v, 3, signal);
  s->frames = frames_of(s->in[0].dims, s->in[0].dtype, n, v.attrs().get_int("onesided", 1) != 0);
  Frames& t = s->frames;
  const auto& y = s->out[0].dims;
  if (y.size() != 4 || y[0] != t.batch || y[2] != t.bins || y[3] != 2)
    fail("STFT's result was planned with another shape");
  t.frames = y[1];
  s->fft.emplace(n);
  const int64_t lines = t.batch * t.frames;
  const auto bytes = static_cast<uint64_t>(n + s->fft->scratch()) * sizeof(Complex) +
                     static_cast<uint64_t>(n) * sizeof(double);
  finish(v, p, stft_fn, std::move(s), lines, lines * n * 8, bytes);
}
/// The frame's length is the window's, the signal's, or a constant.
void match_stft(const PlanView& v) {
  if (!v.has_input(2)) match_constants<3, 3>(v);
}
void stft_run(Run& run, const tn_kernel_args* a) {
  const auto& s = state<RunState>(a);
  const TensorView x = run.input(0);
  const int64_t step = run_scalar(run, 1, 0, "STFT: operand frame_step");
  if (step < 1)
    fail(format("STFT: operand frame_step is %lld; expected 1 or more", static_cast<long long>(step)));
  std::vector<double> window;
  if (run.has_input(2)) {
    const TensorView w = run.input(2);
    if (w.rank() != 1) fail("STFT: operand window has shape " + dims_text(w.dims()) + "; expected a vector");
    window.resize(static_cast<size_t>(w.count()));
    loader<double>(w.dtype())(w.raw().data, 0, 1, w.count(), window.data());
  }
  const int64_t whole = x.rank() >= 2 ? x.dims()[1] : 0;
  const int64_t n = run_scalar(run, 3, window.empty() ? whole : static_cast<int64_t>(window.size()),
                               "STFT: operand frame_length");
  if (!window.empty() && n != static_cast<int64_t>(window.size()))
    fail("STFT: operand frame_length is not the length of operand window; make them equal");
  Frames t = frames_of(x.dims(), x.dtype(), n, s.onesided);
  t.frames = (t.signal - n) / step + 1;
  void* y = run.output(0, x.dtype(), Dims{t.batch, t.frames, t.bins, 2});
  const Fft fft(n);
  std::vector<Complex> space(static_cast<size_t>(n + fft.scratch()));
  transform_frames(t, fft, step, x.raw().data, window.empty() ? nullptr : window.data(), y,
                   {0, t.batch * t.frames}, space.data());
}
void plan_stft_run(const PlanView& v, Planned& p) { plan_run(v, p, dynamic_kernel<stft_run>, 1); }

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void check_lanes(Infer& c, uint32_t i, const char* name, tn_dim lanes) {
  if (const auto v = c.number(lanes))
    require(*v == 1 || *v == 2, std::string("operand ") + name + " has shape " + c.text(c.dims(i)) +
                                    "; expected a last dimension of 1 (real) or 2 (complex)");
}

void infer_dft(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "input", 2)) return c.set_unranked(0, dtype);
  const bool inverse = c.attrs().get_int("inverse", 0) != 0, onesided = c.attrs().get_int("onesided", 0) != 0;
  auto out = c.dims(0);
  check_lanes(c, 0, "input", out.back());
  if (const auto lanes = c.number(out.back()); lanes && onesided)
    require(inverse == (*lanes == 2),
            inverse ? "operand input is real; onesided with inverse reads a complex spectrum"
                    : "operand input is complex; onesided expects a real signal");
  out.back() = onesided && inverse ? 1 : 2;
  int64_t axis = -2;
  if (c.has_input(2)) {
    const auto said = c.integers(2);
    if (!said || said->size() != 1) {
      for (uint32_t i = 0; i + 1 < out.size(); ++i) out[i] = c.data_dependent(0, i);
      return c.set(0, dtype, out);
    }
    axis = said->front();
  }
  axis = Infer::axis(axis, c.rank(0), "operand axis");
  require(axis != c.rank(0) - 1, "operand axis names the last axis, which holds real and imaginary parts");
  tn_dim& size = out[static_cast<size_t>(axis)];
  std::optional<tn_dim> n;
  if (c.has_input(1))
    n = scalar_operand(c, 1, "dft_length", 1);
  else
    n = onesided && inverse ? c.mul(c.sub(size, 1), 2) : size;
  if (n)
    if (const auto v = c.number(*n))
      require(*v >= 1, "axis " + text_of(axis) + " of operand input, whose shape is " + c.text(c.dims(0)) +
                           ", is too short to be transformed");
  if (!n)
    size = c.data_dependent(0, static_cast<uint32_t>(axis));
  else
    size = onesided && !inverse ? c.add(c.floordiv(*n, 2), 1) : *n;
  c.set(0, dtype, out);
}

/// Opset 17 named the axis by an attribute, counted from the batch.
void upgrade_dft(Editor& e, const Node& n) {
  const tn_node id = n.id();
  if (n.version() < 20 && n.input(2) == TN_NONE) {
    const int64_t axis = n.attrs().get_int("axis", 1);
    drop_attr(e, n, "axis");
    Rewrite w(e, e.graph().node(id));
    OwnAttributes own(e.graph().node(id), {"inverse", "onesided"});
    w.become(0, w.make("DFT", {w.input(0), w.input(1), w.one_int(axis)}, own.values));
    return w.erase();
  }
  upgrade_version_only(e, e.graph().node(id));
}

void infer_stft(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (c.has_input(2)) ranked(c, 2, "window", 1, 1);
  // Exporters leave the last axis of a real signal out.
  if (!ranked(c, 0, "signal", 2, 3)) return c.set_unranked(0, dtype);
  const auto x = c.dims(0);
  const tn_dim lanes = x.size() == 3 ? x[2] : 1;
  check_lanes(c, 0, "signal", lanes);
  const bool onesided = c.attrs().get_int("onesided", 1) != 0;
  require(!(onesided && c.number(lanes) == 2), "operand signal is complex; onesided expects a real signal");
  const auto step = scalar_operand(c, 1, "frame_step", 1),
             said = c.has_input(3) ? scalar_operand(c, 3, "frame_length", 1) : std::nullopt;
  std::optional<tn_dim> n = said;
  if (c.has_input(2) && c.has_rank(2)) {
    n = c.dims(2)[0];
    require(!said || !c.differ(*said, *n), "operand frame_length is " + c.text(said.value_or(0)) +
                                               "; operand window has " + c.text(*n) + " elements");
  } else if (!c.has_input(2) && !c.has_input(3)) {
    n = x[1];
  }
  std::vector<tn_dim> out{x[0], 0, 0, 2};
  const auto length = n ? c.number(*n) : std::nullopt, signal = c.number(x[1]);
  require(!length || *length >= 1, "a frame must have one sample or more");
  require(!(length && signal && *length > *signal),
          "a frame has " + text_of(length.value_or(0)) + " samples; operand signal has shape " + c.text(x));
  out[1] = n && step ? c.add(c.floordiv(c.sub(x[1], *n), *step), 1) : c.data_dependent(0, 1);
  out[2] = !n ? c.data_dependent(0, 2) : onesided ? c.add(c.floordiv(*n, 2), 1) : *n;
  c.set(0, dtype, out);
}

}  // namespace

void add_fourier(Plugin& p) {
  using namespace reference;
  constexpr uint32_t dynamic = TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT;
  define(p, "DFT").infer<infer_dft>().upgrade<upgrade_dft>();
  reference_kernel(p, "DFT").match<match_constants<1, 2>>().plan<plan_dft>();
  reference_kernel(p, "DFT", "_run").flags(dynamic).rank(-1).plan<plan_dft_run>();
  define(p, "STFT").infer<infer_stft>();
  reference_kernel(p, "STFT").match<match_stft>().plan<plan_stft>();
  reference_kernel(p, "STFT", "_run").flags(dynamic).rank(-1).plan<plan_stft_run>();
}

}  // namespace tenon::ops
