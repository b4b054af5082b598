// Sequences of tensors, and optionals. A sequence's type describes all its elements: a dim in which they
// differ is unknown, and not the same from element to element.
#include "support/owned_type.hpp"

namespace tenon::ops {
namespace {

void infer_construct(Infer& c) {
  OwnedType t(c.type(0));
  for (uint32_t i = 1; i < c.input_count(); ++i)
    t = join_types(c, t, OwnedType(c.type(i)), "elements of one sequence need one type",
                   [&](uint32_t axis) { return c.data_dependent(0, axis); });
  if (!t.known()) t = OwnedType(unranked_type(c.dtype(0)));
  t.set_kind(TN_KIND_SEQUENCE);
  c.set(0, t.view());
}

void infer_empty(Infer& c) {
  OwnedType t(unranked_type(dtype_of_onnx(c.attrs().get_int("dtype", 1), "dtype")));
  t.set_kind(TN_KIND_SEQUENCE);
  c.set(0, t.view());
}

void infer_insert(Infer& c) {
  OwnedType sequence(c.type(0)), element(c.type(1));
  if (element.known()) element.set_kind(TN_KIND_SEQUENCE);
  const OwnedType t = join_types(c, sequence, element, "the element does not fit the sequence",
                                 [&](uint32_t axis) { return c.data_dependent(0, axis); });
  one_number(c, 2, "position");
  if (t.known()) c.set(0, t.view());
}

void infer_erase(Infer& c) {
  one_number(c, 1, "position");
  same_type(c, 0, 0);
}

void infer_at(Infer& c) {
  one_number(c, 1, "position");
  OwnedType t(c.type(0));
  if (!t.known()) return;
  require(t.kind() == TN_KIND_SEQUENCE, "operand input_sequence is no sequence");
  t.set_kind(TN_KIND_TENSOR);
  for (size_t i = 0; i < t.dims().size(); ++i)
    if (t.dims()[i] < 0) t.dims()[i] = c.data_dependent(0, static_cast<uint32_t>(i));
  c.set(0, t.view());
}

void infer_length(Infer& c) { c.set(0, TN_INT64, Span<const tn_dim>()); }

void infer_split(Infer& c) {
  OwnedType t(c.type(0));
  if (!t.known()) return;
  t.set_kind(TN_KIND_SEQUENCE);
  if (t.ranked()) {
    const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", 0), c.rank(0)));
    tn_dim& d = t.dims()[axis];
    if (!c.has_input(1)) {
      d = 1;
      if (c.attrs().get_int("keepdims", 1) == 0) {
        t.dims().erase(t.dims().begin() + static_cast<ptrdiff_t>(axis));
        t.fit_rank();
      }
    } else {
      ranked(c, 1, "split", 0, 1);
      const auto sizes = c.integers(1);
      const auto length = c.number(d);
      std::optional<int64_t> each;
      if (sizes && c.rank(1) == 0) {
        const int64_t size = sizes->front();
        require(size >= 1, "operand split is " + text_of(size) + "; expected 1 or more");
        if (length && (*length % size == 0 || *length < size)) each = std::min(size, *length);
      } else if (sizes) {
        int64_t sum = 0;
        bool equal = !sizes->empty();
        for (int64_t s : *sizes) {
          require(s >= 0 && s <= INT64_MAX - sum,
                  "operand split holds " + text_of(s) + "; expected 0 or more");
          sum += s;
          equal = equal && s == sizes->front();
        }
        require(!length || *length == sum,
                "operand split sums to " + text_of(sum) + "; the axis has " + c.text(d));
        if (equal) each = sizes->front();
      }
      d = each ? *each : c.data_dependent(0, static_cast<uint32_t>(axis));
    }
  }
  c.set(0, t.view());
}

void infer_concat(Infer& c) {
  OwnedType t(c.type(0));
  if (!t.known()) return;
  require(t.kind() == TN_KIND_SEQUENCE, "operand input_sequence is no sequence");
  t.set_kind(TN_KIND_TENSOR);
  if (t.ranked()) {
    const bool stacked = c.attrs().get_int("new_axis", 0) != 0;
    const auto rank = static_cast<int64_t>(t.dims().size()) + stacked;
    const auto axis = static_cast<size_t>(Infer::axis(required_int(c.attrs(), "axis"), rank));
    if (stacked) {
      t.dims().insert(t.dims().begin() + static_cast<ptrdiff_t>(axis), 0);
      t.fit_rank();
    }
    for (size_t i = 0; i < t.dims().size(); ++i)
      if (i == axis || t.dims()[i] < 0) t.dims()[i] = c.data_dependent(0, static_cast<uint32_t>(i));
  }
  c.set(0, t.view());
}

// ---- optionals
// ------------------------------------------------------------------------------------------------------

bool is_sequence(uint32_t kind) { return kind == TN_KIND_SEQUENCE || kind == TN_KIND_OPTIONAL_SEQUENCE; }

void infer_optional(Infer& c) {
  OwnedType t(c.type(0));
  if (!c.has_input(0)) {  // an empty one, whose type the attribute says
    const tn_attr* type = c.attrs().find("type");
    require(type && type->kind == TN_ATTR_TYPE,
            "neither an operand nor the attribute 'type' says what the optional holds");
    t = OwnedType(*type->u.type);
  }
  if (!t.known()) return;
  t.set_kind(is_sequence(t.kind()) ? TN_KIND_OPTIONAL_SEQUENCE : TN_KIND_OPTIONAL);
  c.set(0, t.view());
}
void infer_get_element(Infer& c) {
  OwnedType t(c.type(0));
  if (!t.known()) return;
  t.set_kind(is_sequence(t.kind()) ? TN_KIND_SEQUENCE : TN_KIND_TENSOR);
  c.set(0, t.view());
}
void infer_has_element(Infer& c) { c.set(0, TN_BOOL, Span<const tn_dim>()); }

}  // namespace

void add_sequence(Plugin& p) {
  define(p, "SequenceConstruct").infer<infer_construct>();
  define(p, "SequenceEmpty").infer<infer_empty>();
  define(p, "SequenceInsert").infer<infer_insert>();
  define(p, "SequenceErase").infer<infer_erase>();
  define(p, "SequenceAt").infer<infer_at>();
  define(p, "SequenceLength").infer<infer_length>();
  define(p, "Optional").infer<infer_optional>();
  define(p, "OptionalGetElement").infer<infer_get_element>();
  define(p, "OptionalHasElement").infer<infer_has_element>();
  define(p, "SplitToSequence").infer<infer_split>();
  define(p, "ConcatFromSequence").infer<infer_concat>();
}

}  // namespace tenon::ops
