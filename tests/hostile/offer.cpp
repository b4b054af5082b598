#include "offer.hpp"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>

#include "core/base/diagnostics.hpp"
#include "core/base/memory_budget.hpp"
#include "test_paths.hpp"
#include "whole_program.hpp"

namespace tenon::hostile {

namespace fs = std::filesystem;

namespace {

// One for all tests: plugins are opened and rules read once.
test::WholeProgram& program() {
  static auto* const one = [] {
    test::use_build_tree(test::build_dir(), test::scratch_dir());
    return new test::WholeProgram(test::one_thread_manifest());  // plugins stay open until the end
  }();
  return *one;
}

AnyRef zeros(const InputInfo& input) {
  if (input.kind == TN_KIND_SEQUENCE) return new_sequence({}, input.dtype);
  if (input.kind != TN_KIND_TENSOR) return new_optional(nullptr);
  std::vector<int64_t> dims;
  for (const std::string& dim : input.dims) {
    const bool number = !dim.empty() && dim.find_first_not_of("0123456789") == std::string::npos;
    dims.push_back(number ? std::strtoll(dim.c_str(), nullptr, 10) : 1);
  }
  AnyRef any = new_tensor(input.dtype, dims, "input " + input.name);
  if (any->bytes != 0) std::memset(any->data, 0, any->bytes);
  return any;
}

template <class F>
Outcome attempt(uint64_t memory_limit, F&& body) {
  Outcome outcome;
  set_memory_limit(memory_in_use() + memory_limit);
  try {
    body();
    outcome.ran = true;
  } catch (const Error& error) {
    outcome.exit_code = error.exit_code;
    outcome.said = error.what();
  } catch (const std::bad_alloc&) {
    outcome.said = "std::bad_alloc";
  }
  set_memory_limit(0);
  return outcome;
}

}  // namespace

fs::path fresh_folder() {
  static int count = 0;
  const fs::path folder = fs::path(test::scratch_dir()) / ("offer" + std::to_string(count++));
  fs::create_directories(folder);
  return folder;
}

fs::path write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  return path;
}

namespace {

void run_on(const Session& session, const std::vector<std::pair<std::string, AnyRef>>& values) {
  std::vector<NamedTensor> inputs;
  for (const auto& [name, value] : values) {
    NamedTensor named;
    named.name = name;
    named.any = value.get();
    inputs.push_back(named);
  }
  session.run(inputs);
}

fs::path usual_folder() {
  static const fs::path folder = fresh_folder();
  return folder;
}

}  // namespace

Outcome offer(const std::string& model, uint64_t memory_limit, const fs::path& folder) {
  const fs::path path = write_file((folder.empty() ? usual_folder() : folder) / "model.onnx", model);
  return attempt(memory_limit, [&] {
    const auto session = program().session(path);
    std::vector<std::pair<std::string, AnyRef>> values;
    for (const InputInfo& input : session->inputs()) values.emplace_back(input.name, zeros(input));
    run_on(*session, values);
  });
}

Outcome offer_inputs(const std::string& model, const std::vector<Given>& given) {
  const fs::path path = write_file(usual_folder() / "model.onnx", model);
  return attempt(uint64_t{256} << 20, [&] {
    const auto session = program().session(path);
    std::vector<std::pair<std::string, AnyRef>> values;
    for (const Given& one : given) {
      AnyRef any = new_tensor(one.dtype, one.dims, one.name);
      if (any->bytes != 0) std::memset(any->data, 0, any->bytes);
      values.emplace_back(one.name, std::move(any));
    }
    run_on(*session, values);
  });
}

Outcome offer_tensors(const fs::path& file, uint64_t memory_limit) {
  Engine& engine = program().engine;
  return attempt(memory_limit, [&] {
    const std::string path = file.string();
    const TensorFileEntry* format = engine.registries().tensor_file_for(path);
    if (format == nullptr) throw Error(exit_bad_input, path, "no reader");
    Diagnostics findings;
    const tn_status status = format->record->read(
        format->instance, engine.host().abi(), {path.data(), path.size()},
        [](void*, tn_str, uint32_t) { return static_cast<tn_dtype>(TN_FLOAT32); },
        [](void*, const tn_named_tensor* tensor) -> tn_status {
          if (tensor->index != -2) copy_tensor(tensor->tensor, "a tensor");
          return TN_OK;
        },
        nullptr, findings.abi());
    findings.throw_if_errors(exit_bad_input);
    if (status != TN_OK) throw Error(exit_bad_input, path, "status " + std::to_string(status));
  });
}

}  // namespace tenon::hostile
