// Where each matrix of a broadcast batch begins.
#pragma once
#include "tenon/sdk/kernels.hpp"

namespace tenon::cpu {

/// Offsets, in elements, of an operand's matrices over the result's batch dims; `dims` are the operand's own
/// batch dims, broadcast; `matrix` is the size of one matrix. Declines dims that do not broadcast.
inline std::vector<int64_t> batch_offsets(sdk::Span<const int64_t> dims, sdk::Span<const int64_t> batch,
                                          int64_t matrix) {
  int64_t count = 1;
  for (int64_t d : batch) count *= d;
  std::vector<int64_t> r(static_cast<size_t>(count), 0);
  int64_t stride = matrix, repeat = 1;
  for (size_t back = 1; back <= batch.size(); ++back) {
    const int64_t n = batch[batch.size() - back];
    const int64_t d = dims.size() >= back ? dims[dims.size() - back] : 1;
    if (d != 1 && d != n) sdk::decline("the batch dimensions do not broadcast");
    if (d > 1)
      for (int64_t i = 0; i < count; ++i) r[static_cast<size_t>(i)] += i / repeat % n * stride;
    stride *= d;
    repeat *= n;
  }
  return r;
}

}  // namespace tenon::cpu
