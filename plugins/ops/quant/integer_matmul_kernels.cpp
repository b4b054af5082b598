// MatMulInteger, QLinearMatMul: zero points and scales are one, one a row of A (and Y), or one a column of B,
// of one matrix or of each.
#include "quant/integer_product.hpp"
#include "support/product_shape.hpp"

namespace tenon::reference {
namespace {

/// How an operand with one number, one a line (row or column), or one a line of every matrix is indexed.
struct LineIndex {
  int64_t by_line = 0, by_matrix = 0;
  int64_t at(int64_t matrix, int64_t line) const noexcept { return matrix * by_matrix + line * by_line; }
};
LineIndex line_index(const PlanView& v, const Shape& s, const char* name, int64_t lines, int64_t matrices) {
  if (!s.present || s.count == 1) return {};
  if (s.count == lines) return {1, 0};
  if (s.count == lines * matrices) return {1, lines};
  fail(format("%s's %s has shape %s; expected one number, or one for each of the %lld lines",
              std::string(v.op_name()).c_str(), name, dims_text(s.dims).c_str(),
              static_cast<long long>(lines)));
}

struct MatmulState : Base {
  ProductShape shape;
  bool quantized = false;  // QLinearMatMul: operands a, scale, zero, b, scale, zero, scale, zero
  size_t b = 1, a_zero = 2, b_zero = 3;
  PackedColumns packed;
  LineIndex a_zero_at, b_zero_at, a_scale_at, b_scale_at, y_scale_at, y_zero_at;
  tn_dtype real = TN_FLOAT32;  // of the scales' arithmetic
  Load<double> load_scale = nullptr;
  int64_t row_blocks() const noexcept { return (shape.m + integer_rows - 1) / integer_rows; }
  int64_t column_blocks() const noexcept { return (shape.n + integer_columns - 1) / integer_columns; }
};

/// a_scale * b_scale / y_scale, each step in the scales' type.
float multiplier(const MatmulState& s, double a, double b, double y) noexcept {
  const auto step = [&](double x) -> double {
    if (s.real == TN_FLOAT16) return static_cast<float>(Float16(static_cast<float>(x)));
    if (s.real == TN_BFLOAT16) return static_cast<float>(BFloat16(static_cast<float>(x)));
    return static_cast<float>(x);
  };
  return static_cast<float>(step(step(a * b) / y));
}
double scale_of(const tn_kernel_args* args, const MatmulState& s, size_t i, int64_t index) noexcept {
  double x = 0;
  s.load_scale(args->inputs[i], index, 1, 1, &x);
  return x;
}

void store_quantized(const tn_kernel_args* args, const MatmulState& s, const int32_t* sums, int64_t batch,
                     int64_t i0, int64_t rows, int64_t j0, int64_t columns) noexcept {
  const auto b = static_cast<size_t>(batch);
  const bool with_sign = s.out[0].dtype == TN_INT8;
  const int32_t low = with_sign ? -128 : 0, high = with_sign ? 127 : 255;
  auto* y = out<uint8_t>(args);
  for (int64_t i = 0; i < rows; ++i) {
    const double a_scale = scale_of(args, s, 1, s.a_scale_at.at(s.shape.a_at[b], i0 + i)),
                 y_scale = scale_of(args, s, 6, s.y_scale_at.at(batch, i0 + i));
    const int32_t zero = zero_point(args, s, 7, s.y_zero_at.at(batch, i0 + i));
    const int64_t to = (batch * s.shape.m + i0 + i) * s.shape.n + j0;
    float by = 0;
    for (int64_t j = 0; j < columns; ++j) {
      if (j == 0 || s.b_scale_at.by_line)
        by = multiplier(s, a_scale, scale_of(args, s, 4, s.b_scale_at.at(s.shape.b_at[b], j0 + j)), y_scale);
      y[to + j] = static_cast<uint8_t>(requantized(sums[i * integer_columns + j], by, zero, low, high));
    }
  }
}

int matmul_fn(const tn_kernel_args* args, uint32_t tile, uint32_t worker) {
  const auto& s = state<MatmulState>(args);
  const auto& shape = s.shape;
  const int64_t columns = s.column_blocks(), rows = s.row_blocks();
  const auto r = tile_range(static_cast<int64_t>(shape.a_at.size()) * rows * columns, s.tiles, tile);
  void* scratch = workspace<void>(args, worker);
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const int64_t i0 = unit % rows * integer_rows, j0 = unit / rows % columns * integer_columns,
                  batch = unit / (rows * columns);
    const int64_t m = std::min(integer_rows, shape.m - i0), n = std::min(integer_columns, shape.n - j0);
    const int64_t a_matrix = shape.a_at[static_cast<size_t>(batch)],
                  b_matrix = shape.b_at[static_cast<size_t>(batch)];
    const auto rows_to = [&](int64_t k0, int64_t kc, int16_t* to) {
      for (int64_t i = 0; i < m; ++i)
        load_integers(args->inputs[0], s.in[0].dtype, (a_matrix * shape.m + i0 + i) * shape.k + k0, 1, kc,
                      zero_point(args, s, s.a_zero, s.a_zero_at.at(a_matrix, i0 + i)), to + i * kc);
    };
    const auto columns_to = [&](int64_t k0, int64_t kc, int16_t* to) -> const int16_t* {
      if (s.packed.data) return s.packed.at(b_matrix, j0, k0);
      for (int64_t j = 0; j < n; ++j)
        load_integers(args->inputs[s.b], s.in[s.b].dtype, (b_matrix * shape.k + k0) * shape.n + j0 + j,
                      shape.n, kc, zero_point(args, s, s.b_zero, s.b_zero_at.at(b_matrix, j0 + j)),
                      to + j * kc);
      return to;
    };
    const int32_t* sums = multiply_block(m, n, shape.k, scratch, rows_to, columns_to);
    if (s.quantized) {
      store_quantized(args, s, sums, batch, i0, m, j0, n);
      continue;
    }
    for (int64_t i = 0; i < m; ++i)
      std::memcpy(out<int32_t>(args) + (batch * shape.m + i0 + i) * shape.n + j0, sums + i * integer_columns,
                  static_cast<size_t>(n) * sizeof(int32_t));
  }
  return run_ok;
}

/// Operands of 8-bit floats: the sums of their products in float64, then the same scaling.
int float8_fn(const tn_kernel_args* args, uint32_t tile, uint32_t) {
  const auto& s = state<MatmulState>(args);
  const auto& shape = s.shape;
  const auto r = tile_range(static_cast<int64_t>(shape.a_at.size()) * shape.m, s.tiles, tile);
  const auto load_a = loader<double>(s.in[0].dtype), load_b = loader<double>(s.in[3].dtype),
             load_y = loader<double>(s.in[7].dtype);
  const auto store = storer<double>(s.out[0].dtype);
  const bool to_float = is_float(s.out[0].dtype);
  const double low = s.out[0].dtype == TN_INT8 ? -128 : 0, high = s.out[0].dtype == TN_INT8 ? 127 : 255;
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t batch = row / shape.m, i = row % shape.m;
    const int64_t a_matrix = shape.a_at[static_cast<size_t>(batch)],
                  b_matrix = shape.b_at[static_cast<size_t>(batch)];
    double a_zero = 0, y_zero = 0;
    load_a(args->inputs[2], s.a_zero_at.at(a_matrix, i), 1, 1, &a_zero);
    load_y(args->inputs[7], s.y_zero_at.at(batch, i), 1, 1, &y_zero);
    const double a_scale = scale_of(args, s, 1, s.a_scale_at.at(a_matrix, i)),
                 y_scale = scale_of(args, s, 6, s.y_scale_at.at(batch, i));
    for (int64_t j = 0; j < shape.n; ++j) {
      double b_zero = 0, sum = 0;
      load_b(args->inputs[5], s.b_zero_at.at(b_matrix, j), 1, 1, &b_zero);
      for (int64_t k = 0; k < shape.k; ++k) {
        double x = 0, w = 0;
        load_a(args->inputs[0], (a_matrix * shape.m + i) * shape.k + k, 1, 1, &x);
        load_b(args->inputs[3], (b_matrix * shape.k + k) * shape.n + j, 1, 1, &w);
        sum += (x - a_zero) * (w - b_zero);
      }
      const double by = multiplier(s, a_scale, scale_of(args, s, 4, s.b_scale_at.at(b_matrix, j)), y_scale);
      double y = to_float ? sum * by : std::nearbyint(sum * by) + y_zero;
      if (!to_float) y = y != y ? 0 : std::min(std::max(y, low), high);
      store(&y, 1, args->outputs[0], row * shape.n + j);
    }
  }
  return run_ok;
}

