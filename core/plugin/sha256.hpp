// SHA-256 (FIPS 180-4) of a file, for the pins of manifests.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon {

class Sha256 {
 public:
  void update(const void* data, size_t bytes);
  std::string hex();  // lower case; ends the sum

 private:
  void block(const uint8_t* data);
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t total_bytes_ = 0;
};

}  // namespace tenon
