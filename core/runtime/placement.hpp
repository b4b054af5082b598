// Which device runs which node: the assignment with the least sum of kernel costs and copies.
//
// A value that is read on another device than the one that made it is copied there once, however many nodes
// read it there; between two devices that cannot read each other's memory it goes through the host, and is
// then on the host for everybody. For two devices the sum is a minimum s-t cut (nodes are vertices, each
// value adds an auxiliary vertex per direction, so that its copy counts once) and the answer is exact. For
// more, cuts between two devices at a time are repeated until none lowers the sum (alpha-beta swaps: Boykov,
// Veksler, Zabih, "Fast approximate energy minimization via graph cuts", 2001). Of several cheapest
// assignments the one with the fewest nodes away from the lower-numbered device is taken, so the answer is
// always the same.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

namespace tenon {

using PlacementCost = int64_t;                          // picoseconds
constexpr PlacementCost cannot_run = INT64_C(1) << 61;  // of a node on a device that has no kernel for it

struct TransferCost {
  double latency_ns = 0;
  double bytes_per_ns = 0;  // 0: infinite
  PlacementCost of(uint64_t bytes) const;
};

struct PlacementProblem {
  static constexpr uint32_t host = 0;  // the first device
  static constexpr uint32_t no_node = UINT32_MAX;

  struct Device {
    TransferCost upload, download;  // of the host: not looked at
    std::vector<std::optional<TransferCost>>
        peer;  // by device: copies to it without the host; may be shorter
  };
  struct Value {
    uint32_t producer = no_node;  // none: it is on the host from the start
    uint64_t bytes = 0;
    bool read_on_host = false;  // also by something that is no node here, such as the caller
    std::vector<uint32_t> readers;
  };
  std::vector<Device> devices;
  std::vector<std::vector<PlacementCost>> nodes;  // cost by device; cannot_run on all is not allowed
  std::vector<Value> values;
};

// Nanoseconds as a cost, so small that the sum over `terms` of them stays far below cannot_run.
PlacementCost placement_cost(double ns, uint64_t terms);

using Placement = std::vector<uint32_t>;  // device by node

// Copies of one value that is made on `from` and read on the devices in `readers` (a flag a device).
PlacementCost copy_cost(const PlacementProblem& problem, const PlacementProblem::Value& value, uint32_t from,
                        const std::vector<bool>& readers);
PlacementCost total_cost(const PlacementProblem& problem, const Placement& placement);

Placement place(const PlacementProblem& problem);

// What the sum would change by if this node alone ran on `device` instead.
struct MoveCost {
  PlacementCost kernel = 0, copies = 0;
};
class PlacementExplainer {
 public:
  PlacementExplainer(const PlacementProblem& problem, const Placement& placement);
  MoveCost move(uint32_t node, uint32_t device) const;

 private:
  const PlacementProblem& problem_;
  const Placement& placement_;
  std::vector<std::vector<uint32_t>> values_of_;
};

}  // namespace tenon
