// Operators of ai.onnx.ml that look values up: CategoryMapper, LabelEncoder, OneHotEncoder.
//
// Of equal keys the last counts. A key of NaN is found by any NaN. Numbers become categories of OneHotEncoder
// by truncation.
#include <unordered_map>

#include "ml/ml.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::ops::ml;

/// Where a value stands in a list of keys, all of them text, integers or reals.
class Lookup {
 public:
  enum Kind { text, integers, reals };
  Lookup() = default;
  explicit Lookup(std::vector<std::string> keys) : kind_(text), texts_(std::move(keys)) {
    for (size_t i = 0; i < texts_.size(); ++i) by_text_[texts_[i]] = i;
  }
  explicit Lookup(Span<const int64_t> keys) : kind_(integers) {
    for (size_t i = 0; i < keys.size(); ++i) by_integer_[keys[i]] = i;
  }
  explicit Lookup(const std::vector<double>& keys) : kind_(reals) {
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i] == keys[i])
        by_real_[keys[i]] = i;
      else
        nan_ = static_cast<int64_t>(i);
  }
  Kind kind() const { return kind_; }
  /// Element i of data, of a type that suits the keys; -1 when it is none of them.
  int64_t find(const void* data, tn_dtype dtype, int64_t i) const {
    if (dtype == TN_STRING) return found(by_text_, view(static_cast<const tn_str*>(data)[i]));
    if (kind_ == integers && is_float(dtype))
      return found(by_integer_, saturate_to<int64_t>(real_at(data, dtype, i)));
    if (kind_ == integers) return found(by_integer_, integer_at(data, dtype, i));
    const double x = real_at(data, dtype, i);
    return x == x ? found(by_real_, x) : nan_;
  }

 private:
  template <class Map, class Key>
  static int64_t found(const Map& map, const Key& key) {
    const auto at = map.find(key);
    return at == map.end() ? -1 : static_cast<int64_t>(at->second);
  }
  Kind kind_ = text;
  std::vector<std::string> texts_;  // the keys of by_text_ are views of these
  std::unordered_map<std::string_view, size_t> by_text_;
  std::unordered_map<int64_t, size_t> by_integer_;
  std::unordered_map<double, size_t> by_real_;
  int64_t nan_ = -1;
};

/// What is looked up: text, or numbers as the result holds them; the last one is for what has no key.
struct Values {
  tn_dtype dtype = TN_DTYPE_NONE;
  std::vector<std::string> texts;
  std::vector<char> numbers;
  size_t count = 0;
  void add(std::string_view value) {
    texts.emplace_back(value);
    ++count;
  }
  template <class C>
  void add_number(C value) {
    const auto bytes = static_cast<size_t>(dtype_bytes(dtype));
    numbers.resize((count + 1) * bytes);
    storer<C>(dtype)(&value, 1, numbers.data(), static_cast<int64_t>(count++));
  }
  void add_element(const TensorView& t, int64_t i) {
    if (dtype == TN_STRING) return add(view(t.data<tn_str>()[i]));
    if (is_float(dtype)) return add_number(t.float_at(i));
    add_number(t.int_at(i));
  }
};

std::vector<std::string> texts(Span<const tn_str> list) {
  std::vector<std::string> r;
  for (const tn_str& s : list) r.emplace_back(view(s));
  return r;
}
void check_operand(tn_dtype dtype, Lookup::Kind kind) {
  const bool fits = kind == Lookup::text       ? dtype == TN_STRING
                    : kind == Lookup::integers ? dtype != TN_STRING && !is_float(dtype)
                                               : is_float(dtype);
  constexpr const char* kinds[] = {"text", "integers", "reals"};
  if (!fits)
    fail(
        format("operand X holds %s, and the keys are %s; expected one type", dtype_name(dtype), kinds[kind]));
}

// ---- the kernel of CategoryMapper and LabelEncoder ----

