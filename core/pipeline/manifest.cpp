#include "core/pipeline/manifest.hpp"

#include <algorithm>
#include <array>

#include "core/base/files.hpp"
#include "core/base/memory_budget.hpp"
#include "core/base/text.hpp"
#include "core/pipeline/manifest_reader.hpp"
#include "core/pipeline/manifest_set.hpp"

namespace tenon {

namespace {

using Names = std::vector<std::string>;

const Names top_keys = {
    "schema", "plugins", "lock", "model", "rules", "level", "pipeline", "switches", "switch_file",
    "precision", "kernels", "devices", "runtime", "rules_verify", "choices", "inputs", "outputs", "on_error",
    // the articles' words
    "optimization_level", "fusion_patterns", "fusion_switch_file", "precision_config", "memory_optimization",
    "computation_optimization", "communication_optimization",
    // of the design, not in this release
    "state", "stages", "aigc_specific", "partition_strategy", "auto_split", "auto_tune", "profiling"};

// The articles' stage names. Those without a pass are steps that always run (docs: pipeline lists rewrites
// only).
struct StageName {
  std::string_view name, pass;
};
constexpr std::array<StageName, 9> stage_names = {{{"operator_fusion", "fuse"},
                                                   {"graph_partition", ""},
                                                   {"memory_planning", ""},
                                                   {"instruction_schedule", ""},
                                                   {"placement", ""},
                                                   {"order", ""},
                                                   {"memory", ""},
                                                   {"upgrade", ""},
                                                   {"infer", ""}}};
// Passes of the design that a later release brings: named, they are left out with a warning.
constexpr std::array<std::string_view, 2> later_passes = {"layout", "precision"};

class ManifestParser {
 public:
  ManifestParser(const JsonSource& source, const Json& document, const std::filesystem::path& folder,
                 Diagnostics& diagnostics)
      : reader_(source, document, diagnostics), folder_(folder) {}
  ManifestReader& reader() { return reader_; }

  void parse(Manifest& manifest) {
    const JsonPlace root = reader_.root();
    if (!reader_.expect_object(root)) return;
    Names known = top_keys;
    known.push_back("$schema");
    reader_.check_keys(root, known);
    const std::array<std::string, 1> schemas = {"tenon.pipeline/1"};
    reader_.choice(root, "schema", schemas[0], schemas);
    later_keys(root);
    plugins(root, manifest);
    lock(root, manifest);
    model(root, manifest);
    rules(root, manifest);
    level(root, manifest);
    pipeline(root, manifest);
    switches(root, manifest);
    precision(root, manifest);
    kernels(root, manifest);
    devices(root, manifest);
    runtime(root, manifest);
    files(root, manifest);
    const std::array<std::string, 2> on_errors = {"rollback", "stop"};
    manifest.on_error = reader_.choice(root, "on_error", "rollback", on_errors) == "stop"
                            ? Manifest::OnError::stop
                            : Manifest::OnError::rollback;
    const std::array<std::string, 3> verify_modes = {"off", "auto", "sample"};
    const std::string mode = reader_.choice(root, "rules_verify", "auto", verify_modes);
    manifest.rules_verify = mode == "off"    ? RulesVerify::off
                            : mode == "auto" ? RulesVerify::automatic
                                             : RulesVerify::sample;
    if (const std::string file = reader_.text(root, "choices", ""); !file.empty())
      manifest.choices_file = absolute(file);
  }

 private:
  std::filesystem::path absolute(const std::string& path) const {
    return (folder_ / path).lexically_normal();
  }

  std::string digest(const JsonPlace& parent) {
    std::string value = lower(reader_.text(parent, "sha256", ""));
    if (!value.empty() &&
        (value.size() != 64 || value.find_first_not_of("0123456789abcdef") != std::string::npos)) {
      reader_.error("M205", ManifestReader::child(parent, "sha256"),
                    "is no SHA-256 digest; expected 64 hexadecimal digits");
      value.clear();
    }
    return value;
  }

