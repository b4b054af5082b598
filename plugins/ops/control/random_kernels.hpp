// A small counter-based generator: element i of stream `seed` is a fixed function of both, so tiles need no
// order.
#pragma once
#include <cmath>
#include <cstdint>

namespace tenon::reference {

/// SplitMix64's output function (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
inline uint64_t mix(uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
/// In [0, 1), 53 bits.
inline double uniform_at(uint64_t seed, uint64_t i) noexcept {
  return static_cast<double>(mix(mix(seed) ^ (i * 0xd1342543de82ef95u)) >> 11) * 0x1p-53;
}
/// Standard normal by Box and Muller's transform.
inline double normal_at(uint64_t seed, uint64_t i) noexcept {
  const double u = 1 - uniform_at(seed, 2 * i), v = uniform_at(seed, 2 * i + 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586476925 * v);
}

}  // namespace tenon::reference
