// ImageDecoder. The libraries of image formats are no matter of every host: the kernel is in plugins/media.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void infer_decoder(Infer& c) {
  ranked(c, 0, "encoded_stream", 1, 1);
  const auto format = c.attrs().get_string("pixel_format", "RGB");
  require(format == "RGB" || format == "BGR" || format == "Grayscale",
          "attribute 'pixel_format' is '" + std::string(format) + "'; expected RGB, BGR or Grayscale");
  c.set(0, TN_UINT8,
        std::vector<tn_dim>{c.data_dependent(0, 0), c.data_dependent(0, 1), format == "Grayscale" ? 1 : 3});
}

}  // namespace

void add_image_decoder(Plugin& p) { define(p, "ImageDecoder").infer<infer_decoder>(); }

}  // namespace tenon::ops
