#include "core/runtime/session.hpp"

#include <catch2/catch.hpp>

#include <thread>

#include "core/runtime/lowering.hpp"
#include "core/runtime/test_fakes.hpp"

using namespace tenon;
using namespace tenon::fakes;

namespace {

RuntimeOptions two_threads() {
  RuntimeOptions options;
  options.threads = 2;
  options.guard = true;
  return options;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::vector<float> run_one(const Session& session, Floats x) {
  return floats_of(session.run(std::vector<NamedTensor>{{"x", x.tensor(), nullptr}}).front());
}

}  // namespace

TEST_CASE("a chain runs in place in one buffer and writes its result straight into the output") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  tn_value v = b.node("Add", {x, x});
  for (int i = 0; i < 4; ++i) v = b.node("Neg", {v});
  v = b.node("Twice", {v});
  b.outputs({b.node("Neg", {v})});
  const Session session(b.finish(), *all, two_threads());
  counters().in_place = 0;
  CHECK(run_one(session, {{1, 2, 3}, {3}}) == std::vector<float>{-4, -8, -12});
  CHECK(counters().in_place == 5);
  const RunStats stats = session.stats();
  CHECK(stats.steps == 7);
  CHECK(stats.in_place == 5);
  CHECK(stats.live_bound_bytes == 64 + 64);  // a buffer and its guard words; the last two are the output's
  CHECK(stats.no_reuse_bytes == 6 * 64);
  CHECK(stats.kernels.at("fakes") == 7);
  // Another size is another plan; the first is kept.
  CHECK(run_one(session, {{1, 2, 3, 4, 5}, {5}}).size() == 5);
  CHECK(run_one(session, {{5, 6, 7}, {3}}) == std::vector<float>{-20, -24, -28});
}

TEST_CASE("what is read later is not written over") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"4"});
  const tn_value a = b.node("Add", {x, x});
  const tn_value n = b.node("Neg", {a});
  const tn_value view = b.node("Reshape", {a, b.ints({2, 2})});
  const tn_value m = b.node("Neg", {view});
  b.outputs({b.node("Add", {n, a}), m, x, b.node("Neg", {x})});
  const Session session(b.finish(), *all, two_threads());
  Floats input{{1, 2, 3, 4}, {4}};
  const auto outputs = session.run(std::vector<NamedTensor>{{"x", input.tensor(), nullptr}});
  CHECK(floats_of(outputs[0]) == std::vector<float>{0, 0, 0, 0});
  CHECK(floats_of(outputs[1]) == std::vector<float>{-2, -4, -6, -8});
  CHECK(dims_of(outputs[1]) == std::vector<int64_t>{2, 2});
  CHECK(floats_of(outputs[2]) == input.values);
  CHECK(floats_of(outputs[3]) == std::vector<float>{-1, -2, -3, -4});
  CHECK(input.values == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("views cost no step, also of inputs, outputs and constants") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"4"});
  const tn_value v = b.node("Reshape", {x, b.ints({2, 2})});
  const tn_value a = b.node("Add", {v, v});
  const tn_value w = b.node("Reshape", {a, b.ints({4, 1})});
  const tn_value c = b.node("Reshape", {b.floats({7, 8}, {2}), b.ints({1, 2})});
  b.outputs({a, w, v, c});
  const Session session(b.finish(), *all, two_threads());
  Floats input{{1, 2, 3, 4}, {4}};
  const auto outputs = session.run(std::vector<NamedTensor>{{"x", input.tensor(), nullptr}});
  CHECK(floats_of(outputs[0]) == std::vector<float>{2, 4, 6, 8});
  CHECK(dims_of(outputs[1]) == std::vector<int64_t>{4, 1});
  CHECK(outputs[1].tensor().data == outputs[0].tensor().data);
  CHECK(floats_of(outputs[2]) == input.values);
  CHECK(outputs[2].tensor().data != input.values.data());  // the caller's memory is not handed out again
  CHECK(floats_of(outputs[3]) == std::vector<float>{7, 8});
  CHECK(session.stats().steps == 1);
}

