// Operators of the domain com.microsoft, which ONNX Runtime's optimiser and quantiser write into files. One
// file a family: rows, inference, and what defines the numbers: a decomposition into operators of ONNX where
// one says it exactly, else a kernel. ONNX Runtime's documentation of these operators is the standard here,
// and where that is silent, what its CPU kernels give (tests/ops/microsoft.cases).
#pragma once
#include "support/define.hpp"
#include "support/own_attributes.hpp"

namespace tenon::ops::microsoft {

inline constexpr const char* domain = "com.microsoft";

/// Begins the operator of the row of that name.
template <size_t N>
OpBuilder& define_row(Plugin& p, const Schema (&rows)[N], std::string_view name, const char* doc) {
  for (const Schema& row : rows)
    if (name == row.name) return define(p, row).doc(doc);
  fail("no row for com.microsoft::" + std::string(name));
}

inline AttrValue ints_attr(const char* name, const Dims& values) {
  return AttrValue::of(name, Span<const int64_t>(values));
}
inline tn_value cast(Rewrite& w, tn_value x, tn_dtype to) {
  return w.make("Cast", {x}, {AttrValue::of("to", onnx_of_dtype(to))});
}
inline tn_value transpose(Rewrite& w, tn_value x, const Dims& order) {
  return w.make("Transpose", {x}, {ints_attr("perm", order)});
}
inline tn_value concat(Rewrite& w, std::vector<tn_value> parts, int64_t axis) {
  return w.make("Concat", std::move(parts), {AttrValue::of("axis", axis)});
}
/// Size of one axis, as a tensor of one number.
inline tn_value size_of(Rewrite& w, tn_value x, int64_t axis) {
  return w.make("Shape", {x}, {AttrValue::of("start", axis), AttrValue::of("end", axis + 1)});
}
inline tn_value as_scalar(Rewrite& w, tn_value one_number) {
  return w.make("Squeeze", {one_number, w.ints({0})});
}
/// 0, 1, .., as many as the one number says.
inline tn_value count_to(Rewrite& w, tn_value one_number) {
  return w.make("Range", {w.one_int(0), as_scalar(w, one_number), w.one_int(1)});
}

/// The rank of operand i; declines while it is not known.
inline int32_t rank_needed(Rewrite& w, size_t i, const char* name) {
  const int32_t r = w.rank(w.input(i));
  if (r < 0) decline(std::string("the rank of ") + name + " is not known");
  return r;
}
/// The size of one axis of operand i as a number; declines while it is not known.
inline int64_t size_needed(Rewrite& w, size_t i, int32_t axis, const char* what) {
  const tn_type t = w.editor().graph().value(w.input(i)).type;
  if (t.kind != TN_KIND_TENSOR || t.rank <= axis || t.dims[axis] < 0)
    decline(std::string(what) + " is not a known number");
  return t.dims[axis];
}

}  // namespace tenon::ops::microsoft