struct MapState : Base {
  Lookup keys;
  Values values;
  int64_t place(const void* x, int64_t i) const {
    const int64_t at = keys.find(x, in[0].dtype, i);
    return at < 0 ? static_cast<int64_t>(values.count) - 1 : at;
  }
};
int run_map(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<MapState>(a);
  const Range range = tile_range(s.in[0].count, s.tiles, tile, 16);
  const auto bytes = static_cast<size_t>(dtype_bytes(s.values.dtype));
  for (int64_t i = range.begin; i < range.end; ++i)
    std::memcpy(out<char>(a) + static_cast<size_t>(i) * bytes,
                s.values.numbers.data() + static_cast<size_t>(s.place(a->inputs[0], i)) * bytes, bytes);
  return run_ok;
}
void run_map_to_text(Run& run, const tn_kernel_args* a) {
  const auto& s = state<MapState>(a);
  auto* to = static_cast<tn_str*>(run.output(0, TN_STRING, s.in[0].dims));
  const void* x = run.input(0).raw().data;
  for (int64_t i = 0; i < s.in[0].count; ++i)
    to[i] = run.api->keep_text(run.run, str(s.values.texts[static_cast<size_t>(s.place(x, i))]));
}
void finish_map(const PlanView& v, Planned& p, std::unique_ptr<MapState> s) {
  check_operand(s->in[0].dtype, s->keys.kind());
  if (s->values.dtype == TN_STRING) return p.set(dynamic_kernel<run_map_to_text>, std::move(s));
  const int64_t n = s->in[0].count;
  finish(v, p, run_map, std::move(s), n, n * 8);
}
template <void (*Plan)(const PlanView&, Planned&)>
void provide_map(Plugin& p, const char* op) {
  reference_kernel(p, op).output({TN_INT64, TN_INT32, TN_INT16, TN_FLOAT32, TN_FLOAT64}).plan<Plan>();
  reference_kernel(p, op, "_to_text").flags(TN_KERNEL_DYNAMIC_OUTPUT).output({TN_STRING}).plan<Plan>();
}

// ---- CategoryMapper ----

void infer_mapper(Infer& c) {
  if (c.dtype(0) != TN_DTYPE_NONE) same_shape(c, 0, 0, c.dtype(0) == TN_STRING ? TN_INT64 : TN_STRING);
}
void plan_mapper(const PlanView& v, Planned& p) {
  auto s = make_state<MapState>(v);
  const auto a = v.attrs();
  const auto numbers = a.get_ints("cats_int64s");
  auto names = texts(a.get_strings("cats_strings"));
  require_same_length(numbers.size(), "cats_int64s", names.size(), "cats_strings");
  if (s->in[0].dtype == TN_STRING) {
    s->values.dtype = TN_INT64;
    for (int64_t n : numbers) s->values.add_number(n);
    s->values.add_number(a.get_int("default_int64", -1));
    s->keys = Lookup(std::move(names));
  } else {
    s->values.dtype = TN_STRING;
    for (const auto& name : names) s->values.add(name);
    s->values.add(a.get_string("default_string", "_Unused"));
    s->keys = Lookup(numbers);
  }
  finish_map(v, p, std::move(s));
}

// ---- LabelEncoder ----

