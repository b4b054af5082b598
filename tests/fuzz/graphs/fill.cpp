#include "fill.hpp"

#include <tenon/sdk/dtype.hpp>

#include <cmath>
#include <limits>

namespace tenon::fuzz {

namespace {

double tame(Random& random) {
  switch (random.below(8)) {
    case 0:
      return 0;
    case 1:
      return random.of({1.0, -1.0, 2.0, 0.5, -0.5, 3.0});
    default:
      return random.uniform(-2, 2);
  }
}

double wild(Random& random) {
  switch (random.below(12)) {
    case 0:
      return std::numeric_limits<double>::quiet_NaN();
    case 1:
      return random.of({1, -1}) * std::numeric_limits<double>::infinity();
    case 2:
      return random.of({1e-40, -1e-40, 1e-45});
    case 3:
      return random.of({1e30, -1e30, 3e38, 6e4, -6e4, 1e-30});
    case 4:
      return -0.0;
    default:
      return tame(random);
  }
}

double one(Random& random, Fill style) {
  if (style == Fill::positive) return random.uniform(0.25, 2);
  return style == Fill::wild ? wild(random) : tame(random);
}

template <class T>
T integer(Random& random, Fill style) {
  using Limits = std::numeric_limits<T>;
  if (style == Fill::wild && random.chance(0.2))
    return random.of({Limits::min(), Limits::max(), static_cast<T>(Limits::max() / 2)});
  if (style == Fill::positive) return static_cast<T>(random.between(1, 5));
  return static_cast<T>(random.between(Limits::is_signed ? -5 : 0, 6));
}

}  // namespace

void fill(Tensor& tensor, Random& random, Fill style) {
  if (tensor.dtype() == TN_STRING) {
    for (uint64_t i = 0; i < tensor.count(); ++i)
      tensor.set_string(i, random.of({"", "a", "B", "ab c", "1.5", "-3", "\xc3\xa9", "a,b", "nan"}));
    return;
  }
  const bool known = sdk::visit_number(tensor.dtype(), [&](auto kind) {
    using T = decltype(kind);
    auto* out = static_cast<T*>(tensor.data());
    for (uint64_t i = 0; i < tensor.count(); ++i) {
      if constexpr (std::is_same_v<T, bool>)
        out[i] = random.chance(0.5);
      else if constexpr (std::is_integral_v<T>)
        out[i] = integer<T>(random, style);
      else if constexpr (std::is_same_v<T, double>)
        out[i] = one(random, style);
      else
        out[i] = T(static_cast<float>(one(random, style)));
    }
  });
  if (known) return;
  if (tensor.dtype() == TN_COMPLEX64) {
    for (float& x : tensor.as<float>()) x = static_cast<float>(one(random, style));
  } else if (tensor.dtype() == TN_COMPLEX128) {
    for (double& x : tensor.as<double>()) x = one(random, style);
  } else {
    // Packed and 8-bit floats: any bits but, when tame, those of NaN and infinity.
    const uint8_t mask = style == Fill::wild || TN_DTYPE_BITS(tensor.dtype()) < 8 ? 0xff : 0x3b;
    for (uint8_t& x : tensor.as<uint8_t>()) x = static_cast<uint8_t>(random.next() & mask);
  }
}

Tensor random_tensor(tn_dtype dtype, std::vector<int64_t> dims, Random& random, Fill style) {
  Tensor tensor(dtype, std::move(dims));
  fill(tensor, random, style);
  return tensor;
}

Tensor int64_tensor(std::span<const int64_t> values) {
  Tensor tensor(TN_INT64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<int64_t>().begin());
  return tensor;
}

Tensor int64_scalar(int64_t value) {
  Tensor tensor(TN_INT64, {});
  tensor.as<int64_t>()[0] = value;
  return tensor;
}

Tensor float_tensor(tn_dtype dtype, std::vector<int64_t> dims, double value) {
  Tensor tensor(dtype, std::move(dims));
  sdk::visit_number(dtype, [&](auto kind) {
    using T = decltype(kind);
    for (uint64_t i = 0; i < tensor.count(); ++i) {
      if constexpr (std::is_same_v<T, double> || std::is_integral_v<T>)
        static_cast<T*>(tensor.data())[i] = static_cast<T>(value);
      else
        static_cast<T*>(tensor.data())[i] = T(static_cast<float>(value));
    }
  });
  return tensor;
}

bool number_at(const tn_tensor& tensor, uint64_t i, double* value) {
  return sdk::visit_number(tensor.dtype, [&](auto kind) {
    using T = decltype(kind);
    const T x = static_cast<const T*>(tensor.data)[i];
    if constexpr (std::is_arithmetic_v<T>)
      *value = static_cast<double>(x);
    else
      *value = static_cast<double>(static_cast<float>(x));
  });
}

double spacing(tn_dtype dtype) {
  switch (dtype) {
    case TN_FLOAT64:
      return 0x1p-52;
    case TN_FLOAT32:
    case TN_COMPLEX64:
      return 0x1p-23;
    case TN_COMPLEX128:
      return 0x1p-52;
    case TN_FLOAT16:
      return 0x1p-10;
    case TN_BFLOAT16:
      return 0x1p-7;
    default:
      return 0;
  }
}

}  // namespace tenon::fuzz
