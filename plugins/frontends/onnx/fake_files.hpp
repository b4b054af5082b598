// For unit tests: the host's files service over ordinary streams, and a folder for a test's files.
#pragma once
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tenon/abi/files.h"
#include "tenon/sdk/base.hpp"

struct tn_file {
  std::string path;
  std::vector<uint64_t> storage;  // aligned
  uint64_t size = 0;
  int uses = 1;
};
struct tn_writer {
  std::string path, bytes;
};

namespace tenon::onnx::testing {

inline const tn_files_api* files_table() {
  static const tn_files_api table = [] {
    tn_files_api t{};
    t.size = sizeof t;
    t.open = [](tn_str path, const tn_diag* diag, tn_file** out) -> tn_status {
      std::ifstream in(sdk::text(path), std::ios::binary);
      if (!in) {
        sdk::Diag(diag).error(sdk::view(path), "no such file");
        return TN_ERR_IO;
      }
      std::stringstream all;
      all << in.rdbuf();
      const std::string bytes = all.str();
      auto* f = new tn_file;
      f->path = sdk::text(path);
      f->size = bytes.size();
      f->storage.resize(bytes.size() / 8 + 1);
      std::memcpy(f->storage.data(), bytes.data(), bytes.size());
      *out = f;
      return TN_OK;
    };
    t.open_beside = [](tn_str base, tn_str relative, const tn_diag* diag, tn_file** out) -> tn_status {
      const std::string name = sdk::text(relative);
      if (name.find("..") != std::string::npos || name.empty() || name[0] == '/') {
        sdk::Diag(diag).error(name, "it is outside the model's folder");
        return TN_ERR_INVALID;
      }
      const std::string path = (std::filesystem::path(sdk::text(base)).parent_path() / name).string();
      return files_table()->open(sdk::str(path), diag, out);
    };
    t.data = [](tn_file* f) -> const uint8_t* { return reinterpret_cast<const uint8_t*>(f->storage.data()); };
    t.size_bytes = [](tn_file* f) { return f->size; };
    t.path = [](tn_file* f) { return sdk::str(f->path); };
    t.release = [](tn_file* f) {
      if (--f->uses == 0) delete f;
    };
    t.create = [](tn_str path, const tn_diag*, tn_writer** out) -> tn_status {
      *out = new tn_writer{sdk::text(path), {}};
      return TN_OK;
    };
    t.write = [](tn_writer* w, const void* data, uint64_t bytes) -> tn_status {
      w->bytes.append(static_cast<const char*>(data), bytes);
      return TN_OK;
    };
    t.close = [](tn_writer* w, int keep, const tn_diag*) -> tn_status {
      if (keep)
        std::ofstream(w->path, std::ios::binary)
            .write(w->bytes.data(), static_cast<std::streamsize>(w->bytes.size()));
      delete w;
      return TN_OK;
    };
    return t;
  }();
  return &table;
}

/// A folder of its own that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("tenon-onnx-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string p = (path_ / name).string();
    std::filesystem::remove(p);  // writing over a file makes some file systems wait for the disk
    std::ofstream(p, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return p;
  }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tenon::onnx::testing
