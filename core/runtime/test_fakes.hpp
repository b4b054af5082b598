// Operators, kernels and graphs of tests: a plugin inside the test program, domain "t", plain float32.
#pragma once
#include <tenon/abi/kernels.h>
#include <tenon/abi/memory.h>
#include <tenon/abi/ops.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/plugin/registries.hpp"
#include "core/runtime/session.hpp"

namespace tenon::fakes {

// What kernels did, for tests to look at.
struct Counters {
  std::atomic<int> plans{0}, runs{0}, packs{0}, in_place{0};
};
Counters& counters();

// All fake operators and kernels; `without` leaves out kernels by id.
//   Add(a,b), Neg(x) in place, Reshape(x,shape) a view, Shape(x), Positive(x) -> [n] of positive elements
//   (dynamic), Count(x) -> int64 scalar count of positives, Fill(n) -> n ones, Twice(x) one tile an element,
//   Scale(x,w) packs w, If(cond) then/else, Loop(n, x) body(i, x) -> x, Fused(x) with a body only, Halve(x)
//   decomposes, Picky(x) whose kernel takes even sizes only and which decomposes, Overrun(x) writes one
//   element too many, Fails(x), Big(x) of 2^40 elements, Huge(x) whose count overflows, Seq(a,b), At(seq,i).
std::unique_ptr<Registries> registries(const std::vector<std::string>& without = {});

// Builds a main region in one transaction.
class Builder {
 public:
  explicit Builder(const Registries& registries);
  ~Builder();
  tn_value input(const std::string& name, tn_dtype dtype, const std::vector<std::string>& dims,
                 tn_region region = 0);  // "3" or a name
  // Of domain "t"; "=Name" is an operator of ai.onnx.
  tn_value node(const std::string& op, const std::vector<tn_value>& inputs, const std::string& name = "",
                tn_region region = 0);
  tn_value floats(const std::vector<float>& values, std::vector<int64_t> dims);
  tn_value ints(const std::vector<int64_t>& values);
  tn_value scalar(int64_t value);
  tn_value boolean(bool value);
  tn_region region(tn_value result_of,
                   const std::string& name);  // a region of the node that gives this value
  void outputs(const std::vector<tn_value>& values, tn_region region = 0);
  void output_default(tn_value input, tn_value constant);
  std::unique_ptr<Graph> finish();  // inferred
  Graph& graph() { return *graph_; }

 private:
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Transaction> transaction_;
};

// A float tensor that owns its bytes.
struct Floats {
  std::vector<float> values;
  std::vector<int64_t> dims;
  tn_tensor tensor() {
    return {TN_FLOAT32, static_cast<int32_t>(dims.size()), dims.data(), values.data(),
            values.size() * sizeof(float)};
  }
};
std::vector<float> floats_of(const NamedOutput& output);
std::vector<int64_t> dims_of(const NamedOutput& output);

}  // namespace tenon::fakes
