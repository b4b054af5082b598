#include "schema/schema_table.hpp"

#include <algorithm>
#include <cstdlib>

namespace tenon::ops {
namespace {

using namespace tenon::sdk;

constexpr Schema rows[] = {
#include "schema/schemas.inc"
};

const Schema* find_row(std::string_view domain, std::string_view name) {
  const std::pair key(domain, name);
  const auto key_of = [](const Schema& s) {
    return std::pair<std::string_view, std::string_view>(s.domain, s.name);
  };
  const auto* row = std::lower_bound(std::begin(rows), std::end(rows), key,
                                     [&](const Schema& s, const auto& k) { return key_of(s) < k; });
  return row != std::end(rows) && key == key_of(*row) ? row : nullptr;
}

struct ShortName {
  const char* name;
  tn_dtype dtype;
};
constexpr ShortName short_names[] = {{"f32", TN_FLOAT32},
                                     {"f64", TN_FLOAT64},
                                     {"f16", TN_FLOAT16},
                                     {"bf16", TN_BFLOAT16},
                                     {"bool", TN_BOOL},
                                     {"str", TN_STRING},
                                     {"c64", TN_COMPLEX64},
                                     {"c128", TN_COMPLEX128},
                                     {"i2", TN_INT2},
                                     {"i4", TN_INT4},
                                     {"i8", TN_INT8},
                                     {"i16", TN_INT16},
                                     {"i32", TN_INT32},
                                     {"i64", TN_INT64},
                                     {"u2", TN_UINT2},
                                     {"u4", TN_UINT4},
                                     {"u8", TN_UINT8},
                                     {"u16", TN_UINT16},
                                     {"u32", TN_UINT32},
                                     {"u64", TN_UINT64},
                                     {"f8e4m3fn", TN_FLOAT8_E4M3FN},
                                     {"f8e4m3fnuz", TN_FLOAT8_E4M3FNUZ},
                                     {"f8e5m2", TN_FLOAT8_E5M2},
                                     {"f8e5m2fnuz", TN_FLOAT8_E5M2FNUZ},
                                     {"f8e8m0", TN_FLOAT8_E8M0},
                                     {"f4e2m1", TN_FLOAT4_E2M1}};

struct NamedSet {
  const char* name;
  const char* members;
};
constexpr NamedSet named_sets[] = {{"@plain", "i8,i16,i32,i64,u8,u16,u32,u64,f16,f32,f64,bool,str,c64,c128"},
                                   {"@number", "i8,i16,i32,i64,u8,u16,u32,u64,f16,f32,f64,bf16"},
                                   {"@float8", "f8e4m3fn,f8e4m3fnuz,f8e5m2,f8e5m2fnuz"},
                                   {"@int", "i8,i16,i32,i64,u8,u16,u32,u64"},
                                   {"@float", "f16,f32,f64,bf16"},
                                   {"@ieee", "f16,f32,f64"}};

/// The definitions point at texts; these live as long as the plugin, whose table lives until exit.
const char* keep(std::string_view text) {
  static auto* texts = new std::deque<std::string>;
  return texts->emplace_back(text).c_str();
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t end = text.find(at);
    if (end != 0) parts.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return parts;
}

void add_dtypes(std::string_view list, std::vector<tn_dtype>& out) {
  for (std::string_view part : split(list, ',')) {
    if (part[0] == '@') {
      const auto* set = std::find_if(std::begin(named_sets), std::end(named_sets),
                                     [&](const NamedSet& s) { return part == s.name; });
      if (set == std::end(named_sets)) fail("schema table: no set of types is named " + std::string(part));
      add_dtypes(set->members, out);
      continue;
    }
    const auto* one = std::find_if(std::begin(short_names), std::end(short_names),
                                   [&](const ShortName& s) { return part == s.name; });
    if (one == std::end(short_names)) fail("schema table: no type is named " + std::string(part));
    out.push_back(one->dtype);
  }
}

struct Param {
  const char* name;
  const char* type;
  uint32_t flags = 0;
};

Param parse_param(std::string_view text) {
  const size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon), type = text.substr(colon + 1);
  Param p;
  if (name.size() > 2 && name.substr(name.size() - 2) == "**") {
    p.flags = TN_PARAM_VARIADIC | TN_PARAM_HETEROGENEOUS;
    name.remove_suffix(2);
  } else if (name.back() == '*') {
    p.flags = TN_PARAM_VARIADIC;
    name.remove_suffix(1);
  } else if (name.back() == '?') {
    p.flags = TN_PARAM_OPTIONAL;
    name.remove_suffix(1);
  }
  p.name = keep(name);
  if (type[0] == '=') {
    std::vector<tn_dtype> one;
    add_dtypes(type.substr(1), one);
    p.type = dtype_name(one.front());
  } else {
    p.type = keep(type);
  }
  return p;
}

tn_attr_kind kind_named(std::string_view kind) {
  constexpr std::pair<const char*, tn_attr_kind> kinds[] = {
      {"int", TN_ATTR_INT},       {"float", TN_ATTR_FLOAT},    {"string", TN_ATTR_STRING},
      {"ints", TN_ATTR_INTS},     {"floats", TN_ATTR_FLOATS},  {"strings", TN_ATTR_STRINGS},
      {"tensor", TN_ATTR_TENSOR}, {"type_proto", TN_ATTR_TYPE}};
  for (const auto& [name, value] : kinds)
    if (kind == name) return value;
  fail("schema table: no kind of attribute is named " + std::string(kind));
}

void add_attribute(OpBuilder& op, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    const size_t colon = text.find(':');
    const bool required = text[colon - 1] == '!';
    op.attr(keep(text.substr(0, colon - required)), kind_named(text.substr(colon + 1)), required);
    return;
  }
  const char* name = keep(text.substr(0, equals));
  const std::string value(text.substr(equals + 1));
  if (value[0] == '\'')
    op.attr_string(name, keep(std::string_view(value).substr(1, value.size() - 2)));
  else if (value.find_first_of(".e") != std::string::npos)
    op.attr_float(name, static_cast<double>(std::strtof(value.c_str(), nullptr)));
  else
    op.attr_int(name, std::strtoll(value.c_str(), nullptr, 10));
}

}  // namespace

