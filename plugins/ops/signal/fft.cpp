#include "signal/fft.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::reference {
namespace {

constexpr int64_t largest_factor = 31;
constexpr double pi = 3.141592653589793238462643383279502884;

// std::complex's own product looks for infinities in every step.
inline Complex times(Complex a, Complex b) noexcept {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

/// exp(-2 pi i k / n), from an angle of at most an eighth of a turn, so that symmetric roots are symmetric
/// bits.
Complex root(int64_t k, int64_t n) noexcept {
  k %= n;
  const int64_t eighths = 8 * k;  // lengths stay far below 2^60
  const auto at = [n](int64_t q) { return 2 * pi * static_cast<double>(q) / static_cast<double>(n); };
  if (eighths <= n) return {std::cos(at(k)), -std::sin(at(k))};
  if (eighths <= 3 * n) {
    const double angle = 2 * pi * static_cast<double>(4 * k - n) / (4 * static_cast<double>(n));
    return {-std::sin(angle), -std::cos(angle)};
  }
  if (eighths <= 5 * n) {
    const double angle = 2 * pi * static_cast<double>(2 * k - n) / (2 * static_cast<double>(n));
    return {-std::cos(angle), std::sin(angle)};
  }
  if (eighths <= 7 * n) {
    const double angle = 2 * pi * static_cast<double>(4 * k - 3 * n) / (4 * static_cast<double>(n));
    return {std::sin(angle), std::cos(angle)};
  }
  return {std::cos(at(k - n)), -std::sin(at(k - n))};
}

/// The factors of n, four before two; empty when one is too large.
std::vector<int64_t> factors_of(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t p : {4, 2, 3, 5})
    for (; n % p == 0; n /= p) factors.push_back(p);
  for (int64_t p = 7; p <= largest_factor; p += 2)
    for (; n % p == 0; n /= p) factors.push_back(p);
  if (n != 1) factors.clear();
  return factors;
}

}  // namespace

Fft::Fft(int64_t length) : length_(length) {
  int64_t n = length;
  factors_ = factors_of(n);
  const bool by_convolution = n > 1 && factors_.empty();
  if (by_convolution) {
    n = 1;
    while (n < 2 * length - 1) n *= 2;
    factors_ = factors_of(n);
  }
  roots_.resize(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) roots_[static_cast<size_t>(k)] = root(k, n);
  if (!by_convolution) return;
  // k k modulo 2 length, kept from term to term: the square itself would leave the integers.
  int64_t square = 0;
  for (int64_t k = 0; k < length; ++k) {
    chirp_.push_back(root(square, 2 * length));
    square = (square + 2 * k + 1) % (2 * length);
  }
  std::vector<Complex> scratch(static_cast<size_t>(n));
  filter_.resize(static_cast<size_t>(n));
  filter_[0] = std::conj(chirp_[0]);
  for (int64_t k = 1; k < length; ++k)
    filter_[static_cast<size_t>(k)] = filter_[static_cast<size_t>(n - k)] =
        std::conj(chirp_[static_cast<size_t>(k)]);
  stages(filter_.data(), scratch.data());
}

int64_t Fft::scratch() const noexcept {
  const auto n = static_cast<int64_t>(roots_.size());
  return chirp_.empty() ? n : 2 * n;
}

void Fft::stages(Complex* x, Complex* scratch) const noexcept {
  const auto n = static_cast<int64_t>(roots_.size());
  Complex *from = x, *to = scratch;
  int64_t left = n, stride = 1;  // stride transforms of length `left` are still to be done
  for (const int64_t p : factors_) {
    const int64_t m = left / p;
    for (int64_t j = 0; j < m; ++j) {
      const Complex* a = from + stride * j;
      Complex* b = to + stride * p * j;
      if (p == 2) {
        const Complex w = roots_[static_cast<size_t>(j * stride)];
        for (int64_t q = 0; q < stride; ++q) {
          const Complex u = a[q], v = a[q + stride * m];
          b[q] = u + v;
          b[q + stride] = times(w, u - v);
        }
      } else if (p == 4) {
        const Complex w1 = roots_[static_cast<size_t>(j * stride)],
                      w2 = roots_[static_cast<size_t>(2 * j * stride)],
                      w3 = roots_[static_cast<size_t>(3 * j * stride)];
        for (int64_t q = 0; q < stride; ++q) {
          const Complex a0 = a[q], a1 = a[q + stride * m], a2 = a[q + 2 * stride * m],
                        a3 = a[q + 3 * stride * m];
          const Complex even = a0 + a2, odd = a1 + a3, half = a0 - a2, d = a1 - a3;
          const Complex quarter(d.imag(), -d.real());  // -i d
          b[q] = even + odd;
          b[q + stride] = times(w1, half + quarter);
          b[q + 2 * stride] = times(w2, even - odd);
          b[q + 3 * stride] = times(w3, half - quarter);
        }
      } else {
        const int64_t turn = n / p;
        for (int64_t q = 0; q < stride; ++q) {
          Complex inputs[largest_factor];
          for (int64_t r = 0; r < p; ++r) inputs[r] = a[q + r * stride * m];
          for (int64_t k = 0; k < p; ++k) {
            Complex sum = inputs[0];
            int64_t at = 0;
            for (int64_t r = 1; r < p; ++r) {
              at += k;
              if (at >= p) at -= p;
              sum += times(roots_[static_cast<size_t>(at * turn)], inputs[r]);
            }
            b[q + k * stride] = times(roots_[static_cast<size_t>(j * k * stride)], sum);
          }
        }
      }
    }
    left = m;
    stride *= p;
    std::swap(from, to);
  }
  if (from != x) std::copy(from, from + n, x);
}

void Fft::convolution(Complex* x, Complex* scratch) const noexcept {
  const auto n = static_cast<int64_t>(roots_.size());
  Complex* y = scratch + n;
  for (int64_t k = 0; k < length_; ++k) y[k] = times(x[k], chirp_[static_cast<size_t>(k)]);
  std::fill(y + length_, y + n, Complex());
  stages(y, scratch);
  for (int64_t k = 0; k < n; ++k) y[k] = std::conj(times(y[k], filter_[static_cast<size_t>(k)]));
  stages(y, scratch);  // of the conjugate: the inverse, conjugated and not yet divided
  const double scale = 1 / static_cast<double>(n);
  for (int64_t k = 0; k < length_; ++k) x[k] = times(std::conj(y[k]) * scale, chirp_[static_cast<size_t>(k)]);
}

void Fft::forward(Complex* x, Complex* scratch) const noexcept {
  if (length_ < 2) return;
  if (chirp_.empty())
    stages(x, scratch);
  else
    convolution(x, scratch);
}

void Fft::inverse(Complex* x, Complex* scratch) const noexcept {
  for (int64_t k = 0; k < length_; ++k) x[k] = std::conj(x[k]);
  forward(x, scratch);
  const double scale = 1 / static_cast<double>(length_);
  for (int64_t k = 0; k < length_; ++k) x[k] = std::conj(x[k]) * scale;
}

}  // namespace tenon::reference
