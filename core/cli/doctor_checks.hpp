// What can be wrong with an installation, looked for piece by piece. Nothing is changed but a file that is
// written to the cache folder and taken away again; plugins are opened in child processes.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cli {

enum class Health { ok, note, warning, error };
const char* health_name(Health health);

struct DoctorFinding {
  std::string check;  // which of the checks: "helper", "rules", "plugins" ...
  Health health = Health::ok;
  std::string where;   // the file or variable
  std::string text;    // what was found
  std::string remedy;  // empty when nothing is to be done
};

/// All findings, in the order of the checks. `manifest`: one that is opened too, with its lock file; may be
/// empty.
std::vector<DoctorFinding> examine_installation(const std::filesystem::path& manifest);

}  // namespace tenon::cli