/// The one attribute of the four `<part>_floats`, `_int64s`, `_strings`, `_tensor` that is there.
std::string chosen(const Attributes& a, const std::string& part) {
  std::string r;
  for (const char* suffix : {"_floats", "_int64s", "_strings", "_tensor"}) {
    const tn_attr* at = a.find(part + suffix);
    if (!at || (at->kind != TN_ATTR_TENSOR && at->count == 0)) continue;
    if (!r.empty())
      fail("both attributes '" + r + "' and '" + part + suffix + "' are given; expected one of them");
    r = part + suffix;
  }
  if (r.empty())
    fail("no attribute says the " + part + "; expected one of " + part +
         "_floats, _int64s, _strings, _tensor");
  return r;
}
tn_dtype type_of(const Attributes& a, const std::string& name) {
  if (const tn_attr* at = a.find(name); at->kind == TN_ATTR_TENSOR) return at->u.tensor->dtype;
  return name.find("_floats") != std::string::npos   ? TN_FLOAT32
         : name.find("_int64s") != std::string::npos ? TN_INT64
                                                     : TN_STRING;
}
void infer_encoder(Infer& c) {
  const auto a = c.attrs();
  const tn_dtype keys = type_of(a, chosen(a, "keys")), values = type_of(a, chosen(a, "values"));
  if (c.dtype(0) != TN_DTYPE_NONE)
    check_operand(c.dtype(0), keys == TN_STRING ? Lookup::text
                              : is_float(keys)  ? Lookup::reals
                                                : Lookup::integers);
  same_shape(c, 0, 0, values);
}
size_t add_values(Values& to, const Attributes& a, const std::string& name) {
  to.dtype = type_of(a, name);
  if (const tn_attr* at = a.find(name); at->kind == TN_ATTR_TENSOR) {
    const TensorView t(*at->u.tensor);
    for (int64_t i = 0; i < t.count(); ++i) to.add_element(t, i);
  } else if (to.dtype == TN_STRING) {
    for (const tn_str& s : a.get_strings(name)) to.add(view(s));
  } else if (to.dtype == TN_INT64) {
    for (int64_t n : a.get_ints(name)) to.add_number(n);
  } else {
    for (double x : a.get_floats(name)) to.add_number(x);
  }
  const size_t count = to.count;
  const tn_tensor* otherwise = a.get_tensor("default_tensor");
  if (otherwise) {
    const TensorView t(*otherwise);
    if (t.count() != 1 || t.dtype() != to.dtype)
      fail(format("attribute 'default_tensor' holds %s of shape %s; expected one %s", dtype_name(t.dtype()),
                  dims_text(t.dims()).c_str(), dtype_name(to.dtype)));
    to.add_element(t, 0);
  } else if (to.dtype == TN_STRING) {
    to.add(a.get_string("default_string", "_Unused"));
  } else if (is_float(to.dtype)) {
    to.add_number(a.get_float("default_float", -0.0));
  } else {
    to.add_number(a.get_int("default_int64", -1));
  }
  return count;
}
Lookup keys_of(const Attributes& a, const std::string& name, size_t& count) {
  const tn_attr* at = a.find(name);
  count = at->count;
  if (at->kind != TN_ATTR_TENSOR) {
    if (at->kind == TN_ATTR_STRINGS) return Lookup(texts(a.get_strings(name)));
    if (at->kind == TN_ATTR_INTS) return Lookup(a.get_ints(name));
    const auto x = a.get_floats(name);
    return Lookup(std::vector<double>(x.begin(), x.end()));
  }
  const TensorView t(*at->u.tensor);
  const int64_t n = t.count();
  count = static_cast<size_t>(n);
  if (t.dtype() == TN_STRING) return Lookup(texts({t.data<tn_str>(), count}));
  Dims integers;
  std::vector<double> reals;
  for (int64_t i = 0; i < n; ++i)
    if (is_float(t.dtype()))
      reals.push_back(t.float_at(i));
    else
      integers.push_back(t.int_at(i));
  return is_float(t.dtype()) ? Lookup(reals) : Lookup(Span<const int64_t>(integers));
}
void plan_encoder(const PlanView& v, Planned& p) {
  auto s = make_state<MapState>(v);
  const auto a = v.attrs();
  const std::string keys = chosen(a, "keys"), values = chosen(a, "values");
  size_t key_count = 0;
  s->keys = keys_of(a, keys, key_count);
  require_same_length(key_count, keys.c_str(), add_values(s->values, a, values), values.c_str());
  finish_map(v, p, std::move(s));
}

