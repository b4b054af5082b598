// ImageDecoder: bytes of a file become pixels [height, width, channels].
//
// What is no image, or a damaged one, becomes an image of no pixels, as the standard says. Transparency is
// dropped. Grey is the luma of ITU-R 601 in 16-bit fixed point, whatever the format holds.
#include "image.hpp"

namespace {

using namespace tenon::media;

enum class Format { rgb, bgr, grey };
struct State {
  Format format = Format::rgb;
};

void decode(Run& run, const tn_kernel_args* a) {
  const Format format = state<State>(a).format;
  const auto stream = run.input(0);
  const Bytes bytes(stream.data<uint8_t>(), static_cast<size_t>(stream.count()));
  constexpr bool (*decoders[])(Bytes, Image&) = {decode_jpeg, decode_png,      decode_bmp, decode_webp,
                                                 decode_tiff, decode_jpeg2000, decode_pnm};
  Image image;
  bool done = false;
  for (auto* decoder : decoders) {
    if (done) break;
    image = {};
    done = decoder(bytes, image);
  }
  if (!done) image = {};
  const int64_t channels = format == Format::grey ? 1 : 3, pixels = image.width * image.height;
  auto* to = static_cast<uint8_t*>(run.output(0, TN_UINT8, Dims{image.height, image.width, channels}));
  const uint8_t* from = image.rgb.data();
  if (format == Format::rgb) {
    if (pixels) std::memcpy(to, from, static_cast<size_t>(pixels) * 3);
    return;
  }
  for (int64_t i = 0; i < pixels; ++i, from += 3)
    if (format == Format::grey) {
      to[i] = static_cast<uint8_t>((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    } else {
      to[3 * i] = from[2];
      to[3 * i + 1] = from[1];
      to[3 * i + 2] = from[0];
    }
}
void plan(const PlanView& v, Planned& p) {
  auto s = std::make_unique<State>();
  const auto format = v.attrs().get_string("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale")
    fail("attribute 'pixel_format' is '" + std::string(format) + "'; expected RGB, BGR or Grayscale");
  s->format = format == "RGB" ? Format::rgb : format == "BGR" ? Format::bgr : Format::grey;
  p.set(dynamic_kernel<decode>, std::move(s));
}

void provide(Plugin& p) {
  p.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  p.vendor("Tenon").summary("Images of seven formats, decoded by the formats' own libraries");
  p.kernel("tenon.media.image_decoder/1", "ImageDecoder")
      .flags(TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DETERMINISTIC)
      .input({TN_UINT8})
      .plan<plan>();
}

}  // namespace

TENON_PLUGIN(provide)