TEST_CASE("shape arithmetic is folded into the plan") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n", "m"});
  const tn_value y = b.input("y", TN_FLOAT32, {"k"});
  b.outputs({b.node("Neg", {b.node("Reshape", {y, b.node("Shape", {x})})})});
  const Session session(b.finish(), *all, two_threads());
  Floats first{{0, 0, 0, 0, 0, 0}, {2, 3}}, second{{1, 2, 3, 4, 5, 6}, {6}};
  const auto outputs =
      session.run(std::vector<NamedTensor>{{"x", first.tensor(), nullptr}, {"y", second.tensor(), nullptr}});
  CHECK(dims_of(outputs[0]) == std::vector<int64_t>{2, 3});
  CHECK(session.stats().steps == 1);
  CHECK(session.stats().folded == 1);
}

TEST_CASE("a run is cut where shapes depend on data") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  const tn_value doubled = b.node("Add", {x, x});
  const tn_value kept = b.node("Positive", {doubled});           // unknown size
  const tn_value ones = b.node("Fill", {b.node("Count", {x})});  // size from a value
  b.outputs({b.node("Add", {b.node("Neg", {kept}), ones}), doubled});
  const Session session(b.finish(), *all, two_threads());
  CHECK(run_one(session, {{1, -1, 3}, {3}}) == std::vector<float>{-1, -5});
  CHECK(session.stats().segments == 2);
  const int plans = counters().plans;
  CHECK(run_one(session, {{5, -1, 6}, {3}}) == std::vector<float>{-9, -11});
  CHECK(counters().plans == plans);  // the same sizes: the segments are kept
  CHECK(run_one(session, {{1, 1, 1}, {3}}) == std::vector<float>{-1, -1, -1});
  CHECK(counters().plans > plans);
  CHECK(run_one(session, {{-1, -1, -1}, {3}}).empty());
}

TEST_CASE("regions run with captures, nested, at the shapes they get") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  const tn_value n = b.input("times", TN_INT64, {});
  const tn_value cond = b.input("cond", TN_BOOL, {});
  const tn_value doubled = b.node("Add", {x, x});
  const tn_value loop = b.node("Loop", {n, x}, "loop");
  const tn_region body = b.region(loop, "body");
  b.input("i", TN_INT64, {}, body);
  const tn_value carried = b.input("carried", TN_FLOAT32, {"n"}, body);
  const tn_value branch = b.node("If", {cond}, "branch", body);
  const tn_region then_region = b.region(branch, "then_branch"),
                  else_region = b.region(branch, "else_branch");
  b.outputs({b.node("Add", {carried, doubled}, "", then_region)}, then_region);
  b.outputs({doubled}, else_region);  // a capture handed out as it is
  b.outputs({branch}, body);
  b.outputs({b.node("Neg", {loop})});
  const Session session(b.finish(), *all, two_threads());
  Floats input{{1, 2}, {2}};
  int64_t times = 3;
  bool yes = true;
  const tn_tensor count{TN_INT64, 0, nullptr, &times, 8};
  const tn_tensor condition{TN_BOOL, 0, nullptr, &yes, 1};
  const auto run = [&] {
    return floats_of(
        session
            .run(std::vector<NamedTensor>{
                {"x", input.tensor(), nullptr}, {"times", count, nullptr}, {"cond", condition, nullptr}})
            .front());
  };
  CHECK(run() == std::vector<float>{-7, -14});
  yes = false;
  CHECK(run() == std::vector<float>{-2, -4});
  times = 0;
  CHECK(run() == std::vector<float>{-1, -2});
}

TEST_CASE("sequences pass between steps") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"2"});
  const tn_value seq = b.node("Seq", {b.node("Add", {x, x}), x});
  b.outputs({b.node("Neg", {b.node("At", {seq, b.scalar(0)})}), b.node("At", {seq, b.scalar(1)}), seq});
  const Session session(b.finish(), *all, two_threads());
  Floats input{{1, 2}, {2}};
  const auto outputs = session.run(std::vector<NamedTensor>{{"x", input.tensor(), nullptr}});
  CHECK(floats_of(outputs[0]) == std::vector<float>{-2, -4});
  CHECK(floats_of(outputs[1]) == std::vector<float>{1, 2});
  REQUIRE(outputs[2].value->kind == TN_KIND_SEQUENCE);
  CHECK(outputs[2].value->items.size() == 2);
}

