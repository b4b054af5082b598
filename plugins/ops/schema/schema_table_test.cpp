// The plugin's table of operators as the host sees it: whole, and free of contradictions.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "schema/schema_table.hpp"

extern "C" const tn_plugin* tenon_plugin_entry(uint32_t host_major);

namespace {
using namespace tenon::sdk;

Span<const tn_op_def* const> all_ops() {
  const auto* list =
      static_cast<const tn_op_list*>(tenon_plugin_entry(TN_ABI_MAJOR)->get_interface(TN_OPS_ID));
  return {list->ops, list->count};
}
}  // namespace

TEST_CASE("every row of the table is defined once, and inferred and upgraded") {
  std::map<std::string, int> seen;
  for (const tn_op_def* op : all_ops()) {
    INFO(view(op->name));
    ++seen[text(op->domain) + "::" + text(op->name)];
    CHECK(op->infer != nullptr);
    CHECK((op->upgrade != nullptr || op->since_version == op->first_version));
    CHECK(op->first_version <= op->since_version);
  }
  for (const auto& row : tenon::ops::all_schemas()) {
    INFO(row.name);
    CHECK(seen[std::string(row.domain) + "::" + row.name] == 1);
  }
}

TEST_CASE("a name for rule files means one operator of a domain") {
  std::map<std::string, std::string> owner;
  for (const tn_op_def* op : all_ops())
    for (uint32_t i = 0; i < op->alias_count; ++i) {
      const std::string alias = text(op->aliases[i]);
      std::string& other = owner[text(op->domain) + "::" + alias];  // unqualified, ai.onnx's wins
      INFO(alias << " of " << text(op->name) << " and " << other);
      CHECK(other.empty());
      other = text(op->name);
      CHECK(alias.find_first_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos);
    }
  for (const char* alias : {"conv2d", "matmul", "batchnorm", "layernorm", "silu", "gelu", "relu", "add",
                            "leaky_relu", "maxpool"}) {
    INFO(alias);
    CHECK(owner.count(std::string("::") + alias) == 1);
  }
}

TEST_CASE("parameters name type variables that exist") {
  for (const tn_op_def* op : all_ops()) {
    std::set<std::string> variables;
    for (uint32_t i = 0; i < op->type_var_count; ++i) variables.insert(text(op->type_vars[i].name));
    const auto check = [&](const tn_param_def* params, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        INFO(text(op->name) << "." << text(params[i].name) << ": " << text(params[i].type));
        CHECK((variables.count(text(params[i].type)) == 1 ||
               dtype_from_name(view(params[i].type)) != TN_DTYPE_NONE));
      }
    };
    check(op->inputs, op->input_count);
    check(op->outputs, op->output_count);
  }
}

TEST_CASE("rows say what onnx says") {
  const auto& conv = tenon::ops::schema_of("Conv");
  CHECK(conv.since_version == 22);
  CHECK(conv.first_version == 1);
  CHECK(conv.min_inputs == 2);
  for (const tn_op_def* op : all_ops()) {
    if (view(op->name) != "LeakyRelu") continue;
    REQUIRE(op->attr_count == 1);
    CHECK(view(op->attrs[0].name) == "alpha");
    CHECK(op->attrs[0].default_float == static_cast<double>(0.01f));
  }
}
