#include "toys.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cmath>
#include <map>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "test_paths.hpp"
#include "toy_kernels.hpp"

namespace tenon::test {
namespace {

class InOrder : public toy::Device {
 public:
  using toy::Device::Device;
  void properties(tn_device_properties& out) override {
    toy::Device::properties(out);
    out.flags = 0;
  }
};

class Visible : public toy::Device {
 public:
  using toy::Device::Device;
  void properties(tn_device_properties& out) override {
    toy::Device::properties(out);
    out.flags |= TN_DEVICE_HOST_VISIBLE;
  }
  void* map(uint64_t handle) override { return memory.find({handle, 0, 0, 1}, 0); }
};

class Two : public toy::Device {
 public:
  using toy::Device::Device;
  static uint32_t count() { return 2; }
};

class TwoPeers : public Two {
 public:
  using Two::Two;
  void properties(tn_device_properties& out) override {
    toy::Device::properties(out);
    out.flags |= TN_DEVICE_PEER_COPY;
    out.peer = {500, 8};
  }
  uint64_t allocate(uint64_t bytes) override { return shared().allocate(bytes); }
  void release(uint64_t handle) noexcept override { shared().release(handle); }
  std::unique_ptr<toy::sdk::Stream> stream(bool) override { return std::make_unique<toy::Stream>(shared()); }

 private:
  static toy::Memory& shared() {
    static toy::Memory memory;
    return memory;
  }
};

class Small : public toy::Device {
 public:
  using toy::Device::Device;
  uint64_t allocate(uint64_t bytes) override {
    if (bytes > 4096)
      throw toy::sdk::Failure(TN_ERR_MEMORY, toy::sdk::format("%llu bytes are more than its 4096",
                                                              static_cast<unsigned long long>(bytes)));
    return toy::Device::allocate(bytes);
  }
};

std::atomic<int> copies_left{0}, opened{0};

class FragileStream : public toy::Stream {
 public:
  FragileStream(toy::Memory& of, std::shared_ptr<std::atomic<bool>> gone)
      : toy::Stream(of), gone_(std::move(gone)) {}
  void upload(const toy::Buffer& to, const void* from, uint64_t bytes) override {
    use();
    toy::Stream::upload(to, from, bytes);
  }
  void download(void* to, const toy::Buffer& from, uint64_t bytes) override {
    use();
    toy::Stream::download(to, from, bytes);
  }

 private:
  // On the stream's thread, as real ones are lost.
  void use() {
    enqueue([gone = gone_] {
      if (copies_left > 0 && --copies_left == 0) *gone = true;
      if (*gone) throw toy::sdk::DeviceLost("the cable was pulled");
    });
  }
  std::shared_ptr<std::atomic<bool>> gone_;
};

class Fragile : public toy::Device {
 public:
  Fragile(uint32_t ordinal, uint32_t space) : toy::Device(ordinal, space) { ++opened; }
  uint64_t allocate(uint64_t bytes) override {
    if (*gone_) throw toy::sdk::DeviceLost("the cable is out");
    return toy::Device::allocate(bytes);
  }
  std::unique_ptr<toy::sdk::Stream> stream(bool) override {
    return std::make_unique<FragileStream>(memory, gone_);
  }

 private:
  std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
};

// A plugin inside the program.
template <class T>
const tn_plugin& plugin_of() {
  static sdk::Plugin* const plugin = new sdk::Plugin;
  static const tn_plugin* const table = [] {
    plugin->id("test.toy").name("toy").version("1.0.0");
    plugin->device(sdk::device_record<T>("toy", "a toy of the tests"));
    toy::add_kernels(*plugin);
    return plugin->finish([](const char* id) noexcept { return plugin->find(id); });
  }();
  return *table;
}

const tn_plugin& plugin(Toy toy) {
  switch (toy) {
    case Toy::plain:
      return plugin_of<toy::Device>();
    case Toy::in_order:
      return plugin_of<InOrder>();
    case Toy::visible:
      return plugin_of<Visible>();
    case Toy::two:
      return plugin_of<Two>();
    case Toy::two_peers:
      return plugin_of<TwoPeers>();
    case Toy::small:
      return plugin_of<Small>();
    default:
      return plugin_of<Fragile>();
  }
}

}  // namespace

void lose_at_copy(int n) { copies_left = n; }
int times_opened() { return opened; }

Engine& engine_with(Toy toy) {
  static auto* const engines = new std::map<Toy, Engine*>;  // plugins stay open until the end
  Engine*& engine = (*engines)[toy];
  if (engine != nullptr) return *engine;
  set_install_root(build_dir());
  Diagnostics findings;
  auto manifest = parse_manifest("test.json",
                                 R"({"schema": "tenon.pipeline/1", "plugins": ["ops", "memory", "cpu"],
                                     "rules": [], "pipeline": []})",
                                 ".", {}, findings);
  findings.throw_if_errors(2);
  engine = new Engine(*manifest);
  engine->plugins().registries().add_plugin(plugin(toy), nullptr, findings);
  findings.throw_if_errors(2);
  return *engine;
}

