#include <webp/decode.h>

#include "image.hpp"

namespace tenon::media {

bool decode_webp(Bytes bytes, Image& image) {
  if (!begins_with(bytes, "RIFF")) return false;
  int width = 0, height = 0;
  if (!WebPGetInfo(bytes.data(), bytes.size(), &width, &height) || !image.allocate(width, height))
    return false;
  return WebPDecodeRGBInto(bytes.data(), bytes.size(), image.rgb.data(), image.rgb.size(), width * 3) !=
         nullptr;
}

}  // namespace tenon::media
