// Normalisation within rows: LayerNormalization, RMSNormalization, tenon's SkipLayerNorm, SkipRmsNorm and
// MatMulAddLayerNorm.
#include "families.hpp"
#include "support/blocked.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct RowState : Base {
  int64_t rows = 0, size = 0;
  double epsilon = 1e-5;
  bool center = true;
  size_t scale = 1, bias = 2;  // operand numbers
  Walk<2> affine;              // scale and bias over the whole result
  Load<double> load = nullptr, load_scale = nullptr, load_bias = nullptr;
  Store<double> store = nullptr, store_mean = nullptr, store_deviation = nullptr;
  // SkipLayerNorm, SkipRmsNorm and MatMulAddLayerNorm
  Load<double> load_skip = nullptr, load_b = nullptr, load_c = nullptr;
  size_t columns = 2;  // the operand of one number a column
  int64_t depth = 0;
};

/// Normalises x, `size` numbers of row `row`, in place, and writes the statistics and the result.
void normalize_row(const RowState& s, const tn_kernel_args* a, int64_t row, double* x,
                   size_t mean_output) noexcept {
  double mean = 0, square = 0;
  if (s.center) {
    for (int64_t i = 0; i < s.size; ++i) mean += x[i];
    mean /= static_cast<double>(s.size);
  }
  for (int64_t i = 0; i < s.size; ++i) square += (x[i] - mean) * (x[i] - mean);
  const double inverse = 1 / std::sqrt(square / static_cast<double>(s.size) + s.epsilon);
  for (int64_t i = 0; i < s.size; ++i) x[i] = (x[i] - mean) * inverse;
  if (s.store_mean) s.store_mean(&mean, 1, a->outputs[mean_output], row);
  if (s.store_deviation) s.store_deviation(&inverse, 1, a->outputs[mean_output + 1], row);
  double factor[block];
  const int64_t begin = row * s.size;
  const bool has_bias = s.load_bias != nullptr;
  s.affine.rows(begin, begin + s.size, [&](int64_t at, const int64_t(&offset)[2], int64_t n) {
    for (int64_t i = 0; i < n; i += block) {
      const int64_t k = std::min(block, n - i), from = at - begin + i;
      if (s.load_scale) {
        s.load_scale(a->inputs[s.scale], offset[0] + i * s.affine.inner_stride(0), s.affine.inner_stride(0),
                     k, factor);
        for (int64_t q = 0; q < k; ++q) x[from + q] *= factor[q];
      }
      if (has_bias) {
        s.load_bias(a->inputs[s.bias], offset[1] + i * s.affine.inner_stride(1), s.affine.inner_stride(1), k,
                    factor);
        for (int64_t q = 0; q < k; ++q) x[from + q] += factor[q];
      }
    }
  });
  s.store(x, s.size, a->outputs[0], begin);
}

int row_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<RowState>(a);
  const auto r = tile_range(s.rows, s.tiles, tile);
  double* x = workspace<double>(a, worker);
  for (int64_t row = r.begin; row < r.end; ++row) {
    s.load(a->inputs[0], row * s.size, 1, s.size, x);
    if (s.load_skip) {
      double skip[block];
      for (int64_t i = 0; i < s.size; i += block) {
        const int64_t n = std::min(block, s.size - i);
        s.load_skip(a->inputs[1], row * s.size + i, 1, n, skip);
        for (int64_t k = 0; k < n; ++k) x[i + k] += skip[k];
        if (!s.load_c) continue;
        s.load_c(a->inputs[s.columns], i, 1, n, skip);
        for (int64_t k = 0; k < n; ++k) x[i + k] += skip[k];
      }
      if (s.has_out(1)) s.store(x, s.size, a->outputs[1], row * s.size);
    }
    normalize_row(s, a, row, x, 1);
  }
  return run_ok;
}

void affine_of(RowState& s) {
  const Dims one = {1};
  s.affine = broadcast_walk<2>(s.out[0].dims, {s.has_in(s.scale) ? &s.in[s.scale].dims : &one,
                                               s.has_in(s.bias) ? &s.in[s.bias].dims : &one});
  if (s.has_in(s.scale)) s.load_scale = loader<double>(s.in[s.scale].dtype);
  if (s.has_in(s.bias)) s.load_bias = loader<double>(s.in[s.bias].dtype);
  s.store = storer<double>(s.out[0].dtype);
}

