#include <turbojpeg.h>

#include "image.hpp"

namespace tenon::media {

bool decode_jpeg(Bytes bytes, Image& image) {
  if (!begins_with(bytes, "\xff\xd8\xff")) return false;
  const std::unique_ptr<void, int (*)(tjhandle)> decoder(tjInitDecompress(), tjDestroy);
  if (!decoder) throw std::bad_alloc();
  int width = 0, height = 0, subsampling = 0, space = 0;
  const auto size = static_cast<unsigned long>(bytes.size());
  if (tjDecompressHeader3(decoder.get(), bytes.data(), size, &width, &height, &subsampling, &space) != 0)
    return false;
  if (!image.allocate(width, height)) return false;
  // What only warns (bytes after the end, a cut last row) still yields an image.
  const auto fine = [&](int code) { return code == 0 || tjGetErrorCode(decoder.get()) == TJERR_WARNING; };
  if (space != TJCS_CMYK && space != TJCS_YCCK)
    return fine(tjDecompress2(decoder.get(), bytes.data(), size, image.rgb.data(), width, 0, height, TJPF_RGB,
                              TJFLAG_LIMITSCANS));
  std::vector<uint8_t> cmyk(static_cast<size_t>(image.width * image.height * 4));
  if (!fine(tjDecompress2(decoder.get(), bytes.data(), size, cmyk.data(), width, 0, height, TJPF_CMYK,
                          TJFLAG_LIMITSCANS)))
    return false;
  for (size_t i = 0; i < cmyk.size() / 4; ++i)  // inks are stored inverted
    for (size_t k = 0; k < 3; ++k)
      image.rgb[3 * i + k] = static_cast<uint8_t>((cmyk[4 * i + k] * cmyk[4 * i + 3] + 127) / 255);
  return true;
}

}  // namespace tenon::media
