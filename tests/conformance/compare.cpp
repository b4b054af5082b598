#include "compare.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"

namespace tenon::conformance {

namespace {

// A float of up to 16 bits, decoded by its definition. The table is this file's own, so that a fault in the
// conversions of the program does not hide itself.
struct SmallFloat {
  tn_dtype dtype;
  int exponent_bits, mantissa_bits, bias;
  enum Specials { ieee, fn, fnuz, none } specials;  // which codes are infinite or NaN
  bool is_signed;
};
constexpr SmallFloat small_floats[] = {
    {TN_FLOAT16, 5, 10, 15, SmallFloat::ieee, true},
    {TN_BFLOAT16, 8, 7, 127, SmallFloat::ieee, true},
    {TN_FLOAT8_E4M3FN, 4, 3, 7, SmallFloat::fn, true},
    {TN_FLOAT8_E4M3FNUZ, 4, 3, 8, SmallFloat::fnuz, true},
    {TN_FLOAT8_E5M2, 5, 2, 15, SmallFloat::ieee, true},
    {TN_FLOAT8_E5M2FNUZ, 5, 2, 16, SmallFloat::fnuz, true},
    {TN_FLOAT8_E8M0, 8, 0, 127, SmallFloat::fn, false},
    {TN_FLOAT4_E2M1, 2, 1, 1, SmallFloat::none, true},
};

double decode(const SmallFloat& format, uint32_t code) {
  const uint32_t mantissa = code & ((1u << format.mantissa_bits) - 1);
  const uint32_t exponent = (code >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1);
  const bool negative = format.is_signed && (code >> (format.mantissa_bits + format.exponent_bits)) != 0;
  const uint32_t top = (1u << format.exponent_bits) - 1;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  switch (format.specials) {
    case SmallFloat::ieee:
      if (exponent == top && mantissa != 0) return nan;
      if (exponent == top)
        return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
      break;
    case SmallFloat::fn:
      if (exponent == top && mantissa == (1u << format.mantissa_bits) - 1) return nan;
      break;
    case SmallFloat::fnuz:
      if (negative && exponent == 0 && mantissa == 0) return nan;
      break;
    case SmallFloat::none:
      break;
  }
  // E8M0 has neither zero nor subnormals.
  const bool subnormal = exponent == 0 && format.is_signed;
  const double value =
      std::ldexp(mantissa + (subnormal ? 0.0 : std::ldexp(1.0, format.mantissa_bits)),
                 static_cast<int>(subnormal ? 1 : exponent) - format.bias - format.mantissa_bits);
  return negative ? -value : value;
}

template <typename T>
T load(const void* data, uint64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + index * sizeof(T), sizeof(T));
  return value;
}

// The code of element `index` of a type of up to 64 bits, packed low bits first.
uint64_t bits_of(const tn_tensor& tensor, uint64_t index) {
  const uint32_t width = TN_DTYPE_BITS(tensor.dtype);
  switch (width) {
    case 64:
      return load<uint64_t>(tensor.data, index);
    case 32:
      return load<uint32_t>(tensor.data, index);
    case 16:
      return load<uint16_t>(tensor.data, index);
    default: {
      const uint64_t bit = index * width;
      const uint32_t byte = load<uint8_t>(tensor.data, bit / 8);
      return (byte >> (bit % 8)) & ((1u << width) - 1);
    }
  }
}

int64_t signed_of(uint64_t bits, uint32_t width) {
  const uint32_t shift = 64 - width;
  return static_cast<int64_t>(bits << shift) >> shift;
}

std::complex<double> number(const tn_tensor& tensor, uint64_t index) {
  switch (tensor.dtype) {
    case TN_FLOAT32:
      return load<float>(tensor.data, index);
    case TN_FLOAT64:
      return load<double>(tensor.data, index);
    case TN_COMPLEX64:
      return load<std::complex<float>>(tensor.data, index);
    case TN_COMPLEX128:
      return load<std::complex<double>>(tensor.data, index);
    default:
      break;
  }
  for (const SmallFloat& format : small_floats)
    if (format.dtype == tensor.dtype) return decode(format, static_cast<uint32_t>(bits_of(tensor, index)));
  return std::numeric_limits<double>::quiet_NaN();
}

bool close(double got, double expected, const Tolerance& tolerance) {
  if (std::isnan(expected)) return std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return got == expected;
  return std::abs(got - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

bool close(std::complex<double> got, std::complex<double> expected, const Tolerance& tolerance) {
  if (got.imag() == 0 && expected.imag() == 0) return close(got.real(), expected.real(), tolerance);
  if (!std::isfinite(expected.real()) || !std::isfinite(expected.imag()))
    return close(got.real(), expected.real(), tolerance) && close(got.imag(), expected.imag(), tolerance);
  return std::abs(got - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

// Element `index`, as a message shows it.
std::string element_text(const tn_tensor& tensor, uint64_t index) {
  const uint32_t width = TN_DTYPE_BITS(tensor.dtype);
  if (tensor.dtype == TN_STRING) return quoted(view(load<tn_str>(tensor.data, index)).substr(0, 60));
  if (tensor.dtype == TN_BOOL) return bits_of(tensor, index) != 0 ? "true" : "false";
  if (dtype_is_signed(tensor.dtype)) return fmt::format("{}", signed_of(bits_of(tensor, index), width));
  if (dtype_is_integer(tensor.dtype)) return fmt::format("{}", bits_of(tensor, index));
  const std::complex<double> value = number(tensor, index);
  if (TN_DTYPE_CODE(tensor.dtype) == TN_DTYPE_CODE(TN_COMPLEX64))
    return fmt::format("({:.9g}, {:.9g})", value.real(), value.imag());
  return fmt::format("{:.9g}", value.real());
}

std::string index_text(uint64_t index, std::span<const int64_t> dims) {
  std::string text;
  for (size_t axis = dims.size(); axis-- > 0;) {
    const auto dim = static_cast<uint64_t>(dims[axis]);
    text = fmt::format("{}", index % dim) + (text.empty() ? "" : ",") + text;
    index /= dim;
  }
  return "[" + text + "]";
}

std::string tensor_difference(const tn_tensor& got, const tn_tensor& expected, Tolerance tolerance,
                              bool shape_only) {
  const std::span<const int64_t> dims(got.dims, static_cast<size_t>(got.rank));
  const std::span<const int64_t> expected_dims(expected.dims, static_cast<size_t>(expected.rank));
  const std::string type = dtype_name(got.dtype) + dims_text(dims);
  const std::string expected_type = dtype_name(expected.dtype) + dims_text(expected_dims);
  if (type != expected_type) return "type " + type + ", expected " + expected_type;
  uint64_t count = 0, bytes = 0;
  if (!element_count(dims, &count) || !tensor_bytes(got.dtype, dims, &bytes) || got.bytes != bytes)
    return fmt::format("{} bytes for {}", got.bytes, type);
  if (shape_only) return "";

  const bool exact = got.dtype == TN_STRING || got.dtype == TN_BOOL || dtype_is_integer(got.dtype);
  if (got.dtype == TN_BFLOAT16) tolerance.relative = std::max(tolerance.relative, std::ldexp(1.0, -6));
  uint64_t wrong = 0, first = 0;
  double largest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bool equal = false;
    if (got.dtype == TN_STRING)
      equal = view(load<tn_str>(got.data, i)) == view(load<tn_str>(expected.data, i));
    else if (exact)
      equal = bits_of(got, i) == bits_of(expected, i);
    else
      equal = close(number(got, i), number(expected, i), tolerance);
    if (equal) continue;
    if (wrong++ == 0) first = i;
    if (!exact) largest = std::max(largest, std::abs(number(got, i) - number(expected, i)));
  }
  if (wrong == 0) return "";
  std::string text =
      fmt::format("{} of {} elements differ, first {}: {}, expected {}", wrong, count,
                  index_text(first, dims), element_text(got, first), element_text(expected, first));
  if (!exact) text += fmt::format("; by up to {:.3g}", largest);
  return text + " (" + type + ")";
}

std::string_view kind_name(uint32_t kind) {
  return kind == TN_KIND_TENSOR     ? "a tensor"
         : kind == TN_KIND_SEQUENCE ? "a sequence"
                                    : "an unknown kind of value";
}

// What an optional holds, null for nothing; another value itself. ONNX's files do not tell an optional that
// holds something from the thing.
const tn_any* held(const tn_any& any) {
  if (any.kind != TN_KIND_OPTIONAL && any.kind != TN_KIND_OPTIONAL_SEQUENCE) return &any;
  return any.items.empty() ? nullptr : any.items[0];
}

}  // namespace

std::string difference(const tn_any& got, const tn_any& expected, const Tolerance& tolerance,
                       bool shape_only) {
  const tn_any* left = held(got);
  const tn_any* right = held(expected);
  if (left == nullptr && right == nullptr) return "";
  if (left == nullptr || right == nullptr)
    return fmt::format("{}, expected {}", left == nullptr ? "an empty optional" : kind_name(left->kind),
                       right == nullptr ? "an empty optional" : kind_name(right->kind));
  if (left->kind != right->kind)
    return fmt::format("{}, expected {}", kind_name(left->kind), kind_name(right->kind));
  if (left->kind == TN_KIND_TENSOR)
    return tensor_difference(left->tensor(), right->tensor(), tolerance, shape_only);
  if (left->items.size() != right->items.size())
    return fmt::format("a sequence of {}, expected {}", left->items.size(), right->items.size());
  for (size_t i = 0; i < left->items.size(); ++i) {
    const std::string found =
        tensor_difference(left->items[i]->tensor(), right->items[i]->tensor(), tolerance, shape_only);
    if (!found.empty()) return fmt::format("item {}: {}", i, found);
  }
  return "";
}

}  // namespace tenon::conformance
