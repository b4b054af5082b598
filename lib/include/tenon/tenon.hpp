// libtenon for C++17: handles that close themselves, exceptions that carry every finding. Header-only over
// tenon.h, so a program built with any compiler keeps working with every later libtenon 1.x.
//
//   tenon::Host host;                                       // the default manifest
//   tenon::Model model = host.load("model.onnx");
//   model.optimize();
//   tenon::Session session = model.session();
//   std::vector<float> x(3 * 224 * 224);
//   tenon::Result result = session.run({{"x", tenon::tensor(x, {1, 3, 224, 224})}});
//   const float* y = result[0].tensor().data<float>();      // valid as long as `result`
//
// Objects are movable. Session::run may be called from many threads at once; everything else that came from
// one host from one thread at a time.
#ifndef TENON_TENON_HPP
#define TENON_TENON_HPP
#include <tenon/tenon.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
// The version keeps two revisions of this header apart that meet in one program.
inline namespace v1 {

struct Finding {
  tn_severity severity = TN_SEVERITY_ERROR;
  std::string code, where, text;
};

// What a call found wrong; what() has all findings, one a line.
class Error : public std::exception {
 public:
  Error(tenon_status status, std::string message, std::vector<Finding> found = {})
      : status_(status),
        message_(std::make_shared<std::string>(std::move(message))),
        findings_(std::move(found)) {}
  const char* what() const noexcept override { return message_->c_str(); }
  tenon_status status() const noexcept { return status_; }
  const std::vector<Finding>& findings() const noexcept { return findings_; }

 private:
  tenon_status status_;
  std::shared_ptr<std::string> message_;  // copies of an exception must not throw
  std::vector<Finding> findings_;
};

namespace detail {

// Throws what a call left in `error`.
inline void check(tenon_status status, tenon_error* error) {
  if (status == TENON_OK) return;
  const std::unique_ptr<tenon_error, void (*)(tenon_error*)> owner(error, &tenon_error_free);
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < tenon_error_count(error); ++i) {
    tenon_finding finding{};
    finding.size = sizeof finding;
    if (tenon_error_finding(error, i, &finding) == TENON_OK)
      findings.push_back(
          {static_cast<tn_severity>(finding.severity), finding.code, finding.where, finding.text});
  }
  throw Error(status, error == nullptr ? "libtenon was called wrongly" : tenon_error_message(error),
              std::move(findings));
}

// call(error) -> status; throws.
template <class Call>
void checked(Call&& call) {
  tenon_error* error = nullptr;
  const tenon_status status = call(&error);
  check(status, error);
}

// call(text, error) -> status; the text.
template <class Call>
std::string text_of(Call&& call) {
  char* text = nullptr;
  checked([&](tenon_error** error) { return call(&text, error); });
  const std::unique_ptr<char, void (*)(char*)> owner(text, &tenon_text_free);
  return text == nullptr ? std::string() : std::string(text);
}

template <class Handle, void (*Close)(Handle*)>
struct Closer {
  void operator()(Handle* handle) const { Close(handle); }
};
template <class Handle, void (*Close)(Handle*)>
using Owned = std::unique_ptr<Handle, Closer<Handle, Close>>;

template <class T>
struct dtype_of;
#define TENON_DTYPE_OF(type, number)            \
  template <>                                   \
  struct dtype_of<type> {                       \
    static constexpr tn_dtype value = (number); \
  }
TENON_DTYPE_OF(float, TN_FLOAT32);
TENON_DTYPE_OF(double, TN_FLOAT64);
TENON_DTYPE_OF(std::int8_t, TN_INT8);
TENON_DTYPE_OF(std::int16_t, TN_INT16);
TENON_DTYPE_OF(std::int32_t, TN_INT32);
TENON_DTYPE_OF(std::int64_t, TN_INT64);
TENON_DTYPE_OF(std::uint8_t, TN_UINT8);
TENON_DTYPE_OF(std::uint16_t, TN_UINT16);
TENON_DTYPE_OF(std::uint32_t, TN_UINT32);
TENON_DTYPE_OF(std::uint64_t, TN_UINT64);
TENON_DTYPE_OF(bool, TN_BOOL);
#undef TENON_DTYPE_OF

}  // namespace detail

inline std::string dtype_name(tn_dtype dtype) {
  std::string name(tenon_dtype_name(dtype, nullptr, 0), '\0');
  tenon_dtype_name(dtype, &name[0], name.size() + 1);
  return name;
}