TEST_CASE("what a sequence or a branch holds is not written over by a later step") {
  const auto all = registries();
  const auto run = [&](bool of_sequence, bool leaves) {
    Builder b(*all);
    const tn_value x = b.input("x", TN_FLOAT32, {"2"});
    const tn_value shared = b.node("Add", {x, x});
    const tn_value seq = of_sequence ? b.node("Seq", {shared, shared}) : b.node("Seq", {x, shared});
    // Neg could take over the bytes of what it reads, which nothing else reads any more.
    const tn_value last = b.node("Neg", {shared});
    const tn_value item = b.node("At", {seq, b.scalar(1)});
    b.outputs({leaves ? last : b.node("Add", {last, last}), item, seq});
    const Session session(b.finish(), *all, two_threads());
    Floats input{{1, 2}, {2}};
    const auto outputs = session.run(std::vector<NamedTensor>{{"x", input.tensor(), nullptr}});
    CHECK(floats_of(outputs[0]) == (leaves ? std::vector<float>{-2, -4} : std::vector<float>{-4, -8}));
    CHECK(floats_of(outputs[1]) == std::vector<float>{2, 4});
    CHECK(static_cast<const float*>(outputs[2].value->items[1]->data)[0] == 2);
  };
  for (const bool of_sequence : {true, false}) {
    for (const bool leaves : {true, false}) run(of_sequence, leaves);
  }
}

TEST_CASE("without a kernel the body runs, else the decomposition, else all that is missing is named") {
  const auto all = registries();
  {
    Builder b(*all);
    const tn_value x = b.input("x", TN_FLOAT32, {"2"});
    const tn_value fused = b.node("Fused", {x});
    const tn_region body = b.region(fused, "body");
    const tn_value inner = b.input("a", TN_FLOAT32, {"2"}, body);
    b.outputs({b.node("Halve", {b.node("Add", {inner, inner}, "", body)}, "", body)}, body);
    b.outputs({fused});
    const Session session(b.finish(), *all, two_threads());
    CHECK(run_one(session, {{1, 2}, {2}}) == std::vector<float>{2, 4});
    CHECK(session.stats().kernels.at("fakes") == 3);
  }
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"2"});
  b.outputs({b.node("Unknown", {b.node("Unknown", {x}, "first")}, "second")});
  auto graph = b.finish();
  const std::string message = error_of([&] { Session session(std::move(graph), *all, two_threads()); });
  CHECK(message.find("t::Unknown") != std::string::npos);
  CHECK(message.find("2 nodes") != std::string::npos);
  CHECK(message.find("first") != std::string::npos);
}

TEST_CASE("the body of an operator that nobody defines is not taken for what it computes") {
  const auto all = registries();
  const auto message_of = [&](const std::string& op) {
    Builder b(*all);
    const tn_value x = b.input("x", TN_FLOAT32, {"2"});
    const tn_value mapped = b.node(op, {x});
    const tn_region body = b.region(mapped, "body");
    b.outputs({b.node("Neg", {b.input("a", TN_FLOAT32, {"2"}, body)}, "", body)}, body);
    b.outputs({mapped});
    auto graph = b.finish();
    return error_of([&] { Session session(std::move(graph), *all, two_threads()); });
  };
  CHECK(message_of("=SequenceMap").find("SequenceMap") != std::string::npos);
  CHECK(message_of("=acme::Group") == "no error");  // a group that a rule made
}

TEST_CASE("a kernel that declines the shapes of a run gives way to the decomposition, for that run") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  b.outputs({b.node("Picky", {x})});
  const Session session(b.finish(), *all, two_threads());
  CHECK(run_one(session, {{1, 2}, {2}}) == std::vector<float>{-1, -2});  // its kernel negates
  CHECK(run_one(session, {{1, 2, 3}, {3}}) == std::vector<float>{1, 2, 3});
  CHECK(run_one(session, {{1, 2}, {2}}) == std::vector<float>{-1, -2});
  CHECK(run_one(session, {{4, 2, 3}, {3}}) == std::vector<float>{4, 2, 3});
}

