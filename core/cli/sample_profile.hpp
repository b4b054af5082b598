// Values of a model that are the same in every sample: `tenon optimize --samples DIR`.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "core/cli/common.hpp"
#include "core/cli/tensors.hpp"

namespace tenon::cli {

struct SteadyValue {
  std::string name, type;
  std::vector<std::string> reads;  // inputs that it depends on
  uint64_t nodes = 0;              // that compute it from them
  bool foldable = false;           // all of these inputs never change either
  std::string why_not;
};
struct SampleProfile {
  uint64_t samples = 0;
  std::vector<std::string> steady_inputs;
  std::vector<SteadyValue> values;  // the last ones of what never changes, foldable ones first
  InputSet first;                   // the first sample, with which the guards compare
  std::vector<tn_tensor> tensors;   // of it, in the order of the model's inputs
};

/// Runs every sample (.npz files, or folders with input_0.pb ...) through the model as it is read.
SampleProfile profile_samples(const PipelineOptions& options, const std::filesystem::path& folder);
Json profile_json(const SampleProfile& profile);
std::string profile_text(const SampleProfile& profile, bool folded);
/// Puts the pass that folds the foldable values first.
void fold_profiled(const SampleProfile& profile, Manifest& manifest);

}  // namespace tenon::cli
