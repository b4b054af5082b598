// ONNX's .pb: one TensorProto, SequenceProto or OptionalProto. The file does not say which; what parses
// decides.
#include "formats.hpp"
#include "onnx_fields.hpp"
#include "tensor_reader.hpp"
#include "tensor_writer.hpp"
#include "wire_writer.hpp"

namespace tenon::tensors {
namespace {

using sdk::Failure;

tn_status give(const onnx::TensorMessage& t, std::string_view name, int64_t index, const std::string& where,
               Sink sink, void* context) {
  if (t.external)
    throw Failure(TN_ERR_UNSUPPORTED, t.label() + " has external data; a .pb of test data holds its own",
                  where);
  tn_named_tensor named{sdk::str(name), index, {}, TN_KIND_NONE, 0};
  std::vector<tn_str> texts;
  sdk::OwnedTensor copy;
  if (t.dtype == TN_STRING) {
    texts = onnx::string_elements(t);
    named.tensor = {TN_STRING, static_cast<int32_t>(t.dims.size()), t.dims.data(), texts.data(),
                    texts.size() * sizeof(tn_str)};
  } else {
    copy = onnx::copy_tensor(t);
    named.tensor = copy.raw();
  }
  return sink(context, &named);
}

struct Container {
  std::string_view name;
  std::vector<onnx::Bytes> tensors;
};

/// SequenceProto and OptionalProto have the same field numbers: a sequence with one tensor and an optional
/// that holds one are the same bytes. Both are given as items; the caller knows the type it wants.
Container read_container(onnx::Reader m, int depth, const std::string& where) {
  Container c;
  while (m.next()) {
    switch (m.field()) {
      case onnx::sequence_field::name:
        c.name = m.text();
        break;
      case onnx::sequence_field::elem_type: {
        const int64_t type = m.integer();
        if (type < 0 || type > onnx::container_type::optional)
          throw Failure(TN_ERR_INVALID, "no tensor, sequence or optional", where);
        break;
      }
      case onnx::sequence_field::tensor_values:
        c.tensors.push_back(m.bytes());
        break;
      case onnx::sequence_field::sequence_values:  // of an optional: the sequence in it
      case onnx::sequence_field::optional_values: {
        if (depth > 0 || !c.tensors.empty())
          throw Failure(TN_ERR_UNSUPPORTED, "sequences of sequences are not supported", where);
        Container inner = read_container(m.message(), depth + 1, where);
        c.tensors = std::move(inner.tensors);
        break;
      }
      case onnx::sequence_field::sparse_tensor_values:
      case onnx::sequence_field::map_values:
        throw Failure(TN_ERR_UNSUPPORTED, "sparse tensors and maps in a sequence are not supported", where);
      default:
        throw Failure(TN_ERR_INVALID, "no tensor, sequence or optional", where);
    }
  }
  return c;
}

tn_status read(void* instance, const tn_host*, tn_str path, ExpectedDtype, Sink sink, void* context,
               const tn_diag* diag) {
  return sdk::guarded(diag, [&]() -> tn_status {
    const Mapped file(static_cast<const sdk::Services*>(instance)->files, path);
    const std::string where = sdk::text(path);
    const auto* start = reinterpret_cast<const char*>(file.data());
    const onnx::Reader message({start, file.size()}, start);
    std::optional<onnx::TensorMessage> tensor;
    std::string why;
    if (file.size() != 0) {
      try {
        tensor = onnx::read_tensor(message);
      } catch (const Failure& e) {
        why = e.what();
      }
    }
    if (tensor) return give(*tensor, tensor->name, -1, where, sink, context);
    Container c;
    try {
      c = read_container(message, 0, where);
    } catch (const Failure& e) {
      if (e.status() == TN_ERR_UNSUPPORTED) throw;
      throw Failure(TN_ERR_INVALID,
                    "this is no ONNX tensor (" + why + "), and no sequence or optional of tensors either",
                    where);
    }
    std::vector<onnx::TensorMessage> items;
    for (onnx::Bytes b : c.tensors) items.push_back(onnx::read_tensor(onnx::Reader(b, start), c.name));
    if (items.empty()) {
      const tn_named_tensor empty{sdk::str(c.name), -2, {}, TN_KIND_NONE, 0};
      return sink(context, &empty);
    }
    for (size_t i = 0; i < items.size(); ++i) {
      const tn_status s = give(items[i], c.name, static_cast<int64_t>(i), where, sink, context);
      if (s != TN_OK) return s;
    }
    return TN_OK;
  });
}

/// A TensorProto, SequenceProto or OptionalProto, as the kind of the value wants it.
std::string message_of(const tn_named_tensor* tensors, uint32_t count) {
  const tn_named_tensor& first = tensors[0];
  const bool optional = first.kind == TN_KIND_OPTIONAL || first.kind == TN_KIND_OPTIONAL_SEQUENCE;
  const bool sequence =
      first.kind == TN_KIND_SEQUENCE || first.kind == TN_KIND_OPTIONAL_SEQUENCE || first.index >= 0;
  if (!optional && !sequence && first.index == -1)
    return onnx::tensor_message(sdk::view(first.name), first.tensor);
  const auto items = [&] {
    std::string out;
    onnx::put_int(out, onnx::sequence_field::elem_type, onnx::container_type::tensor);
    for (uint32_t i = 0; first.index != -2 && i < count; ++i)
      onnx::put_bytes(out, onnx::sequence_field::tensor_values, onnx::tensor_message({}, tensors[i].tensor));
    return out;
  };
  std::string out;
  if (first.name.size) onnx::put_bytes(out, onnx::sequence_field::name, sdk::view(first.name));
  if (optional && first.index == -2) {
    onnx::put_int(out, onnx::optional_field::elem_type, onnx::container_type::undefined);
  } else if (optional && sequence) {
    onnx::put_int(out, onnx::optional_field::elem_type, onnx::container_type::sequence);
    onnx::put_bytes(out, onnx::optional_field::sequence_value, items());
  } else {  // a sequence; an optional of a tensor has the same fields
    out += items();
  }
  return out;
}

tn_status write(void* instance, const tn_host*, tn_str path, const tn_named_tensor* tensors, uint32_t count,
                const tn_diag* diag) {
  return sdk::guarded(diag, [&] {
    const std::string where = sdk::text(path);
    bool one_value = count > 0;
    for (uint32_t i = 1; i < count; ++i)
      one_value = one_value && sdk::view(tensors[i].name) == sdk::view(tensors[0].name) &&
                  tensors[i].index == static_cast<int64_t>(i);
    if (!one_value || (count > 1 && tensors[0].index != 0))
      throw Failure(TN_ERR_INVALID,
                    "a .pb file holds one tensor, sequence or optional; write an .npz, or a folder of .pb "
                    "files, for several",
                    where);
    const std::string bytes = message_of(tensors, count);
    Written out(static_cast<const sdk::Services*>(instance)->files, path);
    out.write(bytes.data(), bytes.size());
    out.keep();
  });
}

}  // namespace

const tn_tensor_file_record* pb_record() noexcept {
  static constexpr tn_str suffixes[] = {{".pb", 3}};
  static const tn_tensor_file_record record{sizeof(tn_tensor_file_record),
                                            0,
                                            {"pb", 2},
                                            sdk::str("ONNX's file of one tensor, sequence or optional"),
                                            suffixes,
                                            1,
                                            0,
                                            read,
                                            write};
  return &record;
}

}  // namespace tenon::tensors