TEST_CASE("faults of kernels and sizes are errors that name the node") {
  const auto all = registries();
  const auto message_of = [&](const std::string& op) {
    Builder b(*all);
    const tn_value x = b.input("x", TN_FLOAT32, {"3"});
    b.outputs({b.node("Neg", {b.node(op, {b.node("Add", {x, x})}, "culprit")})});
    auto graph = b.finish();
    return error_of([&] {
      const Session session(std::move(graph), *all, two_threads());
      run_one(session, {{1, 2, 3}, {3}});
    });
  };
  CHECK(message_of("Fails").find("culprit") != std::string::npos);
  CHECK(message_of("Fails").find("index 7 is out of range") != std::string::npos);
  CHECK(message_of("Huge").find("too large") != std::string::npos);
  CHECK(message_of("Big").find("too large") != std::string::npos);
  CHECK(message_of("Big").find("culprit") != std::string::npos);
}

// AddressSanitizer ends the process at the kernel's stray write, before the host could look.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("guard words catch a kernel that writes behind its result") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"16"});
  b.outputs({b.node("Neg", {b.node("Overrun", {x}, "culprit")})});
  auto graph = b.finish();
  const Session session(std::move(graph), *all, two_threads());
  const std::string message = error_of([&] { run_one(session, {std::vector<float>(16, 1), {16}}); });
  // The result of Overrun is the output's buffer, taken over by Neg: outside the arena there are no guard
  // words.
  CHECK(message == "no error");
  Builder c(*all);
  const tn_value y = c.input("x", TN_FLOAT32, {"16"});
  c.outputs({c.node("Add", {c.node("Overrun", {y}, "culprit"), y})});
  const Session guarded(c.finish(), *all, two_threads());
  const std::string found = error_of([&] { run_one(guarded, {std::vector<float>(16, 1), {16}}); });
  CHECK(found.find("culprit") != std::string::npos);
  CHECK(found.find("t.overrun/1") != std::string::npos);
}
#endif

TEST_CASE("inputs are checked, all findings at once") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("image", TN_FLOAT32, {"batch", "3"});
  const tn_value y = b.input("mask", TN_FLOAT32, {"batch", "3"});
  const tn_value d = b.input("bias", TN_FLOAT32, {"1", "3"});
  b.output_default(d, b.floats({1, 2, 3}, {1, 3}));
  b.outputs({b.node("Add", {x, y}), b.node("Neg", {d})});
  const Session session(b.finish(), *all, two_threads());
  Floats one{{1, 2, 3}, {1, 3}}, two{{1, 2, 3, 4, 5, 6}, {2, 3}}, bad{{1, 2}, {2}};
  const auto failure = [&](std::vector<NamedTensor> given) { return error_of([&] { session.run(given); }); };
  CHECK(failure({{"imag", one.tensor(), nullptr}}).find("did you mean 'image'") != std::string::npos);
  CHECK(failure({{"image", one.tensor(), nullptr}}).find("mask") != std::string::npos);
  const std::string clash = failure({{"image", one.tensor(), nullptr}, {"mask", two.tensor(), nullptr}});
  CHECK(clash.find("'mask'") != std::string::npos);
  CHECK(clash.find("batch") != std::string::npos);
  CHECK(clash.find("is 2; expected 1") != std::string::npos);
  CHECK(failure({{"image", bad.tensor(), nullptr}, {"mask", one.tensor(), nullptr}}).find("rank 1") !=
        std::string::npos);
  tn_tensor typed = one.tensor();
  typed.dtype = TN_INT32;
  CHECK(failure({{"image", typed, nullptr}, {"mask", one.tensor(), nullptr}}).find("int32") !=
        std::string::npos);
  const auto defaults = session.run(
      std::vector<NamedTensor>{{"image", one.tensor(), nullptr}, {"mask", one.tensor(), nullptr}});
  CHECK(floats_of(defaults[1]) == std::vector<float>{-1, -2, -3});
  Floats other{{4, 5, 6}, {1, 3}};
  const auto overridden = session.run(std::vector<NamedTensor>{
      {"image", one.tensor(), nullptr}, {"mask", one.tensor(), nullptr}, {"bias", other.tensor(), nullptr}});
  CHECK(floats_of(overridden[1]) == std::vector<float>{-4, -5, -6});
}

