// A device that fails: the run says so, and the next one works.
#include <catch2/catch.hpp>

#include "toys.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

const char* const chain =
    "  input %x: float32[N,32]\n  %a = Relu(%x) name \"a\"\n  %b = Neg(%a) name \"b\"\n"
    "  %c = Add(%b, %x) name \"c\"\n  output %c as \"c\"\n";

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.exit_code == exit_job_failed);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("memory that the device does not give: how much, why and what to do; smaller shapes still run") {
  Engine& engine = engine_with(Toy::small);
  const Session session(graph_of(engine, chain), engine.registries(), options_for(on_toy()));
  require_close(run(session, inputs_for(session, 1, 4)), reference(engine, chain, 1, 4));
  for (int turn = 0; turn < 2; ++turn) {
    const std::string text = error_of([&] { run(session, inputs_for(session, 1, 64)); });
    CHECK(text.find("device toy: the arena of this run needs ") != std::string::npos);
    CHECK(text.find("not enough memory: ") != std::string::npos);
    CHECK(text.find("bytes are more than its 4096") != std::string::npos);
    CHECK(text.find("--device cpu") != std::string::npos);
    require_close(run(session, inputs_for(session, 2, 4)), reference(engine, chain, 2, 4));
  }
}

TEST_CASE("a constant that does not fit the device is named") {
  std::string zeros = "0";
  for (int i = 1; i < 64 * 32; ++i) zeros += ",0";
  const std::string lines = "  input %x: float32[64,32]\n  const %w: float32[64,32] = [" + zeros +
                            "]\n  %a = Add(%x, %w)\n  output %a as \"a\"\n";
  Engine& engine = engine_with(Toy::small);
  const Session session(graph_of(engine, lines), engine.registries(), options_for(on_toy()));
  CHECK(error_of([&] {
          run(session, inputs_for(session, 1));
        }).find("constant 'w' needs 8.2 kB of its memory") != std::string::npos);
}

TEST_CASE("a device that is lost fails the run, wherever it is lost, and the next run opens it anew") {
  Engine& engine = engine_with(Toy::fragile);
  const Tensors want = reference(engine, chain, 3);
  for (const bool guard : {false, true}) {
    const Session session(graph_of(engine, chain), engine.registries(), options_for(on_toy(), 1, guard));
    for (int at = 1; at <= 4; ++at) {  // x there, a back, b there, c back
      require_close(run(session, inputs_for(session, 3)), want);
      const int before = times_opened();
      lose_at_copy(at);
      const std::string text = error_of([&] { run(session, inputs_for(session, 3)); });
      lose_at_copy(0);
      INFO("copy " << at << ": " << text);
      CHECK(text.find("device toy: the device is lost: the cable was pulled") != std::string::npos);
      if (guard) CHECK(text.find("copy of value '") != std::string::npos);
      require_close(run(session, inputs_for(session, 3)), want);
      CHECK(times_opened() == before + 1);
      CHECK(session.stats().copies == 4);
    }
  }
}
