// tenon-scan: the scan child of programs that embed the host.
#include <cstdio>

#include "core/plugin/plugin_scan.hpp"

int main(int argc, char** argv) {
  if (const int code = tenon::scan_plugin_main(argc, argv); code >= 0) return code;
  std::fprintf(stderr,
               "tenon-scan is started by programs that load plugins; use: tenon plugins check PATH\n");
  return 2;
}
