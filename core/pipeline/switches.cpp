#include "core/pipeline/switches.hpp"

#include <algorithm>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/pipeline/json_source.hpp"

namespace tenon {

namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// -1: neither.
int on_or_off(std::string_view text) {
  const std::string word = lower(text);
  if (word == "on" || word == "1" || word == "true") return 1;
  if (word == "off" || word == "0" || word == "false") return 0;
  return -1;
}

// "GraphFusion.ConvBnAct" -> "ConvBnAct"; CANN's two groups, which mean the same here.
std::string_view without_group(std::string_view name) {
  for (const std::string_view group : {"GraphFusion.", "UBFusion."}) {
    if (name.starts_with(group)) return name.substr(group.size());
  }
  return name;
}

bool means_all(std::string_view name) {
  return name == "GraphFusion" || name == "UBFusion" || without_group(name) == "ALL";
}

// The articles' switches for what is no pass here.
std::string_view effect_elsewhere(std::string_view name) {
  if (name == "MemoryOptimize.ReduceMemory") return "memory planning always runs";
  if (name == "OpOptimize.EnableSmallChannel") return "kernels choose their own layout for few channels";
  return {};
}

}  // namespace

void Switches::add(std::string name, bool on, Source source, std::string where, Diagnostics& diagnostics) {
  for (const Setting& other : settings_) {
    if (other.source != source || other.name != name) continue;
    diagnostics.error("E502", where,
                      "switch '" + name + "' is set twice; first at " + other.where + "; remove one");
    return;
  }
  settings_.push_back({std::move(name), on, source, std::move(where)});
}

void Switches::add_file(const std::filesystem::path& path, Diagnostics& diagnostics) {
  try {
    add_file_text(path.string(), read_text_file(path, uint64_t{16} << 20), diagnostics);
  } catch (const Error& error) {
    for (const Diagnostic& diagnostic : error.diagnostics) diagnostics.add(diagnostic);
  }
}

void Switches::add_file_text(const std::string& path, std::string text, Diagnostics& diagnostics) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') {
    add_json(path, std::move(text), diagnostics);
    return;
  }
  uint32_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const std::string_view content = trimmed(line);
    if (content.empty() || content.starts_with('#') || content.starts_with("//")) continue;
    const std::string where =
        path + ":" + std::to_string(number) + ":" + std::to_string(line.find_first_not_of(" \t\r") + 1);
    const size_t separator = content.find_last_of(":=");
    if (separator == std::string_view::npos || separator == 0) {
      diagnostics.error("E503", where,
                        "expected Name:on, Name:off or Key=1; found '" + std::string(content) + "'");
      continue;
    }
    const std::string_view value = trimmed(content.substr(separator + 1));
    const int state = on_or_off(value);
    if (state < 0) {
      diagnostics.error("E503", where, "a switch is on or off (1 or 0); found '" + std::string(value) + "'");
      continue;
    }
    add(std::string(trimmed(content.substr(0, separator))), state == 1, Source::file, where, diagnostics);
  }
}

void Switches::add_json(const std::string& path, std::string text, Diagnostics& diagnostics) {
  const std::optional<JsonSource> source = JsonSource::parse(path, std::move(text), diagnostics);
  if (!source) return;
  const auto fault = [&](const std::string& pointer, const std::string& what) {
    diagnostics.add(source->finding(TN_SEVERITY_ERROR, "E503", pointer, what,
                                    "{\"Switch\": {\"GraphFusion\": {\"Name\": \"on\"}}}"));
  };
  const Json& root = source->root();
  for (const auto& outer : root.items()) {
    if (outer.key() != "Switch")
      fault("/" + pointer_step(outer.key()), "unknown key '" + outer.key() + "'; expected 'Switch'");
  }
  if (!root.contains("Switch")) return;
  if (!root.at("Switch").is_object()) return fault("/Switch", "expected an object");
  for (const auto& group : root.at("Switch").items()) {
    const std::string pointer = "/Switch/" + pointer_step(group.key());
    if (group.key() != "GraphFusion" && group.key() != "UBFusion") {
      fault(pointer, "unknown group '" + group.key() + "'; expected GraphFusion or UBFusion");
      continue;
    }
    if (!group.value().is_object()) {
      fault(pointer, "expected an object of name: \"on\" or \"off\"");
      continue;
    }
    for (const auto& item : group.value().items()) {
      const std::string item_pointer = pointer + "/" + pointer_step(item.key());
      const int state = item.value().is_string() ? on_or_off(item.value().get<std::string>()) : -1;
      if (state < 0) {
        fault(item_pointer, "a switch is \"on\" or \"off\"; found " + item.value().dump());
        continue;
      }
      add(group.key() + "." + item.key(), state == 1, Source::file,
          source->finding(TN_SEVERITY_INFO, "", item_pointer, "").where, diagnostics);
    }
  }
}

