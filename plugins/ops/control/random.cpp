// Random tensors: never folded, merged or hoisted, with or without a seed.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_by_shape(Infer& c) {
  const auto shape = c.attrs().get_ints("shape");
  require(c.attrs().has("shape"), "attribute 'shape' is missing");
  for (int64_t d : shape)
    require(d >= 0, "attribute 'shape' is " + dims_text(shape) + "; expected dimensions of 0 or more");
  if (const auto n = c.number(c.product(Span<const tn_dim>(shape.data(), shape.size()))))
    require(*n <= INT64_MAX / 16,
            "attribute 'shape' is " + dims_text(shape) + ", more elements than memory can hold");
  c.set(0, dtype_of_onnx(c.attrs().get_int("dtype", 1), "dtype"),
        Span<const tn_dim>(shape.data(), shape.size()));
}
void infer_like(Infer& c) {
  same_shape(c, 0, 0,
             c.attrs().has("dtype") ? dtype_of_onnx(c.attrs().get_int("dtype", 1), "dtype") : c.dtype(0));
}

void infer_multinomial(Infer& c) {
  const tn_dtype dtype = dtype_of_onnx(c.attrs().get_int("dtype", 6), "dtype");
  require(dtype == TN_INT32 || dtype == TN_INT64,
          std::string("attribute 'dtype' is ") + dtype_name(dtype) + "; expected int32 or int64");
  const int64_t samples = c.attrs().get_int("sample_size", 1);
  require(samples >= 0, "attribute 'sample_size' is " + text_of(samples) + "; expected 0 or more");
  const std::vector<tn_dim> out{ranked(c, 0, "input", 2, 2) ? c.dims(0)[0] : c.data_dependent(0, 0), samples};
  c.set(0, dtype, out);
}

}  // namespace

void add_random(Plugin& p) {
  define(p, "RandomNormal").flags(TN_OP_NONDETERMINISTIC).infer<infer_by_shape>();
  define(p, "RandomUniform").flags(TN_OP_NONDETERMINISTIC).infer<infer_by_shape>();
  define(p, "RandomNormalLike").flags(TN_OP_NONDETERMINISTIC | TN_OP_SHAPE_ONLY).infer<infer_like>();
  define(p, "Bernoulli").flags(TN_OP_NONDETERMINISTIC).infer<infer_like>();
  define(p, "Multinomial").flags(TN_OP_NONDETERMINISTIC).infer<infer_multinomial>();
  define(p, "RandomUniformLike").flags(TN_OP_NONDETERMINISTIC | TN_OP_SHAPE_ONLY).infer<infer_like>();
}

}  // namespace tenon::ops
