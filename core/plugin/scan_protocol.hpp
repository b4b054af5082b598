// Between the host and its scan child. The child is started as `program --scan-plugin PATH` and writes lines
// to descriptor 3: "@" and a stage before each step, and a JSON object at the end, {"facts": ...} or
// {"refused", "remedy", "lasting"}.
#pragma once
#include "core/base/child_process.hpp"

namespace tenon {

inline constexpr int scan_result_descriptor = child_result_descriptor;
inline constexpr char scan_argument[] = "--scan-plugin";

// Whether this program called scan_plugin_main(), so that it can be its own scan child.
bool scan_hook_is_installed();

}  // namespace tenon
