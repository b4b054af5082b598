// Tensors that a session is given and gives: files through the tensor-file plugins, random ones on request.
#pragma once
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/plugin/registries.hpp"
#include "core/runtime/session.hpp"

namespace tenon {

class Host;

/// Inputs of one run, with the memory they stand in.
struct InputSet {
  std::deque<std::string> names;
  std::deque<AnyRef> values;
  std::vector<NamedTensor> tensors;
  void add(std::string name, AnyRef value);
  bool has(std::string_view name) const;
};

/// A file that holds many (.npz: keys are input names, arr_0 ... positions), one tensor for the only input,
/// or a folder DIR/ with input_0.pb ... in the model's order. Throws Error (2).
void read_inputs(const std::filesystem::path& path, const Registries& registries, Host& host,
                 const std::vector<InputInfo>& wanted, InputSet& into);
/// One tensor (or one named like the input) for the given input.
void read_input(const std::string& name, const std::filesystem::path& path, const Registries& registries,
                Host& host, const std::vector<InputInfo>& wanted, InputSet& into);
/// Deterministic random values for every input that is not there yet; `shapes` gives dims ("x:1,3,224,224"),
/// unknown dims are 1.
void add_random_inputs(const std::vector<std::string>& shapes, uint64_t seed,
                       const std::vector<InputInfo>& wanted, InputSet& into);

/// All outputs into a file that holds many, or a folder DIR/ as output_0.pb ...; a sequence NAME becomes
/// NAME[0] ...
void write_outputs(const std::filesystem::path& path, const std::vector<NamedOutput>& outputs,
                   const Registries& registries, Host& host);
void write_output(const std::filesystem::path& path, const NamedOutput& output, const Registries& registries,
                  Host& host);

}  // namespace tenon
