// Base64 (RFC 4648, with padding) of constants' bytes in text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

std::string encode_base64(const void* data, uint64_t bytes);
bool decode_base64(std::string_view text, std::string* bytes);  // false: malformed

}  // namespace tenon
