// One decoded image, and the decoders: one a file, each a thin layer over the library of its format.
#pragma once
#include <cstdint>
#include <cstring>
#include <vector>

#include "tenon/sdk/plugin.hpp"

namespace tenon::media {

using namespace tenon::sdk;
using Bytes = Span<const uint8_t>;

/// Pixels of an image, at most: what a few bytes of a compressed file may claim.
constexpr int64_t most_pixels = int64_t{1} << 28;

struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from the top, three bytes a pixel

  /// Memory for that many pixels. False: there are none. Failure when there are too many.
  bool allocate(int64_t w, int64_t h) {
    if (w < 1 || h < 1) return false;
    if (w > most_pixels / h)
      throw Failure(TN_ERR_LIMIT, format("an image of %lld x %lld pixels; the most is %lld pixels",
                                         static_cast<long long>(w), static_cast<long long>(h),
                                         static_cast<long long>(most_pixels)));
    width = w;
    height = h;
    rgb.assign(static_cast<size_t>(w * h * 3), 0);
    return true;
  }
  uint8_t* pixel(int64_t x, int64_t y) { return rgb.data() + (y * width + x) * 3; }
};

/// Each knows its format by the first bytes; false when the bytes are no such image, or a damaged one.
bool decode_bmp(Bytes bytes, Image& image);
bool decode_jpeg(Bytes bytes, Image& image);
bool decode_jpeg2000(Bytes bytes, Image& image);
bool decode_png(Bytes bytes, Image& image);
bool decode_pnm(Bytes bytes, Image& image);
bool decode_tiff(Bytes bytes, Image& image);
bool decode_webp(Bytes bytes, Image& image);

inline bool begins_with(Bytes bytes, std::string_view start) {
  return bytes.size() >= start.size() && std::memcmp(bytes.data(), start.data(), start.size()) == 0;
}

}  // namespace tenon::media