  // Keys of the design that this release does not act on: an error where leaving them out changes what is
  // computed.
  void later_keys(const JsonPlace& root) {
    for (const char* key : {"state", "stages"}) {
      if (ManifestReader::has(root, key))
        reader_.error("M207", ManifestReader::child(root, key),
                      std::string("'") + key + "' is not supported yet; remove it");
    }
    for (const char* key : {"aigc_specific", "partition_strategy", "auto_split", "auto_tune", "profiling"}) {
      if (ManifestReader::has(root, key))
        reader_.warning("M207", ManifestReader::child(root, key),
                        std::string("'") + key + "' is not supported yet; it has no effect");
    }
    if (ManifestReader::has(root, "communication_optimization"))
      reader_.warning("M208", ManifestReader::child(root, "communication_optimization"),
                      "has no effect on this device: everything runs on one machine");
    if (ManifestReader::has(root, "memory_optimization") &&
        !reader_.boolean(root, "memory_optimization", true))
      reader_.warning("M208", ManifestReader::child(root, "memory_optimization"),
                      "has no effect: memory planning always runs");
  }

  void plugins(const JsonPlace& root, Manifest& manifest) {
    if (!ManifestReader::has(root, "plugins")) return;
    const JsonPlace list = ManifestReader::child(root, "plugins");
    if (!reader_.expect_array(list)) return;
    static const Names known = {"name", "path", "id", "min_version", "sha256", "options", "required"};
    for (size_t i = 0; i < list.value->size(); ++i) {
      const JsonPlace item = ManifestReader::element(list, i);
      PluginRequest request;
      request.where = reader_.where(item);
      if (item.value->is_string()) {
        request.name = item.value->get<std::string>();
        if (request.name.empty() || request.name.find('/') != std::string::npos) {
          reader_.error("M205", item, "'" + request.name + "' is no plugin's name",
                        "a file is named by {\"path\": \"...\"}");
          continue;
        }
      } else if (item.value->is_object()) {
        reader_.check_keys(item, known);
        const std::string path = reader_.text(item, "path", "");
        request.name = reader_.text(item, "name", "");
        request.id = reader_.text(item, "id", "");
        request.min_version = reader_.text(item, "min_version", "");
        request.sha256 = digest(item);
        request.required = reader_.boolean(item, "required", true);
        if (ManifestReader::has(item, "options")) {
          const JsonPlace options = ManifestReader::child(item, "options");
          if (reader_.expect_object(options)) request.options_json = options.value->dump();
        }
        if (!path.empty()) {
          request.path = absolute(path);
        } else if (request.name.empty()) {
          request.name = request.id;
        }
        if (request.path.empty() && request.name.empty()) {
          reader_.error("M205", item, "names no plugin",
                        "give \"name\" of an installed one, or \"path\" of a file");
          continue;
        }
      } else {
        reader_.error(
            "M204", item,
            "expected a plugin's name or an object; found " + ManifestReader::kind_name(*item.value));
        continue;
      }
      const bool twice =
          std::any_of(manifest.plugins.begin(), manifest.plugins.end(), [&](const PluginRequest& other) {
            return other.name == request.name && other.path == request.path;
          });
      if (twice) {
        reader_.warning("M209", item, "is named already; once is enough");
      } else {
        manifest.plugins.push_back(std::move(request));
      }
    }
  }

  // A file, or false: not even the one beside the manifest.
  void lock(const JsonPlace& root, Manifest& manifest) {
    if (!ManifestReader::has(root, "lock")) return;
    const JsonPlace at = ManifestReader::child(root, "lock");
    manifest.lock_is_given = true;
    if (at.value->is_boolean() && !at.value->get<bool>()) return;
    if (at.value->is_string() && !at.value->get_ref<const std::string&>().empty()) {
      manifest.lock_file = absolute(at.value->get<std::string>());
      return;
    }
    reader_.error("M204", at, "expected a lock file's path, or false; found " + at.value->dump());
  }

