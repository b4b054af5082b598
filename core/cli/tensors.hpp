// The inputs of a run, as the manifest and the flags name them.
#pragma once
#include "core/pipeline/manifest.hpp"
#include "core/runtime/tensor_files.hpp"

namespace tenon::cli {

/// What the manifest and the flag say, the flag first.
InputSet collect_inputs(const std::string& flag, const Manifest& manifest, const Registries& registries,
                        Host& host, const std::vector<InputInfo>& wanted);

/// Input `i` of the set as a tensor; dtype TN_DTYPE_NONE when it is a sequence or an optional.
inline tn_tensor tensor_of(const InputSet& inputs, size_t i) {
  const NamedTensor& t = inputs.tensors[i];
  if (t.any == nullptr) return t.tensor;
  return t.any->kind == TN_KIND_TENSOR ? t.any->tensor() : tn_tensor{TN_DTYPE_NONE, 0, nullptr, nullptr, 0};
}

}  // namespace tenon::cli
