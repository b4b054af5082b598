// What a passage through a segment is made of, shared by segments on the host and those with devices.
#pragma once
#include "core/runtime/plan.hpp"

namespace tenon {

// The step's kernel, with a breadcrumb, in another process where its plugin is isolated. Not 0: it failed.
int run_step(RunState& state, const Segment& segment, Frame& frame, uint32_t step);
int run_isolated(RunState& state, const Segment& segment, Frame& frame, uint32_t step);
[[noreturn]] void throw_failure(RunState& state, const Segment& segment, uint32_t step, int result);
// The results of a step that calls back are there and are what was planned; readers in this segment get their
// pointers.
void finish_callback(RunState& state, const Segment& segment, Frame& frame, uint32_t step);
uint64_t now_ns();

// All ops of a segment with a DevicePlan; when it returns, everything is done. With an observer or guard
// words each op is waited for. Throws Error.
void run_ops(RunState& state, const Segment& segment, Frame& frame);

}  // namespace tenon
