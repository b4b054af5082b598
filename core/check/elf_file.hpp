// The dynamic part of a shared library, read from its bytes.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tenon::check {

struct ElfSymbol {
  std::string name;
  bool is_defined = false;
  bool is_unique = false;  // STB_GNU_UNIQUE
};

struct ElfFile {
  std::vector<ElfSymbol> symbols;         // of the dynamic table: global, weak and unique ones
  std::vector<std::string> needed;        // libraries
  std::vector<std::string> search_paths;  // of RPATH and RUNPATH, split at colons
  bool has_text_relocations = false;
  bool has_executable_stack = false;
  bool has_writable_code = false;  // a segment both writable and executable
};

// For a file that check_library_file accepts. Throws Error when its dynamic part cannot be read.
ElfFile read_elf(const std::filesystem::path& library);

}  // namespace tenon::check
