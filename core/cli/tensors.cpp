#include "core/cli/tensors.hpp"

namespace tenon::cli {

InputSet collect_inputs(const std::string& flag, const Manifest& manifest, const Registries& registries,
                        Host& host, const std::vector<InputInfo>& wanted) {
  InputSet inputs;
  if (!flag.empty()) {
    read_inputs(flag, registries, host, wanted, inputs);
    return inputs;
  }
  for (const auto& [name, path] : manifest.inputs) read_input(name, path, registries, host, wanted, inputs);
  if (!manifest.inputs_path.empty()) read_inputs(manifest.inputs_path, registries, host, wanted, inputs);
  return inputs;
}

}  // namespace tenon::cli
