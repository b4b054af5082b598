#include <openjpeg.h>

#include <algorithm>

#include "image.hpp"

namespace tenon::media {
namespace {

/// A file in memory, as OpenJPEG reads it.
struct Memory {
  Bytes bytes;
  size_t at = 0;
};
OPJ_SIZE_T read(void* to, OPJ_SIZE_T size, void* data) {
  Memory& m = *static_cast<Memory*>(data);
  const size_t count = std::min<size_t>(size, m.bytes.size() - m.at);
  if (count == 0) return static_cast<OPJ_SIZE_T>(-1);
  std::memcpy(to, m.bytes.data() + m.at, count);
  m.at += count;
  return count;
}
OPJ_OFF_T skip(OPJ_OFF_T size, void* data) {
  Memory& m = *static_cast<Memory*>(data);
  if (size < 0) return -1;
  const size_t count = std::min<size_t>(static_cast<size_t>(size), m.bytes.size() - m.at);
  if (count == 0 && size > 0) return -1;  // 0 would be asked again, for ever
  m.at += count;
  return static_cast<OPJ_OFF_T>(count);
}
OPJ_BOOL seek(OPJ_OFF_T place, void* data) {
  Memory& m = *static_cast<Memory*>(data);
  if (place < 0 || static_cast<size_t>(place) > m.bytes.size()) return OPJ_FALSE;
  m.at = static_cast<size_t>(place);
  return OPJ_TRUE;
}

/// One component's sample at a place of the whole image, in 8 bits.
int sample(const opj_image_comp_t& c, const opj_image_t& whole, int64_t x, int64_t y) {
  const auto step = [](int64_t at, uint32_t begin, uint32_t d) {
    return (at + begin) / d - (begin + d - 1) / d;
  };
  const int64_t column = std::clamp<int64_t>(step(x, whole.x0, c.dx), 0, static_cast<int64_t>(c.w) - 1),
                row = std::clamp<int64_t>(step(y, whole.y0, c.dy), 0, static_cast<int64_t>(c.h) - 1);
  int64_t v = c.data[row * static_cast<int64_t>(c.w) + column];
  if (c.sgnd) v += int64_t{1} << (c.prec - 1);
  v = c.prec > 8 ? v >> (c.prec - 8) : c.prec < 8 ? v * 255 / ((1 << c.prec) - 1) : v;
  return static_cast<int>(std::clamp<int64_t>(v, 0, 255));
}
uint8_t to_byte(double x) { return static_cast<uint8_t>(std::clamp(x + 0.5, 0.0, 255.0)); }

}  // namespace

bool decode_jpeg2000(Bytes bytes, Image& image) {
  const bool boxed = begins_with(bytes, std::string_view("\0\0\0\x0cjP  \r\n\x87\n", 12)),
             bare = begins_with(bytes, "\xff\x4f\xff\x51");
  if (!boxed && !bare) return false;
  const std::unique_ptr<opj_codec_t, void (*)(opj_codec_t*)> codec(
      opj_create_decompress(boxed ? OPJ_CODEC_JP2 : OPJ_CODEC_J2K), opj_destroy_codec);
  const std::unique_ptr<opj_stream_t, void (*)(opj_stream_t*)> stream(opj_stream_default_create(OPJ_TRUE),
                                                                      opj_stream_destroy);
  if (!codec || !stream) throw std::bad_alloc();
  Memory memory{bytes};
  opj_stream_set_user_data(stream.get(), &memory, nullptr);
  opj_stream_set_user_data_length(stream.get(), bytes.size());
  opj_stream_set_read_function(stream.get(), read);
  opj_stream_set_skip_function(stream.get(), skip);
  opj_stream_set_seek_function(stream.get(), seek);
  opj_dparameters_t parameters;
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* raw = nullptr;
  if (!opj_setup_decoder(codec.get(), &parameters)) return false;
  const bool header = opj_read_header(stream.get(), codec.get(), &raw);
  const std::unique_ptr<opj_image_t, void (*)(opj_image_t*)> decoded(raw, opj_image_destroy);
  if (!header || !raw || raw->x1 <= raw->x0 || raw->y1 <= raw->y0) return false;
  const uint32_t count = raw->numcomps;
  if (count == 0 || count > 4) return false;  // grey or colours, perhaps with an alpha
  if (!image.allocate(raw->x1 - raw->x0, raw->y1 - raw->y0)) return false;
  if (!opj_decode(codec.get(), stream.get(), raw)) return false;
  for (uint32_t i = 0; i < std::min(count, 3u); ++i) {
    const opj_image_comp_t& c = raw->comps[i];
    if (!c.data || c.w == 0 || c.h == 0 || c.dx == 0 || c.dy == 0 || c.prec < 1 || c.prec > 31) return false;
  }
  const bool coloured = count >= 3;
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < image.width; ++x) {
      uint8_t* to = image.pixel(x, y);
      int v[3];
      for (uint32_t i = 0; i < 3; ++i) v[i] = sample(raw->comps[coloured ? i : 0], *raw, x, y);
      if (coloured && raw->color_space == OPJ_CLRSPC_SYCC) {
        to[0] = to_byte(v[0] + 1.402 * (v[2] - 128));
        to[1] = to_byte(v[0] - 0.344136 * (v[1] - 128) - 0.714136 * (v[2] - 128));
        to[2] = to_byte(v[0] + 1.772 * (v[1] - 128));
      } else {
        for (int i = 0; i < 3; ++i) to[i] = static_cast<uint8_t>(v[i]);
      }
    }
  return true;
}

}  // namespace tenon::media
