// Files from outside: mapped, checked, written beside and renamed. Everything here throws Error (exit code 2
// for what cannot be read, 1 for what cannot be written); the boundary table turns that into a status and a
// message.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/base/diagnostics.hpp"
#include "tenon/abi/files.h"

namespace tenon {

// A read-only mapping of a whole regular file. Immutable, shared.
class MappedFile {
 public:
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }
  std::span<const uint8_t> bytes() const { return {data_, static_cast<size_t>(size_)}; }
  const std::string& path() const { return path_; }
  // True when the file on disk was cut short since it was mapped: reading the tail would then be a bus error.
  bool was_truncated() const;

 private:
  MappedFile() = default;
  const uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
  int descriptor_ = -1;
  std::string path_;
};

// The canonical path of `relative` as named inside the file `base`: never absolute, never outside base's
// folder, links resolved.
std::filesystem::path resolve_beside(const std::filesystem::path& base, std::string_view relative);

// Writes to a temporary file in the target's folder; commit() flushes and renames it over the target.
class AtomicWriter {
 public:
  explicit AtomicWriter(std::filesystem::path target);
  AtomicWriter(const AtomicWriter&) = delete;
  AtomicWriter& operator=(const AtomicWriter&) = delete;
  ~AtomicWriter();  // drops the temporary file unless committed

  void write(const void* data, uint64_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  void commit();

 private:
  void write_all(const char* data, size_t bytes);
  void flush();
  std::filesystem::path target_;
  std::string temporary_;
  int descriptor_ = -1;
  std::string buffer_;
};

std::string read_text_file(const std::filesystem::path& path, uint64_t limit_bytes = uint64_t(1) << 30);
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

// The table behind tenon.files/1. [any]
const tn_files_api* files_api();
// The mapping behind a handle of that table; keeps it alive. NULL when file is NULL.
std::shared_ptr<const MappedFile> mapped_file(tn_file* file);

}  // namespace tenon
