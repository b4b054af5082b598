// msopgen's operator definitions: the parts of a kernel project that depend on them.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "core/base/text.hpp"
#include "core/cli/plugin_project.hpp"
#include "core/pipeline/json_source.hpp"

namespace tenon::cli {

namespace {

struct Types {
  const char* names;  // as definitions spell it, between spaces
  const char* dtype;  // ours
  const char* cpp;    // what a kernel reads it as
};
constexpr Types known_types[] = {
    {" float float32 fp32 ", "TN_FLOAT32", "float"},
    {" float16 fp16 half ", "TN_FLOAT16", "Float16"},
    {" bfloat16 bf16 ", "TN_BFLOAT16", "BFloat16"},
    {" double float64 ", "TN_FLOAT64", "double"},
    {" int8 ", "TN_INT8", "int8_t"},
    {" int16 ", "TN_INT16", "int16_t"},
    {" int32 int ", "TN_INT32", "int32_t"},
    {" int64 ", "TN_INT64", "int64_t"},
    {" uint8 ", "TN_UINT8", "uint8_t"},
    {" uint16 ", "TN_UINT16", "uint16_t"},
    {" uint32 ", "TN_UINT32", "uint32_t"},
    {" uint64 ", "TN_UINT64", "uint64_t"},
    {" bool ", "TN_BOOL", "bool"},
};

const Types* type_named(const std::string& name) {
  for (const Types& type : known_types)
    if (std::string(type.names).find(" " + lower(name) + " ") != std::string::npos) return &type;
  return nullptr;
}

std::vector<std::string> type_names() {
  std::vector<std::string> names;
  for (const Types& type : known_types)
    for (const std::string_view name : split(type.names, ' '))
      if (!name.empty()) names.emplace_back(name);
  return names;
}

struct AttributeKind {
  const char* names;
  const char* kind;     // TN_ATTR_...
  const char* builder;  // of one with a default; "" where there is none
  const char* sample;   // in the text form
};
constexpr AttributeKind attribute_kinds[] = {
    {" int int64 bool ", "TN_ATTR_INT", "attr_int", "1"},
    {" float ", "TN_ATTR_FLOAT", "attr_float", "1.0"},
    {" str string ", "TN_ATTR_STRING", "attr_string", "\"text\""},
    {" list_int listint list_bool ", "TN_ATTR_INTS", "", "[1]"},
    {" list_float listfloat ", "TN_ATTR_FLOATS", "", "[1.0]"},
    {" list_str list_string ", "TN_ATTR_STRINGS", "", "[\"text\"]"},
};

bool is_identifier(const std::string& text) {
  return !text.empty() && !(text[0] >= '0' && text[0] <= '9') &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string::npos;
}

// What generated kernels use themselves, and C++'s own words that a definition is likely to have.
constexpr const char* taken_names =
    " args tile s range i in out state int float double char bool short long signed unsigned auto const "
    "static "
    "class struct union enum namespace template typename this new delete operator default switch case if "
    "else "
    "for while do break continue return goto try catch throw true false and or not xor using public private "
    "protected virtual void volatile register inline extern mutable friend explicit export sizeof typedef ";

// The name of an operand as a variable of C++.
std::string variable_name(const std::string& name) {
  return std::string(taken_names).find(" " + name + " ") == std::string::npos ? name : name + "_";
}

class Reader {
 public:
  Reader(const JsonSource& source, std::string domain, std::string id, Diagnostics& diagnostics)
      : source_(source), domain_(std::move(domain)), id_(std::move(id)), diagnostics_(diagnostics) {}

  std::map<std::string, std::string> read() {
    const Json& root = source_.root();
    const Json list = root.is_array() ? root : Json::array({root});
    for (size_t i = 0; i < list.size(); ++i) {
      pointer_ = root.is_array() ? "/" + std::to_string(i) : "";
      read_one(list[i]);
    }
    if (list.empty())
      error("", "has no operator", "a list of {\"op\": ..., \"input_desc\": [...], \"output_desc\": [...]}");
    return {{"OPERATORS", operators_},
            {"ADD_OPERATORS", add_operators_},
            {"KERNELS", kernels_},
            {"ADD_KERNELS", add_kernels_},
            {"NODES", inputs_ + nodes_ + outputs_},
            {"OP_LIST", names_},
            {"OP_COUNT", std::to_string(list.size())}};
  }

