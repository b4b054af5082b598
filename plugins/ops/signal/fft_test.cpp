// Transforms of every kind of length against the sum that defines them.
#include "signal/fft.hpp"

#include <catch2/catch.hpp>

namespace tenon::reference::test {
namespace {

std::vector<Complex> noise(int64_t n) {
  std::vector<Complex> x;
  uint64_t seed = static_cast<uint64_t>(n);
  const auto next = [&] {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<int64_t>(seed) >> 40) * 0x1p-23;
  };
  for (int64_t i = 0; i < n; ++i) {
    const double re = next();
    x.emplace_back(re, next());
  }
  return x;
}
std::vector<Complex> defined(const std::vector<Complex>& x) {
  const auto n = static_cast<int64_t>(x.size());
  std::vector<Complex> y(x.size());
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < n; ++i) {
      const double angle =
          -6.283185307179586476925287 * static_cast<double>(i * k % n) / static_cast<double>(n);
      y[static_cast<size_t>(k)] += x[static_cast<size_t>(i)] * Complex(std::cos(angle), std::sin(angle));
    }
  return y;
}
double distance(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double most = 0;
  for (size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("transforms of all lengths") {
  std::vector<int64_t> lengths;
  for (int64_t n = 1; n <= 70; ++n)
    lengths.push_back(n);  // small factors, and primes that take the convolution
  for (int64_t n : {74, 97, 128, 210, 243, 256, 343, 360, 511, 1000, 1009, 1024}) lengths.push_back(n);
  for (int64_t n : lengths) {
    INFO("length " << n);
    const Fft fft(n);
    const auto x = noise(n);
    std::vector<Complex> y = x, scratch(static_cast<size_t>(fft.scratch()));
    fft.forward(y.data(), scratch.data());
    CHECK(distance(y, defined(x)) < 1e-13 * static_cast<double>(n + 8));
    fft.inverse(y.data(), scratch.data());
    CHECK(distance(y, x) < 1e-14 * static_cast<double>(n + 8));
  }
}

TEST_CASE("a transform of real numbers is symmetric bit for bit where its length is a power of two") {
  const Fft fft(64);
  auto x = noise(64);
  for (auto& v : x) v.imag(0);
  std::vector<Complex> scratch(static_cast<size_t>(fft.scratch()));
  fft.forward(x.data(), scratch.data());
  CHECK(x[0].imag() == 0);
  CHECK(x[32].imag() == 0);
}

}  // namespace tenon::reference::test
