// Any bytes as a tensor file, each format in turn by the first byte: refused with a reason, or tensors whose
// bytes can all be read and that come back the same when written and read again.
#include <tenon/abi/tensor_file.h>

#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "fuzz_support.hpp"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

struct Item {
  std::string name;
  int64_t index;  // -2: an empty sequence or optional, without a tensor
  uint32_t kind;
  Tensor tensor;
};

struct Target {
  Engine& engine = make_engine({"tensors"});

  // What the caller of the reader says it wants; some of it never fits.
  tn_dtype wanted = TN_DTYPE_NONE;

  std::vector<Item> read(const TensorFileEntry& format, const std::string& path, bool must_work) {
    struct Context {
      Target* self;
      std::vector<Item> items;
      uint64_t bytes = 0;
    } context{this, {}, 0};
    Diagnostics said;
    const tn_status status = format.record->read(
        format.instance, engine.host().abi(), to_abi(path),
        [](void* c, tn_str, uint32_t) { return static_cast<Context*>(c)->self->wanted; },
        [](void* c, const tn_named_tensor* tensor) -> tn_status {
          auto& into = *static_cast<Context*>(c);
          // Many small files can promise much together; the sink is where a caller would stop too.
          into.bytes += tensor->tensor.bytes;
          if (into.bytes > (uint64_t{64} << 20)) return TN_ERR_LIMIT;
          Tensor copy;
          if (tensor->index != -2) copy = Tensor::copy_of(tensor->tensor);
          into.items.push_back({string(tensor->name), tensor->index, tensor->kind, std::move(copy)});
          return TN_OK;
        },
        &context, said.abi());
    if (status == TN_OK) return std::move(context.items);
    if (must_work) broken("what was written cannot be read", said.first_error());
    if (!said.has_errors() && status != TN_ERR_LIMIT) broken("refused without a reason", path);
    for (const Diagnostic& finding : said.all())
      if (finding.severity >= TN_SEVERITY_PLUGIN_MISBEHAVING)
        broken("the input is blamed on us", to_string(finding));
    return {};
  }

  void one(const uint8_t* data, size_t size) {
    if (size == 0) return;
    const auto& formats = engine.registries().tensor_files();
    const TensorFileEntry& format = formats[data[0] % formats.size()];
    wanted = data[0] & 0x40 ? TN_BFLOAT16 : data[0] & 0x20 ? TN_INT4 : TN_DTYPE_NONE;
    const std::string suffix = string(format.record->suffixes[0]);
    const std::string path = scratch_file("in" + suffix, data + 1, size - 1).string();
    const std::vector<Item> items = read(format, path, false);
    if (items.empty()) return;

    std::vector<tn_named_tensor> tensors;
    for (const Item& item : items) {
      tn_named_tensor tensor{};
      tensor.name = to_abi(item.name);
      tensor.index = item.index;
      tensor.kind = item.kind;
      if (item.index != -2) tensor.tensor = item.tensor.view();
      tensors.push_back(tensor);
    }
    const std::string out = (scratch_folder() / ("out" + suffix)).string();
    Diagnostics said;
    if (format.record->write(format.instance, engine.host().abi(), to_abi(out), tensors.data(),
                             static_cast<uint32_t>(tensors.size()), said.abi()) != TN_OK) {
      if (!said.has_errors()) broken("the writer refuses and says nothing", suffix);
      return;
    }
    // Read back as what they are, which only some formats can say themselves.
    wanted = items.front().tensor.dtype();
    const std::vector<Item> back = read(format, out, items.size() == 1);
    if (items.size() != 1) return;
    // Without a tensor, a .pb file's few bytes may be taken for one: ONNX's messages do not say what they
    // are.
    if (items[0].index == -2) return;
    const Tensor& a = items[0].tensor;
    const Tensor& b = back.at(0).tensor;
    if (a.dtype() != b.dtype() ||
        !std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end()))
      broken("another type after writing and reading", dtype_name(a.dtype()) + " " + dtype_name(b.dtype()));
    if (a.dtype() != TN_STRING && a.bytes() != 0 && std::memcmp(a.data(), b.data(), a.bytes()) != 0)
      broken("other bytes after writing and reading", dtype_name(a.dtype()));
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const target = new Target;
  target->one(data, size);
  return 0;
}
