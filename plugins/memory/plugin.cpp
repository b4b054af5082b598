// The planners of this plugin, in the order they are tried: each stops at the bound, so later ones run only
// when needed.
#include <tenon/sdk/plugin.hpp>

#include "placement.hpp"

namespace {

using tenon_memory::Placement;
using tenon_memory::Problem;

constexpr uint32_t largest_search = 5000;    // buffers
constexpr uint64_t search_work = 8'000'000;  // boxes looked at; 50 to 100 ms
constexpr uint64_t portfolio_work = 50'000'000;

using Place = void (*)(void*, uint32_t, uint64_t);

template <class F>
tn_status answer(const tn_buffer* buffers, uint32_t count, uint64_t bound, Place place, void* context,
                 const tn_diag* diag, F&& solve) {
  return tenon::sdk::guarded(diag, [&] {
    for (uint32_t i = 0; i < count; ++i) {
      if (buffers[i].first_step > buffers[i].last_step || buffers[i].last_step == UINT32_MAX)
        tenon::sdk::fail("a buffer's last step comes before its first");
    }
    const Placement placement = solve(Problem{buffers, count, bound});
    for (uint32_t i = 0; i < count; ++i) place(context, i, placement.offsets[i]);
  });
}

tn_status greedy(void*, const tn_buffer* buffers, uint32_t count, uint64_t bound, Place place, void* context,
                 const tn_diag* diag) {
  return answer(buffers, count, bound, place, context, diag, tenon_memory::greedy_by_size);
}

tn_status best_fit(void*, const tn_buffer* buffers, uint32_t count, uint64_t bound, Place place,
                   void* context, const tn_diag* diag) {
  return answer(buffers, count, bound, place, context, diag,
                [](const Problem& problem) { return tenon_memory::best_of_orders(problem, portfolio_work); });
}

tn_status search(void*, const tn_buffer* buffers, uint32_t count, uint64_t bound, Place place, void* context,
                 const tn_diag* diag) {
  if (count > largest_search) return TN_DECLINED;
  return answer(buffers, count, bound, place, context, diag,
                [](const Problem& problem) { return tenon_memory::search(problem, search_work); });
}

constexpr tn_str text(const char* s) { return {s, __builtin_strlen(s)}; }

const tn_planner_record greedy_record = {sizeof(tn_planner_record), 30, text("tenon.memory.greedy-by-size/1"),
                                         text("largest first, each in the smallest gap that holds it"),
                                         greedy};
const tn_planner_record best_fit_record = {sizeof(tn_planner_record), 20, text("tenon.memory.best-fit/1"),
                                           text("the best of five orders, by smallest gap and lowest place"),
                                           best_fit};
const tn_planner_record search_record = {sizeof(tn_planner_record), 10, text("tenon.memory.search/1"),
                                         text("bounded annealing over orders, up to 5000 buffers"), search};

void provide(tenon::sdk::Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION).vendor("Tenon");
  plugin.summary("Planners that place intermediates in one arena");
  plugin.planner(&greedy_record).planner(&best_fit_record).planner(&search_record);
}

}  // namespace

TENON_PLUGIN(provide)
