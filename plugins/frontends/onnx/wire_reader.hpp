// Reading protobuf messages out of a mapped file. protozero decodes the varints; this layer adds what outside
// data needs and protozero leaves out under NDEBUG: wire types are checked at every read, lengths are 64-bit,
// text is UTF-8, and each fault names its byte offset. Everything handed out points into the file.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include <protozero/exception.hpp>
#include <protozero/varint.hpp>

#include "tenon/sdk/base.hpp"

namespace tenon::onnx {

/// Is `s` well-formed UTF-8 (no overlong forms, no surrogates)?
bool is_utf8(std::string_view s) noexcept;

struct Bytes {
  const char* data = nullptr;
  uint64_t size = 0;
  std::string_view text() const noexcept { return {data, static_cast<size_t>(size)}; }
  bool empty() const noexcept { return size == 0; }
};

/// One message (or one packed field). Cheap to copy.
class Reader {
 public:
  enum class Wire : uint32_t { varint = 0, fixed64 = 1, length = 2, fixed32 = 5 };

  Reader() = default;
  Reader(Bytes message, const char* file_start) noexcept
      : at_(message.data), end_(message.data + message.size), start_(file_start) {}

  /// Moves to the next field; false at the end of the message. What was not read of the last one must be
  /// skipped.
  bool next() {
    if (at_ == end_) return false;
    const uint64_t key = raw_varint();
    field_ = static_cast<uint32_t>(key >> 3);
    wire_ = static_cast<Wire>(key & 7u);
    const bool known =
        wire_ == Wire::varint || wire_ == Wire::fixed64 || wire_ == Wire::length || wire_ == Wire::fixed32;
    if (key > UINT32_MAX || field_ == 0 || !known) malformed("a field header");
    return true;
  }
  uint32_t field() const noexcept { return field_; }
  Wire wire() const noexcept { return wire_; }
  uint64_t offset() const noexcept { return static_cast<uint64_t>(at_ - start_); }
  const char* file_start() const noexcept { return start_; }

  Bytes bytes() {
    expect(Wire::length, "bytes");
    const uint64_t size = raw_varint();
    if (size > static_cast<uint64_t>(end_ - at_))
      throw sdk::Failure(
          TN_ERR_INVALID,
          sdk::format(
              "field %u says it has %llu bytes, but the message around it ends after %llu; the file is "
              "cut short or damaged: fetch or export it again",
              field_, static_cast<unsigned long long>(size), static_cast<unsigned long long>(end_ - at_)),
          place());
    const Bytes b{at_, size};
    at_ += size;
    return b;
  }
  Reader message() { return Reader(bytes(), start_); }
  std::string_view text() {
    const Bytes b = bytes();
    if (!is_utf8(b.text())) malformed("text that is not UTF-8");
    return b.text();
  }
  int64_t integer() {
    expect(Wire::varint, "an integer");
    return static_cast<int64_t>(raw_varint());
  }
  float float32() {
    expect(Wire::fixed32, "a float");
    return fixed<float>();
  }
  double float64() {
    expect(Wire::fixed64, "a double");
    return fixed<double>();
  }
  void skip() {
    switch (wire_) {
      case Wire::varint:
        raw_varint();
        break;
      case Wire::fixed64:
        fixed<uint64_t>();
        break;
      case Wire::fixed32:
        fixed<uint32_t>();
        break;
      case Wire::length:
        bytes();
        break;
    }
  }

  /// Appends a repeated number field, packed or not.
  void integers(std::vector<int64_t>& out) {
    if (wire_ == Wire::varint) return out.push_back(integer());
    Reader packed = message();
    while (packed.at_ != packed.end_) out.push_back(static_cast<int64_t>(packed.raw_varint()));
  }
  void floats(std::vector<double>& out) {
    const Bytes piece = fixed_piece<float>(Wire::fixed32);
    for (uint64_t i = 0; i < piece.size; i += sizeof(float)) {
      float value;
      std::memcpy(&value, piece.data + i, sizeof value);
      out.push_back(static_cast<double>(value));
    }
  }
  /// The little-endian bytes of a repeated fixed-width field as they lie in the file: one number, or a packed
  /// list.
  template <class T>
  Bytes fixed_piece(Wire single) {
    if (wire_ == single) {
      const char* from = at_;
      fixed<T>();
      return {from, sizeof(T)};
    }
    const Bytes packed = bytes();
    if (packed.size % sizeof(T) != 0) malformed("a packed list with a part of a number at its end");
    return packed;
  }

  std::string place() const { return sdk::format("byte %llu", static_cast<unsigned long long>(offset())); }

  [[noreturn]] void malformed(const char* found) const {
    throw sdk::Failure(
        TN_ERR_INVALID,
        std::string("found ") + found + " where it cannot be; this is no ONNX file, or it is damaged",
        place());
  }

 private:
  void expect(Wire wanted, const char* what) const {
    if (wire_ == wanted) return;
    throw sdk::Failure(
        TN_ERR_INVALID,
        sdk::format(
            "field %u has wire type %u, expected %s (wire type %u); this is no ONNX file, or it is damaged",
            field_, static_cast<unsigned>(wire_), what, static_cast<unsigned>(wanted)),
        place());
  }
  uint64_t raw_varint() {
    try {
      return protozero::decode_varint(&at_, end_);
    } catch (const protozero::exception&) {
      malformed("a number that does not end");
    }
  }
  template <class T>
  T fixed() {
    if (static_cast<size_t>(end_ - at_) < sizeof(T)) malformed("a number cut short");
    T value;
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  const char* at_ = nullptr;
  const char* end_ = nullptr;
  const char* start_ = nullptr;
  uint32_t field_ = 0;
  Wire wire_ = Wire::varint;
};

}  // namespace tenon::onnx