  void model(const JsonPlace& root, Manifest& manifest) {
    if (!ManifestReader::has(root, "model")) return;
    const JsonPlace at = ManifestReader::child(root, "model");
    if (at.value->is_string()) {
      const std::string path = reader_.text(root, "model", "");
      if (!path.empty()) manifest.model_path = absolute(path);
      return;
    }
    if (!reader_.expect_object(at)) return;
    static const Names known = {"path", "frontend", "shapes", "sha256"};
    reader_.check_keys(at, known);
    const std::string path = reader_.text(at, "path", "");
    if (!path.empty()) manifest.model_path = absolute(path);
    manifest.model_sha256 = digest(at);
    manifest.frontend = reader_.text(at, "frontend", "auto");
    if (!ManifestReader::has(at, "shapes")) return;
    const JsonPlace shapes = ManifestReader::child(at, "shapes");
    if (!reader_.expect_object(shapes)) return;
    for (const auto& item : shapes.value->items())
      shape(ManifestReader::child(shapes, item.key()), item.key(), manifest);
  }

  void shape(const JsonPlace& at, const std::string& input, Manifest& manifest) {
    if (!reader_.expect_array(at)) return;
    ShapeOverride result{input, {}, reader_.where(at)};
    for (size_t i = 0; i < at.value->size(); ++i) {
      const JsonPlace item = ManifestReader::element(at, i);
      ShapeDim dim;
      if (item.value->is_number_integer()) {
        const int64_t number = item.value->is_number_unsigned() && item.value->get<uint64_t>() > INT64_MAX
                                   ? -2
                                   : item.value->get<int64_t>();
        if (number < -1) {
          reader_.error(
              "M205", item,
              "is no dimension; expected 0 or more, -1 for an unknown one, a name, or a range \"1~10\"");
        } else if (number >= 0) {
          dim.number = number;
        }
      } else if (item.value->is_string()) {
        dim_text(item, item.value->get<std::string>(), dim);
      } else if (item.value->is_object()) {
        static const Names known = {"name", "min", "max"};
        reader_.check_keys(item, known);
        dim.name = reader_.text(item, "name", "");
        dim.min = reader_.integer(item, "min", 0, 0, INT64_MAX);
        dim.max = reader_.integer(item, "max", INT64_MAX, 0, INT64_MAX);
        if (dim.min > dim.max) reader_.error("M205", item, "has a min above its max");
      } else if (item.value->is_array()) {
        reader_.error("M207", item,
                      "a list of sizes (gears) is not supported yet; give a range {\"min\": 1, \"max\": 8}");
      } else {
        reader_.error("M204", item,
                      "expected a dimension: a number, a name or a range; found " +
                          ManifestReader::kind_name(*item.value));
      }
      result.dims.push_back(std::move(dim));
    }
    manifest.shapes.push_back(std::move(result));
  }

  void dim_text(const JsonPlace& item, const std::string& text, ShapeDim& dim) {
    const size_t tilde = text.find('~');
    const auto number = [](const std::string& digits) -> int64_t {
      if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
        return -1;
      return std::stoll(digits);
    };
    if (tilde == std::string::npos) {
      if (text.empty() || number(text) >= 0) {
        reader_.error("M205", item, "'" + text + "' is no name of a dimension",
                      "write numbers without quotes");
      }
      dim.name = text;
      return;
    }
    dim.min = number(text.substr(0, tilde));
    dim.max = text.substr(tilde + 1) == "-1" ? INT64_MAX : number(text.substr(tilde + 1));
    if (dim.min < 0 || dim.max < dim.min) {
      reader_.error("M205", item, "'" + text + "' is no range; expected \"1~10\"");
      dim.min = 0;
      dim.max = INT64_MAX;
    }
  }

  void rules(const JsonPlace& root, Manifest& manifest) {
    if (ManifestReader::has(root, "rules")) {
      const JsonPlace list = ManifestReader::child(root, "rules");
      if (reader_.expect_array(list)) {
        for (size_t i = 0; i < list.value->size(); ++i) rule(ManifestReader::element(list, i), manifest);
      }
    }
    if (ManifestReader::has(root, "fusion_patterns")) {
      const JsonPlace chains = ManifestReader::child(root, "fusion_patterns");
      if (!reader_.expect_array(chains)) return;
      RuleRequest request;
      request.inline_text = Json{{"fusion_patterns", *chains.value}}.dump();
      request.where = reader_.where(chains);
      manifest.rules.push_back(std::move(request));
    }
  }

