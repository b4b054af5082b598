// Services of the host that a plugin cannot do without.
#pragma once
#include "base.hpp"

namespace tenon::sdk {

/// The service, as Table knows it; throws Failure where the host has none.
template <class Table>
const Table* required_service(const tn_host* host, const char* id) {
  const auto* table = static_cast<const Table*>(host->get_interface(host, id));
  if (table == nullptr)
    throw Failure(TN_ERR_UNSUPPORTED, std::string("this host has no ") + id + "; a newer one is needed");
  return table;
}

}  // namespace tenon::sdk
