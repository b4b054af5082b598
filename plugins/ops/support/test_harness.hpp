// Calls kernels of this plugin directly: a plan view made by hand, results between guard words, one worker
// and three.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/kernel.hpp"

namespace tenon::reference::test {

struct Tensor {
  tn_dtype dtype = TN_DTYPE_NONE;
  Dims dims;
  std::vector<uint8_t> bytes;
  std::vector<std::string> texts;  // of string tensors; bytes are made from them
  tn_tensor raw() {
    if (dtype == TN_STRING) {
      bytes.resize(texts.size() * sizeof(tn_str));
      for (size_t i = 0; i < texts.size(); ++i) {
        const tn_str s = str(texts[i]);
        std::memcpy(bytes.data() + i * sizeof s, &s, sizeof s);
      }
    }
    return {dtype, static_cast<int32_t>(dims.size()), dims.data(), bytes.data(), bytes.size()};
  }
};
/// Numbers in any type, rounded as a cast would.
Tensor tensor(tn_dtype dtype, Dims dims, const std::vector<double>& values);
Tensor text_tensor(Dims dims, std::vector<std::string> values);
std::vector<double> numbers(const Tensor& t);

struct Value {
  uint32_t kind = TN_KIND_TENSOR;
  Tensor tensor;
  std::vector<Value> items;  // of a sequence; an optional has none or one
  bool present = true;
};
inline Value value(Tensor t) {
  Value v;
  v.tensor = std::move(t);
  return v;
}
inline Value f32(Dims dims, const std::vector<double>& x) {
  return value(tensor(TN_FLOAT32, std::move(dims), x));
}
inline Value i64(Dims dims, const std::vector<double>& x) {
  return value(tensor(TN_INT64, std::move(dims), x));
}
inline Value absent() {
  Value v;
  v.present = false;
  return v;
}

struct Attr {
  std::string name;
  uint32_t kind = 0;
  int64_t i = 0;
  double f = 0;
  std::string s;
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::vector<std::string> strings;
  Tensor tensor;
};
inline Attr attr(std::string name, int64_t v) {
  Attr a;
  a.name = std::move(name);
  a.kind = TN_ATTR_INT;
  a.i = v;
  return a;
}
inline Attr attr(std::string name, int v) { return attr(std::move(name), static_cast<int64_t>(v)); }
inline Attr attr(std::string name, double v) {
  Attr a;
  a.name = std::move(name);
  a.kind = TN_ATTR_FLOAT;
  a.f = v;
  return a;
}
inline Attr attr(std::string name, const char* v) {
  Attr a;
  a.name = std::move(name);
  a.kind = TN_ATTR_STRING;
  a.s = v;
  return a;
}
inline Attr attr(std::string name, std::vector<int64_t> v) {
  Attr a;
  a.name = std::move(name);
  a.kind = TN_ATTR_INTS;
  a.ints = std::move(v);
  return a;
}

/// A body as the test gives it: values in, values out.
using Body = std::function<std::vector<Value>(const std::vector<Value>&)>;

struct Call {
  std::string op;
  std::vector<Attr> attrs;
  std::vector<Value> inputs;
  /// Types and shapes of the results for static kernels; types only for dynamic ones.
  std::vector<Value> outputs;
  std::vector<Body> regions;
  std::vector<std::string> region_names;
  bool constants = false;  // all operands are, so that a plan may lay them out
};
struct Outcome {
  int code = 0;  // of the kernel function
  tn_status planned = TN_OK;
  std::string said;  // why planning or running failed
  std::vector<Value> outputs;
};

/// With so many workers; tiles run in an order that is not the natural one. Guard words are checked.
Outcome run_with(Call& call, uint32_t threads);
/// With one worker and with three; both must agree bit for bit.
Outcome run(Call call);
/// For one result.
Outcome run(const std::string& op, std::vector<Value> inputs, Tensor like, std::vector<Attr> attrs = {});

}  // namespace tenon::reference::test
