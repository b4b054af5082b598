// tenon plugins new: a vendor's project, made from the templates of share/tenon/templates.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/base/diagnostics.hpp"

namespace tenon::cli {

struct NewPlugin {
  std::string name;    // lower-case letters, digits and _, as "soft_clip": folder, library, files
  std::string kind;    // a folder of the templates
  std::string id;      // dotted; empty: com.example.NAME
  std::string vendor;  // empty: the part of the id before the last dot
  std::string folder;  // empty: ./NAME; must not exist, or be empty
  std::string from;    // operator definitions in msopgen's form (kind kernel)
};

/// Kinds that there are templates for, sorted.
std::vector<std::string> plugin_kinds();

/// Writes the project and returns its files, relative to the folder. All or nothing. Throws Error (exit code
/// 2).
std::vector<std::string> write_plugin_project(const NewPlugin& wanted);

/// What stands for @PLACEHOLDERS@ when operators are given: made from msopgen's JSON. Findings name the place
/// in the file.
std::map<std::string, std::string> operators_from_file(const std::string& path, const std::string& domain,
                                                       const std::string& id);

}  // namespace tenon::cli