void plan_integer_matmul(const PlanView& v, Planned& p) {
  auto s = make_state<MatmulState>(v);
  s->quantized = v.op_name() == "QLinearMatMul";
  if (s->quantized) {
    s->b = 3;
    s->b_zero = 5;
    s->real = s->in[1].dtype;
    s->load_scale = loader<double>(s->real);
  }
  s->shape = product_shape(s->in[0].dims, s->in[s->b].dims);
  auto& shape = s->shape;
  const auto batches = static_cast<int64_t>(shape.a_at.size());
  if (checked_mul(checked_mul(batches, shape.m), shape.n) != s->out[0].count)
    fail(format("%s of %s and %s does not yield %s", std::string(v.op_name()).c_str(),
                dims_text(s->in[0].dims).c_str(), dims_text(s->in[s->b].dims).c_str(),
                dims_text(s->out[0].dims).c_str()));
  const auto matrices = [](const Shape& x) {
    return x.rank() > 2 ? product(x.dims, 0, x.dims.size() - 2) : int64_t{1};
  };
  const int64_t a_matrices = matrices(s->in[0]), b_matrices = matrices(s->in[s->b]);
  const auto index = [&](size_t i, const char* name, int64_t lines, int64_t of) {
    return s->has_in(i) ? line_index(v, s->in[i], name, lines, of) : LineIndex{};
  };
  s->a_zero_at = index(s->a_zero, "zero point of A", shape.m, a_matrices);
  s->b_zero_at = index(s->b_zero, "zero point of B", shape.n, b_matrices);
  if (s->quantized) {
    s->a_scale_at = index(1, "scale of A", shape.m, a_matrices);
    s->b_scale_at = index(4, "scale of B", shape.n, b_matrices);
    s->y_scale_at = index(6, "scale of Y", shape.m, batches);
    s->y_zero_at = index(7, "zero point of Y", shape.m, batches);
  }
  const int64_t work = checked_mul(s->out[0].count, std::max<int64_t>(shape.k / 16, 1));
  if (is_float(s->in[0].dtype) || is_float(s->in[s->b].dtype) || is_float(s->out[0].dtype)) {
    const int64_t rows = batches * shape.m;
    return finish(v, p, float8_fn, std::move(s), rows, work);
  }
  s->packed = packed_columns(v, static_cast<uint32_t>(s->b), static_cast<uint32_t>(s->b_zero),
                             {b_matrices, shape.n, shape.k, shape.k * shape.n, 1, shape.n});
  // One matrix on the right and one zero point and scale on the left: the batches are rows of one product.
  if (b_matrices == 1 && batches > 1 && a_matrices == batches && !s->a_zero_at.by_line &&
      !s->a_scale_at.by_line && !s->y_scale_at.by_line && !s->y_zero_at.by_line) {
    shape.m *= batches;
    shape.a_at = shape.b_at = {0};
  }
  const int64_t units = static_cast<int64_t>(shape.a_at.size()) * s->row_blocks() * s->column_blocks();
  finish(v, p, matmul_fn, std::move(s), units, work, integer_bytes);
}

}  // namespace

void provide_integer_matmul(Plugin& p) {
  reference_kernel(p, "MatMulInteger").plan<plan_integer_matmul>();
  reference_kernel(p, "QLinearMatMul").plan<plan_integer_matmul>();
}

}  // namespace tenon::reference
