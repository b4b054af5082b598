#include "fuzz_support.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "core/graph/verify.hpp"

namespace tenon::fuzz {

namespace fs = std::filesystem;

namespace {

struct Scratch {
  fs::path folder;
  Scratch() {
    std::error_code error;
    const fs::path memory = "/dev/shm";
    folder = (fs::is_directory(memory, error) ? memory : fs::temp_directory_path()) /
             ("tenon-fuzz-" + std::to_string(::getpid()));
    fs::create_directories(folder);
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(folder, error);
  }
};

}  // namespace

const fs::path& scratch_folder() {
  static const Scratch scratch;
  return scratch.folder;
}

fs::path scratch_file(std::string_view name, const void* data, size_t bytes) {
  fs::path path = scratch_folder() / name;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  return path;
}

Manifest bare_manifest(std::initializer_list<const char*> plugins, const char* model_name) {
  std::string list;
  for (const char* name : plugins) list += (list.empty() ? "\"" : ", \"") + std::string(name) + "\"";
  Diagnostics diagnostics;
  ManifestOptions options;
  options.set = {"plugins=[" + list + "]", "rules=[]", "pipeline=[]"};
  options.model_path = scratch_folder() / model_name;
  return default_manifest(options, diagnostics);
}

Engine& make_engine(std::initializer_list<const char*> plugins, const char* model_name) {
  set_install_root(TENON_FUZZ_ROOT);
  try {
    EngineOptions options;
    options.scan.use_child = false;  // a target must start no process
    // Never destroyed: plugins stay mapped until the end, and the leak checker sees what points to them.
    static std::vector<Engine*> engines;
    engines.push_back(new Engine(bare_manifest(plugins, model_name), options));
    return *engines.back();
  } catch (const Error& error) {
    for (const Diagnostic& diagnostic : error.diagnostics)
      std::fprintf(stderr, "%s\n", to_string(diagnostic).c_str());
    std::exit(2);
  }
}

void broken(std::string_view what, std::string_view text) {
  std::fprintf(stderr, "fuzz: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(text.size()), text.data());
  std::abort();
}

void require_sound(const Graph& graph, std::string_view when) {
  Diagnostics findings;
  if (verify(graph, findings)) return;
  std::string text;
  for (const Diagnostic& finding : findings.all()) text += to_string(finding) + "\n";
  broken("the graph is not sound " + std::string(when), text);
}

void require_explained(const Error& error) {
  if (error.diagnostics.empty()) broken("an error without a finding", error.what());
  for (const Diagnostic& finding : error.diagnostics) {
    if (finding.text.empty()) broken("a finding without a text", to_string(finding));
    if (finding.severity >= TN_SEVERITY_PLUGIN_MISBEHAVING)
      broken("the input is blamed on us", to_string(finding));
  }
}

}  // namespace tenon::fuzz
