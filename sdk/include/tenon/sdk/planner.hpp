// Planners of memory: what is to be placed, and the builder of records.
#pragma once
#include "base.hpp"
#include "tenon/abi/memory.h"

namespace tenon::sdk {

/// The buffers of one arena, and where they go: offsets in bytes, multiples of each buffer's alignment.
struct Placement {
  Span<const tn_buffer> buffers;
  uint64_t lower_bound;          // bytes: the largest sum that lives at once
  std::vector<uint64_t> offset;  // one for each buffer, to be set
};

/// A planner's record. Lives as long as the plugin.
class PlannerBuilder {
 public:
  /// id: "com.acme.first-fit/1". Texts must be literals or outlive the plugin. Planners are tried in order of
  /// their rank; the smallest arena wins, ties go to the higher rank.
  PlannerBuilder(const char* id, const char* summary, int32_t rank) {
    r_.size = sizeof r_;
    r_.id = str(id);
    r_.summary = str(summary);
    r_.rank = rank;
  }
  PlannerBuilder(const PlannerBuilder&) = delete;
  PlannerBuilder& operator=(const PlannerBuilder&) = delete;
  /// Sets every offset, or throws: decline() where the problem is not this planner's. [any]
  template <void (*F)(Placement& placement)>
  PlannerBuilder& plan() {
    r_.plan = [](void*, const tn_buffer* buffers, uint32_t count, uint64_t bound,
                 void (*place)(void*, uint32_t, uint64_t), void* context, const tn_diag* diag) noexcept {
      return guarded(diag, [&] {
        Placement placement{{buffers, count}, bound, std::vector<uint64_t>(count, 0)};
        F(placement);
        for (uint32_t i = 0; i < count; ++i) place(context, i, placement.offset[i]);
      });
    };
    return *this;
  }
  const tn_planner_record* record() const noexcept { return &r_; }

 private:
  tn_planner_record r_{};
};

}  // namespace tenon::sdk
