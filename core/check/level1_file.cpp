// Level 1: what can be told from the file, and from the sidecar beside it.
#include <dlfcn.h>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/elf_file.hpp"
#include "core/check/levels.hpp"
#include "core/plugin/plugin_table.hpp"

namespace tenon::check {

namespace {

bool is_of_sanitizer(std::string_view symbol) {
  return symbol.starts_with("__asan_") || symbol.starts_with("__tsan_") || symbol.starts_with("__msan_") ||
         symbol.starts_with("__ubsan_") || symbol.starts_with("__hwasan_");
}

bool is_of_tenon(std::string_view symbol) {
  return symbol.starts_with("tn_") || symbol.starts_with("tenon_") ||
         (symbol.starts_with("_Z") && symbol.find("5tenon") != std::string_view::npos);
}

void list(Checker& checker, const std::vector<std::string>& names, std::string_view what) {
  if (names.empty()) return;
  std::string some;
  for (size_t i = 0; i < std::min<size_t>(names.size(), 5); ++i) some += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > 5) some += fmt::format(" and {} more", names.size() - 5);
  checker.finding(fmt::format("{}: {}", what, some));
}

template <class Test>
std::vector<std::string> names_of(const ElfFile& elf, Test&& test) {
  std::vector<std::string> names;
  for (const ElfSymbol& symbol : elf.symbols)
    if (test(symbol)) names.push_back(symbol.name);
  std::sort(names.begin(), names.end());
  return names;
}

// The file's dynamic part, for a check about it; nothing when 1.1 tells that it is no library.
std::optional<ElfFile> elf_of(Checker& checker) {
  if (const auto refusal = check_library_file(checker.request().library);
      refusal && !refusal->reason.starts_with("is built with"))
    return std::nullopt;
  if (!checker.begin(checker.request().library.filename().string())) return std::nullopt;
  try {
    return read_elf(checker.request().library);
  } catch (const Error& error) {
    checker.finding(error.diagnostics.front().text);
    return std::nullopt;
  }
}

}  // namespace

void check_is_library(Checker& checker) {
  if (!checker.begin(checker.request().library.filename().string())) return;
  const auto refusal = check_library_file(checker.request().library);
  // A sanitizer has a check of its own.
  if (refusal && !refusal->reason.starts_with("is built with"))
    checker.finding(refusal->reason + "; " + refusal->remedy);
}

void check_one_export(Checker& checker) {
  const auto elf = elf_of(checker);
  if (!elf) return;
  const auto exported = names_of(*elf, [](const ElfSymbol& s) { return s.is_defined; });
  if (std::find(exported.begin(), exported.end(), TN_ENTRY_SYMBOL) == exported.end())
    checker.finding("it does not export " TN_ENTRY_SYMBOL "; TENON_PLUGIN(...) defines it");
  std::vector<std::string> others;
  for (const std::string& name : exported)
    if (name != TN_ENTRY_SYMBOL) others.push_back(name);
  // Unique ones are told by the next check, and go with its remedy.
  const auto unique = names_of(*elf, [](const ElfSymbol& s) { return s.is_unique; });
  std::erase_if(others, [&](const std::string& name) {
    return std::find(unique.begin(), unique.end(), name) != unique.end();
  });
  list(checker, others,
       fmt::format("it exports {} symbols beside " TN_ENTRY_SYMBOL
                   "; link with -fvisibility=hidden and a version script, as tenon_add_plugin does",
                   others.size()));
}

void check_no_unique_symbols(Checker& checker) {
  if (const auto elf = elf_of(checker))
    list(checker, names_of(*elf, [](const ElfSymbol& s) { return s.is_unique; }),
         "unique symbols (STB_GNU_UNIQUE); compile with -fno-gnu-unique, as tenon_add_plugin does");
}

void check_nothing_of_ours_undefined(Checker& checker) {
  if (const auto elf = elf_of(checker))
    list(checker, names_of(*elf, [](const ElfSymbol& s) { return !s.is_defined && is_of_tenon(s.name); }),
         "it wants symbols of the host, which exports none; everything is reached through tables");
}

void check_no_sanitizer(Checker& checker) {
  const auto elf = elf_of(checker);
  if (!elf) return;
  std::vector<std::string> missing;
  for (const std::string& name :
       names_of(*elf, [](const ElfSymbol& s) { return !s.is_defined && is_of_sanitizer(s.name); }))
    if (dlsym(RTLD_DEFAULT, name.c_str()) == nullptr) missing.push_back(name);
  list(checker, missing, "built with a sanitizer that this program is not; build without -fsanitize");
}

void check_no_text_relocations(Checker& checker) {
  const auto elf = elf_of(checker);
  if (elf && elf->has_text_relocations)
    checker.finding("its code is changed while it is loaded (DT_TEXTREL); compile all of it with -fPIC");
}

void check_no_executable_stack(Checker& checker) {
  const auto elf = elf_of(checker);
  if (elf && elf->has_executable_stack)
    checker.finding(
        "it makes the program's stack executable; link with -z noexecstack, and add .note.GNU-stack to "
        "assembly files");
}

void check_no_writable_code(Checker& checker) {
  const auto elf = elf_of(checker);
  if (elf && elf->has_writable_code)
    checker.finding("a segment is both writable and executable; link without -N, and with -z separate-code");
}

void check_search_paths(Checker& checker) {
  const auto elf = elf_of(checker);
  if (!elf) return;
  for (const std::string& path : elf->search_paths) {
    if (path.starts_with("$ORIGIN") || path.starts_with("${ORIGIN}")) continue;
    checker.finding(
        fmt::format("it looks for libraries in {}, a folder of the machine it was built on; use "
                    "$ORIGIN, or no rpath",
                    path.empty() ? "the working folder (an empty path)" : quoted(path)));
  }
}

void check_sidecar_is_there(Checker& checker) {
  const std::filesystem::path sidecar = sidecar_path(checker.request().library);
  if (!checker.begin(sidecar.filename().string())) return;
  std::error_code error;
  if (!std::filesystem::exists(sidecar, error)) {
    checker.finding("there is no sidecar beside the library; tenon_add_plugin writes it, tenon-sidecar too");
    return;
  }
  PluginFacts facts;
  if (const auto refusal = read_sidecar(sidecar, facts))
    checker.finding(refusal->reason + "; " + refusal->remedy);
}

void check_sidecar_equals_table(Checker& checker) {
  const std::filesystem::path sidecar = sidecar_path(checker.request().library);
  PluginFacts said;
  std::error_code error;
  if (!std::filesystem::exists(sidecar, error) || read_sidecar(sidecar, said)) return;  // told by 1.10
  const PluginFacts is = table_facts(checker.plugin());
  if (!checker.begin(sidecar.filename().string())) return;
  if (const auto refusal = compare_facts(said, is)) checker.finding(refusal->reason + "; " + refusal->remedy);
  const auto compare = [&](const char* what, std::vector<std::string> of_sidecar,
                           std::vector<std::string> of_table) {
    std::sort(of_sidecar.begin(), of_sidecar.end());
    std::sort(of_table.begin(), of_table.end());
    std::vector<std::string> differ;
    std::set_symmetric_difference(of_sidecar.begin(), of_sidecar.end(), of_table.begin(), of_table.end(),
                                  std::back_inserter(differ));
    list(checker, differ, fmt::format("{} that only one of sidecar and library has", what));
  };
  compare("operators", said.operators, is.operators);
  compare("operators with kernels", said.kernel_operators, is.kernel_operators);
}

}  // namespace tenon::check
