#include <cmath>

#include "core/base/text.hpp"
#include "core/graph/interner.hpp"
#include "core/pipeline/manifest_reader.hpp"
#include "core/pipeline/pass_manager.hpp"

namespace tenon {

namespace {

const char* expected_kind(const tn_option_def& def) {
  if (def.is_bool != 0) return "true or false";
  switch (def.kind) {
    case TN_ATTR_INT:
      return "an integer";
    case TN_ATTR_FLOAT:
      return "a number";
    case TN_ATTR_STRINGS:
      return "an array of strings";
    default:
      return "a string";
  }
}

bool fits(const tn_option_def& def, const Json& value) {
  if (def.is_bool != 0)
    return value.is_boolean() || (value.is_number_integer() && (value == 0 || value == 1));
  switch (def.kind) {
    case TN_ATTR_INT:
      return value.is_number_integer() &&
             !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
    case TN_ATTR_FLOAT:
      return value.is_number();
    case TN_ATTR_STRING:
      return value.is_string();
    case TN_ATTR_STRINGS:
      if (!value.is_array()) return false;
      for (const Json& item : value) {
        if (!item.is_string()) return false;
      }
      return true;
    default:
      return false;
  }
}

std::string number_text(double number) { return fmt::format("{:g}", number); }

tn_attr default_of(const tn_option_def& def) {
  tn_attr attr{};
  attr.name = intern(view(def.name));
  attr.kind = def.kind;
  attr.count = 1;
  switch (def.kind) {
    case TN_ATTR_INT:
      attr.u.i = def.default_int;
      break;
    case TN_ATTR_FLOAT:
      attr.u.f = def.default_float;
      break;
    case TN_ATTR_STRINGS:
      attr.count = 0;
      break;
    default:
      attr.u.s = def.default_string;
      break;
  }
  return attr;
}

}  // namespace

void resolve_options(std::string_view owner, const tn_option_def* defs, uint32_t count, const Json& given,
                     const std::string& where, PreparedPass& out, Diagnostics& diagnostics) {
  std::vector<std::string> known;
  for (uint32_t i = 0; i < count; ++i) known.push_back(string(defs[i].name));
  for (const auto& item : given.items()) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    diagnostics.error("M230", where,
                      std::string(owner) + " has no option '" + item.key() + "'" +
                          did_you_mean(item.key(), known) +
                          (known.empty() ? "; it has none" : "; its options: " + join(known, ", ")));
  }
  for (uint32_t i = 0; i < count; ++i) {
    const tn_option_def& def = defs[i];
    tn_attr attr = default_of(def);
    const auto found = given.find(known[i]);
    if (found != given.end()) {
      const Json& value = *found;
      if (!fits(def, value)) {
        diagnostics.error("M231", where,
                          "option '" + known[i] + "' of " + std::string(owner) + " is " + expected_kind(def) +
                              "; found " + value.dump());
      } else if (def.is_bool != 0) {
        attr.u.i = value.is_boolean() ? (value.get<bool>() ? 1 : 0) : value.get<int64_t>();
      } else if (def.kind == TN_ATTR_INT || def.kind == TN_ATTR_FLOAT) {
        const double number = value.get<double>();
        if (def.min <= def.max && !(number >= def.min && number <= def.max)) {
          diagnostics.error("M231", where,
                            "option '" + known[i] + "' of " + std::string(owner) + " is " + value.dump() +
                                "; expected " + number_text(def.min) + ".." + number_text(def.max));
        } else if (def.kind == TN_ATTR_INT) {
          attr.u.i = value.get<int64_t>();
        } else {
          attr.u.f = number;
        }
      } else if (def.kind == TN_ATTR_STRING) {
        out.texts.push_back(std::make_unique<std::string>(value.get<std::string>()));
        attr.u.s = to_abi(*out.texts.back());
      } else {
        auto list = std::make_unique<std::vector<tn_str>>();
        for (const Json& item : value) {
          out.texts.push_back(std::make_unique<std::string>(item.get<std::string>()));
          list->push_back(to_abi(*out.texts.back()));
        }
        attr.count = list->size();
        attr.u.strings = list->data();
        out.lists.push_back(std::move(list));
      }
    }
    out.options.push_back(attr);
  }
}

}  // namespace tenon
