// tenon plugins new: a project that builds, checks itself and ships.
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/cli/plugin_project.hpp"

namespace tenon::cli {

namespace {

int make(const NewPlugin& wanted, bool json) {
  const std::vector<std::string> files = write_plugin_project(wanted);
  const std::string folder = wanted.folder.empty() ? wanted.name : wanted.folder;
  if (json) {
    print_json({{"folder", folder}, {"kind", wanted.kind}, {"files", files}});
    return 0;
  }
  for (const std::string& file : files) std::printf("%s/%s\n", folder.c_str(), file.c_str());
  std::printf(
      "\nNext, where PREFIX is where Tenon is installed:\n"
      "  cd %s\n"
      "  cmake -S . -B build -G Ninja -DCMAKE_PREFIX_PATH=$PREFIX && cmake --build build\n"
      "  ctest --test-dir build\n"
      "README.md says what each file is.\n",
      folder.c_str());
  return 0;
}

}  // namespace

void add_plugins_new(CLI::App& plugins, Action& action) {
  struct Options {
    NewPlugin wanted;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  auto* verb = plugins.add_subcommand(
      "new", "a plugin project that builds against the installed SDK and checks itself");
  verb->add_option("name", o->wanted.name, "lower-case letters, digits and _: the library's name")
      ->required();
  verb->add_option("--kind", o->wanted.kind,
                   "kernel (with its operator), pass, rules, frontend, exporter, planner or device")
      ->required();
  verb->add_option("--id", o->wanted.id,
                   "the plugin's id, a dotted name that you own; default: com.example.NAME");
  verb->add_option("--vendor", o->wanted.vendor, "who makes it");
  verb->add_option("--from", o->wanted.from, "operators in the JSON form of CANN's msopgen (kind kernel)")
      ->type_name("FILE");
  verb->add_option("-o,--output", o->wanted.folder, "the folder to make; default: NAME")->type_name("DIR");
  verb->add_flag("--json", o->json, "print JSON");
  verb->callback([o, &action] { action = [o] { return make(o->wanted, o->json); }; });
}

}  // namespace tenon::cli
