// Hands files to a fuzz target, where there is no libFuzzer: the kept corpus and what fuzzing has found, in
// an ordinary build and in the sanitizers'. Folders are read to their ends, in the order of their names.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "fuzz_support.hpp"

int main(int count, char** arguments) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (int i = 1; i < count; ++i) {
    if (!fs::is_directory(arguments[i])) {
      files.emplace_back(arguments[i]);
      continue;
    }
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(arguments[i]))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 2;
    }
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    // Before, not after: when it crashes, the last name printed is the one.
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);
    // A buffer of exactly that size, so that AddressSanitizer sees a read beyond it.
    std::vector<uint8_t> bytes(text.begin(), text.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  return 0;
}
