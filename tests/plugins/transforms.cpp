// A plugin that exports constant transforms: what the expressions of rules cannot say.
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/transform.hpp"

namespace {

using namespace tenon::sdk;

/// Rows of a and b in turns; with `reversed`, b's first.
OwnedTensor interleave(const TransformArguments& in) {
  const TensorView a = in[0], b = in[1];
  if (dims_text(a.dims()) != dims_text(b.dims()) || a.dtype() != TN_FLOAT32)
    fail("interleave wants two float32 tensors of one shape, found " + dims_text(a.dims()) + " and " +
         dims_text(b.dims()));
  const bool reversed = in.has(2) && in[2].int_at(0) != 0;
  Dims dims(a.dims().begin(), a.dims().end());
  dims[0] *= 2;
  OwnedTensor out(TN_FLOAT32, dims);
  const int64_t row = a.count() / a.dims()[0];
  for (int64_t i = 0; i < dims[0]; ++i) {
    const TensorView& from = (i % 2 == 0) != reversed ? a : b;
    for (int64_t k = 0; k < row; ++k)
      out.data<float>()[i * row + k] = static_cast<float>(from.float_at(i / 2 * row + k));
  }
  return out;
}

/// A type that expressions have no numbers for: the constant goes into the graph as it is.
OwnedTensor big_integers(const TransformArguments&) {
  OwnedTensor out(TN_INT64, {1});
  out.data<int64_t>()[0] = (int64_t{1} << 60) + 1;
  return out;
}

OwnedTensor broken(const TransformArguments&) { fail("it is broken on purpose"); }

void provide(Plugin& p) {
  static TransformBuilder first("test.interleave", 1), second("test.interleave", 3), big("test.big", 1),
      bad("test.broken", 1);
  p.id("test.transforms")
      .name("transforms")
      .version("1.0.0")
      .vendor("Tenon")
      .summary("transforms for a test");
  p.transform(first.parameter("a").parameter("b").parameter("reversed").run<interleave>());
  p.transform(second.parameter("a").parameter("b").run<interleave>());
  p.transform(big.run<big_integers>());
  p.transform(bad.run<broken>());
}

}  // namespace

TENON_PLUGIN(provide)
