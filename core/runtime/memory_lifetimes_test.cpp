#include "core/runtime/memory_lifetimes.hpp"

#include <catch2/catch.hpp>

using namespace tenon;

namespace {
constexpr tn_str text(const char* s) { return {s, __builtin_strlen(s)}; }
const std::vector<tn_buffer> three = {{64, 64, 0, 1}, {128, 64, 1, 2}, {64, 64, 2, 3}};

using Place = void (*)(void*, uint32_t, uint64_t);
tn_status all_at_zero(void*, const tn_buffer*, uint32_t count, uint64_t, Place place, void* context,
                      const tn_diag*) {
  for (uint32_t i = 0; i < count; ++i) place(context, i, 0);
  return TN_OK;
}
tn_status half(void*, const tn_buffer*, uint32_t, uint64_t, Place place, void* context, const tn_diag*) {
  place(context, 0, 0);
  return TN_OK;
}
tn_status stacked(void*, const tn_buffer* buffers, uint32_t count, uint64_t, Place place, void* context,
                  const tn_diag*) {
  uint64_t offset = 0;
  for (uint32_t i = 0; i < count; offset += buffers[i].bytes, ++i) place(context, i, offset);
  return TN_OK;
}
}  // namespace

TEST_CASE("the bound is the largest live sum") {
  CHECK(live_bound(three) == 192);
  CHECK(live_bound(std::vector<tn_buffer>{}) == 0);
  CHECK(live_bound(std::vector<tn_buffer>{{10, 64, 5, 5}}) == 64);
}

TEST_CASE("overlaps and bad alignment are found") {
  CHECK(check_placement(three, std::vector<uint64_t>{0, 64, 0}).empty());
  CHECK(check_placement(three, std::vector<uint64_t>{0, 0, 128}).find("overlap") != std::string::npos);
  CHECK(check_placement(three, std::vector<uint64_t>{0, 64, 128}).find("overlap") != std::string::npos);
  CHECK(check_placement(three, std::vector<uint64_t>{0, 65, 0}).find("alignment") != std::string::npos);
}

TEST_CASE("a planner that answers wrong is reported and ignored; the best of the others is kept") {
  const tn_planner_record bad{sizeof(tn_planner_record), 3, text("bad"), {}, all_at_zero};
  const tn_planner_record lazy{sizeof(tn_planner_record), 2, text("lazy"), {}, half};
  const tn_planner_record simple{sizeof(tn_planner_record), 1, text("simple"), {}, stacked};
  Diagnostics said;
  const std::vector<PlannerEntry> planners = {
      {&simple, nullptr, "p"}, {&bad, nullptr, "p"}, {&lazy, nullptr, "p"}};
  const ArenaPlan plan = plan_arena(three, planners, said);
  CHECK(plan.planner == "simple");
  CHECK(plan.arena_bytes == 256);
  CHECK(said.all().size() == 2);
  CHECK(said.all()[0].severity == TN_SEVERITY_PLUGIN_MISBEHAVING);
  const ArenaPlan own = plan_arena(three, {}, said);
  CHECK(own.arena_bytes == 192);
}