  void rule(const JsonPlace& item, Manifest& manifest) {
    RuleRequest request;
    request.where = reader_.where(item);
    if (item.value->is_string()) {
      const std::string name = item.value->get<std::string>();
      if (name.empty()) {
        reader_.error("M205", item, "names no rules", "\"builtin\", or a file's path");
        return;
      }
      request.builtin = name == "builtin";
      if (!request.builtin) request.path = absolute(name);
    } else if (item.value->is_object() && ManifestReader::has(item, "path")) {
      static const Names known = {"path", "sha256", "builtin"};
      reader_.check_keys(item, known);
      request.path = absolute(reader_.text(item, "path", "."));
      request.sha256 = digest(item);
      request.builtin = reader_.boolean(item, "builtin", false);
    } else if (item.value->is_object()) {
      request.inline_text = item.value->dump();
    } else {
      reader_.error(
          "M204", item,
          "expected \"builtin\", a file's path, or a rule; found " + ManifestReader::kind_name(*item.value));
      return;
    }
    manifest.rules.push_back(std::move(request));
  }

  void level(const JsonPlace& root, Manifest& manifest) {
    manifest.level = static_cast<int32_t>(reader_.integer(root, "level", 3, 0, 3));
    if (!ManifestReader::has(root, "optimization_level")) return;
    const int64_t other = reader_.integer(root, "optimization_level", 3, 0, 3);
    if (ManifestReader::has(root, "level") && other != manifest.level) {
      reader_.error("M210", ManifestReader::child(root, "optimization_level"),
                    "says " + std::to_string(other) + " but \"level\" says " + std::to_string(manifest.level),
                    "they mean the same; keep one");
    }
    manifest.level = static_cast<int32_t>(other);
  }

  void pipeline(const JsonPlace& root, Manifest& manifest) {
    manifest.pipeline_is_default = !ManifestReader::has(root, "pipeline");
    if (manifest.pipeline_is_default) return;
    const JsonPlace list = ManifestReader::child(root, "pipeline");
    if (!reader_.expect_array(list)) return;
    static const Names known = {"pass", "options"};
    for (size_t i = 0; i < list.value->size(); ++i) {
      const JsonPlace item = ManifestReader::element(list, i);
      PassRequest request;
      request.where = reader_.where(item);
      if (item.value->is_string()) {
        request.pass = item.value->get<std::string>();
      } else if (item.value->is_object()) {
        reader_.check_keys(item, known);
        request.pass = reader_.text(item, "pass", "");
        if (request.pass.empty() && !ManifestReader::has(item, "pass"))
          reader_.error("M205", item, "names no pass", "{\"pass\": \"fold\", \"options\": {...}}");
        if (ManifestReader::has(item, "options")) {
          const JsonPlace options = ManifestReader::child(item, "options");
          if (reader_.expect_object(options)) request.options = *options.value;
        }
      } else {
        reader_.error("M204", item,
                      "expected a pass's name or an object; found " + ManifestReader::kind_name(*item.value));
      }
      if (request.pass.empty() || !translate_stage(item, request)) continue;
      manifest.pipeline.push_back(std::move(request));
    }
  }

  // False: nothing is to be run for it.
  bool translate_stage(const JsonPlace& item, PassRequest& request) {
    for (const StageName& stage : stage_names) {
      if (request.pass != stage.name) continue;
      if (stage.pass.empty()) {
        reader_.note(
            "M211", item,
            "'" + request.pass + "' is a step that always runs, after the rewrites; it need not be listed");
        return false;
      }
      reader_.note("M211", item, "'" + request.pass + "' is the pass '" + std::string(stage.pass) + "'");
      request.pass = stage.pass;
      return true;
    }
    if (std::find(later_passes.begin(), later_passes.end(), request.pass) != later_passes.end()) {
      reader_.warning("M207", item, "pass '" + request.pass + "' is not supported yet; it is left out");
      return false;
    }
    return true;
  }

  void switches(const JsonPlace& root, Manifest& manifest) {
    for (const char* key : {"switch_file", "fusion_switch_file"}) {
      const std::string path = reader_.text(root, key, "");
      if (!path.empty()) manifest.switch_file = absolute(path);
    }
    if (ManifestReader::has(root, "computation_optimization")) {
      const JsonPlace at = ManifestReader::child(root, "computation_optimization");
      if (!reader_.boolean(root, "computation_optimization", true))
        manifest.switches.push_back({"ALL", false, reader_.where(at)});
    }
    if (!ManifestReader::has(root, "switches")) return;
    const JsonPlace table = ManifestReader::child(root, "switches");
    if (!reader_.expect_object(table)) return;
    for (const auto& item : table.value->items())
      switch_value(ManifestReader::child(table, item.key()), item.key(), manifest);
  }

