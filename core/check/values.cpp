#include "core/check/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/text.hpp"

namespace tenon::check {

namespace {

float float_of_half(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 0x3ff;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31)
    return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
}

float float_of_brain(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// A 16-bit float near the value: what is lost in rounding does not matter for random contents.
uint16_t half_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return sign | 0x7e00;
  const float size = std::fabs(value);
  if (size > 65504) return sign | 0x7c00;
  if (size < 0x1p-14f) return sign | static_cast<uint16_t>(size * 0x1p24f);
  return static_cast<uint16_t>(sign | (((bits >> 23) - 112) << 10 & 0x7c00) | ((bits >> 13) & 0x3ff));
}
uint16_t brain_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return std::isnan(value) ? 0x7fc0 : static_cast<uint16_t>(bits >> 16);
}

double drawn(Random& random, Fill style) {
  if (style == Fill::wild) {
    switch (random.below(14)) {
      case 0:
        return std::numeric_limits<double>::quiet_NaN();
      case 1:
        return random.of({1, -1}) * std::numeric_limits<double>::infinity();
      case 2:
        return random.of({1e-40, -1e-40, 1e-45});
      case 3:
        return -0.0;
      default:
        break;
    }
  }
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return random.of({1.0, -1.0, 2.0, 0.5, -0.5, 3.0});
    default:
      return random.uniform(-2, 2);
  }
}

template <class T>
T number(const void* data, uint64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * sizeof(T), sizeof value);
  return value;
}

template <class T>
void fill_integers(Tensor& tensor, Random& random) {
  for (T& x : tensor.as<T>()) x = static_cast<T>(random.between(std::is_signed_v<T> ? -5 : 0, 6));
}

// What arithmetic in another order may change, relative to the numbers that take part.
double tolerance(tn_dtype dtype) {
  switch (dtype) {
    case TN_FLOAT64:
      return 1e-7;  // attributes are float32, and so are constants made of them
    case TN_FLOAT32:
      return 4e-5;
    case TN_FLOAT16:
      return 6e-3;
    case TN_BFLOAT16:
      return 4e-2;
    default:
      return 0;
  }
}

uint64_t count_of(const tn_tensor& tensor) {
  uint64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) count *= static_cast<uint64_t>(tensor.dims[i]);
  return count;
}

std::optional<std::string> structure_difference(const tn_tensor& want, const tn_tensor& got) {
  if (type_of(want) == type_of(got)) return std::nullopt;
  return fmt::format("it is {}, expected {}", type_of(got), type_of(want));
}

}  // namespace

void fill(Tensor& tensor, Random& random, Fill style) {
  switch (tensor.dtype()) {
    case TN_STRING:
      for (uint64_t i = 0; i < tensor.count(); ++i)
        tensor.set_string(i, random.of({"", "a", "B", "ab c", "1.5", "-3", "\xc3\xa9", "a,b", "nan"}));
      return;
    case TN_FLOAT32:
    case TN_COMPLEX64:
      for (float& x : tensor.as<float>()) x = static_cast<float>(drawn(random, style));
      return;
    case TN_FLOAT64:
    case TN_COMPLEX128:
      for (double& x : tensor.as<double>()) x = drawn(random, style);
      return;
    case TN_FLOAT16:
      for (uint16_t& x : tensor.as<uint16_t>()) x = half_of(static_cast<float>(drawn(random, style)));
      return;
    case TN_BFLOAT16:
      for (uint16_t& x : tensor.as<uint16_t>()) x = brain_of(static_cast<float>(drawn(random, style)));
      return;
    case TN_BOOL:
      for (uint8_t& x : tensor.as<uint8_t>()) x = random.chance(0.5) ? 1 : 0;
      return;
    case TN_INT8:
      return fill_integers<int8_t>(tensor, random);
    case TN_INT16:
      return fill_integers<int16_t>(tensor, random);
    case TN_INT32:
      return fill_integers<int32_t>(tensor, random);
    case TN_INT64:
      return fill_integers<int64_t>(tensor, random);
    case TN_UINT8:
      return fill_integers<uint8_t>(tensor, random);
    case TN_UINT16:
      return fill_integers<uint16_t>(tensor, random);
    case TN_UINT32:
      return fill_integers<uint32_t>(tensor, random);
    case TN_UINT64:
      return fill_integers<uint64_t>(tensor, random);
    default:
      // Packed ones and 8-bit floats: any bits but, when tame, those of NaN and infinity.
      for (uint8_t& x : tensor.as<uint8_t>())
        x = static_cast<uint8_t>(random.next() &
                                 (style == Fill::wild || TN_DTYPE_BITS(tensor.dtype()) < 8 ? 0xff : 0x3b));
  }
}

