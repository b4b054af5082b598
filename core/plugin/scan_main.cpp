// tenon-scan: the scan child of programs that embed the host.
#include <cstdio>
#include <string>

#include "core/plugin/host.hpp"

#include "core/plugin/plugin_scan.hpp"

int main(int argc, char** argv) {
  if (const int code = tenon::scan_plugin_main(argc, argv); code >= 0) return code;
  if (argc == 2 && std::string(argv[1]) == "--version") {
    std::printf("%s\n", std::string(tenon::program_version()).c_str());
    return 0;
  }
  std::fprintf(stderr,
               "tenon-scan is started by programs that load plugins; use: tenon plugins check PATH\n");
  return 2;
}