void plan_row(const PlanView& v, Planned& p) {
  auto s = make_state<RowState>(v);
  const auto op = v.op_name();
  const auto& x = s->in[0].dims;
  if (x.empty()) fail(std::string(op) + " needs an operand of rank 1 or more");
  const bool skip_rms = op == "tenon::SkipRmsNorm", skip = skip_rms || op == "tenon::SkipLayerNorm";
  const auto axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", -1), s->in[0].rank()));
  s->rows = product(x, 0, axis);
  s->size = product(x, axis, x.size());
  s->epsilon = v.attrs().get_float("epsilon", 1e-5f);
  s->center = op != "RMSNormalization" && !skip_rms;
  if (skip) {
    s->scale = 2;
    s->bias = skip_rms ? SIZE_MAX : 3;
    s->columns = skip_rms ? 3 : 4;
    if (s->in[1].dims != x)
      fail(format("the operands %s and %s of %s must have one shape", dims_text(x).c_str(),
                  dims_text(s->in[1].dims).c_str(), std::string(op).c_str()));
    s->load_skip = loader<double>(s->in[1].dtype);
    if (s->has_in(s->columns)) {
      if (s->in[s->columns].count != s->size)
        fail(std::string(op) + "'s operand C must have one number a column");
      s->load_c = loader<double>(s->in[s->columns].dtype);
    }
  } else if (op == "RMSNormalization") {
    s->bias = SIZE_MAX;
  }
  affine_of(*s);
  s->load = loader<double>(s->in[0].dtype);
  if (op == "LayerNormalization") {
    if (s->has_out(1)) s->store_mean = storer<double>(s->out[1].dtype);
    if (s->has_out(2)) s->store_deviation = storer<double>(s->out[2].dtype);
  }
  if (s->size == 0) s->rows = 0;
  const int64_t units = s->rows, work = s->out[0].count * 4;
  const auto bytes = static_cast<uint64_t>(checked_mul(s->size, sizeof(double)));
  finish(v, p, row_fn, std::move(s), units, work, bytes);
}

// MatMulAddLayerNorm(A, B [K, N], C [N], R?, G, H?) -> LayerNorm over the last axis of A B + C + R; result 1
// is the sum.
int product_row_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<RowState>(a);
  const auto r = tile_range(s.rows, s.tiles, tile, tile_m);
  double* scratch = workspace<double>(a, worker);
  double* sums = scratch + multiply_doubles;
  double other[tile_n];
  for (int64_t i0 = r.begin; i0 < r.end; i0 += tile_m) {
    const int64_t m = std::min(tile_m, r.end - i0);
    for (int64_t j0 = 0; j0 < s.size; j0 += tile_n) {
      const int64_t n = std::min(tile_n, s.size - j0);
      const double* c = multiply<false>(
          m, n, s.depth, scratch,
          [&](int64_t i, int64_t k0, int64_t kc, double* to) {
            s.load(a->inputs[0], (i0 + i) * s.depth + k0, 1, kc, to);
          },
          [&](int64_t k, double* to) { s.load_b(a->inputs[1], k * s.size + j0, 1, n, to); });
      for (int64_t i = 0; i < m; ++i) {
        double* row = sums + i * s.size + j0;
        std::memcpy(row, c + i * tile_n, static_cast<size_t>(n) * sizeof(double));
        if (s.load_c) {
          s.load_c(a->inputs[2], j0, 1, n, other);
          for (int64_t j = 0; j < n; ++j) row[j] += other[j];
        }
        if (s.load_skip) {
          s.load_skip(a->inputs[3], (i0 + i) * s.size + j0, 1, n, other);
          for (int64_t j = 0; j < n; ++j) row[j] += other[j];
        }
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      if (s.has_out(1)) s.store(sums + i * s.size, s.size, a->outputs[1], (i0 + i) * s.size);
      normalize_row(s, a, i0 + i, sums + i * s.size, 1);
    }
  }
  return run_ok;
}
void plan_product_row(const PlanView& v, Planned& p) {
  auto s = make_state<RowState>(v);
  const auto &x = s->in[0].dims, &b = s->in[1].dims;
  if (x.empty() || b.size() != 2 || x.back() != b[0])
    fail(format("MatMulAddLayerNorm of %s and %s: the inner dimensions differ", dims_text(x).c_str(),
                dims_text(b).c_str()));
  s->depth = b[0];
  s->size = b[1];
  s->rows = product(x, 0, x.size() - 1);
  s->scale = 4;
  s->bias = 5;
  s->epsilon = v.attrs().get_float("epsilon", 1e-5f);
  if (s->rows * s->size != s->out[0].count || (s->has_in(2) && s->in[2].count != s->size) ||
      (s->has_in(3) && s->in[3].count != s->out[0].count))
    fail("MatMulAddLayerNorm's bias or residual does not fit its result");
  affine_of(*s);
  s->load = loader<double>(s->in[0].dtype);
  s->load_b = loader<double>(s->in[1].dtype);
  if (s->has_in(2)) s->load_c = loader<double>(s->in[2].dtype);
  if (s->has_in(3)) s->load_skip = loader<double>(s->in[3].dtype);
  if (s->size == 0) s->rows = 0;
  const int64_t units = (s->rows + tile_m - 1) / tile_m,
                work = s->out[0].count * std::max<int64_t>(s->depth / 4, 1);
  const auto bytes = multiply_bytes + static_cast<uint64_t>(checked_mul(
                                          s->size, tile_m * static_cast<int64_t>(sizeof(double))));
  finish(v, p, product_row_fn, std::move(s), units, work, bytes);
}

}  // namespace

void provide_normalize(Plugin& p) {
  reference_kernel(p, "LayerNormalization").plan<plan_row>();
  reference_kernel(p, "RMSNormalization").plan<plan_row>();
  reference_kernel(p, "tenon::SkipLayerNorm").plan<plan_row>();
  reference_kernel(p, "tenon::SkipRmsNorm").plan<plan_row>();
  reference_kernel(p, "tenon::MatMulAddLayerNorm").plan<plan_product_row>();
}

}  // namespace tenon::reference
