// What every kernel here shares: a plan's shapes, walking strided operands, error codes.
#pragma once
#include "support/elements.hpp"

namespace tenon::reference {

constexpr int max_rank = 16;    // of a tensor
constexpr int max_axes = 32;    // of a walk: Tile and DepthToSpace see each axis as two or three
constexpr int64_t block = 512;  // elements computed at once, on the stack

// What a kernel function returns when a run fails.
enum RunError : int {
  run_ok = 0,
  run_index_out_of_range = 1,  // an index operand points outside its axis
  run_bad_operand = 2,         // an operand read in the run has a value the standard forbids
};

/// An operand or result as planned.
struct Shape {
  bool present = false;
  tn_dtype dtype = TN_DTYPE_NONE;
  Dims dims;
  int64_t count = 0;
  int rank() const noexcept { return static_cast<int>(dims.size()); }
  int64_t dim(int i) const noexcept { return dims[static_cast<size_t>(i < 0 ? i + rank() : i)]; }
};

struct Base {
  std::vector<Shape> in, out;
  uint32_t tiles = 1;
  bool has_in(size_t i) const noexcept { return i < in.size() && in[i].present; }
  bool has_out(size_t i) const noexcept { return i < out.size() && out[i].present; }
};

inline Shape shape_of(const OperandView& o) {
  Shape s;
  s.present = static_cast<bool>(o);
  s.dtype = o.dtype();
  if (!s.present) return s;
  if (o.rank() > max_rank)
    throw Failure(TN_ERR_LIMIT,
                  format("tensors of rank %d are not computed here; the most is %d", o.rank(), max_rank));
  s.dims = o.dims().copy();
  s.count = element_count(s.dims);
  return s;
}
template <class State>
std::unique_ptr<State> make_state(const PlanView& v) {
  auto s = std::make_unique<State>();
  for (uint32_t i = 0; i < v.input_count(); ++i) s->in.push_back(shape_of(OperandView(v.raw().inputs[i])));
  for (uint32_t i = 0; i < v.output_count(); ++i) s->out.push_back(shape_of(OperandView(v.raw().outputs[i])));
  return s;
}
/// Tiles by work (about a nanosecond each unit), at most `units` of them.
template <class State>
void finish(const PlanView& v, Planned& p, tn_kernel_fn fn, std::unique_ptr<State> s, int64_t units,
            int64_t work, uint64_t workspace_bytes = 0) {
  const int64_t wanted = tiles_for(work, 16384, v.threads(), v.threads() > 1 ? 4 : 1);
  s->tiles = static_cast<uint32_t>(std::max<int64_t>(1, std::min(units, wanted)));
  const uint32_t tiles = s->tiles;
  p.set(fn, std::move(s), tiles, workspace_bytes);
}

inline int64_t axis_of(int64_t a, int64_t rank, const char* what = "axis") {
  if (a < -rank || a >= rank)
    fail(format("%s is %lld; for rank %lld it must lie in [%lld, %lld)", what, static_cast<long long>(a),
                static_cast<long long>(rank), static_cast<long long>(-rank), static_cast<long long>(rank)));
  return a < 0 ? a + rank : a;
}
inline int64_t product(const Dims& d, size_t from, size_t to) noexcept {
  int64_t r = 1;
  for (size_t i = from; i < to; ++i) r *= d[i];
  return r;
}

/// Fails the run; the text reaches the user where the host gave a way to say it.
inline int run_fail(const tn_kernel_args* a, int code, const char* text) noexcept {
  if (a->api) a->api->fail(a->run, {text, std::strlen(text)});
  return code;
}
inline int index_fail(const tn_kernel_args* a, const char* what, int64_t index, int64_t size) noexcept {
  char text[200];
  std::snprintf(text, sizeof text, "%s %lld is outside [%lld, %lld); correct the indices", what,
                static_cast<long long>(index), static_cast<long long>(-size), static_cast<long long>(size));
  return run_fail(a, run_index_out_of_range, text);
}

/// N strided operands over one index space in row-major order. Axes are added outermost first.
template <int N>
struct Walk {
  int rank = 0;
  int64_t count = 1;
  int64_t dims[max_axes] = {};
  int64_t strides[max_axes][N] = {};

