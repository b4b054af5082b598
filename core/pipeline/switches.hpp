// Switches of rules and passes: the command line beats a switch file, which beats the manifest; within one
// source a name beats ALL; every alias of a rule or pass means the same switch.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/pipeline/manifest.hpp"

namespace tenon {

enum class SwitchState : uint8_t { unset, on, off };

class Switches {
 public:
  // Three dialects, told apart line by line: `Name:on|off`, `Key=1|0`, CANN's JSON {"Switch": {"GraphFusion":
  // {...}}}.
  void add_file(const std::filesystem::path& path, Diagnostics& diagnostics);
  void add_file_text(const std::string& path, std::string text, Diagnostics& diagnostics);
  // --optimization_switch="A:on;B:off"
  void add_command_line(std::string_view text, Diagnostics& diagnostics);
  void add_manifest(const std::vector<SwitchSetting>& settings);

  // One rule or pass with all the names it answers to. `fusion`: covered by ALL.
  void declare(const std::vector<std::string>& names, bool fusion);
  // After all declarations: unknown names are errors with the nearest three; notes say what ALL leaves on.
  void resolve(Diagnostics& diagnostics);

  SwitchState state(std::string_view name) const;
  // What set it: "--optimization_switch", "file:line:col"; empty when nothing did.
  std::string_view decided_by(std::string_view name) const;
  bool empty() const { return settings_.empty(); }

 private:
  enum class Source : uint8_t { manifest, file, command_line };
  struct Setting {
    std::string name;
    bool on;
    Source source;
    std::string where;
  };
  struct Item {
    std::string name;
    bool fusion;
    SwitchState state = SwitchState::unset;
    int rank = -1;  // of the setting that decided: source * 2 + (by name)
    std::string where;
  };
  void add(std::string name, bool on, Source source, std::string where, Diagnostics& diagnostics);
  void add_json(const std::string& path, std::string text, Diagnostics& diagnostics);
  const Item* strongest(std::string_view name) const;
  void set(size_t item, const Setting& setting, bool by_name, Diagnostics& diagnostics);
  std::vector<Setting> settings_;
  std::vector<Item> items_;
  std::unordered_map<std::string, std::vector<size_t>> names_;
};

}  // namespace tenon
