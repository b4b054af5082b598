#include <algorithm>
#include <set>

#include "core/pipeline/manifest.hpp"
#include "core/plugin/host.hpp"

namespace tenon {

namespace {

Json dim_json(const ShapeDim& dim) {
  if (dim.number) return *dim.number;
  if (dim.min == 0 && dim.max == INT64_MAX) return dim.name.empty() ? Json(-1) : Json(dim.name);
  Json json = Json::object();
  if (!dim.name.empty()) json["name"] = dim.name;
  json["min"] = dim.min;
  if (dim.max != INT64_MAX) json["max"] = dim.max;
  return json;
}

Json file_json(const std::filesystem::path& path) {
  Json json{{"path", path.string()}};
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) json["sha256"] = sha256_file(path);
  return json;
}

Json plugins_json(const Manifest& manifest, const PluginSet& plugins) {
  Json list = Json::array();
  std::set<const LoadedPlugin*> done;
  for (const PluginRequest& request : manifest.plugins) {
    const LoadedPlugin* loaded = nullptr;
    for (const LoadedPlugin& plugin : plugins.loaded()) {
      std::error_code error;
      if (request.path.empty() ? (plugin.name == request.name || plugin.id == request.name)
                               : std::filesystem::equivalent(plugin.library, request.path, error)) {
        loaded = &plugin;
      }
    }
    if (loaded == nullptr || !done.insert(loaded).second) continue;
    Json item = file_json(loaded->library);
    item["id"] = loaded->id;
    item["min_version"] = loaded->version;
    if (!request.options_json.empty()) item["options"] = Json::parse(request.options_json);
    if (!request.required) item["required"] = false;
    list.push_back(std::move(item));
  }
  return list;
}

Json rules_json(const Manifest& manifest) {
  Json list = Json::array();
  for (const RuleRequest& request : manifest.rules) {
    if (!request.inline_text.empty()) {
      list.push_back(Json::parse(request.inline_text));
    } else if (request.builtin && request.path.empty()) {
      for (const std::filesystem::path& path : builtin_rule_files()) {
        Json item = file_json(path);
        item["builtin"] = true;
        list.push_back(std::move(item));
      }
    } else {
      Json item = file_json(request.path);
      if (request.builtin) item["builtin"] = true;
      list.push_back(std::move(item));
    }
  }
  return list;
}

Json files_json(const std::filesystem::path& all, const std::map<std::string, std::filesystem::path>& each) {
  if (!all.empty()) return all.string();
  Json json = Json::object();
  for (const auto& [name, path] : each) json[name] = path.string();
  return json;
}

}  // namespace

std::vector<std::filesystem::path> builtin_rule_files() {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(install_root() / "share" / "tenon" / "rules", error)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string print_resolved(const Manifest& manifest, const PluginSet& plugins) {
  Json json{{"schema", "tenon.pipeline/1"}};
  json["plugins"] = plugins_json(manifest, plugins);
  if (!manifest.lock_file.empty()) json["lock"] = manifest.lock_file.string();
  Json model = manifest.model_path.empty() ? Json::object() : file_json(manifest.model_path);
  model["frontend"] = manifest.frontend;
  for (const ShapeOverride& shape : manifest.shapes) {
    Json dims = Json::array();
    for (const ShapeDim& dim : shape.dims) dims.push_back(dim_json(dim));
    model["shapes"][shape.input] = std::move(dims);
  }
  json["model"] = std::move(model);
  json["rules"] = rules_json(manifest);
  json["level"] = manifest.level;
  Json pipeline = Json::array();
  for (const PassRequest& pass : manifest.pipeline) {
    if (pass.options.empty()) {
      pipeline.push_back(pass.pass);
    } else {
      pipeline.push_back(Json{{"pass", pass.pass}, {"options", pass.options}});
    }
  }
  json["pipeline"] = std::move(pipeline);
  Json switches = Json::object();
  for (const SwitchSetting& setting : manifest.switches) switches[setting.name] = setting.on ? "on" : "off";
  json["switches"] = std::move(switches);
  if (!manifest.switch_file.empty()) json["switch_file"] = manifest.switch_file.string();
  json["precision"] = Json{{"mode", manifest.precision.mode}, {"weights", "keep"}};
  json["kernels"] = Json{
      {"prefer", manifest.kernels.prefer}, {"pin", manifest.kernels.pin}, {"deny", manifest.kernels.deny}};
  json["devices"] = Json{{"use", manifest.devices.all ? Json("auto") : Json(manifest.devices.use)},
                         {"pin", manifest.devices.pin},
                         {"deny", manifest.devices.deny}};
  json["runtime"] = Json{{"threads", manifest.runtime.threads},
                         {"streams", 1},
                         {"deterministic", manifest.runtime.deterministic},
                         {"isolate", manifest.runtime.isolate},
                         {"memory_limit", manifest.runtime.memory_limit}};
  json["rules_verify"] = manifest.rules_verify == RulesVerify::off         ? "off"
                         : manifest.rules_verify == RulesVerify::automatic ? "auto"
                                                                           : "sample";
  if (!manifest.choices_file.empty()) json["choices"] = manifest.choices_file.string();
  if (!manifest.inputs_path.empty() || !manifest.inputs.empty())
    json["inputs"] = files_json(manifest.inputs_path, manifest.inputs);
  if (!manifest.outputs_path.empty() || !manifest.outputs.empty())
    json["outputs"] = files_json(manifest.outputs_path, manifest.outputs);
  json["on_error"] = manifest.on_error == Manifest::OnError::stop ? "stop" : "rollback";
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tenon
