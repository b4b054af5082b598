// Protobuf messages written into a string, with 64-bit lengths.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tenon::onnx {

inline void put_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80u));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}
inline void put_tag(std::string& out, uint32_t field, uint32_t wire) {
  put_varint(out, (static_cast<uint64_t>(field) << 3) | wire);
}
/// Tag and length of a field whose bytes follow by another way.
inline void put_length(std::string& out, uint32_t field, uint64_t bytes) {
  put_tag(out, field, 2);
  put_varint(out, bytes);
}
inline void put_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  put_length(out, field, bytes.size());
  out.append(bytes);
}
inline void put_int(std::string& out, uint32_t field, int64_t value) {
  put_tag(out, field, 0);
  put_varint(out, static_cast<uint64_t>(value));
}
inline void put_float(std::string& out, uint32_t field, float value) {
  put_tag(out, field, 5);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

}  // namespace tenon::onnx
