#include <tiffio.h>

#include "image.hpp"

namespace tenon::media {
namespace {

/// A file in memory, as libtiff reads it.
struct Memory {
  Bytes bytes;
  uint64_t at = 0;
};
Memory& memory(thandle_t handle) { return *static_cast<Memory*>(handle); }
tmsize_t read(thandle_t handle, void* to, tmsize_t size) {
  Memory& m = memory(handle);
  const uint64_t left = m.at < m.bytes.size() ? m.bytes.size() - m.at : 0;
  const uint64_t count = size < 0 ? 0 : std::min<uint64_t>(static_cast<uint64_t>(size), left);
  if (count) std::memcpy(to, m.bytes.data() + m.at, count);
  m.at += count;
  return static_cast<tmsize_t>(count);
}
tmsize_t write(thandle_t, void*, tmsize_t) { return 0; }
toff_t seek(thandle_t handle, toff_t offset, int whence) {
  Memory& m = memory(handle);
  m.at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? m.at + offset : m.bytes.size() + offset;
  return m.at;
}
int close(thandle_t) { return 0; }
toff_t size(thandle_t handle) { return memory(handle).bytes.size(); }
int map(thandle_t handle, void** base, toff_t* length) {
  *base = const_cast<uint8_t*>(memory(handle).bytes.data());
  *length = memory(handle).bytes.size();
  return 1;
}
void unmap(thandle_t, void*, toff_t) {}
int quiet(TIFF*, void*, const char*, const char*, va_list) { return 1; }

}  // namespace

bool decode_tiff(Bytes bytes, Image& image) {
  if (!begins_with(bytes, "II") && !begins_with(bytes, "MM")) return false;
  const std::unique_ptr<TIFFOpenOptions, void (*)(TIFFOpenOptions*)> options(TIFFOpenOptionsAlloc(),
                                                                             TIFFOpenOptionsFree);
  if (!options) throw std::bad_alloc();
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), quiet, nullptr);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), quiet, nullptr);
  TIFFOpenOptionsSetMaxSingleMemAlloc(options.get(), 8 * most_pixels);
  Memory held{bytes};
  const std::unique_ptr<TIFF, void (*)(TIFF*)> file(
      TIFFClientOpenExt("stream", "r", &held, read, write, seek, close, size, map, unmap, options.get()),
      TIFFClose);
  uint32_t width = 0, height = 0;
  if (!file || !TIFFGetField(file.get(), TIFFTAG_IMAGEWIDTH, &width) ||
      !TIFFGetField(file.get(), TIFFTAG_IMAGELENGTH, &height) || !image.allocate(width, height))
    return false;
  std::vector<uint32_t> raster(static_cast<size_t>(image.width * image.height));
  if (!TIFFReadRGBAImageOriented(file.get(), width, height, raster.data(), ORIENTATION_TOPLEFT, 1))
    return false;
  for (size_t i = 0; i < raster.size(); ++i) {
    image.rgb[3 * i] = static_cast<uint8_t>(TIFFGetR(raster[i]));
    image.rgb[3 * i + 1] = static_cast<uint8_t>(TIFFGetG(raster[i]));
    image.rgb[3 * i + 2] = static_cast<uint8_t>(TIFFGetB(raster[i]));
  }
  return true;
}

}  // namespace tenon::media
