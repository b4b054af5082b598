// Level 3: hosts that have less, or more, than this one.
#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/host_tables.hpp"
#include "core/check/levels.hpp"
#include "core/check/stage.hpp"

namespace tenon::check {

namespace {

// A plugin may refuse such a host, with a reason.
bool opens(Checker& checker, Stage& stage, bool may_refuse) {
  const tn_status status = stage.open();
  if (status == TN_OK) return true;
  const std::string why = stage.said().first_error();
  if (!may_refuse)
    checker.finding(
        fmt::format("open answers status {}: {}", status, why.empty() ? "it did not say why" : why));
  else if (why.empty())
    checker.finding(fmt::format(
        "open answers status {} and does not say why; report what is missing through the diag", status));
  return false;
}

// Each table in turn, `size_of` bytes long.
template <class SizeOf>
void with_tables(Checker& checker, bool may_refuse, SizeOf&& size_of) {
  for (const ServiceInfo& service : services()) {
    Stage stage(checker);
    Host& host = stage.host().host;
    const void* const table = host.find(service.id);
    if (table == nullptr) continue;
    const uint32_t own = *static_cast<const uint32_t*>(table), size = size_of(service, own);
    if (size == own) continue;  // no host has another
    if (!checker.begin(fmt::format("{} ({}) of {} bytes", service.what, service.id, size))) continue;
    const TableVariant variant(table, size);
    host.provide(service.id, variant.get(), host.context(service.id));
    if (opens(checker, stage, may_refuse)) stage.exercise();
    host.provide(service.id, table, host.context(service.id));
  }
}

}  // namespace

void check_absent_services_at_open(Checker& checker) {
  for (const ServiceInfo& service : services()) {
    if (!checker.begin(fmt::format("without {} ({})", service.what, service.id))) continue;
    Stage stage(checker);
    Host& host = stage.host().host;
    void* const context = host.context(service.id);
    host.provide(service.id, nullptr, context);
    opens(checker, stage, true);
  }
  if (!checker.begin("without any service")) return;
  Stage stage(checker);
  for (const ServiceInfo& service : services())
    stage.host().host.provide(service.id, nullptr, stage.host().host.context(service.id));
  opens(checker, stage, true);
}

void check_absent_services_at_work(Checker& checker) {
  checker.records();
  for (const ServiceInfo& service : services()) {
    if (!checker.begin(fmt::format("without {} ({})", service.what, service.id))) continue;
    Stage stage(checker);
    Host& host = stage.host().host;
    host.provide(service.id, nullptr, host.context(service.id));
    if (stage.open() == TN_OK) stage.exercise();
  }
}

void check_smaller_tables(Checker& checker) {
  checker.records();
  with_tables(checker, true,
              [](const ServiceInfo& service, uint32_t size) { return std::min(service.least, size); });
}

void check_larger_tables(Checker& checker) {
  checker.records();
  with_tables(checker, false, [](const ServiceInfo&, uint32_t size) { return size + 64; });
}

void check_larger_host(Checker& checker) {
  checker.records();
  if (!checker.begin("a tn_host with 64 bytes more, of minor 99")) return;
  Stage stage(checker);
  stage.plugin_host()->size += 64;
  stage.plugin_host()->abi_minor = 99;
  if (opens(checker, stage, false)) stage.exercise();
}

}  // namespace tenon::check
