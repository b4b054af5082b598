#include "support/elements.hpp"

#include <type_traits>

#include "support/small_floats.hpp"

namespace tenon::reference {
namespace {

template <class C, class T>
C convert_in(T x) noexcept {
  if constexpr (std::is_same_v<C, double>)
    return static_cast<double>(x);
  else if constexpr (std::is_same_v<T, bool>)
    return x ? 1 : 0;
  else
    return static_cast<C>(x);
}

template <class C, class T>
void load(const void* source, int64_t first, int64_t stride, int64_t count, C* to) {
  const T* s = static_cast<const T*>(source) + first;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) to[i] = convert_in<C>(s[i]);
  } else if (stride == 0) {
    const C value = count ? convert_in<C>(*s) : C{};
    for (int64_t i = 0; i < count; ++i) to[i] = value;
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = convert_in<C>(s[i * stride]);
  }
}

template <class C, int Bits, bool Signed>
void load_packed(const void* source, int64_t first, int64_t stride, int64_t count, C* to) {
  for (int64_t i = 0; i < count; ++i) {
    const int value = unpack<Bits>(static_cast<const uint8_t*>(source), first + i * stride);
    to[i] = static_cast<C>(Signed && value >= (1 << (Bits - 1)) ? value - (1 << Bits) : value);
  }
}

template <tn_dtype D>
void load_small(const void* source, int64_t first, int64_t stride, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = small_decode<D>(static_cast<const uint8_t*>(source)[first + i * stride]);
}
void load_float4(const void* source, int64_t first, int64_t stride, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = float4_decode(
        static_cast<uint8_t>(unpack<4>(static_cast<const uint8_t*>(source), first + i * stride)));
}

template <class T, class C>
T convert_out(C x) noexcept {
  if constexpr (std::is_same_v<T, bool>)
    return x != C{};
  else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    if constexpr (std::is_same_v<C, double>)
      return T(round_to_odd(x));
    else
      return T(static_cast<float>(x));
  } else if constexpr (std::is_same_v<C, double> && std::is_integral_v<T>)
    return saturate_to<T>(x);
  else
    return static_cast<T>(x);
}

template <class C, class T>
void store(const C* from, int64_t count, void* target, int64_t first) {
  T* t = static_cast<T*>(target) + first;
  for (int64_t i = 0; i < count; ++i) t[i] = convert_out<T>(from[i]);
}

// Wraps, reals too: what the standard's tests ask of types this narrow.
template <class C, int Bits>
void store_packed(const C* from, int64_t count, void* target, int64_t first) {
  for (int64_t i = 0; i < count; ++i) {
    int value;
    if constexpr (std::is_same_v<C, double>)
      value = static_cast<int>(saturate_to<int64_t>(from[i]) & ((1 << Bits) - 1));
    else
      value = static_cast<int>(from[i] & static_cast<C>((1 << Bits) - 1));
    pack<Bits>(static_cast<uint8_t*>(target), first + i, value);
  }
}

template <tn_dtype D, bool Saturate, class C>
void store_small(const C* from, int64_t count, void* target, int64_t first) {
  auto* t = static_cast<uint8_t*>(target) + first;
  for (int64_t i = 0; i < count; ++i) t[i] = small_encode<D>(static_cast<double>(from[i]), Saturate);
}
template <class C>
void store_float4(const C* from, int64_t count, void* target, int64_t first) {
  for (int64_t i = 0; i < count; ++i)
    pack<4>(static_cast<uint8_t*>(target), first + i, float4_encode(static_cast<double>(from[i])));
}

[[noreturn]] void no_type(tn_dtype dtype) {
  throw Failure(TN_ERR_UNSUPPORTED,
                format("elements of type %s cannot be computed with here", dtype_name(dtype)));
}

}  // namespace

template <class C>
Load<C> loader(tn_dtype dtype) {
  Load<C> r = nullptr;
  visit_number(dtype, [&](auto x) {
    using T = decltype(x);
    if constexpr (std::is_same_v<C, double> || std::is_integral_v<T>) r = &load<C, T>;
  });
  switch (dtype) {
    case TN_INT4:
      r = &load_packed<C, 4, true>;
      break;
    case TN_UINT4:
      r = &load_packed<C, 4, false>;
      break;
    case TN_INT2:
      r = &load_packed<C, 2, true>;
      break;
    case TN_UINT2:
      r = &load_packed<C, 2, false>;
      break;
    default:
      break;
  }
  if constexpr (std::is_same_v<C, double>) switch (dtype) {
      case TN_FLOAT8_E4M3FN:
        r = &load_small<TN_FLOAT8_E4M3FN>;
        break;
      case TN_FLOAT8_E4M3FNUZ:
        r = &load_small<TN_FLOAT8_E4M3FNUZ>;
        break;
      case TN_FLOAT8_E5M2:
        r = &load_small<TN_FLOAT8_E5M2>;
        break;
      case TN_FLOAT8_E5M2FNUZ:
        r = &load_small<TN_FLOAT8_E5M2FNUZ>;
        break;
      case TN_FLOAT8_E8M0:
        r = &load_small<TN_FLOAT8_E8M0>;
        break;
      case TN_FLOAT4_E2M1:
        r = &load_float4;
        break;
      default:
        break;
    }
  if (!r) no_type(dtype);
  return r;
}

template <class C>
Store<C> storer(tn_dtype dtype, bool saturate) {
  Store<C> r = nullptr;
  visit_number(dtype, [&](auto x) { r = &store<C, decltype(x)>; });
  switch (dtype) {
    case TN_INT4:
    case TN_UINT4:
      return &store_packed<C, 4>;
    case TN_INT2:
    case TN_UINT2:
      return &store_packed<C, 2>;
    case TN_FLOAT8_E4M3FN:
      return saturate ? &store_small<TN_FLOAT8_E4M3FN, true, C> : &store_small<TN_FLOAT8_E4M3FN, false, C>;
    case TN_FLOAT8_E4M3FNUZ:
      return saturate ? &store_small<TN_FLOAT8_E4M3FNUZ, true, C>
                      : &store_small<TN_FLOAT8_E4M3FNUZ, false, C>;
    case TN_FLOAT8_E5M2:
      return saturate ? &store_small<TN_FLOAT8_E5M2, true, C> : &store_small<TN_FLOAT8_E5M2, false, C>;
    case TN_FLOAT8_E5M2FNUZ:
      return saturate ? &store_small<TN_FLOAT8_E5M2FNUZ, true, C>
                      : &store_small<TN_FLOAT8_E5M2FNUZ, false, C>;
    case TN_FLOAT8_E8M0:
      return saturate ? &store_small<TN_FLOAT8_E8M0, true, C> : &store_small<TN_FLOAT8_E8M0, false, C>;
    case TN_FLOAT4_E2M1:
      return &store_float4<C>;
    default:
      break;
  }
  if (!r) no_type(dtype);
  return r;
}

template Load<double> loader<double>(tn_dtype);
template Load<int64_t> loader<int64_t>(tn_dtype);
template Load<uint64_t> loader<uint64_t>(tn_dtype);
template Store<double> storer<double>(tn_dtype, bool);
template Store<int64_t> storer<int64_t>(tn_dtype, bool);
template Store<uint64_t> storer<uint64_t>(tn_dtype, bool);

}  // namespace tenon::reference
