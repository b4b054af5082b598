// The pipeline manifest tenon.pipeline/1 (docs: schemas/pipeline.schema.json).
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/pipeline/json_source.hpp"
#include "core/plugin/plugin_set.hpp"

namespace tenon {

// One dimension of model.shapes: a number, a name, or a range (with or without a name).
struct ShapeDim {
  std::optional<int64_t> number;
  std::string name;
  int64_t min = 0, max = INT64_MAX;
};
struct ShapeOverride {
  std::string input;
  std::vector<ShapeDim> dims;
  std::string where;
};

struct PassRequest {
  std::string pass;  // a pass id; the articles' stage names are translated already
  Json options = Json::object();
  std::string where;  // "pipeline.json:7:30"
};

struct RuleRequest {
  bool builtin =
      false;  // without a path: all rules of share/tenon/rules; with one: this file has their priority
  std::filesystem::path path;  // absolute
  std::string inline_text;     // rules written in the manifest itself ("fusion_patterns")
  std::string sha256;          // the file must have it
  std::string where;
};

struct SwitchSetting {
  std::string name;  // "ConvBnAct", "GraphFusion.ConvBnAct", "ALL", "GraphFusion.ALL"
  bool on = true;
  std::string where;
};

struct PrecisionOptions {
  std::string mode = "faithful";
};

struct KernelOptions {
  std::vector<std::string> prefer;         // plugin names, best first
  std::map<std::string, std::string> pin;  // node name -> kernel record id
  std::vector<std::string> deny;           // globs over kernel record ids
};

// Devices besides the host, and which nodes run where (docs/devices.md).
struct DeviceOptions {
  bool all = true;  // every device that loaded plugins bring; else those of `use`
  std::vector<std::string> use;
  std::map<std::string, std::string> pin;                // node name or operator -> device
  std::map<std::string, std::vector<std::string>> deny;  // device -> node names or operators
};

struct RuntimeRequest {
  uint32_t threads = 0;  // 0: as many as the machine has for us
  bool deterministic = true;
  std::vector<std::string> isolate;  // plugins whose kernels run in processes of their own
  uint64_t memory_limit = 0;         // bytes that tensors may take together; 0: what the machine has
};

// Repeating a rule's numeric check at its matches; the numbers are those of tn_pass_ctx.
enum class RulesVerify : uint32_t { off = 0, automatic = 1, sample = 2 };

struct Manifest {
  std::string path;              // of the file, for messages; "default" for the built-in one
  std::filesystem::path folder;  // that relative paths start from
  std::vector<PluginRequest> plugins;
  // Absolute; the lock file of the plugins: the manifest's "lock", else the one beside it; empty: none.
  std::filesystem::path lock_file;
  bool lock_is_given = false;        // by the manifest
  std::filesystem::path model_path;  // absolute; empty: none given
  std::string model_sha256;          // the file must have it
  std::string frontend = "auto";
  std::vector<ShapeOverride> shapes;
  std::vector<RuleRequest> rules;
  int32_t level = 3;  // passes of a higher one do not run
  std::vector<PassRequest> pipeline;
  bool pipeline_is_default = false;  // then a pass whose plugin is not loaded is left out with a note
  std::vector<SwitchSetting> switches;
  std::filesystem::path switch_file;  // absolute; empty: none
  PrecisionOptions precision;
  KernelOptions kernels;
  DeviceOptions devices;
  RuntimeRequest runtime;
  RulesVerify rules_verify = RulesVerify::automatic;
  std::filesystem::path choices_file;  // absolute; what was decided by measuring; empty: none
  // A file or folder of all inputs, or one file an input. Absolute.
  std::filesystem::path inputs_path;
  std::map<std::string, std::filesystem::path> inputs;
  std::filesystem::path outputs_path;
  std::map<std::string, std::filesystem::path> outputs;
  enum class OnError { rollback, stop } on_error = OnError::rollback;
};

struct ManifestOptions {
  std::vector<std::string> set;      // "runtime.threads=2"; values are JSON, else text
  std::filesystem::path model_path;  // replaces model.path; relative to the working folder
};

// All findings at once; a manifest only when none is an error (exit code 2 then).
std::optional<Manifest> parse_manifest(const std::string& path, std::string text,
                                       const std::filesystem::path& folder, const ManifestOptions& options,
                                       Diagnostics& diagnostics);
// Reads the file; throws Error (exit code 2) with all findings. Warnings and notes go to diagnostics.
Manifest read_manifest(const std::filesystem::path& path, const ManifestOptions& options,
                       Diagnostics& diagnostics);
// The default manifest, for `tenon run model.onnx`.
Manifest default_manifest(const ManifestOptions& options, Diagnostics& diagnostics);
std::string_view default_manifest_text();
// The files behind "builtin", in the order they are read.
std::vector<std::filesystem::path> builtin_rule_files();

// The whole manifest as JSON with every default, and the files, versions and digests of what it names: a lock
// file.
std::string print_resolved(const Manifest& manifest, const PluginSet& plugins);

}  // namespace tenon
