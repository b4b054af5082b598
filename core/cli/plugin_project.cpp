#include "core/cli/plugin_project.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/plugin/host.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

using Values = std::map<std::string, std::string>;

fs::path templates() { return install_root() / "share" / "tenon" / "templates"; }

constexpr const char* helper_folders[] = {"common", "snippets", "kernel_from"};

bool is_name(std::string_view text) {
  return !text.empty() && text[0] >= 'a' && text[0] <= 'z' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

bool is_id(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  return parts.size() >= 2 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return !part.empty() &&
                  part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == part.npos;
         });
}

// "soft_clip" -> "SoftClip"
std::string camel(std::string_view name) {
  std::string text;
  bool up = true;
  for (const char c : name) {
    if (c == '_') {
      up = true;
      continue;
    }
    text += up && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    up = false;
  }
  return text;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(exit_bad_input, path.string(),
                "cannot be read; the installation may be damaged: run `tenon doctor`");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Every @NAME@ that has a value; a value's own are replaced as well (README's shared sections have some).
std::string filled(const std::string& text, const Values& values) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t begin = text.find('@', at);
    const size_t end = begin == std::string::npos ? begin : text.find('@', begin + 1);
    if (end == std::string::npos) break;
    const auto value = values.find(text.substr(begin + 1, end - begin - 1));
    if (value == values.end()) {
      out.append(text, at, end - at);  // the second @ may begin a placeholder
      at = end;
      continue;
    }
    out.append(text, at, begin - at);
    out += value->first == "BUILD" ? filled(value->second, values) : value->second;
    at = end + 1;
  }
  return out.append(text, at, std::string::npos);
}

// Files of the folder and below, relative to it, sorted.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file()) found.push_back(fs::relative(at->path(), folder));
  if (error)
    throw Error(
        exit_bad_input, folder.string(),
        "cannot be read (" + error.message() + "); the installation may be damaged: run `tenon doctor`");
  std::sort(found.begin(), found.end());
  return found;
}

void check(const NewPlugin& wanted, const std::string& id) {
  if (!is_name(wanted.name))
    throw Error(exit_bad_input, "plugins new",
                "'" + wanted.name +
                    "' is no plugin's name; expected lower-case letters, digits and _, beginning with a "
                    "letter, such as soft_clip");
  const std::vector<std::string> kinds = plugin_kinds();
  if (std::find(kinds.begin(), kinds.end(), wanted.kind) == kinds.end())
    throw Error(exit_bad_input, "--kind",
                "'" + wanted.kind + "' is no kind" + did_you_mean(wanted.kind, kinds) + "; there are " +
                    join(kinds, ", "));
  if (!is_id(id))
    throw Error(
        exit_bad_input, "--id",
        "'" + id +
            "' is no plugin's id; expected dotted lower-case names that you own, such as com.acme.soft_clip");
  if (!wanted.from.empty() && wanted.kind != "kernel")
    throw Error(exit_bad_input, "--from",
                "describes operators, which plugins of kind kernel have; found --kind " + wanted.kind);
}

Values values_of(const NewPlugin& wanted, const std::string& id) {
  const std::string domain = id.substr(0, id.rfind('.'));
  std::string name_space = wanted.name;
  if (name_space == "tenon" || name_space == "std") name_space += "_plugin";
  return {{"NAME", wanted.name},
          {"ID", id},
          {"TYPE", camel(wanted.name)},
          {"DOMAIN", domain},
          {"NAMESPACE", name_space},
          {"VENDOR", wanted.vendor.empty() ? domain : wanted.vendor},
          {"BUILD", read(templates() / "snippets" / "build.md")}};
}

}  // namespace

std::vector<std::string> plugin_kinds() {
  std::vector<std::string> kinds;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(templates(), error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() &&
        std::find(std::begin(helper_folders), std::end(helper_folders), name) == std::end(helper_folders))
      kinds.push_back(name);
  }
  if (kinds.empty())
    throw Error(exit_bad_input, templates().string(),
                "has no templates; the installation may be damaged: run `tenon doctor`");
  std::sort(kinds.begin(), kinds.end());
  return kinds;
}

std::vector<std::string> write_plugin_project(const NewPlugin& wanted) {
  const std::string id = wanted.id.empty() ? "com.example." + wanted.name : wanted.id;
  check(wanted, id);
  const fs::path folder =
      fs::absolute(wanted.folder.empty() ? wanted.name : wanted.folder).lexically_normal();
  std::error_code error;
  if (fs::exists(folder, error) && !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    throw Error(exit_bad_input, folder.string(),
                "exists already; name a new folder with --output, or remove it");

  Values values = values_of(wanted, id);
  std::string kind = wanted.kind;
  if (!wanted.from.empty()) {
    kind = "kernel_from";
    values.merge(operators_from_file(wanted.from, values.at("DOMAIN"), id));
  }
  // Beside its place first: an interrupted run leaves no half project under the name.
  const fs::path part = folder.string() + ".part";
  fs::remove_all(part, error);
  std::vector<std::string> written;
  for (const fs::path& from : {templates() / "common", templates() / kind}) {
    for (const fs::path& file : files_below(from)) {
      const fs::path to = part / filled(file.string(), values);
      fs::create_directories(to.parent_path(), error);
      std::ofstream out(to, std::ios::binary);
      out << filled(read(from / file), values);
      out.close();
      if (!out) {
        fs::remove_all(part, error);
        throw Error(exit_job_failed, to.string(),
                    "cannot be written; check that the folder may be written and the disk has room");
      }
      fs::permissions(to, fs::status(from / file).permissions(), error);
      written.push_back(fs::relative(to, part).string());
    }
  }
  fs::remove(folder, error);  // an empty one
  fs::rename(part, folder, error);
  if (error) {
    const std::string why = error.message();
    fs::remove_all(part, error);
    throw Error(exit_job_failed, folder.string(), "cannot be made (" + why + ")");
  }
  std::sort(written.begin(), written.end());
  return written;
}

}  // namespace tenon::cli