std::unique_ptr<Graph> graph_of(Engine& engine, const std::string& lines) {
  Diagnostics findings;
  auto graph = parse("graph \"g\" {\n  opset \"\" 28\n" + lines + "}\n", &engine.registries(), findings);
  findings.throw_if_errors(2);
  infer_graph(*graph, findings);
  findings.throw_if_errors(2);
  return graph;
}

Tensors inputs_for(const Session& session, uint64_t seed, int64_t size) {
  Tensors made;
  uint64_t state = seed * 2 + 1;
  for (const InputInfo& input : session.inputs()) {
    made.names.push_back(input.name);
    made.dims.emplace_back();
    int64_t count = 1;
    for (const std::string& text : input.dims) {
      made.dims.back().push_back(std::isdigit(text[0]) != 0 ? std::stoll(text) : size);
      count *= made.dims.back().back();
    }
    made.values.emplace_back();
    for (int64_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      made.values.back().push_back(static_cast<float>(static_cast<int32_t>(state >> 40 & 0xfff) - 2048) /
                                   2048);
    }
  }
  return made;
}

Tensors run(const Session& session, const Tensors& inputs) {
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < inputs.names.size(); ++i) {
    NamedTensor one;
    one.name = inputs.names[i];
    one.tensor = {TN_FLOAT32, static_cast<int32_t>(inputs.dims[i].size()), inputs.dims[i].data(),
                  const_cast<float*>(inputs.values[i].data()), inputs.values[i].size() * sizeof(float)};
    named.push_back(one);
  }
  Tensors results;
  for (const NamedOutput& output : session.run(named)) {
    const tn_tensor t = output.tensor();
    results.names.push_back(output.name);
    results.dims.emplace_back(t.dims, t.dims + t.rank);
    const auto* data = static_cast<const float*>(t.data);
    results.values.emplace_back(data, data + t.bytes / sizeof(float));
  }
  return results;
}

Tensors reference(Engine& engine, const std::string& lines, uint64_t seed, int64_t size) {
  RuntimeOptions options = options_for({});
  options.kernels.prefer = {"tenon.reference.*"};
  const Session session(graph_of(engine, lines), engine.registries(), options);
  return run(session, inputs_for(session, seed, size));
}

void require_close(const Tensors& got, const Tensors& want) {
  REQUIRE(got.names == want.names);
  REQUIRE(got.dims == want.dims);
  for (size_t i = 0; i < want.values.size(); ++i) {
    float largest = 1;
    for (const float value : want.values[i]) largest = std::max(largest, std::abs(value));
    for (size_t k = 0; k < want.values[i].size(); ++k) {
      INFO("output " << want.names[i] << " element " << k);
      REQUIRE(std::abs(got.values[i][k] - want.values[i][k]) <= 1e-4f * largest);
    }
  }
}

RuntimeOptions options_for(DevicePolicy devices, uint32_t threads, bool guard) {
  RuntimeOptions options;
  options.threads = threads;
  options.devices = std::move(devices);
  options.guard = guard;
  return options;
}

DevicePolicy on_toy(std::map<std::string, std::string> pin) {
  DevicePolicy policy;
  policy.use = {"toy"};
  policy.pin = std::move(pin);
  policy.pin.emplace("*", "toy");
  return policy;
}

}  // namespace tenon::test