// Version 1 numbered the list `classes_strings`, to be read in either direction.
void upgrade_encoder(Editor& e, const Node& n) {
  if (n.version() >= 2) return upgrade_version_only(e, n);
  const auto a = n.attrs();
  const auto names = texts(a.get_strings("classes_strings"));
  const bool says_text = a.has("default_string"), says_number = a.has("default_int64");
  const std::string default_string(a.get_string("default_string", "_Unused"));
  const int64_t default_number = a.get_int("default_int64", -1);
  Rewrite w(e, n);
  const tn_dtype dtype = w.dtype(w.input(0));
  if (dtype == TN_DTYPE_NONE && says_text == says_number)
    decline("whether text or numbers are encoded is not known yet");
  const bool from_text = dtype != TN_DTYPE_NONE ? dtype == TN_STRING : says_number;
  std::vector<tn_str> list;
  Dims numbers;
  for (const auto& name : names) {
    numbers.push_back(static_cast<int64_t>(list.size()));
    list.push_back(str(name));
  }
  AttrValue text{from_text ? "keys_strings" : "values_strings"};
  text.a.kind = TN_ATTR_STRINGS;
  text.a.u.strings = list.data();
  text.a.count = list.size();
  std::vector<AttrValue> attrs{
      text, AttrValue::of(from_text ? "values_int64s" : "keys_int64s", Span<const int64_t>(numbers))};
  attrs.push_back(from_text ? AttrValue::of("default_int64", default_number)
                            : AttrValue::of("default_string", default_string));
  w.become(0, w.make("ai.onnx.ml::LabelEncoder", {w.input(0)}, std::move(attrs)));
  w.erase();
}

// ---- OneHotEncoder ----

size_t categories(const Attributes& a) {
  const size_t numbers = a.get_ints("cats_int64s").size(), names = a.get_strings("cats_strings").size();
  if ((numbers == 0) == (names == 0))
    fail(format("attributes 'cats_int64s' and 'cats_strings' have %zu and %zu elements; expected one of them",
                numbers, names));
  return numbers + names;
}
void infer_one_hot(Infer& c) {
  const size_t count = categories(c.attrs());
  if (!c.has_rank(0)) return c.set_unranked(0, TN_FLOAT32);
  auto d = c.dims(0);
  d.push_back(static_cast<tn_dim>(count));
  c.set(0, TN_FLOAT32, d);
}
struct OneHotState : Base {
  Lookup keys;
  int64_t width = 0;
  bool zeros = true;
};
int run_one_hot(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<OneHotState>(a);
  const Range range = tile_range(s.in[0].count, s.tiles, tile);
  for (int64_t i = range.begin; i < range.end; ++i) {
    float* to = out<float>(a) + i * s.width;
    std::fill(to, to + s.width, 0.0f);
    const int64_t at = s.keys.find(a->inputs[0], s.in[0].dtype, i);
    if (at >= 0) {
      to[at] = 1;
    } else if (!s.zeros) {
      char text[160];
      std::snprintf(
          text, sizeof text,
          "element %lld of operand X is none of the categories, and attribute 'zeros' is 0; correct it, or "
          "set 'zeros' to 1",
          static_cast<long long>(i));
      return run_fail(a, run_bad_operand, text);
    }
  }
  return run_ok;
}
void plan_one_hot(const PlanView& v, Planned& p) {
  auto s = make_state<OneHotState>(v);
  const auto a = v.attrs();
  s->width = static_cast<int64_t>(categories(a));
  auto names = texts(a.get_strings("cats_strings"));
  s->keys = names.empty() ? Lookup(a.get_ints("cats_int64s")) : Lookup(std::move(names));
  if ((s->keys.kind() == Lookup::text) != (s->in[0].dtype == TN_STRING))
    fail(format("operand X holds %s; the categories are %s", dtype_name(s->in[0].dtype),
                s->keys.kind() == Lookup::text ? "text" : "numbers"));
  s->zeros = a.get_int("zeros", 1) != 0;
  const int64_t n = s->in[0].count, work = checked_mul(n, s->width + 8);
  finish(v, p, run_one_hot, std::move(s), n, work);
}

}  // namespace

void add_ml_categories(Plugin& p) {
  constexpr const char* ml = "ai.onnx.ml";
  define(p, "CategoryMapper", ml).infer<infer_mapper>();
  define(p, "LabelEncoder", ml).infer<infer_encoder>().upgrade<upgrade_encoder>();
  define(p, "OneHotEncoder", ml).infer<infer_one_hot>();
  provide_map<plan_mapper>(p, "ai.onnx.ml::CategoryMapper");
  provide_map<plan_encoder>(p, "ai.onnx.ml::LabelEncoder");
  reference_kernel(p, "ai.onnx.ml::OneHotEncoder").plan<plan_one_hot>();
}

}  // namespace tenon::ops
