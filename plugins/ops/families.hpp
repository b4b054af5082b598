// The one list of families. add_<family> defines operators, with their kernels where the two stand in one
// file; provide_<family> adds the kernels of a family whose two parts are large enough for a file each.
#pragma once
#include "tenon/sdk/plugin.hpp"

// clang-format off
#define TENON_OPERATOR_FAMILIES(X) \
  X(elementwise_unary) X(activation) X(elementwise_binary) X(elementwise_select) X(reduce) \
  X(shape_ops) X(reshape) X(indexing) X(slice) X(join_split) X(selection) X(constant) X(sequence_axis) X(bit_cast) X(det) \
  X(conv) X(pool) X(resize) X(grid_sample) X(roi) X(unpool) X(center_crop_pad) X(deform_conv) \
  X(fourier) X(window_function) X(loss) \
  X(norm) X(matmul) X(recurrent) X(attention) X(fused_products) X(fused_norms) X(fused_rearrange) \
  X(linear_attention) X(causal_conv) X(flex_attention) X(sequence_map) X(image_decoder) X(strings) X(string_normalizer) X(tfidf) X(optimizers) X(gradient) \
  X(ml_features) X(ml_linear) X(ml_svm) X(ml_trees) X(ml_categories) \
  X(quantize) \
  X(control_flow) X(sequence) X(random) \
  X(microsoft_activation) X(microsoft_norm) X(microsoft_matmul) X(microsoft_attention) X(microsoft_group_attention) \
  X(microsoft_blocks) X(microsoft_qlinear) X(microsoft_integer) X(microsoft_lstm) X(microsoft_plain)

#define TENON_KERNEL_FAMILIES(X) \
  X(unary) X(binary) X(variadic) X(cast) X(select) X(reduce) \
  X(shape_kernels) X(move) X(gather) X(scatter) X(pad) X(search) \
  X(conv) X(conv_transpose) X(pool) X(resize) \
  X(softmax) X(normalize) X(normalize_channels) X(norms) X(matmul) X(einsum) X(recurrent) X(attention) \
  X(quantize) \
  X(control) X(sequence) X(random)
// clang-format on

namespace tenon::ops {
#define TENON_DECLARE(family) void add_##family(sdk::Plugin& p);
TENON_OPERATOR_FAMILIES(TENON_DECLARE)
#undef TENON_DECLARE
}  // namespace tenon::ops

namespace tenon::reference {
#define TENON_DECLARE(family) void provide_##family(sdk::Plugin& p);
TENON_KERNEL_FAMILIES(TENON_DECLARE)
#undef TENON_DECLARE
}  // namespace tenon::reference