 private:
  struct Operand {
    std::string name, variable;
    std::vector<const Types*> types;
    std::string flags;  // TN_PARAM_...
  };

  void error(const std::string& below, const std::string& text, const std::string& hint = {}) {
    diagnostics_.add(source_.finding(TN_SEVERITY_ERROR, "M250", pointer_ + below, text, hint));
  }

  std::string name_of(const Json& json, const std::string& below, const char* key) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_string() || !is_identifier(json[key])) {
      error(below, std::string("lacks a \"") + key + "\" that is a name", "letters, digits and _");
      return "unnamed";
    }
    return json[key];
  }

  // The text under a key; `absent` when it is not there.
  std::string text_of(const Json& json, const std::string& below, const char* key, const char* absent) {
    if (!json.is_object() || !json.contains(key)) return absent;
    if (json[key].is_string()) return json[key];
    error(below + "/" + key, std::string("\"") + key + "\" is no text", "a word in quotes");
    return absent;
  }

  // Operands with the same list of types are of one type: msopgen's lists go together column by column.
  std::string variable_of(const std::vector<const Types*>& types) {
    const auto known = std::find(variables_.begin(), variables_.end(), types);
    if (known == variables_.end()) variables_.push_back(types);
    return "T" + std::to_string(std::find(variables_.begin(), variables_.end(), types) - variables_.begin());
  }

  std::vector<Operand> operands(const Json& op, const char* key, bool results) {
    std::vector<Operand> found;
    if (!op.contains(key) || !op[key].is_array() || (results && op[key].empty())) {
      error("", std::string("lacks the list \"") + key + "\"",
            results ? "one result at least" : "a list, empty if there are no operands");
      return found;
    }
    for (size_t i = 0; i < op[key].size(); ++i) {
      const Json& json = op[key][i];
      const std::string below = "/" + std::string(key) + "/" + std::to_string(i);
      Operand operand;
      operand.name = name_of(json, below, "name");
      if (std::any_of(found.begin(), found.end(), [&](const Operand& o) { return o.name == operand.name; }))
        error(below + "/name", "'" + operand.name + "' stands here twice", "a name of its own for each");
      const Json types = json.is_object() ? json.value("type", Json()) : Json();
      if (types.is_array() && types.empty())
        error(below + "/type", "is an empty list", "such as \"float\"; a list of them for several");
      for (const Json& type : types.is_array() ? types : Json::array({types})) {
        const Types* known = type.is_string() ? type_named(type) : nullptr;
        if (known == nullptr)
          error(below + "/type",
                type.is_string() ? "'" + type.get<std::string>() + "' is no element type" +
                                       did_you_mean(type.get<std::string>(), type_names())
                                 : "is no element type",
                "such as \"float\"; a list of them for several");
        else if (std::find(operand.types.begin(), operand.types.end(), known) == operand.types.end())
          operand.types.push_back(known);
      }
      const std::string param = text_of(json, below, "param_type", "required");
      if (param == "optional")
        operand.flags = "TN_PARAM_OPTIONAL";
      else if (param == "dynamic" && i + 1 == op[key].size() && !results)
        operand.flags = "TN_PARAM_VARIADIC";
      else if (param != "required")
        error(below + "/param_type", "'" + param + "' is not possible here",
              "required, optional, or dynamic for the last operand");
      operand.variable = variable_of(operand.types);
      found.push_back(std::move(operand));
    }
    return found;
  }