// A dense row-major tensor in memory that somebody else owns.
class Tensor {
 public:
  Tensor() = default;
  Tensor(tn_dtype dtype, std::vector<std::int64_t> dims, void* data, std::uint64_t bytes)
      : dtype_(dtype), dims_(std::move(dims)), data_(data), bytes_(bytes) {}
  explicit Tensor(const tn_tensor& t)
      : Tensor(t.dtype, std::vector<std::int64_t>(t.dims, t.dims + t.rank), t.data, t.bytes) {}

  tn_dtype dtype() const { return dtype_; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  std::uint64_t bytes() const { return bytes_; }
  std::size_t size() const {  // elements
    std::size_t count = 1;
    for (const std::int64_t dim : dims_) count *= static_cast<std::size_t>(dim);
    return count;
  }
  const void* raw() const { return data_; }
  // Throws when the elements are of another type.
  template <class T>
  const T* data() const {
    if (dtype_ != detail::dtype_of<T>::value)
      throw Error(TENON_BAD_CALL, "the tensor is of " + dtype_name(dtype_) + ", not of " +
                                      dtype_name(detail::dtype_of<T>::value));
    return static_cast<const T*>(data_);
  }
  // Valid as long as this object stays where it is.
  tn_tensor c() const {
    return {dtype_, static_cast<std::int32_t>(dims_.size()), dims_.data(), data_, bytes_};
  }

 private:
  tn_dtype dtype_ = TN_DTYPE_NONE;
  std::vector<std::int64_t> dims_;
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Over memory of the caller's, which must stay until the run returns. libtenon only reads it.
template <class T>
Tensor tensor(const T* data, std::vector<std::int64_t> dims) {
  std::uint64_t bytes = sizeof(T);
  for (const std::int64_t dim : dims) bytes *= static_cast<std::uint64_t>(dim);
  return Tensor(detail::dtype_of<T>::value, std::move(dims), const_cast<T*>(data), bytes);
}
template <class T>
Tensor tensor(const std::vector<T>& data, std::vector<std::int64_t> dims) {
  return Tensor(detail::dtype_of<T>::value, std::move(dims), const_cast<T*>(data.data()),
                data.size() * sizeof(T));
}

// A counted value: a tensor, a sequence or an optional.
class Value {
 public:
  static Value tensor(const Tensor& from, bool borrow = false) {
    const tn_tensor c = from.c();
    return made([&](tenon_value** value, tenon_error** error) {
      return tenon_value_tensor(&c, borrow ? TENON_BORROW : TENON_COPY, value, error);
    });
  }
  static Value sequence(const std::vector<Value>& items, tn_dtype dtype = TN_DTYPE_NONE) {
    std::vector<tenon_value*> list;
    for (const Value& item : items) list.push_back(item.owned_.get());
    return made([&](tenon_value** value, tenon_error** error) {
      return tenon_value_sequence(list.data(), list.size(), dtype, value, error);
    });
  }
  static Value optional() {
    return made(
        [](tenon_value** value, tenon_error** error) { return tenon_value_optional(nullptr, value, error); });
  }
  static Value optional(const Value& item) {
    return made([&](tenon_value** value, tenon_error** error) {
      return tenon_value_optional(item.owned_.get(), value, error);
    });
  }
  const tenon_value* c() const { return owned_.get(); }

 private:
  template <class Make>
  static Value made(Make&& make) {
    tenon_value* value = nullptr;
    detail::checked([&](tenon_error** error) { return make(&value, error); });
    Value result;
    result.owned_ = std::shared_ptr<tenon_value>(value, &tenon_value_free);
    return result;
  }
  std::shared_ptr<tenon_value> owned_;
};

// An input or output as the model declares it; -1 is an open dimension, and its name says more.
struct Port {
  std::string name;
  tn_type_kind kind = TN_KIND_NONE;
  tn_dtype dtype = TN_DTYPE_NONE;
  bool rank_known = false;
  std::vector<std::int64_t> dims;
  std::vector<std::string> dim_names;
  bool optional = false;
};

struct Input {
  Input(std::string input, Tensor given) : name(std::move(input)), tensor(std::move(given)) {}
  Input(std::string input, Value given) : name(std::move(input)), value(std::move(given)) {}
  std::string name;
  Tensor tensor;
  Value value;
};
// The caller's memory for an output; exactly as large as the result.
struct Output {
  std::string name;
  void* data = nullptr;
  std::uint64_t bytes = 0;
};
template <class T>
Output output(std::string name, std::vector<T>& memory) {
  return {std::move(name), memory.data(), memory.size() * sizeof(T)};
}

// Looks into a result, which must stay.
class ValueView {
 public:
  explicit ValueView(const tenon_value* value) : value_(value) {}
  tn_type_kind kind() const { return tenon_value_kind(value_); }
  std::size_t size() const { return tenon_value_count(value_); }  // items
  ValueView operator[](std::size_t index) const { return ValueView(tenon_value_item(value_, index)); }
  Tensor tensor() const {
    tn_tensor tensor{};
    if (tenon_value_get(value_, &tensor) != TENON_OK) throw Error(TENON_BAD_CALL, "the value is no tensor");
    return Tensor(tensor);
  }

 private:
  const tenon_value* value_;
};

class Result {
 public:
  explicit Result(tenon_result* owned) : handle_(owned) {}
  std::size_t size() const { return tenon_result_count(handle_.get()); }
  std::string name(std::size_t index) const {
    const char* name = tenon_result_name(handle_.get(), index);
    return name == nullptr ? std::string() : std::string(name);
  }
  ValueView operator[](std::size_t index) const {
    return ValueView(tenon_result_value(handle_.get(), index));
  }
  ValueView operator[](const std::string& wanted) const {
    for (std::size_t i = 0; i < size(); ++i)
      if (wanted == tenon_result_name(handle_.get(), i)) return (*this)[i];
    throw Error(TENON_BAD_CALL, "there is no output '" + wanted + "'");
  }

 private:
  detail::Owned<tenon_result, &tenon_result_free> handle_;
};

class Session {
 public:
  explicit Session(tenon_session* owned) : handle_(owned) {}
  std::vector<Port> inputs() const {
    return ports(&tenon_session_input, tenon_session_input_count(handle_.get()));
  }
  std::vector<Port> outputs() const {
    return ports(&tenon_session_output, tenon_session_output_count(handle_.get()));
  }

  // Many threads may, at once.
  Result run(const std::vector<Input>& inputs, const std::vector<Output>& outputs = {}) const {
    const std::vector<tenon_input> in = c_inputs(inputs);
    std::vector<tenon_output> out;
    for (const Output& o : outputs) out.push_back({sizeof(tenon_output), 0, o.name.c_str(), o.data, o.bytes});
    tenon_result* result = nullptr;
    detail::checked([&](tenon_error** error) {
      return tenon_session_run(handle_.get(), in.data(), in.size(), out.data(), out.size(), &result, error);
    });
    return Result(result);
  }
  void prepare(const std::vector<Input>& inputs) const {
    const std::vector<tenon_input> in = c_inputs(inputs);
    detail::checked([&](tenon_error** error) {
      return tenon_session_prepare(handle_.get(), in.data(), in.size(), error);
    });
  }
  std::string summary(tenon_format format = TENON_TEXT) const {
    return detail::text_of([&](char** text, tenon_error** error) {
      return tenon_session_summary(handle_.get(), format, text, error);
    });
  }
  const tenon_session* c() const { return handle_.get(); }

 private:
  static std::vector<tenon_input> c_inputs(const std::vector<Input>& inputs) {
    std::vector<tenon_input> list;
    for (const Input& input : inputs)
      list.push_back({sizeof(tenon_input), 0, input.name.c_str(), input.tensor.c(), input.value.c()});
    return list;
  }
  template <class Describe>
  std::vector<Port> ports(Describe describe, std::size_t count) const {
    std::vector<Port> list;
    for (std::size_t i = 0; i < count; ++i) {
      tenon_port port{};
      port.size = sizeof port;
      if (describe(handle_.get(), i, &port) != TENON_OK)
        throw Error(TENON_BAD_CALL, "a port cannot be described");
      Port made{port.name,         static_cast<tn_type_kind>(port.kind), port.dtype, port.rank >= 0, {}, {},
                port.optional != 0};
      for (std::int32_t axis = 0; axis < port.rank; ++axis) {
        made.dims.push_back(port.dims[axis]);
        made.dim_names.emplace_back(port.dim_names[axis]);
      }
      list.push_back(std::move(made));
    }
    return list;
  }
  detail::Owned<tenon_session, &tenon_session_close> handle_;
};

class Model {
 public:
  explicit Model(tenon_model* owned) : handle_(owned) {}
  Model& optimize() {
    detail::checked([&](tenon_error** error) { return tenon_model_optimize(handle_.get(), error); });
    return *this;
  }
  Session session() const {
    tenon_session* session = nullptr;
    detail::checked([&](tenon_error** error) { return tenon_session_open(handle_.get(), &session, error); });
    return Session(session);
  }
  void save(const std::string& path) const {
    detail::checked(
        [&](tenon_error** error) { return tenon_model_save(handle_.get(), path.c_str(), error); });
  }
  std::string summary(tenon_format format = TENON_TEXT) const {
    return detail::text_of([&](char** text, tenon_error** error) {
      return tenon_model_summary(handle_.get(), format, text, error);
    });
  }
  // Of one rule or pass, of one node, or (both empty) of everything.
  std::string explain(const std::string& rule = {}, const std::string& node = {},
                      tenon_format format = TENON_TEXT) const {
    return detail::text_of([&](char** text, tenon_error** error) {
      return tenon_model_explain(handle_.get(), rule.empty() ? nullptr : rule.c_str(),
                                 node.empty() ? nullptr : node.c_str(), format, text, error);
    });
  }

 private:
  detail::Owned<tenon_model, &tenon_model_close> handle_;
};

// What a host is made of. `manifest` is a file; `manifest_text` the same in memory.
struct HostOptions {
  std::string manifest, manifest_text, manifest_folder;
  std::vector<std::string> set, rules, plugins, plugin_folders;
  std::string root, scan_helper;
  std::uint32_t scan_timeout_ms = 0;
  std::uint32_t flags = 0;  // TENON_NO_CHILD_PROCESS, TENON_KEEP_EXPLANATIONS, TENON_NO_SCAN_CACHE
};

class Host {
 public:
  Host() : Host(HostOptions{}) {}
  explicit Host(const HostOptions& o) {
    const std::uint32_t library = tenon_api_version();
    if (library >> 16 != TENON_API_MAJOR || library < (TENON_API_MAJOR << 16 | TENON_API_MINOR))
      throw Error(TENON_BAD_CALL,
                  std::string("libtenon ") + tenon_version() +
                      " is older than the headers this program was built with, or of another major "
                      "version; install libtenon " +
                      std::to_string(TENON_API_MAJOR) + "." + std::to_string(TENON_API_MINOR) + " or later");
    const auto set = pointers(o.set), rules = pointers(o.rules), plugins = pointers(o.plugins),
               folders = pointers(o.plugin_folders);
    tenon_host_options c{};
    c.size = sizeof c;
    c.flags = o.flags;
    c.manifest_path = pointer(o.manifest);
    c.manifest_text = pointer(o.manifest_text);
    c.manifest_folder = pointer(o.manifest_folder);
    c.set = set.data();
    c.set_count = set.size();
    c.rules = rules.data();
    c.rule_count = rules.size();
    c.plugins = plugins.data();
    c.plugin_count = plugins.size();
    c.plugin_folders = folders.data();
    c.plugin_folder_count = folders.size();
    c.root = pointer(o.root);
    c.scan_helper = pointer(o.scan_helper);
    c.scan_timeout_ms = o.scan_timeout_ms;
    tenon_host* host = nullptr;
    detail::checked([&](tenon_error** error) { return tenon_host_open(&c, &host, error); });
    handle_.reset(host);
  }
  // The manifest's model, or another file.
  Model load() const { return load_path(nullptr); }
  Model load(const std::string& path) const { return load_path(path.c_str()); }
  std::string plugins(tenon_format format = TENON_TEXT) const {
    return detail::text_of([&](char** text, tenon_error** error) {
      return tenon_host_plugins(handle_.get(), format, text, error);
    });
  }

 private:
  static const char* pointer(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  static std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> list;
    for (const std::string& text : texts) list.push_back(text.c_str());
    return list;
  }
  Model load_path(const char* path) const {
    tenon_model* model = nullptr;
    detail::checked(
        [&](tenon_error** error) { return tenon_model_load(handle_.get(), path, &model, error); });
    return Model(model);
  }
  detail::Owned<tenon_host, &tenon_host_close> handle_;
};

// Warnings and notes of the whole process, one call at a time, from any thread. What the function throws is
// dropped. An empty function: stderr again.
inline void set_log(std::function<void(tn_severity, const std::string&)> function,
                    tn_severity lowest = TN_SEVERITY_WARNING) {
  using Function = std::function<void(tn_severity, const std::string&)>;
  static Function* const current = new Function;  // threads may log while the process ends
  tenon_set_log(nullptr, nullptr, lowest);        // nobody calls it while it is replaced
  *current = std::move(function);
  if (!*current) return;
  tenon_set_log(
      [](void* context, tn_severity severity, const char* text) {
        try {
          (*static_cast<Function*>(context))(severity, text);
        } catch (...) {
        }
      },
      current, lowest);
}

inline std::string version() { return tenon_version(); }

}  // namespace v1
}  // namespace tenon
#endif
