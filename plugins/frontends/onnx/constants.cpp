#include "constants.hpp"

#include <bit>

namespace tenon::onnx {

static_assert(std::endian::native == std::endian::little,
              "ONNX stores little-endian numbers and they are used as they lie in the file");

namespace {
/// Below this a copy is cheaper than keeping track of a slice, and it is aligned.
constexpr uint64_t smallest_slice_bytes = 1024;

tn_tensor described(const TensorMessage& t, const char* data = nullptr) {
  return {t.dtype, static_cast<int32_t>(t.dims.size()), t.dims.data(), const_cast<char*>(data), t.bytes};
}
}  // namespace

ConstantMaker::~ConstantMaker() {
  for (const auto& [location, file] : opened_) files_->release(file);
}

tn_value ConstantMaker::make(const tn_tensor& t, const std::string& name) {
  tn_value v = TN_NONE;
  sdk::check(api_->constant_copy(edit_, sdk::str(name), &t, &v), "creating a constant");
  return v;
}

tn_value ConstantMaker::make(sdk::OwnedTensor tensor, const std::string& name) {
  auto owned = std::make_unique<sdk::OwnedTensor>(std::move(tensor));
  const tn_tensor t = owned->raw();
  tn_value v = TN_NONE;
  sdk::check(api_->constant_adopt(
                 edit_, sdk::str(name), &t, [](void* p) { delete static_cast<sdk::OwnedTensor*>(p); },
                 owned.get(), &v),
             "creating a constant");
  (void)owned.release();
  return v;
}

tn_value ConstantMaker::slice(const tn_tensor& t, tn_file* file, uint64_t offset, const std::string& name) {
  tn_value v = TN_NONE;
  sdk::check(api_->constant_slice(edit_, sdk::str(name), &t, file, offset, &v),
             "creating a constant in a mapped file");
  return v;
}

tn_value ConstantMaker::make(const TensorMessage& t, const std::string& name) {
  if (t.dtype == TN_STRING) {
    auto elements = string_elements(t);
    return make(tn_tensor{TN_STRING, static_cast<int32_t>(t.dims.size()), t.dims.data(), elements.data(),
                          elements.size() * sizeof(tn_str)},
                name);
  }
  if (t.external) return external(t, name);
  const auto bytes = bytes_in_file(t);
  if (!bytes) return make(copy_tensor(t), name);
  if (bytes->size < smallest_slice_bytes) return make(described(t, bytes->data), name);
  const auto* start = reinterpret_cast<const char*>(files_->data(model_));
  return slice(described(t), model_, static_cast<uint64_t>(bytes->data - start), name);
}

tn_file* ConstantMaker::open(const TensorMessage& t) {
  const auto found = opened_.find(std::string(t.location));
  if (found != opened_.end()) return found->second;
  tn_file* file = nullptr;
  sdk::DiagBuffer said;
  const tn_status status = files_->open_beside(files_->path(model_), sdk::str(t.location), said.raw(), &file);
  if (status != TN_OK)
    throw sdk::Failure(
        status, t.label() + ": its external data file '" + std::string(t.location) + "' cannot be used: " +
                    (said.text().empty() ? "it must be a file in the model's folder" : said.text()));
  opened_.emplace(t.location, file);
  return file;
}

tn_value ConstantMaker::external(const TensorMessage& t, const std::string& name) {
  tn_file* file = open(t);
  const uint64_t size = files_->size_bytes(file);
  uint64_t end = 0;
  if (__builtin_add_overflow(t.external_offset, t.bytes, &end) || end > size)
    throw sdk::Failure(
        TN_ERR_INVALID,
        t.label() +
            sdk::format(": expected %llu bytes at offset %llu of its external data file '%.*s', which has a "
                        "size of %llu bytes; the file is cut short or belongs to another model",
                        static_cast<unsigned long long>(t.bytes),
                        static_cast<unsigned long long>(t.external_offset),
                        static_cast<int>(t.location.size()), t.location.data(),
                        static_cast<unsigned long long>(size)));
  const auto* data = reinterpret_cast<const char*>(files_->data(file)) + t.external_offset;
  if (t.dtype == TN_BOOL || t.bytes < smallest_slice_bytes) {
    TensorMessage in_memory = t;
    in_memory.external = false;
    in_memory.has_raw = true;
    in_memory.raw = {data, t.bytes};
    return make(copy_tensor(in_memory), name);
  }
  return slice(described(t), file, t.external_offset, name);
}

}  // namespace tenon::onnx
