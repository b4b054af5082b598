#include "gx/gx_value.hpp"

#include <cmath>
#include <limits>

namespace tenon::rules::gx {

std::string Value::show() const {
  switch (kind) {
    case Absent:
      return "absent";
    case Unknown:
      return "unknown (" + text + ")";
    case Bool:
      return number != 0 ? "true" : "false";
    case Number:
      return is_int ? sdk::format("%.0f", number) : sdk::format("%.7g", number);
    case Dim:
      return "?";
    case Text:
      return "'" + text + "'";
    case List: {
      std::string s = "[";
      for (size_t i = 0; i < list.size() && i < 8; ++i) s += (i ? "," : "") + list[i].show();
      return s + (list.size() > 8 ? ",...]" : "]");
    }
    case Tensor: {
      if (tensor.count() == 1) return sdk::format("%.7g", (*tensor.data)[0]);
      double lo = std::numeric_limits<double>::infinity(), hi = -lo;
      for (double d : *tensor.data) lo = std::fmin(lo, d), hi = std::fmax(hi, d);
      return "tensor " + sdk::dims_text(tensor.dims) + sdk::format(" (min %.7g, max %.7g)", lo, hi);
    }
    case Graph:
      return text;
  }
  return "?";
}

bool load(const tn_tensor& source, Tensor* out) {
  out->dims.assign(source.dims, source.dims + source.rank);
  const int64_t n = sdk::element_count(out->dims);
  out->dtype = source.dtype;
  out->data = std::make_shared<std::vector<double>>(static_cast<size_t>(n));
  double* to = out->data->data();
  return sdk::visit_number(source.dtype, [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(source.data);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(from[i]);
  });
}

namespace {
template <class T>
T narrow(double d) {
  if constexpr (std::is_same_v<T, bool>) {
    return d != 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(d)) return 0;
    if (d <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    if (d >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    return static_cast<T>(d);
  } else if constexpr (std::is_same_v<T, double>) {
    return d;
  } else {
    return T(static_cast<float>(d));
  }
}
}  // namespace

sdk::OwnedTensor store(const Tensor& t) {
  sdk::OwnedTensor out(t.dtype, t.dims);
  const auto& from = *t.data;
  if (from.size() != static_cast<size_t>(sdk::element_count(t.dims)))
    sdk::fail("a computed constant has " + std::to_string(from.size()) + " elements where its shape wants " +
              std::to_string(sdk::element_count(t.dims)));
  const bool ok = sdk::visit_number(t.dtype, [&](auto zero) {
    auto* to = out.data<decltype(zero)>();
    for (size_t i = 0; i < from.size(); ++i) to[i] = narrow<decltype(zero)>(from[i]);
  });
  if (!ok) sdk::fail(std::string("a computed constant cannot be stored as ") + sdk::dtype_name(t.dtype));
  return out;
}

}  // namespace tenon::rules::gx
