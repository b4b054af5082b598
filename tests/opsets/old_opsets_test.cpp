// Every operator and version whose meaning changed, as old models have it: read, upgraded and run, with
// rewrites and without.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>

#include "core/base/tensor.hpp"
#include "test_paths.hpp"
#include "whole_program.hpp"

using namespace tenon;

namespace {

struct Case {
  std::string model;
  std::map<std::string, AnyRef> inputs, outputs;
};

test::WholeProgram& program(bool rewrites) {
  static test::WholeProgram* programs[2] = {};  // plugins stay open until the end
  test::WholeProgram*& one = programs[rewrites ? 1 : 0];
  if (one == nullptr) {
    test::use_build_tree(test::build_dir(), test::scratch_dir());
    one = new test::WholeProgram(test::one_thread_manifest(
        rewrites ? std::vector<std::string>{} : std::vector<std::string>{"pipeline=[]"}));
  }
  return *one;
}

tn_status take(void* context, const tn_named_tensor* item) {
  auto& cases = *static_cast<std::map<std::string, Case>*>(context);
  const std::string key(item->name.data, item->name.size);
  const size_t bar = key.find('|');
  const std::string what = key.substr(bar + 1);
  Case& one = cases[key.substr(0, bar)];
  if (what == "model")
    one.model.assign(static_cast<const char*>(item->tensor.data), item->tensor.bytes);
  else
    (what.rfind("in|", 0) == 0 ? one.inputs : one.outputs)[what.substr(what.find('|') + 1)] =
        copy_tensor(item->tensor, key);
  return TN_OK;
}

std::map<std::string, Case> read_cases() {
  Engine& engine = program(true).engine;
  const std::string path = test::source_dir() + "/tests/opsets/old_opsets.npz";
  const TensorFileEntry* format = engine.registries().tensor_file_for(path);
  REQUIRE(format != nullptr);
  std::map<std::string, Case> cases;
  Diagnostics findings;
  format->record->read(
      format->instance, engine.host().abi(), {path.data(), path.size()},
      [](void*, tn_str, uint32_t) { return static_cast<tn_dtype>(TN_DTYPE_NONE); }, take, &cases,
      findings.abi());
  findings.throw_if_errors(exit_bad_input);
  return cases;
}

double number(const tn_tensor& t, uint64_t i) {
  const auto at = [&](auto zero) {
    decltype(zero) value;
    std::memcpy(&value, static_cast<const char*>(t.data) + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  };
  switch (t.dtype) {
    case TN_FLOAT32:
      return at(0.0f);
    case TN_FLOAT64:
      return at(0.0);
    case TN_INT64:
      return at(int64_t{});
    case TN_INT32:
      return at(int32_t{});
    case TN_INT16:
      return at(int16_t{});
    case TN_UINT16:
    case TN_FLOAT16:  // compared by their bits
      return at(uint16_t{});
    case TN_UINT32:
      return at(uint32_t{});
    case TN_UINT64:
      return at(uint64_t{});
    case TN_INT8:
      return at(int8_t{});
    default:
      return at(uint8_t{});
  }
}

/// "" when equal, else what differs.
std::string difference(const tn_tensor& found, const tn_tensor& wanted) {
  const auto shape = [](const tn_tensor& t) {
    std::string text = dtype_name(t.dtype) + "[";
    for (int32_t i = 0; i < t.rank; ++i) text += (i ? "," : "") + std::to_string(t.dims[i]);
    return text + "]";
  };
  if (shape(found) != shape(wanted)) return shape(found) + ", expected " + shape(wanted);
  const uint64_t count = wanted.bytes / std::max<uint64_t>(1, TN_DTYPE_BITS(wanted.dtype) / 8);
  for (uint64_t i = 0; i < count; ++i) {
    const double a = number(found, i), b = number(wanted, i);
    if (!(std::fabs(a - b) <= 1e-5 + 2e-5 * std::fabs(b)) && !(std::isnan(a) && std::isnan(b)))
      return "element " + std::to_string(i) + " is " + std::to_string(a) + ", expected " + std::to_string(b);
  }
  return {};
}

std::string outcome(const Case& one, bool rewrites) {
  const std::string path = test::scratch_dir() + "/model.onnx";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << one.model;
  try {
    const std::unique_ptr<Session> session = program(rewrites).session(path);
    std::vector<NamedTensor> inputs;
    for (const auto& [name, value] : one.inputs) {
      NamedTensor named;
      named.name = name;
      named.any = value.get();
      inputs.push_back(named);
    }
    for (const NamedOutput& output : session->run(inputs)) {
      const std::string text = difference(output.tensor(), one.outputs.at(output.name)->tensor());
      if (!text.empty()) return output.name + ": " + text;
    }
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("old versions of operators mean what they meant") {
  const auto cases = read_cases();
  CHECK(cases.size() > 300);
  for (const auto& [name, one] : cases)
    for (const bool rewrites : {false, true}) {
      INFO(name << (rewrites ? " with rewrites" : " without rewrites"));
      CHECK(outcome(one, rewrites) == "");
    }
}
