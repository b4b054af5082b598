#include <tenon/abi/decompose.h>
#include <tenon/abi/options.h>
#include <catch2/catch.hpp>

#include <fstream>

#include "core/base/text.hpp"
#include "core/graph/interner.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_set.hpp"
#include "core/plugin/sha256.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

tn_op_def make_op(const char* domain, const char* name, const tn_str* aliases = nullptr,
                  uint32_t alias_count = 0) {
  tn_op_def def{};
  def.size = sizeof def;
  def.since_version = 3;
  def.first_version = 1;
  def.domain = to_abi(domain);
  def.name = to_abi(name);
  def.aliases = aliases;
  def.alias_count = alias_count;
  return def;
}

const tn_op_list* listed_ops = nullptr;
const tn_kernel_list* listed_kernels = nullptr;

const void* interface_of(const char* id) {
  if (std::string_view(id) == TN_OPS_ID) return listed_ops;
  if (std::string_view(id) == TN_KERNELS_ID) return listed_kernels;
  return nullptr;
}

tn_plugin make_plugin(const char* name) {
  tn_plugin plugin{};
  plugin.size = sizeof plugin;
  plugin.name = to_abi(name);
  plugin.get_interface = &interface_of;
  return plugin;
}

}  // namespace

TEST_CASE("SHA-256 of FIPS 180-4's examples and of a long text") {
  const auto sum = [](std::string_view text) {
    Sha256 sha;
    sha.update(text.data(), text.size());
    return sha.hex();
  };
  CHECK(sum("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sum("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  Sha256 pieces;
  const std::string piece(1000, 'a');
  for (int i = 0; i < 1000; ++i) pieces.update(piece.data(), piece.size());
  CHECK(pieces.hex() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("versions compare by number, part by part") {
  const std::tuple<const char*, const char*, int> rows[] = {
      {"1.0", "1.0.0", 0},    {"1.9", "1.10", -1},
      {"2", "1.99.99", 1},    {"1.0-rc1", "1.0.1", -1},
      {"1.0", "1.0-rc1", 1},  {"", "0", 0},
      {"1.0.a", "1.0.b", -1}, {"99999999999999999999999", "1", -1}};
  for (const auto& [a, b, expected] : rows) {
    INFO(a << " and " << b);
    CHECK((compare_versions(a, b) > 0) - (compare_versions(a, b) < 0) == expected);
    CHECK((compare_versions(b, a) > 0) - (compare_versions(b, a) < 0) == -expected);
  }
}

TEST_CASE("a service is found by its id, and a plugin's options by its own host") {
  Host host;
  const int table = 0;
  int context = 0;
  host.provide("test.service/1", &table, &context);
  const tn_host* plain = host.abi();
  CHECK(plain->get_interface(plain, "test.service/1") == &table);
  CHECK(plain->get_interface(plain, "test.service/2") == nullptr);
  CHECK(host.context("test.service/1") == &context);
  CHECK(&Host::from(plain) == &host);
  const tn_host* own = host.make_plugin_host("acme", R"({"tile": 64})");
  CHECK_FALSE(host.options_were_read(own));
  const auto* options =
      static_cast<const tn_plugin_options_api*>(own->get_interface(own, TN_PLUGIN_OPTIONS_ID));
  REQUIRE(options != nullptr);
  CHECK(view(options->json(own)) == R"({"tile": 64})");
  CHECK(host.options_were_read(own));
  CHECK(view(options->json(plain)) == "{}");
}

TEST_CASE("operators: qualified names, aliases, and what two plugins both define") {
  const tn_str alias = to_abi("conv2d");
  const tn_op_def conv = make_op("", "Conv", &alias, 1);
  const tn_str shared = to_abi("attend");
  const tn_op_def sdpa = make_op("tenon", "SDPA", &shared, 1);
  const tn_op_def other_conv = make_op("acme", "Conv", &shared, 1);
  const tn_op_def conv_again = make_op("ai.onnx", "Conv");
  const tn_op_def nameless = make_op("acme", "");
  const tn_op_def* const first[] = {&conv, &sdpa, nullptr, &nameless};
  const tn_op_def* const second[] = {&other_conv, &conv_again};
  const tn_op_list first_list = {sizeof(tn_op_list), 4, first};
  const tn_op_list second_list = {sizeof(tn_op_list), 2, second};
  tn_kernel_record kernel{};
  kernel.size = sizeof kernel;
  kernel.id = to_abi("acme.conv/1");
  kernel.op = to_abi("ai.onnx::Conv");
  kernel.plan = [](void*, const tn_plan_view*, tn_planned*, const tn_diag*) -> tn_status { return TN_OK; };
  const tn_kernel_record* const kernel_array[] = {&kernel};
  const tn_kernel_list kernel_list = {sizeof(tn_kernel_list), 1, kernel_array};

  Registries registries;
  Diagnostics diagnostics;
  const tn_plugin ops = make_plugin("ops");
  const tn_plugin acme = make_plugin("acme");
  listed_ops = &first_list;
  listed_kernels = nullptr;
  registries.add_plugin(ops, nullptr, diagnostics);
  CHECK(diagnostics.all().size() == 2);  // the NULL record and the nameless one
  diagnostics.clear();
  CHECK(registries.resolve("Conv").size() == 1);
  listed_ops = &second_list;
  listed_kernels = &kernel_list;
  registries.add_plugin(acme, nullptr, diagnostics);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all().front().text.find("defines operator Conv, which plugin ops has defined already") !=
        std::string::npos);

  REQUIRE(registries.find(intern("Conv")) != nullptr);
  CHECK(registries.find(intern("Conv"))->def == &conv);
  CHECK(registries.find(intern("acme::Conv"))->def == &other_conv);
  CHECK(registries.find(intern("Relu")) == nullptr);
  CHECK(registries.resolve("tenon::SDPA") == registries.resolve("tenon.SDPA"));
  CHECK(registries.resolve("SDPA").size() == 1);
  CHECK(registries.resolve("conv2d") == std::vector<tn_sym>{intern("Conv")});
  CHECK(registries.resolve("ai.onnx.Conv") == std::vector<tn_sym>{intern("Conv")});
  CHECK(registries.resolve("Conv") == std::vector<tn_sym>{intern("Conv")});  // ai.onnx comes first
  CHECK(registries.resolve("attend").size() == 2);  // other unqualified names search all domains
  CHECK(registries.resolve("Convolve").empty());
  CHECK(registries.domain_version("") == 28);
  CHECK(registries.domain_version("ai.onnx") == 28);
  CHECK(registries.domain_version("acme") == 3);
  CHECK(registries.domain_version("nobody") == 0);
  CHECK(registries.kernels(intern("Conv")).size() == 1);
  CHECK(registries.kernels(intern("acme::Conv")).empty());

  Host host;
  registries.provide(host);
  const auto* api =
      static_cast<const tn_registry_api*>(host.abi()->get_interface(host.abi(), TN_REGISTRY_ID));
  REQUIRE(api != nullptr);
  tn_sym op = 0;
  CHECK(api->resolve(host.abi(), to_abi("conv2d"), &op) == TN_OK);
  CHECK(op == intern("Conv"));
  CHECK(api->resolve(host.abi(), to_abi("attend"), &op) == TN_ERR_INVALID);
  CHECK(api->resolve(host.abi(), to_abi("nothing"), &op) == TN_ERR_NOT_FOUND);
  CHECK(api->count(host.abi()) == 3);
  CHECK(api->at(host.abi(), 0) == &conv);
  CHECK(api->at(host.abi(), 3) == nullptr);
  CHECK(api->has_kernel(host.abi(), intern("Conv")) == 1);
  CHECK(api->has_kernel(host.abi(), intern("tenon::SDPA")) == 0);
  CHECK(api->domain_version(host.abi(), to_abi("")) == 28);
  const auto* decomposing =
      static_cast<const tn_decompose_api*>(host.abi()->get_interface(host.abi(), TN_DECOMPOSE_ID));
  CHECK(TN_HAS(decomposing, decompose));
}

TEST_CASE("a sidecar is read, and one that is none says why") {
  const std::filesystem::path sidecar = std::filesystem::path(test::scratch_dir()) / "libx.plugin.json";
  PluginFacts facts;
  CHECK(read_sidecar(sidecar, facts)->reason.find("cannot be read") != std::string::npos);
  std::ofstream(sidecar)
      << R"({"schema": "tenon.plugin/1", "id": "com.x", "name": "x", "version": "2.0", "operators": ["com.x::Op"],
    "abi": {"major": 1, "min_host_minor": 0, "built_host_minor": 0}, "interfaces": []})";
  CHECK_FALSE(read_sidecar(sidecar, facts));
  CHECK(facts.id == "com.x");
  CHECK(facts.operators == std::vector<std::string>{"com.x::Op"});
  for (const char* bad : {"", "[]", "{}", R"({"schema": "tenon.plugin/1"})",
                          R"({"schema": "tenon.plugin/1", "id": 3})", "\xff"}) {
    std::ofstream(sidecar, std::ios::trunc) << bad;
    INFO(bad);
    CHECK(read_sidecar(sidecar, facts));
  }
}