  std::string attributes(const Json& op) {
    std::string text;
    const Json list = op.value("attr", Json::array());
    if (!list.is_array()) {
      error("/attr", "is no list", "a list of {\"name\": ..., \"type\": ...}");
      return text;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      const Json& json = list[i];
      const std::string below = "/attr/" + std::to_string(i), name = name_of(json, below, "name");
      const std::string type = text_of(json, below, "type", "");
      const auto kind =
          std::find_if(std::begin(attribute_kinds), std::end(attribute_kinds), [&](const AttributeKind& k) {
            return !type.empty() && std::string(k.names).find(" " + lower(type) + " ") != std::string::npos;
          });
      if (kind == std::end(attribute_kinds)) {
        error(below, "'" + type + "' is no type of an attribute",
              "int, float, bool, str, list_int, list_float or list_str");
        continue;
      }
      const bool required = text_of(json, below, "param_type", "optional") == "required";
      const Json given =
          json.contains("default_value") ? json["default_value"] : json.value("defaultValue", Json());
      std::string value = given.is_string() ? given.get<std::string>() : given.is_null() ? "" : given.dump();
      if (value == "true" || value == "false") value = value == "true" ? "1" : "0";
      if (required) required_ += (required_.empty() ? "" : ", ") + name + " = " + kind->sample;
      if (*kind->builder == '\0' || required || value.empty()) {
        text += "      .attr(\"" + name + "\", " + kind->kind + ", /*required=*/" +
                (required ? "true" : "false") + ")\n";
      } else if (std::string(kind->kind) == "TN_ATTR_STRING") {
        text += "      .attr_string(\"" + name + "\", " + tenon::quoted(value) + ")\n";
      } else {
        char* end = nullptr;
        const double number = std::strtod(value.c_str(), &end);
        const bool whole = std::string(kind->kind) == "TN_ATTR_INT";
        if (*end != '\0' || !std::isfinite(number) ||
            (whole && value.find_first_of(".eExXpP") != value.npos)) {
          error(below, "the default '" + value + "' is no " + (whole ? "whole number" : "number"),
                "a number, as the type is " + type);
          continue;
        }
        text += std::string("      .") + kind->builder + "(\"" + name + "\", " + value + ")\n";
      }
    }
    return text;
  }

  static std::string params(const char* call, const std::vector<Operand>& operands) {
    std::string text;
    for (const Operand& operand : operands)
      text += std::string("      .") + call + "(\"" + operand.name + "\", \"" + operand.variable + "\"" +
              (operand.flags.empty() ? "" : ", " + operand.flags) + ")\n";
    return text;
  }

  void read_one(const Json& op) {
    if (!op.is_object()) return error("", "is no operator", "an object with op, input_desc, output_desc");
    const std::string name = name_of(op, "", "op");
    variables_.clear();
    required_.clear();
    if (!seen_.insert(name).second) error("/op", "the operator '" + name + "' stands here twice");
    const std::vector<Operand> in = operands(op, "input_desc", false),
                               out = operands(op, "output_desc", true);
    const std::string attrs = attributes(op);
    if (diagnostics_.has_errors()) return;
    std::string variables;
    for (size_t v = 0; v < variables_.size(); ++v) {
      variables += "      .type_var(\"T" + std::to_string(v) + "\", {";
      for (size_t i = 0; i < variables_[v].size(); ++i)
        variables += (i ? ", " : "") + std::string(variables_[v][i]->dtype);
      variables += "})\n";
    }
    if (in.empty() || !in[0].flags.empty())
      return error(in.empty() ? "/input_desc" : "/input_desc/0",
                   in.empty() ? "has no operand" : "the first operand is not required",
                   "the results' shapes are taken from it");
    std::string infer;
    for (size_t i = 0; i < out.size(); ++i) {
      const std::string n = std::to_string(i);
      if (out[i].types.front() == in[0].types.front())
        infer += "  node.set(" + n + ", node.type(0));\n";
      else
        infer += "  tn_type result" + n + " = node.type(0);\n  result" + n +
                 ".dtype = " + out[i].types.front()->dtype + ";\n  node.set(" + n + ", result" + n + ");\n";
    }
    operators_ += "void infer_" + name +
                  "(Infer& node) {\n  // The results have the first operand's shape; say here what is true "
                  "of yours.\n" +
                  infer + "}\n\n";
    add_operators_ += "  plugin.op(\"" + domain_ + "\", \"" + name + "\", 1, 1)\n" + variables +
                      params("input", in) + params("output", out) + attrs + "      .infer<infer_" + name +
                      ">();\n";
    kernel(name, in, out);
  }

