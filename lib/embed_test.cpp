// libtenon as a program sees it: through its shared library and its C++ header alone.
#include <catch2/catch.hpp>
#include <tenon/tenon.hpp>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "test_paths.hpp"

namespace fs = std::filesystem;
using Catch::Matchers::Contains;

namespace {

const std::vector<std::int64_t> picture = {1, 1, 8, 8};

std::string digits() { return tenon::test::source_dir() + "/models/digits/digits.onnx"; }

tenon::HostOptions options(std::uint32_t flags = 0) {
  setenv("TENON_CACHE_DIR", (tenon::test::scratch_dir() + "/cache").c_str(), 1);
  unsetenv("TENON_PLUGIN_PATH");
  tenon::HostOptions made;
  made.flags = flags;
  made.set = {"runtime.threads=2"};
  return made;
}

std::vector<float> image(int seed) {
  std::vector<float> values(8 * 8);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = 0.5f + 0.5f * std::sin(static_cast<float>(i + 1) * 0.01f * static_cast<float>(seed + 1));
  return values;
}

std::vector<float> floats(const tenon::Tensor& tensor) {
  return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.size());
}

// What the call throws.
template <class Call>
tenon::Error error_of(Call&& call) {
  try {
    call();
  } catch (const tenon::Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return tenon::Error(TENON_OK, "");
}

// --- a model written by hand: protobuf's wire format of ONNX
std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text += static_cast<char>(value | 0x80);
  return text + static_cast<char>(value);
}
std::string number(int field, std::uint64_t value) {
  return varint(static_cast<std::uint64_t>(field) << 3) + varint(value);
}
std::string bytes(int field, const std::string& value) {
  return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(value.size()) + value;
}
std::string tensor_type(int element) { return bytes(1, number(1, static_cast<std::uint64_t>(element))); }
std::string port(const std::string& name, const std::string& type) { return bytes(1, name) + bytes(2, type); }

// seq: sequence of float32, position: int64 -> item: float32, longer: the sequence with its item again at the
// end.
std::string sequence_model() {
  const std::string sequence = bytes(4, bytes(1, tensor_type(1)));
  const std::string at =
      bytes(1, "seq") + bytes(1, "position") + bytes(2, "item") + bytes(3, "at") + bytes(4, "SequenceAt");
  const std::string insert = bytes(1, "seq") + bytes(1, "item") + bytes(2, "longer") + bytes(3, "insert") +
                             bytes(4, "SequenceInsert");
  const std::string graph = bytes(1, at) + bytes(1, insert) + bytes(2, "sequences") +
                            bytes(11, port("seq", sequence)) + bytes(11, port("position", tensor_type(7))) +
                            bytes(12, port("item", tensor_type(1))) + bytes(12, port("longer", sequence));
  const std::string path = tenon::test::scratch_dir() + "/sequence.onnx";
  std::ofstream(path, std::ios::binary)
      << number(1, 9) + bytes(7, graph) + bytes(8, bytes(1, "") + number(2, 17));
  return path;
}

}  // namespace

TEST_CASE("the library tells its version") {
  CHECK(tenon::version() == std::string(TENON_PROJECT_VERSION));
  CHECK(tenon_api_version() == (TENON_API_MAJOR << 16 | TENON_API_MINOR));
  CHECK(tenon::dtype_name(TN_BFLOAT16) == "bfloat16");
  CHECK(tenon_dtype_from_name("int64") == TN_INT64);
  CHECK(tenon_dtype_from_name("int65") == TN_DTYPE_NONE);
}