  void switch_value(const JsonPlace& at, const std::string& name, Manifest& manifest) {
    if (at.value->is_object()) {  // {"GraphFusion": {"ALL": "off"}} is {"GraphFusion.ALL": "off"}
      for (const auto& item : at.value->items()) {
        const JsonPlace inner = ManifestReader::child(at, item.key());
        if (inner.value->is_object()) {
          reader_.error("M204", inner, "expected \"on\" or \"off\"; found an object");
        } else {
          switch_value(inner, name + "." + item.key(), manifest);
        }
      }
      return;
    }
    const std::string text = at.value->is_string() ? lower(at.value->get<std::string>()) : at.value->dump();
    if (text != "on" && text != "off" && text != "true" && text != "false" && text != "1" && text != "0") {
      reader_.error("M205", at, "a switch is \"on\" or \"off\"; found " + at.value->dump());
      return;
    }
    manifest.switches.push_back({name, text == "on" || text == "true" || text == "1", reader_.where(at)});
  }

  void precision(const JsonPlace& root, Manifest& manifest) {
    static const Names modes = {"strict", "exact", "faithful", "bf16", "fp16", "fast"};
    if (ManifestReader::has(root, "precision_config")) {
      const JsonPlace at = ManifestReader::child(root, "precision_config");
      static const Names known = {"mode"};
      static const Names article_modes = {"strict", "allow_fp16", "faithful"};
      if (reader_.expect_object(at)) {
        reader_.check_keys(at, known);
        manifest.precision.mode = reader_.choice(at, "mode", "faithful", article_modes);
        if (manifest.precision.mode == "allow_fp16") {
          reader_.error("M207", ManifestReader::child(at, "mode"),
                        "'allow_fp16' is not supported yet; use \"faithful\" or \"strict\"");
        }
      }
    }
    if (!ManifestReader::has(root, "precision")) return;
    const JsonPlace at = ManifestReader::child(root, "precision");
    if (!reader_.expect_object(at)) return;
    static const Names known = {"mode", "weights", "keep", "ops"};
    reader_.check_keys(at, known);
    manifest.precision.mode = reader_.choice(at, "mode", manifest.precision.mode, modes);
    if (manifest.precision.mode == "bf16" || manifest.precision.mode == "fp16") {
      reader_.error(
          "M207", ManifestReader::child(at, "mode"),
          "'" + manifest.precision.mode + "' is not supported yet; use strict, exact, faithful or fast");
    }
    static const Names weights = {"keep", "bf16", "int8", "int4"};
    if (reader_.choice(at, "weights", "keep", weights) != "keep")
      reader_.error("M207", ManifestReader::child(at, "weights"),
                    "converting weights is not supported yet; use \"keep\"");
    if (!reader_.texts(at, "keep").empty())
      reader_.warning("M208", ManifestReader::child(at, "keep"),
                      "has no effect: precision '" + manifest.precision.mode + "' keeps every node's type");
    if (ManifestReader::has(at, "ops") && reader_.expect_object(ManifestReader::child(at, "ops")) &&
        !at.value->at("ops").empty())
      reader_.error("M207", ManifestReader::child(at, "ops"),
                    "precision by operator is not supported yet; remove it");
  }

  void kernels(const JsonPlace& root, Manifest& manifest) {
    if (!ManifestReader::has(root, "kernels")) return;
    const JsonPlace at = ManifestReader::child(root, "kernels");
    if (!reader_.expect_object(at)) return;
    static const Names known = {"prefer", "pin", "deny"};
    reader_.check_keys(at, known);
    manifest.kernels.prefer = reader_.texts(at, "prefer");
    manifest.kernels.deny = reader_.texts(at, "deny");
    pins(at, "a kernel's id", manifest.kernels.pin);
  }