  // One kernel for the first column of types, as one loop over the first operand.
  void kernel(const std::string& name, const std::vector<Operand>& in, const std::vector<Operand>& out) {
    std::string body;
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].flags.empty())
        body += "  const auto* " + variable_name(in[i].name) + " = in<" + in[i].types.front()->cpp +
                ">(args, " + std::to_string(i) + ");\n";
    for (size_t i = 0; i < out.size(); ++i)
      body += "  auto* " + out[i].name + "_out = out<" + std::string(out[i].types.front()->cpp) + ">(args, " +
              std::to_string(i) + ");\n";
    std::string loop;
    for (const Operand& result : out)
      loop += "    " + result.name + "_out[i] = static_cast<" + std::string(result.types.front()->cpp) +
              ">(" + variable_name(in.front().name) + "[i]);\n";
    std::string used;
    for (size_t i = 1; i < in.size(); ++i)
      if (in[i].flags.empty()) used += "  (void)" + variable_name(in[i].name) + ";\n";
    kernels_ += "int run_" + name +
                "(const tn_kernel_args* args, uint32_t tile, uint32_t) {\n  const State& s = "
                "state<State>(args);\n  const Range range = tile_range(s.count, s.tiles, tile, 16);\n" +
                body + used + "  // " + name +
                " itself goes here; so far each result is the first operand.\n  for (int64_t i = "
                "range.begin; i < range.end; ++i) {\n" +
                loop + "  }\n  return 0;\n}\n\n";
    add_kernels_ +=
        "  plugin.kernel(\"" + id_ + "." + lower(name) + "/1\", \"" + domain_ + "::" + name + "\")\n";
    std::string arguments;
    for (const Operand& operand : in) {
      add_kernels_ += "      .input({" + std::string(operand.types.front()->dtype) + "})\n";
      if (operand.flags == "TN_PARAM_OPTIONAL") {
        arguments += (arguments.empty() ? "" : ", ") + std::string("_");
        continue;
      }
      const std::string value = "%" + name + "_" + operand.name;
      inputs_ += "  input " + value + ": " + text_type(*operand.types.front()) + "[N,16]\n";
      arguments += (arguments.empty() ? "" : ", ") + value;
    }
    std::string results;
    for (const Operand& operand : out) {
      add_kernels_ += "      .output({" + std::string(operand.types.front()->dtype) + "})\n";
      const std::string value = "%" + name + "_" + operand.name + "_out";
      results += (results.empty() ? "" : ", ") + value;
      outputs_ += "  output " + value + " as \"" + name + "_" + operand.name + "_out\"\n";
    }
    add_kernels_ += "      .flags(TN_KERNEL_DETERMINISTIC)\n      .plan<plan<run_" + name + ">>();\n";
    nodes_ += "  " + results + " = " + domain_ + "::" + name + "(" + arguments + ")" +
              (required_.empty() ? "" : " {" + required_ + "}") + "\n";
    names_ += "| `" + domain_ + "::" + name + "` | " + std::to_string(in.size()) + " | " +
              std::to_string(out.size()) + " |\n";
  }

  // "TN_FLOAT32" -> "float32"
  static std::string text_type(const Types& type) { return lower(std::string(type.dtype).substr(3)); }

  const JsonSource& source_;
  std::string domain_, id_, pointer_;
  Diagnostics& diagnostics_;
  std::set<std::string> seen_;
  std::vector<std::vector<const Types*>> variables_;  // of the operator being read
  std::string required_;                              // its required attributes, with samples for model.graph
  std::string operators_, add_operators_, kernels_, add_kernels_, nodes_, names_, outputs_, inputs_;
};

}  // namespace

std::map<std::string, std::string> operators_from_file(const std::string& path, const std::string& domain,
                                                       const std::string& id) {
  Diagnostics diagnostics;
  std::map<std::string, std::string> values;
  if (const auto source = JsonSource::read(path, diagnostics))
    values = Reader(*source, domain, id, diagnostics).read();
  diagnostics.throw_if_errors(exit_bad_input);
  return values;
}

}  // namespace tenon::cli
