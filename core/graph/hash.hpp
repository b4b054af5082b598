// A 64-bit hash of bytes: fixed, so that what is derived from it (names of constants in text) is the same
// everywhere.
#pragma once
#include <cstdint>
#include <cstring>

namespace tenon {

inline uint64_t mix_hash(uint64_t hash, uint64_t value) {
  hash ^= value;
  hash *= 0x9fb21c651e98df25ull;
  return hash ^ (hash >> 29) ^ (hash >> 47);
}

inline uint64_t hash_bytes(const void* data, uint64_t bytes, uint64_t seed = 0x2545f4914f6cdd1dull) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t hash = seed ^ bytes;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at, 8);
    hash = mix_hash(hash, word);
  }
  if (bytes != 0) {
    uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    hash = mix_hash(hash, word);
  }
  return mix_hash(hash, 0x9e3779b97f4a7c15ull);
}

}  // namespace tenon
