// Windows bitmaps: headers of 12 and of 40 bytes and more, palettes of 1, 4 and 8 bits, 16 to 32 bits with
// masks, runs of 4 and 8 bits.
#include "image.hpp"

namespace tenon::media {
namespace {

enum Compression : uint32_t { none = 0, runs8 = 1, runs4 = 2, masks = 3, masks_alpha = 6 };

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}
  bool has(uint64_t at, uint64_t count) const { return at <= bytes_.size() && count <= bytes_.size() - at; }
  uint32_t number(uint64_t at, int size) const {
    uint32_t r = 0;
    for (int i = 0; i < size; ++i)
      r |= static_cast<uint32_t>(bytes_[at + static_cast<uint64_t>(i)]) << (8 * i);
    return r;
  }
  uint8_t byte(uint64_t at) const { return bytes_[at]; }

 private:
  Bytes bytes_;
};

/// One colour of a masked pixel, spread over 8 bits.
uint8_t channel(uint32_t pixel, uint32_t mask) {
  if (mask == 0) return 0;
  int shift = 0;
  while (!(mask >> shift & 1)) ++shift;
  const uint64_t most = mask >> shift;
  return static_cast<uint8_t>((((pixel & mask) >> shift) * uint64_t{255} + most / 2) / most);
}

struct Bitmap {
  uint32_t bits = 0, compression = none, colours = 0;
  uint64_t palette = 0, palette_entry = 4, pixels = 0;
  uint32_t mask[3] = {};
};

void put_colour(const Reader& in, const Bitmap& b, uint32_t index, uint8_t* to) {
  if (index >= b.colours) return;  // black
  for (uint64_t i = 0; i < 3; ++i) to[i] = in.byte(b.palette + index * b.palette_entry + 2 - i);
}

/// Rows of pixels with nothing between; false when the file ends before.
bool read_rows(const Reader& in, const Bitmap& b, bool upwards, Image& image) {
  const uint64_t stride = (static_cast<uint64_t>(image.width) * b.bits + 31) / 32 * 4;
  if (!in.has(b.pixels, stride * static_cast<uint64_t>(image.height))) return false;
  for (int64_t y = 0; y < image.height; ++y) {
    const uint64_t row = b.pixels + stride * static_cast<uint64_t>(upwards ? image.height - 1 - y : y);
    for (int64_t x = 0; x < image.width; ++x) {
      uint8_t* to = image.pixel(x, y);
      const auto column = static_cast<uint64_t>(x);
      if (b.bits <= 8) {
        const uint64_t bit = column * b.bits;
        put_colour(in, b, in.byte(row + bit / 8) >> (8 - b.bits - bit % 8) & ((1u << b.bits) - 1), to);
      } else if (b.bits == 24) {
        for (uint64_t i = 0; i < 3; ++i) to[i] = in.byte(row + column * 3 + 2 - i);
      } else {
        const uint32_t pixel = in.number(row + column * (b.bits / 8), static_cast<int>(b.bits / 8));
        for (int i = 0; i < 3; ++i) to[i] = channel(pixel, b.mask[i]);
      }
    }
  }
  return true;
}

/// Runs: (count, value), or 0 and what to do. Rows go upwards.
bool read_runs(const Reader& in, const Bitmap& b, Image& image) {
  const bool small = b.bits == 4;
  int64_t x = 0, y = image.height - 1;
  const auto put = [&](uint32_t index) {
    if (x < image.width && y >= 0) put_colour(in, b, index, image.pixel(x, y));
    ++x;
  };
  for (uint64_t at = b.pixels; in.has(at, 2);) {
    const uint32_t count = in.byte(at), value = in.byte(at + 1);
    at += 2;
    if (count > 0) {
      for (uint32_t i = 0; i < count; ++i) put(!small ? value : i % 2 ? value & 15 : value >> 4);
    } else if (value == 0) {
      x = 0;
      --y;
    } else if (value == 1) {
      return true;
    } else if (value == 2) {
      if (!in.has(at, 2)) return false;
      x += in.byte(at);
      y -= in.byte(at + 1);
      at += 2;
    } else {
      const uint64_t size = small ? (value + 1) / 2 : value;
      if (!in.has(at, size)) return false;
      for (uint32_t i = 0; i < value; ++i)
        put(!small ? in.byte(at + i) : i % 2 ? in.byte(at + i / 2) & 15u : in.byte(at + i / 2) >> 4u);
      at += (size + 1) / 2 * 2;
    }
  }
  return true;  // a file cut at the end keeps what it has
}

}  // namespace

bool decode_bmp(Bytes bytes, Image& image) {
  const Reader in(bytes);
  if (!begins_with(bytes, "BM") || !in.has(0, 26)) return false;
  const uint64_t header = in.number(14, 4);
  const bool old = header == 12;
  if ((!old && header < 40) || !in.has(14, header)) return false;
  Bitmap b;
  b.pixels = in.number(10, 4);
  const auto extent = [&](uint64_t at) {  // of 16 bits once, today of 32 with a sign
    return old ? int64_t{in.number(at, 2)} : int64_t{static_cast<int32_t>(in.number(at, 4))};
  };
  const int64_t width = extent(18);
  int64_t height = extent(old ? 20 : 22);
  b.bits = in.number(old ? 24 : 28, 2);
  if (!old) b.compression = in.number(30, 4);
  const bool upwards = height > 0;
  if (height < 0) height = -height;
  const bool depth =
      b.bits == 1 || b.bits == 4 || b.bits == 8 || b.bits == 16 || b.bits == 24 || b.bits == 32;
  const bool runs = b.compression == runs8 || b.compression == runs4,
             masked = b.compression == masks || b.compression == masks_alpha;
  if (!depth || (!runs && !masked && b.compression != none)) return false;
  if ((runs && b.bits != (b.compression == runs8 ? 8u : 4u)) || (masked && b.bits != 16 && b.bits != 32))
    return false;
  b.palette = 14 + header;
  if (masked) {
    if (!in.has(54, 12)) return false;
    for (uint64_t i = 0; i < 3; ++i) b.mask[i] = in.number(54 + 4 * i, 4);
    if (header == 40) b.palette += 12;
  } else {
    const uint32_t five[] = {0x7c00, 0x3e0, 0x1f}, eight[] = {0xff0000, 0xff00, 0xff};
    std::copy(b.bits == 16 ? five : eight, (b.bits == 16 ? five : eight) + 3, b.mask);
  }
  if (b.bits <= 8) {
    b.palette_entry = old ? 3 : 4;
    b.colours = old ? 0 : in.number(46, 4);
    if (b.colours == 0 || b.colours > 1u << b.bits) b.colours = 1u << b.bits;
    if (!in.has(b.palette, b.colours * b.palette_entry)) return false;
  }
  if (!image.allocate(width, height)) return false;
  return runs ? read_runs(in, b, image) : read_rows(in, b, upwards, image);
}

}  // namespace tenon::media
