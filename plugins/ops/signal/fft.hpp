// Discrete Fourier transforms of any length in float64, O(n log n).
//
// A length whose prime factors are small is transformed by stages of those factors (Stockham's order, which
// needs no permutation); another one by Bluestein's convolution over a power of two.
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

namespace tenon::reference {

using Complex = std::complex<double>;

class Fft {
 public:
  explicit Fft(int64_t length);
  int64_t length() const noexcept { return length_; }
  /// Numbers that `scratch` must hold in transform().
  int64_t scratch() const noexcept;
  /// x[k] <- sum over n of x[n] exp(-2 pi i k n / length), in place.
  void forward(Complex* x, Complex* scratch) const noexcept;
  /// The same with +, divided by the length.
  void inverse(Complex* x, Complex* scratch) const noexcept;

 private:
  void stages(Complex* x, Complex* scratch) const noexcept;
  void convolution(Complex* x, Complex* scratch) const noexcept;

  int64_t length_;
  std::vector<int64_t> factors_;  // of the length, or of the convolution's
  std::vector<Complex> roots_;    // exp(-2 pi i k / n) for the length the stages work on
  std::vector<Complex> chirp_;    // Bluestein's exp(-pi i k k / length); empty without it
  std::vector<Complex> filter_;   // transform of its conjugate, over the convolution's length
};

}  // namespace tenon::reference