  void pins(const JsonPlace& parent, const std::string& expected, std::map<std::string, std::string>& to) {
    if (!ManifestReader::has(parent, "pin")) return;
    const JsonPlace all = ManifestReader::child(parent, "pin");
    if (!reader_.expect_object(all)) return;
    for (const auto& item : all.value->items()) {
      const JsonPlace pin = ManifestReader::child(all, item.key());
      if (pin.value->is_string()) {
        to[item.key()] = pin.value->get<std::string>();
      } else {
        reader_.error("M204", pin,
                      "expected " + expected + "; found " + ManifestReader::kind_name(*pin.value));
      }
    }
  }

  void devices(const JsonPlace& root, Manifest& manifest) {
    if (!ManifestReader::has(root, "devices")) return;
    const JsonPlace at = ManifestReader::child(root, "devices");
    if (!reader_.expect_object(at)) return;
    static const Names known = {"use", "pin", "deny"};
    reader_.check_keys(at, known);
    if (ManifestReader::has(at, "use") && ManifestReader::child(at, "use").value->is_string()) {
      static const Names words = {"auto"};
      reader_.choice(at, "use", "auto", words);
    } else if (ManifestReader::has(at, "use")) {
      manifest.devices.all = false;
      manifest.devices.use = reader_.texts(at, "use");
    }
    pins(at, "a device's name", manifest.devices.pin);
    if (!ManifestReader::has(at, "deny")) return;
    const JsonPlace denied = ManifestReader::child(at, "deny");
    if (!reader_.expect_object(denied)) return;
    for (const auto& item : denied.value->items())
      manifest.devices.deny[item.key()] = reader_.texts(denied, item.key().c_str());
  }

  void runtime(const JsonPlace& root, Manifest& manifest) {
    if (!ManifestReader::has(root, "runtime")) return;
    const JsonPlace at = ManifestReader::child(root, "runtime");
    if (!reader_.expect_object(at)) return;
    static const Names known = {"threads",  "streams",      "deterministic", "graph_mode",
                                "batching", "memory_limit", "isolate"};
    reader_.check_keys(at, known);
    manifest.runtime.threads = static_cast<uint32_t>(reader_.integer(at, "threads", 0, 0, 1024));
    manifest.runtime.deterministic = reader_.boolean(at, "deterministic", true);
    if (!manifest.runtime.deterministic)
      reader_.warning("M208", ManifestReader::child(at, "deterministic"),
                      "has no effect: every kernel there is gives the same bits each time");
    memory_limit(at, manifest);
    manifest.runtime.isolate = reader_.texts(at, "isolate");
    if (reader_.integer(at, "streams", 1, 1, 1024) != 1)
      reader_.error("M207", ManifestReader::child(at, "streams"),
                    "more than one stream is not supported yet; use 1");
    static const Names modes = {"static", "dynamic", "hybrid"};
    if (ManifestReader::has(at, "graph_mode") &&
        reader_.choice(at, "graph_mode", "hybrid", modes) != "hybrid")
      reader_.warning("M208", ManifestReader::child(at, "graph_mode"),
                      "has no effect: a plan is made for each shape that comes, which is \"hybrid\"");
    if (ManifestReader::has(at, "batching"))
      reader_.error("M207", ManifestReader::child(at, "batching"),
                    "'batching' is not supported yet; remove it");
  }

  void memory_limit(const JsonPlace& runtime, Manifest& manifest) {
    if (!ManifestReader::has(runtime, "memory_limit")) return;
    const JsonPlace at = ManifestReader::child(runtime, "memory_limit");
    std::optional<uint64_t> bytes;
    if (at.value->is_string()) bytes = parse_memory_size(at.value->get<std::string>());
    if (at.value->is_number_unsigned()) bytes = at.value->get<uint64_t>();
    if (bytes)
      manifest.runtime.memory_limit = *bytes;
    else
      reader_.error("M205", at, "is no amount of memory",
                    "expected a number of bytes, or text as \"500MB\" or \"2GiB\"; 0 for no limit");
  }

