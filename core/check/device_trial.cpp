#include "core/check/device_trial.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace tenon::check {

DeviceTrial::DeviceTrial(const DeviceEntry& entry, uint32_t ordinal, uint32_t space)
    : entry_(entry), ordinal_(ordinal), space_(space) {
  Diagnostics said;
  const tn_status status = record().open(entry_.instance, ordinal_, space_, said.abi(), &handle_);
  if (status != TN_OK)
    throw DeviceFault(fmt::format("it does not open, status {}: {}", status,
                                  said.empty() ? "it did not say why" : said.all().front().text));
  if (handle_ == nullptr) throw DeviceFault("open answers TN_OK, but gives no device");
  properties_.size = sizeof properties_;
  try {
    require(record().properties(handle_, &properties_), "properties");
    if (properties_.alignment == 0 || (properties_.alignment & (properties_.alignment - 1)) != 0)
      throw DeviceFault(fmt::format("its alignment is {}, expected a power of two", properties_.alignment));
  } catch (...) {
    record().close(handle_);
    throw;
  }
}

DeviceTrial::~DeviceTrial() {
  // As a host does: nothing of it is in use any more when it goes.
  for (tn_stream* const stream : streams_) record().finish(stream);
  for (tn_event* const event : events_) record().destroy_event(handle_, event);
  for (tn_stream* const stream : streams_) record().destroy_stream(handle_, stream);
  for (const uint64_t memory : memory_) record().release(handle_, memory);
  record().close(handle_);
}

void DeviceTrial::require(tn_status status, const char* what) {
  if (status == TN_OK) return;
  const std::string why = explained();
  throw DeviceFault(
      fmt::format("{} answers status {}: {}", what, status, why.empty() ? "explain does not say why" : why));
}

std::string DeviceTrial::explained() {
  Diagnostics said;
  record().explain(handle_, said.abi());
  return said.empty() ? std::string() : said.all().front().text;
}

tn_device_buffer DeviceTrial::allocate(uint64_t bytes) {
  uint64_t memory = 0;
  require(record().allocate(handle_, bytes, &memory), "allocate");
  memory_.push_back(memory);
  return {memory, 0, space_, 1};
}

void DeviceTrial::release(const tn_device_buffer& buffer) {
  const auto found = std::find(memory_.begin(), memory_.end(), buffer.handle);
  if (found != memory_.end()) memory_.erase(found);
  record().release(handle_, buffer.handle);
}

tn_stream* DeviceTrial::stream(uint32_t use) {
  tn_stream* made = nullptr;
  require(record().create_stream(handle_, use, &made), "create_stream");
  if (made == nullptr) throw DeviceFault("create_stream answers TN_OK, but gives no stream");
  streams_.push_back(made);
  return made;
}

tn_event* DeviceTrial::event() {
  tn_event* made = nullptr;
  require(record().create_event(handle_, &made), "create_event");
  if (made == nullptr) throw DeviceFault("create_event answers TN_OK, but gives no event");
  events_.push_back(made);
  return made;
}

void DeviceTrial::destroy(tn_stream* stream) {
  streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
  record().destroy_stream(handle_, stream);
}

void DeviceTrial::destroy(tn_event* event) {
  events_.erase(std::find(events_.begin(), events_.end(), event));
  record().destroy_event(handle_, event);
}

void DeviceTrial::upload(tn_stream* stream, const tn_device_buffer& to, const Bytes& from) {
  require(record().upload(stream, &to, from.data(), from.size()), "upload");
}
void DeviceTrial::download(tn_stream* stream, Bytes& to, const tn_device_buffer& from) {
  require(record().download(stream, to.data(), &from, to.size()), "download");
}
void DeviceTrial::copy(tn_stream* stream, const tn_device_buffer& to, const tn_device_buffer& from,
                       uint64_t bytes) {
  require(record().copy(stream, &to, &from, bytes), "copy");
}
void DeviceTrial::record(tn_stream* stream, tn_event* event) {
  require(record().record(stream, event), "record");
}
void DeviceTrial::wait(tn_stream* stream, tn_event* event) { require(record().wait(stream, event), "wait"); }
void DeviceTrial::synchronize(tn_event* event) { require(record().synchronize(event), "synchronize"); }
void DeviceTrial::finish(tn_stream* stream) { require(record().finish(stream), "finish"); }

void DeviceTrial::put(tn_stream* stream, const tn_device_buffer& to, const Bytes& from) {
  upload(stream, to, from);
  finish(stream);
}

Bytes DeviceTrial::get(tn_stream* stream, const tn_device_buffer& from, uint64_t bytes) {
  Bytes& to = host(bytes, 0xa5);
  download(stream, to, from);
  finish(stream);
  return to;
}

std::string byte_difference(const Bytes& want, const Bytes& got) {
  const auto [a, b] = std::mismatch(want.begin(), want.end(), got.begin(), got.end());
  if (a == want.end() && b == got.end()) return {};
  if (a == want.end() || b == got.end()) return fmt::format("{} bytes, expected {}", got.size(), want.size());
  return fmt::format("byte {} of {} is {:#04x}, expected {:#04x}", a - want.begin(), want.size(), *b, *a);
}

Bytes random_bytes(Random& random, uint64_t bytes) {
  Bytes made(bytes);
  for (uint8_t& byte : made) byte = static_cast<uint8_t>(random.next() >> 32);
  return made;
}

std::string device_name(const DeviceEntry& entry, uint32_t ordinal, uint32_t count) {
  const std::string kind = "device " + string(entry.record->kind);
  return count == 1 ? kind : fmt::format("{}:{}", kind, ordinal);
}

void each_ordinal(Checker& checker, const DeviceEntry& entry, uint32_t count, const std::string& what,
                  const DeviceLook& look) {
  for (uint32_t ordinal = 0; ordinal < std::min(count, most_ordinals); ++ordinal) {
    if (!checker.begin(device_name(entry, ordinal, count) + ": " + what)) continue;
    try {
      look(entry, ordinal);
    } catch (const DeviceFault& fault) {
      checker.finding(fault.what());
    }
  }
}

void each_device(Checker& checker, const std::string& what, const DeviceLook& look) {
  for (const DeviceEntry& entry : checker.records().devices())
    each_ordinal(checker, entry, entry.record->count(entry.instance), what, look);
}

void each_open_device(Checker& checker, const std::string& what,
                      const std::function<void(DeviceTrial&, Random&)>& look) {
  each_device(checker, what, [&](const DeviceEntry& entry, uint32_t ordinal) {
    DeviceTrial device(entry, ordinal);
    Random random = checker.random(what);
    look(device, random);
  });
}

}  // namespace tenon::check
