// The three records of this plugin.
#pragma once
#include "tenon/abi/limits.h"
#include "tenon/abi/tensor_file.h"
#include "tenon/sdk/plugin.hpp"

namespace tenon::tensors {

const tn_tensor_file_record* npy_record() noexcept;
const tn_tensor_file_record* npz_record() noexcept;
const tn_tensor_file_record* pb_record() noexcept;

using ExpectedDtype = tn_dtype (*)(void* context, tn_str name, uint32_t position);
using Sink = tn_status (*)(void* context, const tn_named_tensor* tensor);

inline tn_dtype expected_of(ExpectedDtype ask, void* context, std::string_view name, uint32_t position) {
  return ask ? ask(context, sdk::str(name), position) : TN_DTYPE_NONE;
}

/// What the user and the machine allow to be allocated; asked where a small file can ask for much.
class Budget {
 public:
  explicit Budget(const sdk::Services& services) : limits_(services.get<tn_limits_api>(TN_LIMITS_ID)) {}
  void require(uint64_t bytes, const std::string& what, const std::string& where) const {
    if (!limits_) return;
    sdk::DiagBuffer said;
    const tn_status s = limits_->may_allocate(bytes, sdk::str(what), said.raw());
    if (s != TN_OK) throw sdk::Failure(s, said.text(), where);
  }

 private:
  const tn_limits_api* limits_;
};

/// A mapped file of the host, released at the end.
class Mapped {
 public:
  Mapped(const tn_files_api* files, tn_str path) : files_(files) {
    if (!files_)
      throw sdk::Failure(TN_ERR_UNSUPPORTED, "this host lacks the files service that reading tensors needs");
    sdk::DiagBuffer said;
    const tn_status s = files_->open(path, said.raw(), &file_);
    if (s != TN_OK)
      throw sdk::Failure(s, said.text().empty() ? "the file cannot be opened; check its path" : said.text(),
                         sdk::text(path));
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (file_) files_->release(file_);
  }
  const uint8_t* data() const { return files_->data(file_); }
  uint64_t size() const { return files_->size_bytes(file_); }

 private:
  const tn_files_api* files_;
  tn_file* file_ = nullptr;
};

/// A file being written by the host: replaces the target when kept.
class Written {
 public:
  Written(const tn_files_api* files, tn_str path) : files_(files), path_(sdk::text(path)) {
    if (!files_)
      throw sdk::Failure(TN_ERR_UNSUPPORTED, "this host lacks the files service that writing tensors needs");
    sdk::DiagBuffer said;
    const tn_status s = files_->create(path, said.raw(), &writer_);
    if (s != TN_OK) throw sdk::Failure(s, "the file cannot be written: " + said.text(), path_);
  }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  ~Written() {
    if (writer_) (void)files_->close(writer_, 0, nullptr);
  }
  void write(const void* data, uint64_t bytes) {
    const tn_status s = bytes ? files_->write(writer_, data, bytes) : TN_OK;
    if (s != TN_OK) throw sdk::Failure(s, "writing failed; is the disk full?", path_);
  }
  void keep() {
    sdk::DiagBuffer said;
    const tn_status s = files_->close(std::exchange(writer_, nullptr), 1, said.raw());
    if (s != TN_OK) throw sdk::Failure(s, "the file cannot be finished: " + said.text(), path_);
  }

 private:
  const tn_files_api* files_;
  std::string path_;
  tn_writer* writer_ = nullptr;
};

}  // namespace tenon::tensors
