#include "quant/integer_product.hpp"

#include "support/clones.hpp"

namespace tenon::reference {
namespace {

/// The compiler makes multiply-and-add of pairs from the innermost products.
__attribute__((always_inline)) inline void multiply_lane(const int16_t* a, const int16_t* b, int64_t depth,
                                                         int32_t* to) noexcept {
  int32_t s[integer_lane][integer_lane] = {};
  for (int64_t k = 0; k < depth; ++k)
    for (int r = 0; r < integer_lane; ++r)
      for (int c = 0; c < integer_lane; ++c)
        s[r][c] += static_cast<int32_t>(a[r * depth + k]) * static_cast<int32_t>(b[c * depth + k]);
  // Sums of a whole depth may leave int32: they wrap, as the standard's type does.
  for (int r = 0; r < integer_lane; ++r)
    for (int c = 0; c < integer_lane; ++c) {
      int32_t& sum = to[r * integer_columns + c];
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(s[r][c]));
    }
}

template <class T>
void load_as(const T* from, int64_t stride, int64_t count, int32_t zero, int16_t* to,
             int64_t to_stride) noexcept {
  if (stride == 1 && to_stride == 1)
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<int16_t>(from[i] - zero);
  else
    for (int64_t i = 0; i < count; ++i) to[i * to_stride] = static_cast<int16_t>(from[i * stride] - zero);
}

}  // namespace

TENON_CLONES void multiply_integers(const int16_t* a, const int16_t* b, int64_t rows, int64_t columns,
                                    int64_t depth, int32_t* sums) noexcept {
  for (int64_t i = 0; i < rows; i += integer_lane)
    for (int64_t j = 0; j < columns; j += integer_lane)
      multiply_lane(a + i * depth, b + j * depth, depth, sums + i * integer_columns + j);
}

void load_integers(const void* source, tn_dtype dtype, int64_t first, int64_t stride, int64_t count,
                   int32_t zero, int16_t* to, int64_t to_stride) noexcept {
  if (dtype == TN_INT8)
    load_as(static_cast<const int8_t*>(source) + first, stride, count, zero, to, to_stride);
  else
    load_as(static_cast<const uint8_t*>(source) + first, stride, count, zero, to, to_stride);
}

PackedColumns packed_columns(const PlanView& v, uint32_t operand, uint32_t zero, const ColumnLayout& layout) {
  const OperandView w = v.input(operand);
  PackedColumns r;
  r.columns = layout.columns;
  r.depth = layout.depth;
  int32_t zero_value = 0;
  if (!w.constant() || w.count() == 0) return r;
  if (v.has_input(zero)) {
    const OperandView z = v.input(zero);
    if (!z.constant() || z.count() < 1) return r;
    const auto* bytes = z.data<uint8_t>();
    for (int64_t i = 1; i < z.count(); ++i)
      if (bytes[i] != bytes[0]) return r;
    zero_value = z.dtype() == TN_INT8 ? static_cast<int8_t>(bytes[0]) : bytes[0];
  }
  const tn_dtype dtype = w.dtype();
  const auto bytes = static_cast<uint64_t>(
      checked_mul(checked_mul(layout.matrices * in_lanes(layout.columns), layout.depth), sizeof(int16_t)));
  const std::string key = format(
      "tenon.reference.integers/1 %s zero %d in %lld x %lld x %lld by %lld %lld %lld", dtype_name(dtype),
      zero_value, static_cast<long long>(layout.matrices), static_cast<long long>(layout.columns),
      static_cast<long long>(layout.depth), static_cast<long long>(layout.step),
      static_cast<long long>(layout.column), static_cast<long long>(layout.row));
  r.data = v.packed<int16_t>(operand, key, bytes, [&](const TensorView& source, void* to) {
    PackedColumns place = r;
    place.data = static_cast<const int16_t*>(to);
    for (int64_t matrix = 0; matrix < layout.matrices; ++matrix)
      for (int64_t j0 = 0; j0 < layout.columns; j0 += integer_columns)
        for (int64_t k0 = 0; k0 < layout.depth; k0 += integer_depth) {
          const int64_t kc = std::min(integer_depth, layout.depth - k0);
          auto* target = const_cast<int16_t*>(place.at(matrix, j0, k0));  // inside `to`, which was cleared
          for (int64_t j = j0; j < std::min(j0 + integer_columns, layout.columns); ++j)
            load_integers(source.raw().data, dtype,
                          matrix * layout.step + j * layout.column + k0 * layout.row, layout.row, kc,
                          zero_value, target + (j - j0) * kc);
        }
  });
  return r;
}

}  // namespace tenon::reference
