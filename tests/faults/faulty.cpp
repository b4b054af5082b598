// Operators of one float32 operand whose kernels fail in one way each. As their meaning: Identity.
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tenon/sdk/plugin.hpp"

namespace {

using namespace tenon::sdk;

void infer(Infer& node) { node.set(0, node.type(0)); }

struct State {
  int64_t count;
};

void copy(const tn_kernel_args* args) {
  std::memcpy(out<float>(args), in<float>(args, 0),
              static_cast<size_t>(state<State>(args).count) * sizeof(float));
}
int good(const tn_kernel_args* args, uint32_t, uint32_t) {
  copy(args);
  return 0;
}
int fails(const tn_kernel_args*, uint32_t, uint32_t) { return TN_ERR_INTERNAL; }
int crashes(const tn_kernel_args* args, uint32_t, uint32_t) {
  copy(args);
  std::raise(SIGSEGV);
  return 0;
}
int aborts(const tn_kernel_args*, uint32_t, uint32_t) { std::abort(); }
int exits(const tn_kernel_args*, uint32_t, uint32_t) { ::_exit(3); }
int overflows(const tn_kernel_args* args, uint32_t tile, uint32_t worker) {
  volatile char much[4096];
  much[0] = static_cast<char>(tile);
  return tile > 100000000 ? 0 : overflows(args, tile + 1, worker) + much[0];
}

// Allocates its result in the run: rows of the operand whose first element is above 0.
void picks(Run& run, const tn_kernel_args*) {
  const TensorView x = run.input(0);
  const int64_t width = x.dims()[1];
  int64_t rows = 0;
  for (int64_t i = 0; i < x.dims()[0]; ++i) rows += x.data<float>()[i * width] > 0;
  const int64_t dims[] = {rows, width};
  auto* y = static_cast<float*>(run.output(0, TN_FLOAT32, Span<const int64_t>(dims, 2)));
  for (int64_t i = 0; i < x.dims()[0]; ++i) {
    if (!(x.data<float>()[i * width] > 0)) continue;
    std::memcpy(y, x.data<float>() + i * width, static_cast<size_t>(width) * sizeof(float));
    y += width;
  }
}
void infer_picks(Infer& node) { node.set_unknown_dims(0, TN_FLOAT32, 2); }

template <tn_kernel_fn F>
void plan(const PlanView& view, Planned& planned) {
  auto s = std::make_unique<State>();
  s->count = view.input(0).count();
  planned.set(F, std::move(s), 1);
}
void plan_picks(const PlanView&, Planned& planned) { planned.set(dynamic_kernel<picks>); }

template <tn_kernel_fn F>
void add(Plugin& p, const char* name, const char* id) {
  p.op("test", name, 1, 1).type_var("T", {TN_FLOAT32}).input("X", "T").output("Y", "T").infer<infer>();
  p.kernel(std::string("test.") + id + "/1", std::string("test::") + name)
      .input({TN_FLOAT32})
      .output({TN_FLOAT32})
      .template plan<plan<F>>();
}

void provide(Plugin& p) {
  p.id("test.faulty")
      .name("faulty")
      .version("1.0.0")
      .vendor("Tenon")
      .summary("kernels that fail in one way each");
  add<good>(p, "Good", "good");
  add<fails>(p, "Fails", "fails");
  add<crashes>(p, "Crashes", "crashes");
  add<aborts>(p, "Aborts", "aborts");
  add<exits>(p, "Exits", "exits");
  add<overflows>(p, "Overflows", "overflows");
  p.op("test", "Picks", 1, 1)
      .type_var("T", {TN_FLOAT32})
      .input("X", "T")
      .output("Y", "T")
      .infer<infer_picks>();
  p.kernel("test.picks/1", "test::Picks")
      .input({TN_FLOAT32})
      .output({TN_FLOAT32})
      .flags(TN_KERNEL_DYNAMIC_OUTPUT)
      .plan<plan_picks>();
}

}  // namespace

TENON_PLUGIN(provide)
