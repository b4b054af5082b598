// The host's services as another host might have them: one absent, tables that end earlier or later.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/plugin/host.hpp"

namespace tenon::check {

struct ServiceInfo {
  const char* id;
  const char* what;
  uint32_t least;  // bytes that every host of 1.0 has; plugins must ask before they use what follows
};
std::span<const ServiceInfo> services();

// A table of a service with a size of its own. What lies beyond that size must not be used: calling a
// function there crashes.
class TableVariant {
 public:
  TableVariant(const void* table, uint32_t size);  // size may exceed the table's
  const void* get() const { return bytes_.data(); }

 private:
  std::vector<uint64_t> bytes_;
};

}  // namespace tenon::check
