// Portable bitmaps, graymaps and pixmaps (P1 to P6), and portable arbitrary maps (P7).
#include "image.hpp"

namespace tenon::media {
namespace {

bool is_space(uint8_t c) { return c == ' ' || (c >= 9 && c <= 13); }

class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}
  bool at_end() const { return at_ >= bytes_.size(); }
  uint8_t next() { return at_end() ? uint8_t{0} : bytes_[at_++]; }
  size_t left() const { return bytes_.size() - at_; }
  void skip_space() {
    while (!at_end() && (is_space(bytes_[at_]) || bytes_[at_] == '#'))
      if (next() == '#')
        while (!at_end() && next() != '\n') {
        }
  }
  std::string_view word() {
    skip_space();
    const size_t begin = at_;
    while (!at_end() && !is_space(bytes_[at_])) ++at_;
    return {reinterpret_cast<const char*>(bytes_.data()) + begin, at_ - begin};
  }
  /// -1 when there is none.
  int64_t number() {
    skip_space();
    int64_t r = -1;
    while (!at_end() && bytes_[at_] >= '0' && bytes_[at_] <= '9') {
      r = (r < 0 ? 0 : r) * 10 + (next() - '0');
      if (r > INT32_MAX) return -1;
    }
    return r;
  }

 private:
  Bytes bytes_;
  size_t at_ = 0;
};

struct Map {
  int64_t width = 0, height = 0, most = 1, channels = 1;
  bool plain = false, bits = false;  // numbers as text; eight pixels a byte
};

bool read_header(Reader& in, char kind, Map& m) {
  if (kind == '7') {
    for (std::string_view word = in.word(); word != "ENDHDR"; word = in.word()) {
      if (word == "WIDTH")
        m.width = in.number();
      else if (word == "HEIGHT")
        m.height = in.number();
      else if (word == "DEPTH")
        m.channels = in.number();
      else if (word == "MAXVAL")
        m.most = in.number();
      else if (word == "TUPLTYPE")
        in.word();
      else
        return false;
    }
  } else {
    m.width = in.number();
    m.height = in.number();
    m.bits = kind == '1' || kind == '4';
    if (!m.bits) m.most = in.number();
    m.channels = kind == '3' || kind == '6' ? 3 : 1;
    m.plain = kind < '4';
  }
  if (!m.plain) in.next();  // the one blank before the pixels
  return m.width > 0 && m.height > 0 && m.most >= 1 && m.most <= 65535 && m.channels >= 1 && m.channels <= 4;
}

}  // namespace

bool decode_pnm(Bytes bytes, Image& image) {
  Reader in(bytes);
  if (in.next() != 'P') return false;
  const char kind = static_cast<char>(in.next());
  Map m;
  if (kind < '1' || kind > '7' || !read_header(in, kind, m)) return false;
  const int64_t sample = m.most > 255 ? 2 : 1;
  const int64_t row = m.bits ? (m.width + 7) / 8 : m.width * m.channels * sample;
  if (!m.plain && static_cast<int64_t>(in.left()) / row < m.height) return false;
  if (!image.allocate(m.width, m.height)) return false;
  const bool coloured = m.channels >= 3;
  for (int64_t y = 0; y < m.height; ++y) {
    uint8_t packed = 0;
    for (int64_t x = 0; x < m.width; ++x) {
      int64_t v[4] = {};
      for (int64_t c = 0; c < m.channels; ++c) {
        if (m.bits && m.plain) {
          in.skip_space();
          const uint8_t digit = in.next();
          if (digit != '0' && digit != '1') return false;
          v[c] = digit == '0';
        } else if (m.bits) {
          if (x % 8 == 0) packed = in.next();
          v[c] = !(packed >> (7 - x % 8) & 1);
        } else if (m.plain) {
          v[c] = in.number();
        } else {
          v[c] = in.next();
          if (sample == 2) v[c] = v[c] << 8 | in.next();
        }
        if (v[c] < 0 || v[c] > m.most) return false;
      }
      uint8_t* to = image.pixel(x, y);
      for (int i = 0; i < 3; ++i)
        to[i] = static_cast<uint8_t>((v[coloured ? i : 0] * 255 + m.most / 2) / m.most);
    }
  }
  return true;
}

}  // namespace tenon::media
