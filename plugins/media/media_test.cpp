// Decoders on small images written here; what is damaged, cut or too large.
#include <catch2/catch.hpp>

#include "image.hpp"

namespace tenon::media {
namespace {

std::vector<uint8_t> bytes_of(std::string_view text) { return {text.begin(), text.end()}; }
void put(std::vector<uint8_t>& to, uint32_t value, int size) {
  for (int i = 0; i < size; ++i) to.push_back(i < 4 ? static_cast<uint8_t>(value >> (8 * i)) : uint8_t{0});
}
/// A bitmap of that depth; `rest` is what stands behind the 40 bytes of its header.
std::vector<uint8_t> bitmap(int32_t width, int32_t height, uint32_t bits, uint32_t compression,
                            uint32_t colours, const std::vector<uint8_t>& palette,
                            const std::vector<uint8_t>& pixels) {
  std::vector<uint8_t> r = bytes_of("BM");
  put(r, 0, 8);
  put(r, static_cast<uint32_t>(54 + palette.size()), 4);
  put(r, 40, 4);
  put(r, static_cast<uint32_t>(width), 4);
  put(r, static_cast<uint32_t>(height), 4);
  put(r, 1, 2);
  put(r, bits, 2);
  put(r, compression, 4);
  put(r, 0, 12);
  put(r, colours, 4);
  put(r, 0, 4);
  r.insert(r.end(), palette.begin(), palette.end());
  r.insert(r.end(), pixels.begin(), pixels.end());
  return r;
}
using Rgb = std::vector<uint8_t>;

}  // namespace

TEST_CASE("portable maps of every kind") {
  struct Case {
    std::string_view file;
    int64_t width, height;
    Rgb rgb;
  };
  const Case cases[] = {
      {"P1\n# a comment\n2 1\n0 1\n", 2, 1, {255, 255, 255, 0, 0, 0}},
      {"P1 2 1 01", 2, 1, {255, 255, 255, 0, 0, 0}},
      {"P2 2 1 10\n0 10", 2, 1, {0, 0, 0, 255, 255, 255}},
      {"P3 1 1 255 1 2 3", 1, 1, {1, 2, 3}},
      {std::string_view("P4 3 1\n\x40", 8), 3, 1, {255, 255, 255, 0, 0, 0, 255, 255, 255}},
      {std::string_view("P5 1 2 255\n\x07\x09", 13), 1, 2, {7, 7, 7, 9, 9, 9}},
      {std::string_view("P5 1 1 65535\n\xff\xff", 15), 1, 1, {255, 255, 255}},
      {std::string_view("P6 1 1 255\n\x01\x02\x03", 14), 1, 1, {1, 2, 3}},
      {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcd", 1, 1, {97, 98, 99}},
  };
  for (const auto& c : cases) {
    const auto file = bytes_of(c.file);
    Image image;
    INFO(c.file);
    REQUIRE(decode_pnm(file, image));
    CHECK(image.width == c.width);
    CHECK(image.height == c.height);
    CHECK(image.rgb == c.rgb);
    for (size_t cut = 0; cut + 1 < file.size();
         ++cut) {  // a cut file is none; what text is left may be shorter
      Image none;
      const bool plain = c.file[1] < '4';
      if (!plain) CHECK_FALSE(decode_pnm(Bytes(file.data(), cut), none));
    }
  }
  for (std::string_view wrong :
       {"P3 1 1 255 1 2 300", "P5 0 1 255\nx", "P8 1 1 1", "P5 1 1 70000\nxx", "P1 1 1 7"}) {
    Image image;
    CHECK_FALSE(decode_pnm(bytes_of(wrong), image));
  }
}

TEST_CASE("bitmaps of every depth") {
  const std::vector<uint8_t> two{0, 0, 255, 0, 255, 0, 0, 0};  // red, blue; stored as blue, green, red
  struct Case {
    const char* what;
    std::vector<uint8_t> file;
    Rgb rgb;
  };
  const Rgb red_blue{255, 0, 0, 0, 0, 255};
  const Case cases[] = {
      {"1 bit", bitmap(2, 1, 1, 0, 2, two, {0x40, 0, 0, 0}), red_blue},
      {"4 bits", bitmap(2, 1, 4, 0, 2, two, {0x01, 0, 0, 0}), red_blue},
      {"8 bits", bitmap(2, 1, 8, 0, 2, two, {0, 1, 0, 0}), red_blue},
      {"8 bits, beyond the palette", bitmap(2, 1, 8, 0, 2, two, {0, 9, 0, 0}), {255, 0, 0, 0, 0, 0}},
      {"16 bits", bitmap(2, 1, 16, 0, 0, {}, {0x00, 0x7c, 0x1f, 0x00}), red_blue},
      {"24 bits, from the bottom", bitmap(1, 2, 24, 0, 0, {}, {255, 0, 0, 0, 0, 0, 255, 0}), red_blue},
      {"24 bits, from the top", bitmap(1, -2, 24, 0, 0, {}, {0, 0, 255, 0, 255, 0, 0, 0}), red_blue},
      {"32 bits", bitmap(2, 1, 32, 0, 0, {}, {0, 0, 255, 9, 255, 0, 0, 9}), red_blue},
      {"16 bits with masks",
       bitmap(2, 1, 16, 3, 0, {0x00, 0xf8, 0, 0, 0xe0, 0x07, 0, 0, 0x1f, 0, 0, 0}, {0x00, 0xf8, 0x1f, 0x00}),
       red_blue},
      {"runs of 8 bits", bitmap(2, 1, 8, 1, 2, two, {1, 0, 1, 1, 0, 1}), red_blue},
      {"runs of 8 bits, literal",
       bitmap(3, 1, 8, 1, 2, two, {0, 3, 0, 1, 0, 0, 0, 1}),
       {255, 0, 0, 0, 0, 255, 255, 0, 0}},
      {"runs of 4 bits", bitmap(2, 1, 4, 2, 2, two, {2, 0x01, 0, 1}), red_blue},
  };
  for (const auto& c : cases) {
    INFO(c.what);
    Image image;
    REQUIRE(decode_bmp(c.file, image));
    CHECK(image.rgb == c.rgb);
    for (size_t cut = 0; cut < c.file.size(); ++cut) {  // never beyond the end
      const std::vector<uint8_t> part(c.file.begin(), c.file.begin() + static_cast<std::ptrdiff_t>(cut));
      Image other;
      decode_bmp(part, other);
    }
  }
  Image image;
  CHECK_FALSE(decode_bmp(bitmap(2, 1, 7, 0, 0, {}, {0, 0, 0, 0}), image));
  CHECK_FALSE(decode_bmp(bitmap(-2, 1, 24, 0, 0, {}, std::vector<uint8_t>(8)), image));
  CHECK_THROWS_WITH(decode_bmp(bitmap(2, INT32_MIN, 24, 0, 0, {}, {}), image),
                    Catch::Contains("2 x 2147483648 pixels"));
}

TEST_CASE("an image that claims too much is refused before memory is asked for") {
  Image image;
  CHECK_THROWS_WITH(decode_bmp(bitmap(INT32_MAX, INT32_MAX, 24, 0, 0, {}, {}), image),
                    Catch::Contains("2147483647 x 2147483647 pixels; the most is"));
}

TEST_CASE("each decoder leaves other files alone") {
  constexpr bool (*decoders[])(Bytes, Image&) = {decode_jpeg, decode_png,      decode_bmp, decode_webp,
                                                 decode_tiff, decode_jpeg2000, decode_pnm};
  for (std::string_view file :
       {std::string_view(""), std::string_view("x"), std::string_view("\xff\xd8\xff\xe0 cut"),
        std::string_view("\x89PNG\r\n\x1a\n cut"), std::string_view("RIFF\0\0\0\0WEBP", 12),
        std::string_view("II*\0", 4), std::string_view("\xff\x4f\xff\x51 cut"), std::string_view("BM cut"),
        std::string_view("P6 cut")})
    for (auto* decoder : decoders) {
      Image image;
      CHECK_FALSE(decoder(bytes_of(file), image));
    }
}

}  // namespace tenon::media
