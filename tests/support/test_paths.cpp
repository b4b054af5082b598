#include "test_paths.hpp"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tenon::test {

namespace {

struct ScratchFolder {
  std::string path;

  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    if (mkdtemp(name.data()) != nullptr) path = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;  // a folder that cannot be removed is no reason to fail a test that passed
    if (!path.empty()) std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

std::string source_dir() { return TENON_SOURCE_DIR; }

std::string build_dir() { return TENON_BINARY_DIR; }

std::string scratch_dir() {
  static const ScratchFolder folder;
  return folder.path;
}

}  // namespace tenon::test