void Switches::add_command_line(std::string_view text, Diagnostics& diagnostics) {
  const std::string where = "--optimization_switch";
  for (const std::string_view part : split(text, ';')) {
    const std::string_view content = trimmed(part);
    if (content.empty()) continue;
    const size_t separator = content.find_last_of(":=");
    const int state =
        separator == std::string_view::npos ? -1 : on_or_off(trimmed(content.substr(separator + 1)));
    if (state < 0 || separator == 0) {
      diagnostics.error("E503", where, "expected \"A:on;B:off\"; found '" + std::string(content) + "'");
      continue;
    }
    add(std::string(trimmed(content.substr(0, separator))), state == 1, Source::command_line, where,
        diagnostics);
  }
}

void Switches::add_manifest(const std::vector<SwitchSetting>& settings) {
  for (const SwitchSetting& setting : settings)
    settings_.push_back({setting.name, setting.on, Source::manifest, setting.where});
}

void Switches::declare(const std::vector<std::string>& names, bool fusion) {
  // A rule and a pass, or two rules, that share a name or an alias share its switch.
  for (const std::string& name : names) {
    if (name.empty()) continue;
    std::vector<size_t>& bearers = names_[name];
    if (bearers.empty() || bearers.back() != items_.size()) bearers.push_back(items_.size());
  }
  Item item;
  item.name = names.empty() ? std::string() : names.front();
  item.fusion = fusion;
  items_.push_back(std::move(item));
}

void Switches::set(size_t item, const Setting& setting, bool by_name, Diagnostics& diagnostics) {
  const int rank = 2 * static_cast<int>(setting.source) + (by_name ? 1 : 0);
  Item& target = items_[item];
  const SwitchState state = setting.on ? SwitchState::on : SwitchState::off;
  if (rank == target.rank && by_name && state != target.state) {
    diagnostics.error("E504", setting.where,
                      "'" + setting.name + "' is another name of '" + target.name + "', which " +
                          target.where + " sets the other way; keep one");
    return;
  }
  if (rank < target.rank) return;
  target.rank = rank;
  target.state = state;
  target.where = setting.where;
}

void Switches::resolve(Diagnostics& diagnostics) {
  std::vector<std::string> known = {"ALL"};
  for (const auto& [name, items] : names_) known.push_back(name);
  std::sort(known.begin(), known.end());
  for (const Setting& setting : settings_) {
    if (means_all(setting.name)) {
      const auto other = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& s) {
        return s.source == setting.source && s.on != setting.on && means_all(s.name);
      });
      if (other < settings_.begin() + (&setting - settings_.data())) {
        diagnostics.error("E504", setting.where,
                          "'" + setting.name + "' is another name of '" + other->name + "', which " +
                              other->where + " sets the other way; keep one");
        continue;
      }
      std::string stays_on;
      uint64_t covered = 0;
      for (size_t i = 0; i < items_.size(); ++i) {
        if (items_[i].fusion) {
          set(i, setting, false, diagnostics);
          ++covered;
        } else if (!setting.on) {
          stays_on += (stays_on.empty() ? "" : ", ") + items_[i].name;
        }
      }
      diagnostics.info(
          "E505", setting.where,
          "'" + setting.name + "' switches " + std::to_string(covered) + " rules and passes " +
              (setting.on ? "on" : "off") +
              (stays_on.empty()
                   ? ""
                   : "; these stay as they are, because they clean the graph and fuse nothing: " + stays_on));
      continue;
    }
    auto found = names_.find(setting.name);
    if (found == names_.end()) found = names_.find(std::string(without_group(setting.name)));
    if (found == names_.end()) {
      if (const std::string_view effect = effect_elsewhere(setting.name); !effect.empty()) {
        diagnostics.warning(
            "M208", setting.where,
            "switch '" + setting.name + "' has no effect on this device: " + std::string(effect));
        continue;
      }
      diagnostics.error("E501", setting.where,
                        "no rule or pass is called '" + setting.name + "'" +
                            did_you_mean(without_group(setting.name), known) +
                            (known.size() == 1 ? "; no rules or passes are loaded" : ""));
      continue;
    }
    for (const size_t item : found->second) set(item, setting, true, diagnostics);
  }
}

// Of several bearers of one name the strongest setting speaks.
const Switches::Item* Switches::strongest(std::string_view name) const {
  const auto found = names_.find(std::string(name));
  if (found == names_.end()) return nullptr;
  const Item* best = nullptr;
  for (const size_t item : found->second) {
    if (best == nullptr || items_[item].rank > best->rank) best = &items_[item];
  }
  return best;
}

SwitchState Switches::state(std::string_view name) const {
  const Item* item = strongest(name);
  return item == nullptr ? SwitchState::unset : item->state;
}

std::string_view Switches::decided_by(std::string_view name) const {
  const Item* item = strongest(name);
  return item == nullptr ? std::string_view() : std::string_view(item->where);
}

}  // namespace tenon
