// The kernels: they enqueue, and the stream's thread computes when their turn comes. The plan that owns
// the state outlives that.
#pragma once
#include <algorithm>

#include "tenon/sdk/plugin.hpp"
#include "device.hpp"

namespace @NAMESPACE@ {

using namespace tenon::sdk;

inline float* floats(Memory& memory, const Buffer& buffer, int64_t count) {
  return reinterpret_cast<float*>(memory.find(buffer, static_cast<uint64_t>(count) * sizeof(float)));
}

inline float add(float a, float b) { return a + b; }
inline float sub(float a, float b) { return a - b; }
inline float mul(float a, float b) { return a * b; }
inline float relu(float a, float) { return std::max(a, 0.0f); }

struct Count {
  int64_t elements;
};
template <float (*F)(float, float)>
void elementwise(const DeviceArgs& args) {
  auto& stream = args.stream<Stream>();
  stream.enqueue([&memory = stream.memory, n = args.state<Count>().elements, a = args.input(0),
                  b = args.input(args.input_count() - 1), y = args.output()] {
    const float *left = floats(memory, a, n), *right = floats(memory, b, n);
    std::transform(left, left + n, right, floats(memory, y, n), F);
  });
}
template <float (*F)(float, float)>
void plan_elementwise(const PlanView& view, Planned& planned) {
  set_enqueue<elementwise<F>>(planned, std::make_unique<Count>(Count{view.output().count()}));
}
inline void same_shapes(const PlanView& view) {
  const auto a = view.input(0).dims(), b = view.input(view.input_count() - 1).dims();
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) decline("operands of one shape, no broadcasting");
}
inline double cost_elementwise(const PlanView& view) {
  return 500 + 0.1 * static_cast<double>(view.output().count());
}

struct Sizes {
  int64_t m, k, n;
};
inline void matmul(const DeviceArgs& args) {
  auto& stream = args.stream<Stream>();
  stream.enqueue([&memory = stream.memory, s = args.state<Sizes>(), a = args.input(0), b = args.input(1),
                  y = args.output()] {
    const float *left = floats(memory, a, s.m * s.k), *right = floats(memory, b, s.k * s.n);
    float* out = floats(memory, y, s.m * s.n);
    std::fill(out, out + s.m * s.n, 0.0f);
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t p = 0; p < s.k; ++p)
        for (int64_t j = 0; j < s.n; ++j) out[i * s.n + j] += left[i * s.k + p] * right[p * s.n + j];
  });
}
inline void plan_matmul(const PlanView& view, Planned& planned) {
  const auto a = view.input(0), b = view.input(1);
  set_enqueue<matmul>(planned, std::make_unique<Sizes>(Sizes{a.dim(0), a.dim(1), b.dim(1)}));
}
inline double cost_matmul(const PlanView& view) {  // as if it were good at this
  return 500 + 0.01 * static_cast<double>(view.output().count()) * static_cast<double>(view.input(0).dim(1));
}

template <float (*F)(float, float)>
void add_elementwise(Plugin& plugin, const char* id, const char* op, uint32_t operands) {
  KernelBuilder& kernel = plugin.kernel(id, op).device("@NAME@").flags(TN_KERNEL_DETERMINISTIC);
  for (uint32_t i = 0; i < operands; ++i) kernel.input({TN_FLOAT32}).in_place(0, i);
  kernel.match<same_shapes>().cost<cost_elementwise>().template plan<plan_elementwise<F>>();
}
inline void add_kernels(Plugin& plugin) {
  add_elementwise<add>(plugin, "@ID@.add/1", "Add", 2);
  add_elementwise<sub>(plugin, "@ID@.sub/1", "Sub", 2);
  add_elementwise<mul>(plugin, "@ID@.mul/1", "Mul", 2);
  add_elementwise<relu>(plugin, "@ID@.relu/1", "Relu", 1);
  KernelBuilder& kernel = plugin.kernel("@ID@.matmul/1", "MatMul").device("@NAME@");
  kernel.input({TN_FLOAT32}, 0, 2, 2).input({TN_FLOAT32}, 0, 2, 2).flags(TN_KERNEL_DETERMINISTIC);
  kernel.plan<plan_matmul>().cost<cost_matmul>();
}

}  // namespace @NAMESPACE@