TEST_CASE("a model is loaded, optimised, described and run, and gives what it gave before it was optimised") {
  const tenon::Host host(options());
  CHECK_THAT(host.plugins(), Contains("onnx") && Contains("tenon.ops"));
  tenon::Model model = host.load(digits());
  const tenon::Session plain = model.session();
  model.optimize();
  const tenon::Session session = model.session();
  CHECK_THAT(model.summary(), Contains("canonicalize") && Contains("applied"));
  CHECK_THAT(model.summary(TENON_JSON), Contains("\"nodes_after\""));

  const std::vector<tenon::Port> inputs = session.inputs();
  REQUIRE(inputs.size() == 1);
  CHECK(inputs[0].name == "image");
  CHECK(inputs[0].kind == TN_KIND_TENSOR);
  CHECK(inputs[0].dtype == TN_FLOAT32);
  REQUIRE(inputs[0].dims.size() == 4);
  CHECK(inputs[0].dims[0] == -1);
  CHECK(inputs[0].dim_names[0] != "?");
  CHECK(inputs[0].dims[3] == 8);
  CHECK(inputs[0].dim_names[3] == "8");
  CHECK_FALSE(inputs[0].optional);
  REQUIRE(session.outputs().size() == 1);

  for (int seed = 0; seed < 3; ++seed) {
    const std::vector<float> values = image(seed);
    const tenon::Result before = plain.run({{"image", tenon::tensor(values, picture)}});
    const tenon::Result after = session.run({{"image", tenon::tensor(values, picture)}});
    REQUIRE(after.size() == 1);
    CHECK(after.name(0) == session.outputs()[0].name);
    const tenon::Tensor logits = after[0].tensor();
    CHECK(logits.dims() == std::vector<std::int64_t>{1, 10});
    const std::vector<float> expected = floats(before[0].tensor()), found = floats(logits);
    for (std::size_t i = 0; i < 10; ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-4).margin(1e-5));
  }
  CHECK_THAT(session.summary(), Contains("kernels") && Contains("arena") && Contains("2 threads"));
  CHECK_THAT(session.summary(TENON_JSON), Contains("\"arena_bytes\""));
}

TEST_CASE("results go into the caller's memory, and nowhere else") {
  const tenon::Session session = tenon::Host(options()).load(digits()).optimize().session();
  const std::vector<float> values = image(5);
  const tenon::Result own = session.run({{"image", tenon::tensor(values, picture)}});
  std::vector<float> memory(10, -1.0f);
  const tenon::Result placed =
      session.run({{"image", tenon::tensor(values, picture)}}, {tenon::output(own.name(0), memory)});
  CHECK(placed[0].kind() == TN_KIND_NONE);
  CHECK(memory == floats(own[0].tensor()));

  std::vector<float> small(9);
  const tenon::Error wrong = error_of([&] {
    session.run({{"image", tenon::tensor(values, picture)}}, {tenon::output(own.name(0), small)});
  });
  CHECK_THAT(wrong.what(), Contains("its buffer has 36 bytes, the result") && Contains("40"));
  const tenon::Error unknown = error_of([&] {
    session.run({{"image", tenon::tensor(values, picture)}}, {tenon::output("nothing", memory)});
  });
  CHECK(unknown.status() == TENON_BAD_INPUT);
  CHECK_THAT(unknown.what(), Contains("the model has no such output"));
}