  void axis(int64_t size, const int64_t (&stride)[N]) noexcept {
    count *= size;
    if (size == 1) return;
    if (rank > 0) {  // merge with the axis outside when every operand runs on through both
      bool run = true;
      for (int k = 0; k < N; ++k) run = run && strides[rank - 1][k] == stride[k] * size;
      if (run) {
        dims[rank - 1] *= size;
        for (int k = 0; k < N; ++k) strides[rank - 1][k] = stride[k];
        return;
      }
    }
    dims[rank] = size;
    for (int k = 0; k < N; ++k) strides[rank][k] = stride[k];
    ++rank;
  }
  int64_t inner_stride(int k) const noexcept { return rank ? strides[rank - 1][k] : 0; }
  /// f(flat index of the first, offset of each operand, n) for runs along the last axis that cover [begin,
  /// end).
  template <class F>
  void rows(int64_t begin, int64_t end, F&& f) const {
    if (begin >= end) return;
    int64_t offset[N] = {}, index[max_axes] = {};
    if (rank == 0) {
      f(begin, offset, end - begin);
      return;
    }
    int64_t rest = begin;
    for (int a = rank - 1; a >= 0; --a) {
      index[a] = rest % dims[a];
      rest /= dims[a];
      for (int k = 0; k < N; ++k) offset[k] += index[a] * strides[a][k];
    }
    const int last = rank - 1;
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(end - at, dims[last] - index[last]);
      f(at, offset, n);
      at += n;
      if (at >= end) break;
      for (int k = 0; k < N; ++k) offset[k] -= index[last] * strides[last][k];
      index[last] = 0;
      for (int a = last - 1; a >= 0; --a) {
        for (int k = 0; k < N; ++k) offset[k] += strides[a][k];
        if (++index[a] < dims[a]) break;
        for (int k = 0; k < N; ++k) offset[k] -= dims[a] * strides[a][k];
        index[a] = 0;
      }
    }
  }
};

/// Stride of each axis of `to` when a dense tensor of dims `from` is broadcast to it: 0 where it repeats.
inline void broadcast_strides(const Dims& from, const Dims& to, int64_t (&strides)[max_rank]) {
  if (from.size() > to.size())
    fail(format("cannot broadcast %s to %s", dims_text(from).c_str(), dims_text(to).c_str()));
  int64_t stride = 1;
  for (size_t i = 0; i < to.size(); ++i) {
    const size_t a = to.size() - 1 - i;
    if (i >= from.size()) {
      strides[a] = 0;
      continue;
    }
    const int64_t d = from[from.size() - 1 - i];
    if (d != to[a] && d != 1)
      fail(format("cannot broadcast %s to %s", dims_text(from).c_str(), dims_text(to).c_str()));
    strides[a] = d == 1 ? 0 : stride;
    stride *= d;
  }
}
template <int N>
Walk<N> broadcast_walk(const Dims& to, const Dims* const (&from)[N]) {
  int64_t s[N][max_rank] = {};
  for (int k = 0; k < N; ++k) broadcast_strides(*from[k], to, s[k]);
  Walk<N> w;
  for (size_t a = 0; a < to.size(); ++a) {
    int64_t stride[N];
    for (int k = 0; k < N; ++k) stride[k] = s[k][a];
    w.axis(to[a], stride);
  }
  return w;
}

/// Bytes of one element as moved about; Failure for types packed below 8 bits.
inline int64_t element_bytes(tn_dtype dtype) {
  const int64_t b = dtype_bytes(dtype);
  if (b == 0)
    throw Failure(TN_ERR_UNSUPPORTED,
                  format("elements of type %s cannot be moved one by one here", dtype_name(dtype)));
  return b;
}
/// Gathers along a walk of one operand: to[i] = from[offset + ...], elements of `bytes` bytes.
void strided_copy(const Walk<1>& walk, int64_t bytes, const void* from, int64_t offset, void* to,
                  int64_t begin, int64_t end) noexcept;

using Register = void (*)(Plugin&);
/// A record with the flags all kernels here share; id "tenon.reference.<op in snake case><variant>/1".
KernelBuilder& reference_kernel(Plugin& p, const char* op, const char* variant = "");

}  // namespace tenon::reference
