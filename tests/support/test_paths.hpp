// Where a test finds the repository and what was built. Linked into every test through Tenon::test_main.
#pragma once

#include <string>

namespace tenon::test {

// The repository's root, absolute, no trailing slash: tests/data, models and rules are below it.
std::string source_dir();

// The build tree, absolute, no trailing slash: bin/tenon, lib/tenon/plugins and share/tenon are below it.
std::string build_dir();

// A fresh empty folder of this process, removed when the process ends normally.
std::string scratch_dir();

}  // namespace tenon::test