Span<const Schema> all_schemas() { return {rows, std::size(rows)}; }

std::vector<uint32_t> operands_typed_as_result(std::string_view op, uint32_t result) {
  const Schema* row = find_row("", op);
  if (!row) return {};
  const auto outputs = split(row->outputs, ' '), inputs = split(row->inputs, ' ');
  if (outputs.empty()) return {};
  const std::string_view output = outputs[result < outputs.size() ? result : outputs.size() - 1];
  if (output.find("**") != std::string_view::npos) return {};
  const std::string_view wanted = output.substr(output.find(':'));
  std::vector<uint32_t> r;
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].substr(inputs[i].find(':')) == wanted && inputs[i].find("**") == std::string_view::npos)
      r.push_back(i);
  return r;
}

const Schema& schema_of(std::string_view name, std::string_view domain) {
  const Schema* row = find_row(domain, name);
  if (!row) fail("the table of operators has no row for " + std::string(domain) + "::" + std::string(name));
  return *row;
}

OpBuilder& define(Plugin& plugin, const Schema& row) {
  OpBuilder& op = plugin.op(row.domain, row.name, row.first_version, row.since_version);
  std::string lower = row.name;  // every operator answers to its name in lower case
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char ch) { return ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch - 'A' + 'a') : ch; });
  op.alias(keep(lower));
  for (std::string_view text : split(row.inputs, ' ')) {
    const Param p = parse_param(text);
    op.input(p.name, p.type, p.flags);
  }
  op.min_inputs(row.min_inputs);
  for (std::string_view text : split(row.outputs, ' ')) {
    const Param p = parse_param(text);
    op.output(p.name, p.type, p.flags);
  }
  for (std::string_view text : split(row.types, ' ')) {
    const size_t colon = text.find(':'), slash = text.find('/');
    std::vector<tn_dtype> dtypes;
    add_dtypes(text.substr(colon + 1, slash == std::string_view::npos ? slash : slash - colon - 1), dtypes);
    uint32_t kinds = 0;
    if (slash != std::string_view::npos)
      for (char digit : text.substr(slash + 1)) kinds |= 1u << (digit - '0');
    op.type_var(keep(text.substr(0, colon)), dtypes, kinds);
  }
  for (std::string_view text : split(row.attributes, ' ')) add_attribute(op, text);
  return op;
}

}  // namespace tenon::ops