  void named_files(const JsonPlace& root, const char* key, std::filesystem::path& all,
                   std::map<std::string, std::filesystem::path>& each) {
    if (!ManifestReader::has(root, key)) return;
    const JsonPlace at = ManifestReader::child(root, key);
    if (at.value->is_string()) {
      const std::string path = reader_.text(root, key, "");
      if (!path.empty()) all = absolute(path);
      // A folder keeps its slash: it is made when it is not there.
      if (path.ends_with('/') && all.has_filename()) all /= "";
      return;
    }
    if (!at.value->is_object()) {
      reader_.error(
          "M204", at,
          "expected a file's path or an object of name: path; found " + ManifestReader::kind_name(*at.value));
      return;
    }
    for (const auto& item : at.value->items()) {
      const JsonPlace file = ManifestReader::child(at, item.key());
      if (file.value->is_string() && !file.value->get_ref<const std::string&>().empty()) {
        each[item.key()] = absolute(file.value->get<std::string>());
      } else {
        reader_.error("M204", file, "expected a file's path; found " + file.value->dump());
      }
    }
  }

  void files(const JsonPlace& root, Manifest& manifest) {
    named_files(root, "inputs", manifest.inputs_path, manifest.inputs);
    named_files(root, "outputs", manifest.outputs_path, manifest.outputs);
  }

  ManifestReader reader_;
  std::filesystem::path folder_;
};

}  // namespace

std::optional<Manifest> parse_manifest(const std::string& path, std::string text,
                                       const std::filesystem::path& folder, const ManifestOptions& options,
                                       Diagnostics& diagnostics) {
  const size_t errors = diagnostics.error_count();
  const std::optional<JsonSource> source = JsonSource::parse(path, std::move(text), diagnostics);
  if (!source) return std::nullopt;
  Json document = source->root();
  std::vector<std::pair<std::string, std::string>> overrides;
  if (document.is_object()) {
    overrides = apply_settings(document, options.set, diagnostics);
    // What a manifest does not say, the default one does.
    const Json defaults = Json::parse(default_manifest_text(), nullptr, true, true);
    for (const char* key : {"plugins", "rules"}) {
      if (!document.contains(key)) document[key] = defaults.at(key);
    }
  }
  Manifest manifest;
  manifest.path = path;
  manifest.folder = std::filesystem::absolute(folder).lexically_normal();
  ManifestParser parser(*source, document, manifest.folder, diagnostics);
  parser.reader().set_overrides(std::move(overrides));
  parser.parse(manifest);
  if (manifest.pipeline_is_default) {
    const Json defaults = Json::parse(default_manifest_text(), nullptr, true, true);
    for (const Json& pass : defaults.at("pipeline"))
      manifest.pipeline.push_back({pass.get<std::string>(), Json::object(), "default pipeline"});
  }
  if (!options.model_path.empty())
    manifest.model_path = std::filesystem::absolute(options.model_path).lexically_normal();
  if (diagnostics.error_count() != errors) return std::nullopt;
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& path, const ManifestOptions& options,
                       Diagnostics& diagnostics) {
  std::string text = read_text_file(path, uint64_t{64} << 20);
  const std::filesystem::path folder =
      path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  std::optional<Manifest> manifest =
      parse_manifest(path.string(), std::move(text), folder, options, diagnostics);
  if (!manifest) {
    diagnostics.throw_if_errors(exit_bad_input);
    throw Error(exit_bad_input, path.string(), "is no manifest");
  }
  std::error_code error;
  if (const std::filesystem::path lock = lock_file_beside(std::filesystem::absolute(path).lexically_normal());
      !manifest->lock_is_given && std::filesystem::exists(lock, error))
    manifest->lock_file = lock;
  return std::move(*manifest);
}

Manifest default_manifest(const ManifestOptions& options, Diagnostics& diagnostics) {
  std::optional<Manifest> manifest =
      parse_manifest("default manifest", std::string(default_manifest_text()), ".", options, diagnostics);
  if (!manifest) {
    diagnostics.throw_if_errors(exit_bad_input);
    throw Error(exit_bad_input, "default manifest", "cannot be read");
  }
  // Its own pipeline is the default one, unless --set gave another.
  const bool given = std::any_of(options.set.begin(), options.set.end(),
                                 [](const std::string& setting) { return setting.starts_with("pipeline"); });
  manifest->pipeline_is_default = !given;
  return std::move(*manifest);
}

}  // namespace tenon
