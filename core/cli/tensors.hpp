// The inputs of a run, as the manifest and the flags name them.
#pragma once
#include "core/pipeline/manifest.hpp"
#include "core/runtime/tensor_files.hpp"

namespace tenon::cli {

/// What the manifest and the flag say, the flag first.
InputSet collect_inputs(const std::string& flag, const Manifest& manifest, const Registries& registries,
                        Host& host, const std::vector<InputInfo>& wanted);

}  // namespace tenon::cli
