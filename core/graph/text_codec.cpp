#include "core/graph/text_codec.hpp"

namespace tenon {

namespace {
constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}
}  // namespace

std::string encode_base64(const void* data, uint64_t bytes) {
  const auto* const at = static_cast<const unsigned char*>(data);
  std::string out;
  out.reserve((bytes + 2) / 3 * 4);
  for (uint64_t i = 0; i < bytes; i += 3) {
    const uint64_t left = bytes - i;
    const uint32_t word =
        (uint32_t(at[i]) << 16) | (left > 1 ? uint32_t(at[i + 1]) << 8 : 0) | (left > 2 ? at[i + 2] : 0);
    out += alphabet[word >> 18];
    out += alphabet[(word >> 12) & 63];
    out += left > 1 ? alphabet[(word >> 6) & 63] : '=';
    out += left > 2 ? alphabet[word & 63] : '=';
  }
  return out;
}

bool decode_base64(std::string_view text, std::string* bytes) {
  bytes->clear();
  if (text.size() % 4 != 0) return false;
  bytes->reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t word = 0;
    int padding = 0;
    for (size_t k = 0; k < 4; ++k) {
      const char c = text[i + k];
      if (c == '=' && k >= 2 && i + 4 == text.size()) {
        ++padding;
        word <<= 6;
        continue;
      }
      const int digit = digit_of(c);
      if (digit < 0 || padding != 0) return false;
      word = (word << 6) | static_cast<uint32_t>(digit);
    }
    *bytes += static_cast<char>(word >> 16);
    if (padding < 2) *bytes += static_cast<char>((word >> 8) & 255);
    if (padding < 1) *bytes += static_cast<char>(word & 255);
  }
  return true;
}

}  // namespace tenon
