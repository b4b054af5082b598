#include "attributes.hpp"

#include "onnx_fields.hpp"

namespace tenon::onnx {

void AttributeStore::clear() {
  ints_.clear();
  floats_.clear();
  strings_.clear();
  owned_.clear();
  tensors_.clear();
  types_.clear();
}

const tn_tensor* AttributeStore::tensor(Reader message, const std::string& where) {
  const TensorMessage t = read_tensor(message, where);
  if (t.external)
    throw sdk::Failure(TN_ERR_UNSUPPORTED,
                       "a tensor attribute has external data; expected its data in the model", where);
  if (t.dtype == TN_STRING) {
    auto& elements = strings_.emplace_back(string_elements(t));
    auto& dims = ints_.emplace_back(t.dims);
    return &tensors_.emplace_back(tn_tensor{TN_STRING, static_cast<int32_t>(dims.size()), dims.data(),
                                            elements.data(), elements.size() * sizeof(tn_str)});
  }
  owned_.push_back(copy_tensor(t));
  return &tensors_.emplace_back(owned_.back().raw());
}

tn_attr AttributeStore::decode(const AttributeMessage& a, tn_sym name, const char* file_start,
                               const TypeReader& types, const std::string& where) {
  const auto refuse = [&](const char* what) {
    throw sdk::Failure(TN_ERR_UNSUPPORTED,
                       "attribute '" + std::string(a.name) + "' is " + what + ", which Tenon does not carry",
                       where);
  };
  tn_attr out{};
  out.name = name;
  Reader m(a.message, file_start);
  const auto each = [&](uint32_t field, auto&& read) {
    while (m.next()) {
      if (m.field() == field)
        read();
      else
        m.skip();
    }
  };
  switch (a.type) {
    case attribute_type::f:
      out.kind = TN_ATTR_FLOAT;
      each(attribute_field::f, [&] { out.u.f = static_cast<double>(m.float32()); });
      break;
    case attribute_type::i:
      out.kind = TN_ATTR_INT;
      each(attribute_field::i, [&] { out.u.i = m.integer(); });
      break;
    case attribute_type::s:
      out.kind = TN_ATTR_STRING;
      out.u.s = {"", 0};
      each(attribute_field::s, [&] {
        const Bytes b = m.bytes();
        out.u.s = {b.data, static_cast<size_t>(b.size)};
      });
      break;
    case attribute_type::ints: {
      auto& list = ints_.emplace_back();
      each(attribute_field::ints, [&] { m.integers(list); });
      out.kind = TN_ATTR_INTS;
      out.count = list.size();
      out.u.ints = list.data();
      break;
    }
    case attribute_type::floats: {
      auto& list = floats_.emplace_back();
      each(attribute_field::floats, [&] { m.floats(list); });
      out.kind = TN_ATTR_FLOATS;
      out.count = list.size();
      out.u.floats = list.data();
      break;
    }
    case attribute_type::strings: {
      auto& list = strings_.emplace_back();
      each(attribute_field::strings, [&] {
        const Bytes b = m.bytes();
        list.push_back({b.data, static_cast<size_t>(b.size)});
      });
      out.kind = TN_ATTR_STRINGS;
      out.count = list.size();
      out.u.strings = list.data();
      break;
    }
    case attribute_type::tensor:
      out.kind = TN_ATTR_TENSOR;
      each(attribute_field::t,
           [&] { out.u.tensor = tensor(m.message(), where + " attribute " + std::string(a.name)); });
      break;
    case attribute_type::sparse_tensor:
      out.kind = TN_ATTR_TENSOR;
      each(attribute_field::sparse_tensor, [&] {
        owned_.push_back(read_sparse_tensor(m.message(), limits_, dense_bytes_left_).dense);
        out.u.tensor = &tensors_.emplace_back(owned_.back().raw());
      });
      break;
    case attribute_type::type_proto:
      out.kind = TN_ATTR_TYPE;
      each(attribute_field::tp,
           [&] { out.u.type = types_.emplace_back(types.read(m.message(), where)).get(); });
      break;
    case attribute_type::tensors:
      refuse("a list of tensors");
      break;
    case attribute_type::graphs:
      refuse("a list of graphs");
      break;
    case attribute_type::sparse_tensors:
      refuse("a list of sparse tensors");
      break;
    case attribute_type::type_protos:
      refuse("a list of types");
      break;
    default:
      throw sdk::Failure(TN_ERR_INVALID,
                         sdk::format("attribute '%.*s' has type number %u and no value that tells its type",
                                     static_cast<int>(a.name.size()), a.name.data(), a.type),
                         where);
  }
  if ((out.kind == TN_ATTR_TENSOR && !out.u.tensor) || (out.kind == TN_ATTR_TYPE && !out.u.type))
    throw sdk::Failure(TN_ERR_INVALID,
                       "attribute '" + std::string(a.name) + "' says it holds a tensor or type, but has none",
                       where);
  return out;
}

tn_tensor AttributeStore::scalar_or_list(const tn_attr& a) {
  const auto number = [&](auto value) {
    sdk::OwnedTensor t(sdk::dtype_of<decltype(value)>, {});
    *t.data<decltype(value)>() = value;
    owned_.push_back(std::move(t));
    return owned_.back().raw();
  };
  const auto list_dims = [&] { return ints_.emplace_back(1, static_cast<int64_t>(a.count)).data(); };
  switch (a.kind) {
    case TN_ATTR_TENSOR:
      return *a.u.tensor;
    case TN_ATTR_INT:
      return number(a.u.i);
    case TN_ATTR_FLOAT:
      return number(static_cast<float>(a.u.f));
    case TN_ATTR_INTS:
      return {TN_INT64, 1, list_dims(), const_cast<int64_t*>(a.u.ints), a.count * sizeof(int64_t)};
    case TN_ATTR_FLOATS: {
      sdk::OwnedTensor t(TN_FLOAT32, {static_cast<int64_t>(a.count)});
      for (uint64_t i = 0; i < a.count; ++i) t.data<float>()[i] = static_cast<float>(a.u.floats[i]);
      owned_.push_back(std::move(t));
      return owned_.back().raw();
    }
    case TN_ATTR_STRING: {
      auto& one = strings_.emplace_back(1, a.u.s);
      return {TN_STRING, 0, nullptr, one.data(), sizeof(tn_str)};
    }
    case TN_ATTR_STRINGS:
      return {TN_STRING, 1, list_dims(), const_cast<tn_str*>(a.u.strings), a.count * sizeof(tn_str)};
    default:
      sdk::fail("a Constant node's value is neither a tensor, a number nor text");
  }
}

}  // namespace tenon::onnx
