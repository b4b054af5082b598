// What a generated case leaves open, decided one question at a time, and decided otherwise the next time.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tenon::rules {

/// Deterministic on every machine, unlike the distributions of the standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  double uniform();  // [0, 1)
  /// A number of "normal(0,1)", "uniform(-1,1)" or "choice(a,b)".
  double draw(const std::string& distribution);

 private:
  uint64_t state_;
};

/// The answers of one attempt, in the order the questions were asked. The next attempt repeats them and
/// changes the last that has another answer: depth first over everything a builder may ask, without the
/// builder knowing.
class Choices {
 public:
  /// One of `count` answers, at least one; the first is the most usual.
  size_t pick(size_t count);
  /// Makes ready for the next attempt; false when every answer was given.
  bool next();
  /// From now on answers are drawn.
  void draw(uint64_t seed);
  /// The same answers once more.
  void again() { at_ = 0; }

 private:
  std::vector<std::pair<size_t, size_t>> made_;  // answer, of how many
  size_t at_ = 0;
  bool drawn_ = false;
  Random random_{1};
};

}  // namespace tenon::rules
