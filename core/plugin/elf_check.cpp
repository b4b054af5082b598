// What can be told from a library's bytes. It comes before any dlopen: a file cut short is SIGBUS inside
// dlopen, and one for another machine reads "No such file or directory".
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "core/plugin/plugin_scan.hpp"

namespace tenon {

namespace {

#if defined(__x86_64__)
constexpr uint16_t own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t own_machine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t own_machine = EM_RISCV;
#else
constexpr uint16_t own_machine = EM_NONE;
#endif

#if defined(__SANITIZE_ADDRESS__)
constexpr bool host_has_asan = true;
#else
constexpr bool host_has_asan = false;
#endif
#if defined(__SANITIZE_THREAD__)
constexpr bool host_has_tsan = true;
#else
constexpr bool host_has_tsan = false;
#endif

constexpr uint64_t max_table_bytes = 1 << 20;  // of program headers, and of the dynamic section

std::string machine_name(uint16_t machine) {
  switch (machine) {
    case EM_386:
      return "i386";
    case EM_X86_64:
      return "x86-64";
    case EM_ARM:
      return "arm";
    case EM_AARCH64:
      return "aarch64";
    case EM_RISCV:
      return "riscv";
    case EM_PPC64:
      return "ppc64";
    case EM_S390:
      return "s390";
    default:
      return "machine number " + std::to_string(machine);
  }
}

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

bool read_at(int fd, uint64_t offset, void* out, size_t bytes) {
  auto* next = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(fd, next, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    next += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// True when [offset, offset + bytes) lies in a file of `size` bytes.
bool inside(uint64_t offset, uint64_t bytes, uint64_t size) {
  return offset <= size && bytes <= size - offset;
}

Refusal damaged(const std::string& what) {
  return {what, "copy or build the file again; it is incomplete or damaged"};
}

// The names of the libraries it needs; nothing when it has no dynamic section that can be read.
std::vector<std::string> needed_libraries(int fd, uint64_t size, const std::vector<Elf64_Phdr>& segments) {
  std::vector<std::string> names;
  const auto file_offset = [&](uint64_t address) -> uint64_t {
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address - segment.p_vaddr < segment.p_filesz)
        return segment.p_offset + (address - segment.p_vaddr);
    }
    return UINT64_MAX;
  };
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_DYNAMIC || segment.p_filesz > max_table_bytes) continue;
    std::vector<Elf64_Dyn> entries(segment.p_filesz / sizeof(Elf64_Dyn));
    if (!read_at(fd, segment.p_offset, entries.data(), entries.size() * sizeof(Elf64_Dyn))) return names;
    uint64_t text_address = 0;
    uint64_t text_bytes = 0;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == DT_STRTAB) text_address = entry.d_un.d_ptr;
      if (entry.d_tag == DT_STRSZ) text_bytes = entry.d_un.d_val;
    }
    const uint64_t text_offset = file_offset(text_address);
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag != DT_NEEDED || entry.d_un.d_val >= text_bytes) continue;
      if (text_offset == UINT64_MAX || !inside(text_offset, text_bytes, size)) break;
      char name[256];
      const size_t available = std::min<uint64_t>(sizeof name - 1, text_bytes - entry.d_un.d_val);
      if (!read_at(fd, text_offset + entry.d_un.d_val, name, available)) continue;
      name[available] = '\0';
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace

std::optional<Refusal> check_library_file(const std::filesystem::path& library) {
  const Descriptor file{open(library.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (file.fd < 0) {
    if (errno == ENOENT) return Refusal{"there is no such file", "check the path, or install the plugin"};
    return Refusal{std::string("cannot be read: ") + std::strerror(errno), "check the file's permissions"};
  }
  struct stat facts {};
  if (fstat(file.fd, &facts) != 0 || !S_ISREG(facts.st_mode))
    return Refusal{"is not an ordinary file", "name the shared library itself"};
  const auto size = static_cast<uint64_t>(facts.st_size);

  Elf64_Ehdr header{};
  if (size < sizeof header || !read_at(file.fd, 0, &header, sizeof header) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return Refusal{"is not an ELF file (" + std::to_string(size) + " bytes)",
                   "a plugin is a shared library; build it with tenon_add_plugin"};
  }
  if (header.e_ident[EI_CLASS] != (sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32))
    return Refusal{"is a 32-bit library; this program is 64-bit", "build it for this machine"};
  if (header.e_ident[EI_DATA] != ELFDATA2LSB)
    return Refusal{"is a big-endian library; this machine is little-endian", "build it for this machine"};
  if (header.e_machine != own_machine) {
    return Refusal{"is built for " + machine_name(header.e_machine) + "; this program runs on " +
                       machine_name(own_machine),
                   "get or build the plugin for this machine"};
  }
  if (header.e_type != ET_DYN)
    return Refusal{"is an object or program, not a shared library",
                   "link it as a shared library (MODULE in CMake)"};

  const uint64_t table_bytes = uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || table_bytes > max_table_bytes ||
      !inside(header.e_phoff, table_bytes, size)) {
    return damaged("its table of segments lies outside the file (" + std::to_string(size) + " bytes)");
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!read_at(file.fd, header.e_phoff, segments.data(), table_bytes))
    return damaged("its segments cannot be read");
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_LOAD && segment.p_type != PT_DYNAMIC) continue;
    if (!inside(segment.p_offset, segment.p_filesz, size) || segment.p_filesz > segment.p_memsz) {
      return damaged("is cut short or damaged: a segment ends at byte " +
                     std::to_string(segment.p_offset + segment.p_filesz) + " but the file has " +
                     std::to_string(size) + " bytes");
    }
  }
  // The section headers come last in a file, so a file cut behind its last segment shows here.
  if (header.e_shoff != 0 && !inside(header.e_shoff, uint64_t{header.e_shnum} * header.e_shentsize, size))
    return damaged("is cut short: its section table lies outside the file (" + std::to_string(size) +
                   " bytes)");

  for (const std::string& name : needed_libraries(file.fd, size, segments)) {
    const bool asan = name.starts_with("libasan.so") || name.starts_with("libclang_rt.asan");
    const bool tsan = name.starts_with("libtsan.so") || name.starts_with("libclang_rt.tsan");
    if ((asan && !host_has_asan) || (tsan && !host_has_tsan)) {
      return Refusal{std::string("is built with ") + (asan ? "AddressSanitizer" : "ThreadSanitizer") +
                         " (needs " + name + "), which this program is not",
                     "build the plugin without -fsanitize, or build the host with it too"};
    }
  }
  return std::nullopt;
}

}  // namespace tenon
