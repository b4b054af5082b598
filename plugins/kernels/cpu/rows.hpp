// Row-wise kernels on contiguous float32, vectorised. A row is n elements; y may be x.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace tenon::cpu {

/// Softmax of one row (log: LogSoftmax). A row of -inf only gives NaN, as the standard's formula does.
void softmax_row(const float* x, float* y, int64_t n, bool log) noexcept;
/// y = (x - mean) / sqrt(var + epsilon) * scale + bias; bias may be NULL; mean_out, inv_std_out may be NULL.
void layer_norm_row(const float* x, const float* scale, const float* bias, float* y, int64_t n, float epsilon,
                    float* mean_out, float* inv_std_out) noexcept;
/// y = x / sqrt(mean(x^2) + epsilon) * scale.
void rms_norm_row(const float* x, const float* scale, float* y, int64_t n, float epsilon) noexcept;
/// s[i] = s[i] * scale + mask[i]; mask may be NULL.
void scale_row(float* s, float scale, const float* mask, int64_t n) noexcept;
/// acc[i] += w * x[i * step]
void multiply_add_row(float* acc, float w, const float* x, int64_t n) noexcept;
/// y[i] = max(y[i], x[i]), NaN wins; y[i] += x[i]
void max_row(float* y, const float* x, int64_t n) noexcept;
void add_row(float* y, const float* x, int64_t n) noexcept;

enum class Binary : uint32_t { Add, Sub, Mul, Div, Max, Min };
/// What an operator of two operands computes; nothing when this plugin does not have it.
std::optional<Binary> binary_of(std::string_view op);
/// y = a op b; a step of 0 repeats the operand's first element, 1 walks it.
void binary_row(Binary op, const float* a, int a_step, const float* b, int b_step, float* y,
                int64_t n) noexcept;

}  // namespace tenon::cpu
