#include "wire_reader.hpp"

namespace tenon::onnx {

bool is_utf8(std::string_view s) noexcept {
  const auto* p = reinterpret_cast<const unsigned char*>(s.data());
  const auto* end = p + s.size();
  while (p != end) {
    uint64_t eight;
    if (end - p >= 8 && (std::memcpy(&eight, p, 8), (eight & 0x8080808080808080u) == 0)) {
      p += 8;
      continue;
    }
    const unsigned c = *p++;
    if (c < 0x80) continue;
    const int more = c >= 0xf0 && c < 0xf5 ? 3 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xc2 && c < 0xe0 ? 1 : 0;
    if (more == 0 || end - p < more) return false;
    const unsigned second = *p;
    if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second > 0x9f) || (c == 0xf0 && second < 0x90) ||
        (c == 0xf4 && second > 0x8f))
      return false;
    for (int i = 0; i < more; ++i)
      if ((*p++ & 0xc0u) != 0x80u) return false;
  }
  return true;
}

}  // namespace tenon::onnx
