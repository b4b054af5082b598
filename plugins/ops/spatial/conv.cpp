// Convolutions: Conv, ConvTranspose, ConvInteger. X is [N, C, D1..Dn], W is [M, C/group, k1..kn].
#include "spatial/conv.hpp"

namespace tenon::ops {

namespace {

int64_t group_of(Infer& c) {
  const int64_t group = c.attrs().get_int("group", 1);
  require(group >= 1, "attribute 'group' is " + text_of(group) + "; expected 1 or more");
  return group;
}

void check_bias(Infer& c, uint32_t i, tn_dim channels) {
  if (!ranked(c, i, "B", 1, 1)) return;
  const auto b = c.dims(i);
  require(!c.differ(b[0], channels), "operand B has shape " + c.text(b) +
                                         "; expected one number for each of the " + c.text(channels) +
                                         " channels");
}

/// Sizes of the windows: the attribute's, which must agree with the weights'.
std::vector<tn_dim> kernel_sizes(Infer& c, const std::vector<tn_dim>& weights) {
  std::vector<tn_dim> own(weights.begin() + 2, weights.end());
  const auto said = kernel_shape(c, own.size());
  if (!said) return own;
  for (size_t i = 0; i < own.size(); ++i)
    require(!c.differ(own[i], (*said)[i]),
            "attribute 'kernel_shape' is " + c.text(*said) + "; the weights have shape " + c.text(weights));
  return *said;
}

void infer_conv(Infer& c) {
  infer_convolution(c, 0, 1, c.has_input(2) ? std::optional<uint32_t>(2) : std::nullopt, c.dtype(0));
}
void infer_conv_integer(Infer& c) { infer_convolution(c, 0, 1, std::nullopt, TN_INT32); }

void infer_conv_transpose(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 3) || !ranked(c, 1, "W", 3)) return c.set_unranked(0, dtype);
  const auto x = c.dims(0), weights = c.dims(1);
  require(x.size() == weights.size(),
          "operand W has shape " + c.text(weights) + "; expected the rank of X, whose shape is " + c.text(x));
  const int64_t group = group_of(c);
  require(!c.differ(x[1], weights[0]), "operand X has " + c.text(x[1]) + " channels; W " + c.text(weights) +
                                           " is for " + c.text(weights[0]));
  const tn_dim channels = c.mul(weights[1], group);
  if (c.has_input(2)) check_bias(c, 2, channels);
  const Window w = read_window(c, kernel_sizes(c, weights));
  const Dims extra = list_attr(c, "output_padding", w.axes(), 0, 0);
  Dims wanted = c.attrs().get_ints("output_shape").copy();
  if (wanted.size() == w.axes() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  require(wanted.empty() || wanted.size() == w.axes(),
          format("attribute 'output_shape' has %zu numbers; expected %zu", wanted.size(), w.axes()));
  std::vector<tn_dim> out{x[0], channels};
  for (size_t i = 0; i < w.axes(); ++i) {
    const tn_dim size = x[i + 2];
    if (!wanted.empty()) {
      require(wanted[i] > 0,
              "attribute 'output_shape' is " + dims_text(wanted) + "; expected sizes of 1 or more");
      out.push_back(wanted[i]);
    } else if (w.auto_pad == AutoPad::same_upper || w.auto_pad == AutoPad::same_lower) {
      out.push_back(c.mul(size, w.strides[i]));
    } else {
      const tn_dim full = c.add(c.add(c.mul(c.sub(size, 1), w.strides[i]), extra[i]), extent(c, w, i));
      const tn_dim cut = c.sub(full, w.pads[i] + w.pads[i + w.axes()]);
      if (const auto v = c.number(cut))
        require(*v >= 0, "axis " + text_of(static_cast<int64_t>(i) + 2) + " would have " + text_of(*v) +
                             " elements: the pads " + text_of(w.pads[i]) + " and " +
                             text_of(w.pads[i + w.axes()]) + " take more than there is");
      out.push_back(cut);
    }
  }
  c.set(0, dtype, out);
}

}  // namespace

void infer_convolution(Infer& c, uint32_t x_index, uint32_t w_index, std::optional<uint32_t> bias,
                       tn_dtype dtype) {
  if (!ranked(c, x_index, "X", 3) || !ranked(c, w_index, "W", 3)) return c.set_unranked(0, dtype);
  const auto x = c.dims(x_index), weights = c.dims(w_index);
  require(x.size() == weights.size(),
          "operand W has shape " + c.text(weights) + "; expected the rank of X, whose shape is " + c.text(x));
  const int64_t group = group_of(c);
  const tn_dim expected = c.mul(weights[1], group);
  require(!c.differ(x[1], expected), "operand X has " + c.text(x[1]) + " channels; W " + c.text(weights) +
                                         " with group " + text_of(group) + " is for " + c.text(expected));
  if (const auto m = c.number(weights[0]))
    require(*m % group == 0,
            "operand W has " + text_of(*m) + " filters, which " + text_of(group) + " groups cannot share");
  if (bias) check_bias(c, *bias, weights[0]);
  const Window w = read_window(c, kernel_sizes(c, weights));
  std::vector<tn_dim> out{x[0], weights[0]};
  for (size_t i = 0; i < w.axes(); ++i) out.push_back(window_count(c, w, i, x[i + 2], false));
  c.set(0, dtype, out);
}

void add_conv(Plugin& p) {
  define(p, "Conv").infer<infer_conv>().alias("conv2d").alias("convolution");
  define(p, "ConvTranspose")
      .infer<infer_conv_transpose>()
      .alias("conv_transpose")
      .alias("deconv")
      .alias("conv2d_transpose");
  define(p, "ConvInteger").infer<infer_conv_integer>();
}

}  // namespace tenon::ops