TEST_CASE("many threads run one session at once, each with its own inputs and results") {
  const tenon::Session session = tenon::Host(options()).load(digits()).optimize().session();
  std::vector<std::vector<float>> expected;
  for (int seed = 0; seed < 8; ++seed) {
    const std::vector<float> values = image(seed);
    expected.push_back(floats(session.run({{"image", tenon::tensor(values, picture)}})[0].tensor()));
  }
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float> memory(10);
      for (int i = 0; i < 24; ++i) {
        const int seed = (i + t) % 8;
        const std::vector<float> values = image(seed);
        // Every other run into memory of this thread's.
        if (i % 2 == 0)
          memory = floats(session.run({{"image", tenon::tensor(values, picture)}})[0].tensor());
        else
          session.run({{"image", tenon::tensor(values, picture)}},
                      {tenon::output(session.outputs()[0].name, memory)});
        if (memory != expected[static_cast<std::size_t>(seed)]) ++wrong[static_cast<std::size_t>(t)];
        if (i == 12) (void)session.summary();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("handles may be closed in any order") {
  auto host = std::make_unique<tenon::Host>(options());
  auto model = std::make_unique<tenon::Model>(host->load(digits()));
  host.reset();
  model->optimize();
  auto session = std::make_unique<tenon::Session>(model->session());
  model.reset();
  const std::vector<float> values = image(1);
  const tenon::Result result = session->run({{"image", tenon::tensor(values, picture)}});
  const std::vector<float> before = floats(result[0].tensor());
  session.reset();
  CHECK(floats(result[0].tensor()) == before);
}

TEST_CASE("what is wrong comes as an exception with every finding") {
  SECTION("in a manifest") {
    tenon::HostOptions made = options();
    made.manifest_text = "{\"schema\": \"tenon.pipeline/1\",\n \"levle\": 3,\n \"level\": 9}";
    const tenon::Error error = error_of([&] { tenon::Host{made}; });
    CHECK(error.status() == TENON_BAD_INPUT);
    REQUIRE(error.findings().size() == 2);
    CHECK(error.findings()[0].code == "M203");
    CHECK_THAT(error.findings()[0].where, Contains("manifest:2:2"));
    CHECK_THAT(error.what(), Contains("levle") && Contains("manifest:3:"));
  }
  SECTION("a plugin that is not there") {
    tenon::HostOptions made = options();
    made.plugins = {"no_such_plugin"};
    CHECK_THAT(error_of([&] { tenon::Host{made}; }).what(),
               Contains("no plugin 'no_such_plugin' is installed in") && Contains("lib/tenon/plugins"));
  }
  SECTION("a folder of plugins that is relative") {
    tenon::HostOptions made = options();
    made.plugin_folders = {"plugins"};
    CHECK_THAT(error_of([&] { tenon::Host{made}; }).what(), Contains("is relative; give an absolute path"));
  }
  SECTION("a model that is not there") {
    const tenon::Host host(options());
    const tenon::Error error = error_of([&] { host.load("/no/such/model.onnx"); });
    CHECK(error.status() == TENON_BAD_INPUT);
    CHECK_THAT(error.what(), Contains("/no/such/model.onnx"));
    CHECK_THAT(error_of([&] { host.load(); }).what(), Contains("no model: name its file"));
  }
  SECTION("inputs that do not fit, all of them at once") {
    const tenon::Session session = tenon::Host(options()).load(digits()).session();
    const std::vector<double> values(3);
    const tenon::Error error = error_of([&] {
      session.run({{"imgae", tenon::tensor(values, {3})}, {"image", tenon::tensor(values, {3})}});
    });
    CHECK(error.status() == TENON_BAD_INPUT);
    CHECK_THAT(error.what(), Contains("imgae") && Contains("float64") && Contains("float32"));
    CHECK_THAT(error_of([&] { session.run({}); }).what(), Contains("image"));
  }
  SECTION("explanations that were not recorded") {
    const tenon::Model model = tenon::Host(options()).load(digits());
    const tenon::Error error = error_of([&] { model.explain(); });
    CHECK(error.status() == TENON_BAD_CALL);
    CHECK_THAT(error.what(), Contains("TENON_KEEP_EXPLANATIONS"));
  }
}

TEST_CASE("calls that are wrong in themselves are told, not crashed on") {
  tenon_error* error = nullptr;
  tenon_host* host = nullptr;
  CHECK(tenon_host_open(nullptr, nullptr, &error) == TENON_BAD_CALL);
  CHECK_THAT(tenon_error_message(error), Contains("host is NULL"));
  tenon_error_free(error);
  tenon_host_options made{};
  CHECK(tenon_host_open(&made, &host, &error) == TENON_BAD_CALL);
  CHECK_THAT(tenon_error_message(error), Contains("tenon_host_options.size is 0; set it to sizeof"));
  tenon_error_free(error);
  made.size = sizeof made;
  made.flags = 1u << 30;
  CHECK(tenon_host_open(&made, &host, nullptr) == TENON_BAD_CALL);

  // A caller that is newer: what he sets and this library does not know must not be ignored.
  struct Newer {
    tenon_host_options known;
    std::uint64_t later;
  } newer{};
  newer.known.size = sizeof newer;
  newer.later = 1;
  CHECK(tenon_host_open(&newer.known, &host, &error) == TENON_BAD_CALL);
  CHECK_THAT(tenon_error_message(error), Contains("has fields of a newer libtenon than this one"));
  tenon_error_free(error);
  newer.later = 0;
  CHECK(tenon_host_open(&newer.known, &host, &error) == TENON_OK);
  CHECK(error == nullptr);
  tenon_host_close(host);

  // A caller that is older: nothing is written behind what he has.
  const tenon::Session session = tenon::Host(options()).load(digits()).session();
  unsigned char room[sizeof(tenon_port)];
  std::memset(room, 0xAB, sizeof room);
  const std::uint32_t old_size = offsetof(tenon_port, rank);
  std::memcpy(room, &old_size, sizeof old_size);
  REQUIRE(tenon_session_input(session.c(), 0, reinterpret_cast<tenon_port*>(room)) == TENON_OK);
  for (std::size_t i = old_size; i < sizeof room; ++i) CHECK(room[i] == 0xAB);
  CHECK(std::memcmp(room, &old_size, sizeof old_size) == 0);
  tenon_port port{};
  port.size = sizeof port;
  CHECK(tenon_session_input(session.c(), 7, &port) == TENON_BAD_CALL);

  tenon_input input{sizeof(tenon_input), 0, "image", {TN_FLOAT32, 4, nullptr, nullptr, 0}, nullptr};
  tenon_result* result = nullptr;
  CHECK(tenon_session_run(session.c(), &input, 1, nullptr, 0, &result, &error) == TENON_BAD_CALL);
  CHECK_THAT(tenon_error_message(error), Contains("input 'image' has rank 4 and its dims are NULL"));
  tenon_error_free(error);
  CHECK(tenon_session_run(session.c(), &input, 1, nullptr, 0, nullptr, nullptr) == TENON_BAD_CALL);
  float memory[10];
  const tenon_output twice[2] = {{sizeof(tenon_output), 0, "logits", memory, sizeof memory},
                                 {sizeof(tenon_output), 0, "logits", memory, sizeof memory}};
  CHECK(tenon_session_run(session.c(), nullptr, 0, twice, 2, &result, &error) == TENON_BAD_CALL);
  CHECK_THAT(tenon_error_message(error), Contains("output 'logits' is given twice"));
  tenon_error_free(error);

  tenon_host_close(nullptr);
  tenon_model_close(nullptr);
  tenon_session_close(nullptr);
  tenon_result_free(nullptr);
  tenon_value_free(nullptr);
  tenon_error_free(nullptr);
  tenon_text_free(nullptr);
  CHECK(tenon_result_count(nullptr) == 0);
  CHECK(tenon_result_name(nullptr, 0) == nullptr);
}

TEST_CASE("sequences and optionals go in and come out") {
  const tenon::Session session = tenon::Host(options()).load(sequence_model()).optimize().session();
  CHECK(session.inputs()[0].kind == TN_KIND_SEQUENCE);
  const std::vector<float> a = {1, 2, 3}, b = {4, 5};
  const tenon::Value sequence = tenon::Value::sequence(
      {tenon::Value::tensor(tenon::tensor(a, {3})), tenon::Value::tensor(tenon::tensor(b, {1, 2}), true)});
  const std::int64_t position = 1;
  const tenon::Result result = session.run({{"seq", sequence}, {"position", tenon::tensor(&position, {})}});
  CHECK(floats(result["item"].tensor()) == b);
  CHECK(result["item"].tensor().dims() == std::vector<std::int64_t>{1, 2});
  REQUIRE(result["longer"].kind() == TN_KIND_SEQUENCE);
  REQUIRE(result["longer"].size() == 3);
  CHECK(floats(result["longer"][0].tensor()) == a);
  CHECK(floats(result["longer"][2].tensor()) == b);
  CHECK_THROWS_AS(result["longer"].tensor(), tenon::Error);
  CHECK_THROWS_AS(result["nothing"], tenon::Error);

  const tenon::Value none = tenon::Value::optional();
  CHECK(tenon_value_kind(none.c()) == TN_KIND_OPTIONAL);
  CHECK(tenon_value_count(none.c()) == 0);
  const tenon::Value some = tenon::Value::optional(tenon::Value::tensor(tenon::tensor(a, {3})));
  CHECK(tenon_value_count(some.c()) == 1);
  const std::vector<double> doubles = {1};
  CHECK_THAT(error_of([&] {
               tenon::Value::sequence({tenon::Value::tensor(tenon::tensor(a, {3})),
                                       tenon::Value::tensor(tenon::tensor(doubles, {1}))});
             }).what(),
             Contains("item 1: is of float64; this sequence is of float32"));
  CHECK_THAT(error_of([&] { tenon::Value::sequence({}); }).what(),
             Contains("neither items nor an element type"));
  CHECK_THAT(error_of([&] { tenon::Value::tensor(tenon::Tensor(TN_FLOAT32, {3}, nullptr, 12)); }).what(),
             Contains("has 0 bytes of data for float32[3]; expected 12"));
}

TEST_CASE("warnings go to the program's log") {
  std::mutex mutex;
  std::vector<std::string> lines;
  tenon::set_log([&](tn_severity severity, const std::string& text) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (severity == TN_SEVERITY_WARNING) lines.push_back(text);
    throw 1;  // is dropped
  });
  tenon::HostOptions made = options();
  made.manifest_text = R"({"schema": "tenon.pipeline/1", "profiling": {}})";
  tenon::Host{made};
  tenon::set_log({});
  tenon::Host{options()};
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Contains("M207") && Contains("'profiling' is not supported yet"));
}