TEST_CASE("results go into the caller's memory") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  const tn_value doubled = b.node("Add", {x, x}, "out");
  b.outputs({doubled, x, b.node("Positive", {x})});
  const Session session(b.finish(), *all, two_threads());
  Floats input{{1, 2, 3}, {3}};
  std::vector<float> first(3), second(3), third(3);
  const std::string names[] = {session.outputs()[0].name, session.outputs()[1].name,
                               session.outputs()[2].name};
  const std::vector<OutputBuffer> memory = {
      {names[0], first.data(), 12}, {names[1], second.data(), 12}, {names[2], third.data(), 12}};
  session.run(std::vector<NamedTensor>{{"x", input.tensor(), nullptr}}, memory);
  CHECK(first == std::vector<float>{2, 4, 6});
  CHECK(second == input.values);
  CHECK(third == input.values);
  const std::vector<OutputBuffer> small = {{names[0], first.data(), 8}};
  CHECK(error_of([&] {
          session.run(std::vector<NamedTensor>{{"x", input.tensor(), nullptr}}, small);
        }).find("8 bytes") != std::string::npos);
}

TEST_CASE("packed constants are made once for equal contents") {
  const auto all = registries();
  counters().packs = 0;
  const auto session_of = [&](float factor) {
    Builder b(*all);
    const tn_value x = b.input("x", TN_FLOAT32, {"n"});
    b.outputs({b.node("Scale", {b.node("Scale", {x, b.floats({factor}, {1})}), b.floats({factor}, {1})})});
    return std::make_unique<Session>(b.finish(), *all, two_threads());
  };
  const auto one = session_of(3), same = session_of(3), other = session_of(5);
  CHECK(run_one(*one, {{1, 2}, {2}}) == std::vector<float>{9, 18});
  CHECK(run_one(*one, {{1}, {1}}) == std::vector<float>{9});
  CHECK(run_one(*same, {{2}, {1}}) == std::vector<float>{18});
  CHECK(counters().packs == 1);
  CHECK(run_one(*other, {{1}, {1}}) == std::vector<float>{25});
  CHECK(counters().packs == 2);
}

TEST_CASE("many threads run one session, at the same and at different shapes") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  tn_value v = b.node("Add", {x, x});
  for (int i = 0; i < 10; ++i) v = b.node(i % 2 == 0 ? "Twice" : "Neg", {v});
  b.outputs({v, b.node("Positive", {v})});
  const Session session(b.finish(), *all, two_threads());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 40; ++i) {
        const size_t n = static_cast<size_t>(3 + (i + t) % 3);
        Floats input{std::vector<float>(n, static_cast<float>(t + 1)), {static_cast<int64_t>(n)}};
        const std::vector<float> out = run_one(session, input);
        if (out != std::vector<float>(n, -64.0f * static_cast<float>(t + 1))) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("the plan cache is bounded") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  b.outputs({b.node("Neg", {x})});
  RuntimeOptions options = two_threads();
  options.plan_cache_size = 2;
  const Session session(b.finish(), *all, options);
  const auto run_size = [&](int64_t n) {
    run_one(session, {std::vector<float>(static_cast<size_t>(n), 1), {n}});
  };
  run_size(1);
  run_size(2);
  run_size(1);
  run_size(3);  // 2 goes
  const int plans = counters().plans;
  run_size(1);
  run_size(3);
  CHECK(counters().plans == plans);
  run_size(2);
  CHECK(counters().plans == plans + 1);
}

TEST_CASE("steps can be watched") {
  const auto all = registries();
  Builder b(*all);
  const tn_value x = b.input("x", TN_FLOAT32, {"n"});
  b.outputs({b.node("Neg", {b.node("Add", {x, x}, "sum")}, "minus")});
  const Session session(b.finish(), *all, two_threads());
  Floats input{{1}, {1}};
  std::vector<std::string> seen;
  session.run_observed(std::vector<NamedTensor>{{"x", input.tensor(), nullptr}},
                       [&](const StepTiming& timing) {
                         seen.push_back(std::string(timing.name) + " " + std::string(timing.kernel));
                         CHECK(timing.end_ns >= timing.begin_ns);
                       });
  CHECK(seen == std::vector<std::string>{"sum t.add/1", "minus t.neg/1"});
  CHECK(session.planned_nodes().size() == 2);
}
