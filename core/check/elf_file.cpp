#include "core/check/elf_file.hpp"

#include <elf.h>

#include <cstring>

#include "core/base/files.hpp"
#include "core/base/text.hpp"

namespace tenon::check {

namespace {

// Bytes of the file, every access checked.
class Reader {
 public:
  explicit Reader(std::string bytes, std::string name) : bytes_(std::move(bytes)), name_(std::move(name)) {}

  template <class T>
  T at(uint64_t offset) const {
    T value{};
    require(offset, sizeof value);
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  std::string text(uint64_t table, uint64_t table_bytes, uint64_t offset) const {
    require(table, table_bytes);
    if (offset >= table_bytes) fail("a name lies outside the table of names");
    const char* const begin = bytes_.data() + table + offset;
    return {begin, strnlen(begin, table_bytes - offset)};
  }
  void require(uint64_t offset, uint64_t count) const {
    if (offset > bytes_.size() || count > bytes_.size() - offset) fail("a part lies outside the file");
  }
  [[noreturn]] void fail(const std::string& what) const { throw Error(exit_bad_input, name_, what); }

 private:
  std::string bytes_, name_;
};

struct Dynamic {
  uint64_t names = 0, names_bytes = 0, symbols = 0, symbol_bytes = sizeof(Elf64_Sym), hash = 0, gnu_hash = 0;
  std::vector<uint64_t> needed, paths;
};

// How many symbols there are, from whichever hash table the linker made.
uint64_t symbol_count(const Reader& file, const Dynamic& dynamic) {
  if (dynamic.hash != 0) return file.at<uint32_t>(dynamic.hash + 4);
  if (dynamic.gnu_hash == 0) return 0;
  const auto buckets = file.at<uint32_t>(dynamic.gnu_hash), first = file.at<uint32_t>(dynamic.gnu_hash + 4),
             filters = file.at<uint32_t>(dynamic.gnu_hash + 8);
  const uint64_t bucket_table = dynamic.gnu_hash + 16 + uint64_t{filters} * 8;
  const uint64_t chains = bucket_table + uint64_t{buckets} * 4;
  uint32_t last = 0;
  for (uint64_t i = 0; i < buckets; ++i) last = std::max(last, file.at<uint32_t>(bucket_table + i * 4));
  if (last < first) return first;  // nothing but undefined ones
  while ((file.at<uint32_t>(chains + uint64_t{last - first} * 4) & 1) == 0) ++last;
  return uint64_t{last} + 1;
}

}  // namespace

ElfFile read_elf(const std::filesystem::path& library) {
  const Reader file(read_text_file(library), library.string());
  const auto header = file.at<Elf64_Ehdr>(0);
  std::vector<Elf64_Phdr> segments;
  for (uint64_t i = 0; i < header.e_phnum; ++i)
    segments.push_back(file.at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr)));
  const auto offset_of = [&](uint64_t address) {
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    }
    file.fail("an address of its dynamic section lies in no segment");
  };

  ElfFile elf;
  Dynamic dynamic;
  bool has_stack_note = false;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD && (segment.p_flags & PF_W) != 0 && (segment.p_flags & PF_X) != 0)
      elf.has_writable_code = true;
    if (segment.p_type == PT_GNU_STACK) {
      has_stack_note = true;
      elf.has_executable_stack = (segment.p_flags & PF_X) != 0;
    }
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t i = 0; i < segment.p_filesz / sizeof(Elf64_Dyn); ++i) {
      const auto entry = file.at<Elf64_Dyn>(segment.p_offset + i * sizeof(Elf64_Dyn));
      const uint64_t value = entry.d_un.d_val;
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_STRTAB) dynamic.names = offset_of(value);
      if (entry.d_tag == DT_STRSZ) dynamic.names_bytes = value;
      if (entry.d_tag == DT_SYMTAB) dynamic.symbols = offset_of(value);
      if (entry.d_tag == DT_SYMENT) dynamic.symbol_bytes = value;
      if (entry.d_tag == DT_HASH) dynamic.hash = offset_of(value);
      if (entry.d_tag == DT_GNU_HASH) dynamic.gnu_hash = offset_of(value);
      if (entry.d_tag == DT_NEEDED) dynamic.needed.push_back(value);
      if (entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH) dynamic.paths.push_back(value);
      if (entry.d_tag == DT_TEXTREL || (entry.d_tag == DT_FLAGS && (value & DF_TEXTREL) != 0))
        elf.has_text_relocations = true;
    }
  }
  // Without the note the kernel makes the stack executable.
  if (!has_stack_note) elf.has_executable_stack = true;
  if (dynamic.names == 0 || dynamic.symbols == 0 || dynamic.symbol_bytes < sizeof(Elf64_Sym))
    file.fail("it has no dynamic section with symbols");

  const auto name_at = [&](uint64_t offset) { return file.text(dynamic.names, dynamic.names_bytes, offset); };
  for (const uint64_t name : dynamic.needed) elf.needed.push_back(name_at(name));
  for (const uint64_t paths : dynamic.paths) {
    const std::string all = name_at(paths);
    for (const std::string_view path : split(all, ':')) elf.search_paths.emplace_back(path);
  }
  const uint64_t count = symbol_count(file, dynamic);
  for (uint64_t i = 1; i < count; ++i) {
    const auto symbol = file.at<Elf64_Sym>(dynamic.symbols + i * dynamic.symbol_bytes);
    const unsigned binding = ELF64_ST_BIND(symbol.st_info);
    if (binding == STB_LOCAL || symbol.st_name == 0) continue;
    elf.symbols.push_back({name_at(symbol.st_name), symbol.st_shndx != SHN_UNDEF, binding == STB_GNU_UNIQUE});
  }
  return elf;
}

}  // namespace tenon::check
