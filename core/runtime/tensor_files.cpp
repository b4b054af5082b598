#include "core/runtime/tensor_files.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/plugin/host.hpp"

namespace tenon {

namespace fs = std::filesystem;

void InputSet::add(std::string name, AnyRef value) {
  names.push_back(std::move(name));
  values.push_back(std::move(value));
  NamedTensor t;
  t.name = names.back();
  t.any = values.back().get();
  tensors.push_back(t);
}

bool InputSet::has(std::string_view name) const {
  return std::any_of(names.begin(), names.end(), [&](const std::string& n) { return n == name; });
}

namespace {

const TensorFileEntry& format_of(const fs::path& path, const Registries& registries) {
  if (const auto* f = registries.tensor_file_for(path.string())) return *f;
  std::string known;
  for (const auto& f : registries.tensor_files())
    for (uint32_t i = 0; i < f.record->suffix_count; ++i)
      known += (known.empty() ? "" : ", ") + string(f.record->suffixes[i]);
  throw Error(exit_bad_input, path.string(),
              known.empty() ? "no plugin reads or writes tensors: add \"tensors\" to the manifest's plugins"
                            : "unknown kind of tensor file; known are " + known);
}

/// What a file holds, by name; items of sequences in order under their name.
struct Contents {
  struct Item {
    std::string name;
    int64_t index;
    AnyRef value;
  };
  std::vector<Item> items;
  const std::vector<InputInfo>* wanted = nullptr;
  std::string failure;
};

/// "arr_3" is position 3; -1 when the name is none of that form.
int64_t array_position(std::string_view name) {
  if (name.substr(0, 4) != "arr_" || name.size() < 5 || name.size() > 9) return -1;
  int64_t n = 0;
  for (char c : name.substr(4)) {
    if (c < '0' || c > '9') return -1;
    n = n * 10 + (c - '0');
  }
  return n;
}

tn_dtype expected_dtype(void* context, tn_str name, uint32_t position) {
  const auto& wanted = *static_cast<Contents*>(context)->wanted;
  for (const auto& i : wanted)
    if (i.name == view(name)) return i.dtype;
  const int64_t at = view(name).empty() ? position : array_position(view(name));
  return at >= 0 && at < static_cast<int64_t>(wanted.size()) ? wanted[static_cast<size_t>(at)].dtype
                                                             : TN_DTYPE_NONE;
}

tn_status take_item(void* context, const tn_named_tensor* t) {
  auto& contents = *static_cast<Contents*>(context);
  try {
    AnyRef value;
    if (t->index != -2) value = copy_tensor(t->tensor, string(t->name));
    contents.items.push_back({string(t->name), t->index, std::move(value)});
    return TN_OK;
  } catch (const std::exception& e) {
    contents.failure = e.what();
    return TN_ERR_MEMORY;
  }
}

Contents read_file(const fs::path& path, const Registries& registries, Host& host,
                   const std::vector<InputInfo>& wanted) {
  const TensorFileEntry& format = format_of(path, registries);
  Contents contents;
  contents.wanted = &wanted;
  Diagnostics findings;
  const std::string text = path.string();
  const tn_status s = format.record->read(format.instance, host.abi(), to_abi(text), expected_dtype,
                                          take_item, &contents, findings.abi());
  if (!contents.failure.empty()) throw Error(exit_bad_input, text, contents.failure);
  findings.throw_if_errors(exit_bad_input);
  if (s != TN_OK) throw Error(exit_bad_input, text, fmt::format("cannot be read (status {})", s));
  return contents;
}

/// The value of the input from the items that carry its name: a tensor, or a sequence or optional from its
/// parts.
AnyRef assemble(const InputInfo& info, const std::vector<const Contents::Item*>& items,
                const std::string& where) {
  if (info.kind == TN_KIND_TENSOR || info.kind == TN_KIND_NONE) {
    if (items.size() != 1 || !items[0]->value)
      throw Error(
          exit_bad_input, where,
          fmt::format("input '{}' is one tensor, the file has {} values for it", info.name, items.size()));
    return items[0]->value;
  }
  if (info.kind == TN_KIND_OPTIONAL)
    return new_optional(items[0]->index == -2 ? nullptr : items[0]->value.get());
  std::vector<tn_any*> parts;
  for (const auto* i : items)
    if (i->index >= 0) parts.push_back(i->value.get());
  AnyRef sequence = new_sequence(parts, info.dtype);
  if (info.kind == TN_KIND_SEQUENCE) return sequence;
  return new_optional(parts.empty() ? nullptr : sequence.get());
}

const InputInfo* find_input(const std::vector<InputInfo>& wanted, std::string_view name) {
  for (const auto& i : wanted)
    if (i.name == name) return &i;
  return nullptr;
}

}  // namespace

void read_input(const std::string& name, const fs::path& path, const Registries& registries, Host& host,
                const std::vector<InputInfo>& wanted, InputSet& into) {
  const InputInfo* info = find_input(wanted, name);
  if (!info) {
    std::vector<std::string> known;
    for (const auto& i : wanted) known.push_back(i.name);
    throw Error(exit_bad_input, path.string(),
                fmt::format("the model has no input '{}'{}", name, did_you_mean(name, known)));
  }
  const Contents contents = read_file(path, registries, host, wanted);
  std::vector<const Contents::Item*> items;
  for (const auto& i : contents.items)
    if (i.name == name) items.push_back(&i);
  if (items.empty())
    for (const auto& i : contents.items) items.push_back(&i);
  if (items.empty()) throw Error(exit_bad_input, path.string(), "holds no tensor");
  into.add(name, assemble(*info, items, path.string()));
}

void read_inputs(const fs::path& path, const Registries& registries, Host& host,
                 const std::vector<InputInfo>& wanted, InputSet& into) {
  if (fs::is_directory(path)) {
    for (size_t i = 0; i < wanted.size(); ++i) {
      const fs::path file = path / fmt::format("input_{}.pb", i);
      if (fs::exists(file))
        read_input(wanted[i].name, file, registries, host, wanted, into);
      else if (!wanted[i].optional)
        throw Error(exit_bad_input, path.string(),
                    fmt::format("has no input_{}.pb for input '{}'", i, wanted[i].name));
    }
    return;
  }
  const Contents contents = read_file(path, registries, host, wanted);
  // By name; then arr_N and unnamed ones by position.
  std::map<std::string, std::vector<const Contents::Item*>> by_input;
  std::vector<std::string> order, known, unknown;
  for (const auto& i : wanted) known.push_back(i.name);
  size_t position = 0;
  for (const auto& item : contents.items) {
    std::string name = item.name;
    if (!find_input(wanted, name)) {
      const int64_t at = name.empty() ? static_cast<int64_t>(position) : array_position(name);
      if (at < 0 || at >= static_cast<int64_t>(wanted.size())) {
        unknown.push_back(fmt::format("'{}'{}", name, did_you_mean(name, known)));
        continue;
      }
      name = wanted[static_cast<size_t>(at)].name;
    }
    ++position;
    auto& items = by_input[name];
    if (items.empty()) order.push_back(name);
    items.push_back(&item);
  }
  if (!unknown.empty())
    throw Error(
        exit_bad_input, path.string(),
        fmt::format("the model has no input {}; its inputs are {}", join(unknown, ", "), join(known, ", ")));
  for (const auto& name : order)
    if (!into.has(name)) into.add(name, assemble(*find_input(wanted, name), by_input[name], path.string()));
}

void add_random_inputs(const std::vector<std::string>& shapes, uint64_t seed,
                       const std::vector<InputInfo>& wanted, InputSet& into) {
  std::map<std::string, std::vector<int64_t>, std::less<>> given;
  std::vector<std::string> known;
  for (const auto& i : wanted) known.push_back(i.name);
  for (const auto& text : shapes) {
    for (std::string_view one : split(text, ';')) {
      const size_t colon = one.rfind(':');
      if (colon == std::string_view::npos)
        throw Error(exit_bad_input, "--shape " + std::string(one),
                    fmt::format("'{}' names no dimensions; expected NAME:1,3,224,224, NAME one of {}", one,
                                join(known, ", ")));
      const std::string name(one.substr(0, colon));
      if (!find_input(wanted, name))
        throw Error(exit_bad_input, "--shape " + std::string(one),
                    fmt::format("the model has no input '{}'{}; it has {}", name, did_you_mean(name, known),
                                join(known, ", ")));
      std::vector<int64_t> dims;
      const std::string_view list = one.substr(colon + 1);
      for (std::string_view d : list.empty() ? std::vector<std::string_view>() : split(list, ',')) {
        char* end = nullptr;
        const std::string digits(d);
        const long long n = std::strtoll(digits.c_str(), &end, 10);
        if (digits.empty() || *end || n < 0)
          throw Error(exit_bad_input, "--shape " + std::string(one),
                      fmt::format("'{}' is no dimension; expected whole numbers from 0 up", digits));
        dims.push_back(n);
      }
      given[name] = dims;
    }
  }
  std::mt19937_64 random(seed);
  std::map<std::string, int64_t, std::less<>> sizes;  // of named dims that --shape told
  for (const auto& i : wanted)
    if (const auto g = given.find(i.name); g != given.end())
      for (size_t k = 0; k < i.dims.size() && k < g->second.size(); ++k)
        sizes.emplace(i.dims[k], g->second[k]);
  for (const auto& i : wanted) {
    if (into.has(i.name) || i.optional) continue;
    if (i.kind != TN_KIND_TENSOR || !i.rank_known)
      throw Error(exit_bad_input, "input " + i.name, "no random value can be made for it: give --inputs");
    std::vector<int64_t> dims;
    if (const auto g = given.find(i.name); g != given.end()) {
      dims = g->second;
    } else {
      for (const auto& d : i.dims) {
        if (!d.empty() && d.find_first_not_of("0123456789") == std::string::npos)
          dims.push_back(std::stoll(d));
        else
          dims.push_back(sizes.count(d) ? sizes.find(d)->second : 1);
      }
    }
    AnyRef value = new_tensor(i.dtype, dims, "input " + i.name);
    std::memset(value->data, 0, value->bytes);
    const uint64_t count =
        dtype_is_known(i.dtype) && (i.dtype >> 16) >= 8 ? value->bytes / ((i.dtype >> 16) / 8) : 0;
    std::normal_distribution<float> normal;
    for (uint64_t k = 0; k < count; ++k) {
      if (i.dtype == TN_FLOAT32)
        static_cast<float*>(value->data)[k] = normal(random);
      else if (i.dtype == TN_FLOAT64)
        static_cast<double*>(value->data)[k] = static_cast<double>(normal(random));
      else if (i.dtype == TN_INT64)
        static_cast<int64_t*>(value->data)[k] = static_cast<int64_t>(random() & 1);
      else if (i.dtype == TN_INT32)
        static_cast<int32_t*>(value->data)[k] = static_cast<int32_t>(random() & 1);
      else if (i.dtype == TN_BOOL || i.dtype == TN_UINT8 || i.dtype == TN_INT8)
        static_cast<uint8_t*>(value->data)[k] = random() & 1;
      else if (i.dtype == TN_FLOAT16)
        static_cast<uint16_t*>(value->data)[k] =
            static_cast<uint16_t>(0x3000 + (random() & 0x7ff) + ((random() & 1) << 15));
      else if (i.dtype == TN_BFLOAT16)
        static_cast<uint16_t*>(value->data)[k] =
            static_cast<uint16_t>(0x3e00 + (random() & 0xff) + ((random() & 1) << 15));
    }
    into.add(i.name, std::move(value));
  }
}

namespace {

void append(const NamedOutput& output, std::vector<tn_named_tensor>& items) {
  tn_any* any = output.value.get();
  const uint32_t kind = any->kind;
  const auto item = [&](int64_t index, const tn_tensor& t) {
    items.push_back({to_abi(output.name), index, t, kind, 0});
  };
  if (any->kind == TN_KIND_OPTIONAL || any->kind == TN_KIND_OPTIONAL_SEQUENCE) {
    if (any->items.empty()) return item(-2, {});
    any = any->items[0];
  }
  if (any->kind != TN_KIND_SEQUENCE) return item(-1, any->tensor());
  if (any->items.empty()) return item(-2, {});
  for (size_t i = 0; i < any->items.size(); ++i) item(static_cast<int64_t>(i), any->items[i]->tensor());
}

void write_file(const fs::path& path, const std::vector<tn_named_tensor>& items, const Registries& registries,
                Host& host) {
  const TensorFileEntry& format = format_of(path, registries);
  size_t values = 0;  // the items of a sequence are one
  for (const auto& item : items) values += item.index <= 0;
  if (!format.record->holds_many && values > 1)
    throw Error(exit_bad_input, path.string(),
                fmt::format("holds one value, there are {}: write a .npz or a folder", values));
  Diagnostics findings;
  const std::string text = path.string();
  const tn_status s = format.record->write(format.instance, host.abi(), to_abi(text), items.data(),
                                           static_cast<uint32_t>(items.size()), findings.abi());
  findings.throw_if_errors(exit_job_failed);
  if (s != TN_OK) throw Error(exit_job_failed, text, fmt::format("cannot be written (status {})", s));
}

}  // namespace

void write_output(const fs::path& path, const NamedOutput& output, const Registries& registries, Host& host) {
  std::vector<tn_named_tensor> items;
  append(output, items);
  write_file(path, items, registries, host);
}

void write_outputs(const fs::path& path, const std::vector<NamedOutput>& outputs,
                   const Registries& registries, Host& host) {
  const std::string text = path.string();
  if (fs::is_directory(path) || (!text.empty() && text.back() == '/')) {
    fs::create_directories(path);
    for (size_t i = 0; i < outputs.size(); ++i)
      write_output(path / fmt::format("output_{}.pb", i), outputs[i], registries, host);
    return;
  }
  std::vector<tn_named_tensor> items;
  std::set<std::string_view> written;  // a model may list an output twice; a name is written once
  for (const auto& o : outputs)
    if (written.insert(o.name).second) append(o, items);
  write_file(path, items, registries, host);
}

}  // namespace tenon
