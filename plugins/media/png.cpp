#include <png.h>

#include "image.hpp"

namespace tenon::media {

bool decode_png(Bytes bytes, Image& image) {
  if (!begins_with(bytes, "\x89PNG\r\n\x1a\n")) return false;
  png_image header;
  std::memset(&header, 0, sizeof header);
  header.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> freed(&header, png_image_free);
  if (!png_image_begin_read_from_memory(&header, bytes.data(), bytes.size())) return false;
  header.format = PNG_FORMAT_RGBA;  // the alpha is dropped here, not blended into a background
  if (!image.allocate(header.width, header.height)) return false;
  std::vector<uint8_t> rgba(static_cast<size_t>(image.width * image.height * 4));
  if (!png_image_finish_read(&header, nullptr, rgba.data(), 0, nullptr)) return false;
  for (size_t i = 0; i < rgba.size() / 4; ++i) std::memcpy(&image.rgb[3 * i], &rgba[4 * i], 3);
  return true;
}

}  // namespace tenon::media
