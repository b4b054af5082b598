// What an operator takes, yields and is told, as data: one row an operator, in a form short enough to read.
//
//   inputs, outputs   "X:T W:T B?:T rest*:T"   name, mark, type variable; "=i64" is one concrete type.
//                     marks: ? optional, * variadic, ** variadic of differing types
//   types             "T:@float,i32 S:@number/2"   type variable, its element types, after / the kinds of
//   values
//                     (digits of tn_type_kind; tensor when not said). "T:" alone: any element type.
//   attributes        "group=1 alpha=0.5 auto_pad='NOTSET' pads:ints axis!:int"   a default tells the kind; !
//   required
//
// schemas.inc holds the domains of ONNX, written by generate_schemas.py; the rows of other domains stand in
// their families' files.
#pragma once
#include "tenon/sdk/plugin.hpp"

namespace tenon::ops {

struct Schema {
  const char* domain;  // "": ai.onnx
  const char* name;
  int32_t first_version;
  int32_t since_version;
  uint32_t min_inputs;
  const char* inputs;
  const char* outputs;
  const char* types;
  const char* attributes;
};

/// The row of an operator of ONNX; Failure when schemas.inc has none.
const Schema& schema_of(std::string_view name, std::string_view domain = "");
sdk::Span<const Schema> all_schemas();
/// Operands of an ai.onnx operator that always have the element type of its result; empty for unknown
/// operators.
std::vector<uint32_t> operands_typed_as_result(std::string_view op, uint32_t result);
/// Begins the definition of the operator of a row in the plugin.
sdk::OpBuilder& define(sdk::Plugin& plugin, const Schema& row);

}  // namespace tenon::ops
