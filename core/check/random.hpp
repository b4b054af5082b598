// Random numbers that are the same on every machine and with every standard library: a seed is a repro.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace tenon::check {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // The stream of a name: inputs keep their values when other parts of a graph go away.
  Random(uint64_t seed, std::string_view name) : state_(seed) {
    for (const char c : name) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001b3u;
  }

  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Both ends included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  size_t below(size_t bound) { return static_cast<size_t>(next() % bound); }
  bool chance(double probability) { return unit() < probability; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * unit(); }
  template <class T>
  const T& of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(list.size())];
  }

 private:
  uint64_t state_;
};

}  // namespace tenon::check