bool number_at(const tn_tensor& tensor, uint64_t i, double* value) {
  const void* const data = tensor.data;
  switch (tensor.dtype) {
    case TN_FLOAT32:
      *value = number<float>(data, i);
      return true;
    case TN_FLOAT64:
      *value = number<double>(data, i);
      return true;
    case TN_FLOAT16:
      *value = float_of_half(number<uint16_t>(data, i));
      return true;
    case TN_BFLOAT16:
      *value = float_of_brain(number<uint16_t>(data, i));
      return true;
    case TN_BOOL:
    case TN_UINT8:
      *value = number<uint8_t>(data, i);
      return true;
    case TN_INT8:
      *value = number<int8_t>(data, i);
      return true;
    case TN_INT16:
      *value = number<int16_t>(data, i);
      return true;
    case TN_UINT16:
      *value = number<uint16_t>(data, i);
      return true;
    case TN_INT32:
      *value = number<int32_t>(data, i);
      return true;
    case TN_UINT32:
      *value = number<uint32_t>(data, i);
      return true;
    case TN_INT64:
      *value = static_cast<double>(number<int64_t>(data, i));
      return true;
    case TN_UINT64:
      *value = static_cast<double>(number<uint64_t>(data, i));
      return true;
    default:
      return false;
  }
}

std::string type_of(const tn_tensor& tensor) {
  std::string text = dtype_name(tensor.dtype) + "[";
  for (int32_t i = 0; i < tensor.rank; ++i) text += (i == 0 ? "" : ",") + std::to_string(tensor.dims[i]);
  return text + "]";
}

std::optional<std::string> bit_difference(const tn_tensor& want, const tn_tensor& got) {
  if (auto other = structure_difference(want, got)) return other;
  const uint64_t count = count_of(want);
  if (want.dtype == TN_STRING) {
    const auto* a = static_cast<const tn_str*>(want.data);
    const auto* b = static_cast<const tn_str*>(got.data);
    for (uint64_t i = 0; i < count; ++i)
      if (view(a[i]) != view(b[i]))
        return fmt::format("element {} is {}, expected {}", i, quoted(view(b[i])), quoted(view(a[i])));
    return std::nullopt;
  }
  if (want.bytes == 0 || std::memcmp(want.data, got.data, want.bytes) == 0) return std::nullopt;
  for (uint64_t i = 0; i < count; ++i) {
    double a = 0, b = 0;
    if (!number_at(want, i, &a) || !number_at(got, i, &b)) break;
    if (std::memcmp(&a, &b, sizeof a) != 0 && !(std::isnan(a) && std::isnan(b)))
      return fmt::format("element {} of {} is {:.9g}, expected {:.9g}", i, type_of(want), b, a);
  }
  // The bits of a NaN are nobody's promise.
  double unused = 0;
  if (count != 0 && tolerance(want.dtype) > 0 && number_at(want, 0, &unused)) return std::nullopt;
  return "other bits in " + type_of(want);
}

std::optional<std::string> difference(const tn_tensor& want, const tn_tensor& got) {
  const double relative = tolerance(want.dtype);
  if (relative == 0 || want.dtype != got.dtype) {
    // What is quantised from floats may fall on either side of a tie.
    const bool may_be_quantised = want.dtype == TN_INT8 || want.dtype == TN_UINT8;
    if (!may_be_quantised || structure_difference(want, got)) return bit_difference(want, got);
  }
  if (auto other = structure_difference(want, got)) return other;
  const uint64_t count = count_of(want);
  double largest = 0;
  for (uint64_t i = 0; i < count; ++i) {
    double a = 0;
    number_at(want, i, &a);
    if (std::isfinite(a)) largest = std::max(largest, std::fabs(a));
  }
  for (uint64_t i = 0; i < count; ++i) {
    double a = 0, b = 0;
    number_at(want, i, &a);
    number_at(got, i, &b);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double allowed =
        relative == 0
            ? 1
            : relative * std::max({std::fabs(a), 0.2 * largest, want.dtype == TN_FLOAT16 ? 1e-2 : 1e-4});
    if (std::fabs(a - b) <= allowed) continue;
    return fmt::format("element {} of {} is {:.9g}, expected {:.9g}; the largest is {:.6g}", i, type_of(want),
                       b, a, largest);
  }
  return std::nullopt;
}

}  // namespace tenon::check
