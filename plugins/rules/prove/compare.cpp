#include "prove/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::rules {

Outputs run_graph(const TestServices& s, tn_graph* graph, const std::vector<sdk::OwnedTensor>& inputs) {
  Outputs out;
  std::vector<tn_tensor> in;
  for (const auto& t : inputs) in.push_back(t.raw());
  sdk::DiagBuffer said;
  const tn_status status = s.eval->run(
      s.host, graph, in.data(), static_cast<uint32_t>(in.size()),
      [](void* context, uint32_t index, const tn_tensor* t) {
        auto& list = *static_cast<std::vector<sdk::OwnedTensor>*>(context);
        if (list.size() <= index) list.resize(index + 1);
        list[index] = sdk::OwnedTensor(*t);
      },
      &out.tensors, said.raw());
  out.unsupported = status == TN_ERR_UNSUPPORTED;
  if (status != TN_OK) out.failure = said.text().empty() ? "the host could not run it" : said.text();
  return out;
}

Tolerance tolerance_of(const Rule& rule, tn_dtype dtype) {
  for (const auto& [type, tolerance] : rule.verify.tolerance)
    if (type == dtype) return tolerance;
  Tolerance t;
  if (dtype == TN_FLOAT16) t = {1e-2, 1e-2, -1, -1};
  if (dtype == TN_BFLOAT16) t = {5e-2, 5e-2, -1, -1};
  if (!sdk::is_float(dtype)) t = {0, 0, -1, -1};
  // What is computed in float64 may still come from constants that were float32.
  return t;
}

std::string compare(const sdk::OwnedTensor& wanted, const sdk::OwnedTensor& got, const Tolerance& t,
                    bool finite_only) {
  if (wanted.dims() != got.dims())
    return "shape " + sdk::dims_text(got.dims()) + " instead of " + sdk::dims_text(wanted.dims());
  if (wanted.dtype() != got.dtype())
    return std::string("type ") + sdk::dtype_name(got.dtype()) + " instead of " +
           sdk::dtype_name(wanted.dtype());
  const auto a = wanted.view(), b = got.view();
  double dot = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = a.float_at(i), y = b.float_at(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (finite_only && !std::isfinite(x)) continue;
    if (x == y) {
      dot += x * y, aa += x * x, bb += y * y;
      continue;
    }
    if (!(std::fabs(x - y) <= t.atol + t.rtol * std::fabs(x)))
      return sdk::format("element %lld is %.9g instead of %.9g (rtol %g, atol %g)", static_cast<long long>(i),
                         y, x, t.rtol, t.atol);
    if (t.max_ulp >= 0 && wanted.dtype() == TN_FLOAT32) {
      int32_t u = 0, v = 0;
      std::memcpy(&u, wanted.data<float>() + i, 4);
      std::memcpy(&v, got.data<float>() + i, 4);
      const double ulp = std::fabs(static_cast<double>(u < 0 ? INT32_MIN - static_cast<int64_t>(u) : u) -
                                   static_cast<double>(v < 0 ? INT32_MIN - static_cast<int64_t>(v) : v));
      if (ulp > t.max_ulp)
        return sdk::format("element %lld differs by %.0f units in the last place, %g allowed",
                           static_cast<long long>(i), ulp, t.max_ulp);
    }
    dot += x * y, aa += x * x, bb += y * y;
  }
  if (t.cos >= 0 && aa > 0 && bb > 0 && dot / std::sqrt(aa * bb) < t.cos)
    return sdk::format("cosine %.7g is below %g", dot / std::sqrt(aa * bb), t.cos);
  return {};
}

std::string compare(const Rule& rule, const Outputs& wanted, const Outputs& got, tn_dtype computed_in,
                    bool chosen) {
  // Numbers that the rule's author did not choose may round worse, where sums cancel say; a rule that is
  // wrong is wrong by more.
  constexpr double unchosen = 100;
  if (!got.failure.empty()) return "the rewritten graph does not run: " + got.failure;
  if (got.tensors.size() != wanted.tensors.size()) return "the rewritten graph has another number of results";
  for (size_t i = 0; i < wanted.tensors.size(); ++i) {
    Tolerance t = tolerance_of(rule, wanted.tensors[i].dtype());
    if (!chosen && sdk::is_float(wanted.tensors[i].dtype())) {
      const Tolerance narrow = tolerance_of(rule, computed_in);
      t.rtol = std::max(t.rtol * unchosen, narrow.rtol);
      t.atol = std::max(t.atol * unchosen, narrow.atol);
      t.cos = t.max_ulp = -1;
    }
    const std::string why = compare(wanted.tensors[i], got.tensors[i], t, !chosen);
    if (!why.empty()) return "result " + std::to_string(i) + ": " + why;
  }
  return {};
}

}  // namespace tenon::rules
