#include "support/product_shape.hpp"

namespace tenon::reference {

ProductShape product_shape(const Dims& a_dims, const Dims& b_dims) {
  Dims a = a_dims, b = b_dims;
  if (a.empty() || b.empty()) fail("MatMul needs operands of rank 1 or more");
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  ProductShape s;
  s.m = a[a.size() - 2];
  s.k = a.back();
  s.n = b.back();
  if (b[b.size() - 2] != s.k)
    fail(format("MatMul of %s and %s: the inner dimensions %lld and %lld differ", dims_text(a_dims).c_str(),
                dims_text(b_dims).c_str(), static_cast<long long>(s.k),
                static_cast<long long>(b[b.size() - 2])));
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  Dims both(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < both.size(); ++i) {
    const int64_t x = i + a.size() >= both.size() ? a[i + a.size() - both.size()] : 1,
                  y = i + b.size() >= both.size() ? b[i + b.size() - both.size()] : 1;
    both[i] = x == 1 ? y : x;
  }
  const auto walk = broadcast_walk<2>(both, {&a, &b});
  walk.rows(0, walk.count, [&](int64_t, const int64_t(&o)[2], int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      s.a_at.push_back(o[0] + i * walk.inner_stride(0));
      s.b_at.push_back(o[1] + i * walk.inner_stride(1));
    }
  });
  return s;
}

}  // namespace tenon::reference
