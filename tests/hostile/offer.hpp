// A file is offered to the whole program: read, optimised, planned and run, in this process.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "tenon/abi/types.h"

namespace tenon::hostile {

struct Outcome {
  bool ran = false;
  int exit_code = 0;
  std::string said;  // all errors, a line each
};

/// The model's bytes are written to "model.onnx" in `folder` (a fresh one when empty). Tensors may take
/// `memory_limit` bytes together. Inputs are zeros, open dimensions 1.
Outcome offer(const std::string& model, uint64_t memory_limit = uint64_t{256} << 20,
              const std::filesystem::path& folder = {});
/// An input of zeros.
struct Given {
  std::string name;
  tn_dtype dtype;
  std::vector<int64_t> dims;
};
Outcome offer_inputs(const std::string& model, const std::vector<Given>& given);
/// The same for a file of input tensors, read for float32 inputs "x" and "y".
Outcome offer_tensors(const std::filesystem::path& file, uint64_t memory_limit = uint64_t{256} << 20);

/// A fresh folder of this process.
std::filesystem::path fresh_folder();
std::filesystem::path write_file(const std::filesystem::path& path, const std::string& bytes);

}  // namespace tenon::hostile