TEST_CASE("what was done and not done is explained, by rule and by node") {
  tenon::Model model = tenon::Host(options(TENON_KEEP_EXPLANATIONS)).load(digits());
  model.optimize();
  const std::string all = model.explain();
  CHECK_THAT(all, Contains("rule "));
  const std::size_t begin = all.find("rule ") + 5;
  const std::string rule = all.substr(begin, all.find(' ', begin) - begin);
  CHECK_THAT(model.explain(rule), Contains(rule));
  CHECK_THAT(model.explain("", "", TENON_JSON), Contains("{\""));
  CHECK_THAT(error_of([&] { model.explain("NoSuchRule"); }).what(), Contains("no rule or pass of this name"));
}

TEST_CASE("an optimised model is written and read again") {
  const std::string path = tenon::test::scratch_dir() + "/optimised.onnx";
  const tenon::Host host(options());
  tenon::Model model = host.load(digits());
  model.optimize().save(path);
  const std::vector<float> values = image(2);
  const auto run = [&](const tenon::Session& session) {
    return floats(session.run({{"image", tenon::tensor(values, picture)}})[0].tensor());
  };
  const std::vector<float> written = run(host.load(path).session());
  const std::vector<float> kept = run(model.session());
  for (std::size_t i = 0; i < 10; ++i) CHECK(written[i] == Approx(kept[i]).epsilon(1e-4).margin(1e-5));
  CHECK_THAT(error_of([&] { model.save(tenon::test::scratch_dir() + "/x.unknown"); }).what(),
             Contains("no plugin writes files with this ending"));
}

TEST_CASE("without child processes plugins are opened directly; with them the helper is needed") {
  tenon::HostOptions made = options(TENON_NO_SCAN_CACHE);
  made.scan_helper = "/no/such/helper";
  CHECK_THAT(error_of([&] { tenon::Host{made}; }).what(),
             Contains("/no/such/helper cannot be started") && Contains("reinstall tenon"));
  made.flags |= TENON_NO_CHILD_PROCESS;
  const tenon::Session session = tenon::Host(made).load(digits()).session();
  const std::vector<float> values = image(0);
  CHECK(session.run({{"image", tenon::tensor(values, picture)}}).size() == 1);
}
