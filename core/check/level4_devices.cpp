// Level 4: devices: opened, asked what they are, given bytes to keep, and closed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/device_trial.hpp"
#include "core/check/levels.hpp"
#include "core/check/process_state.hpp"

namespace tenon::check {

namespace {

constexpr uint32_t most_devices = 1024;  // of a kind; more are a number that is none
constexpr uint64_t buffer_sizes[] = {1, 3, 17, 64, 4095, 65537, (uint64_t{1} << 20) + 3};

// A buffer, and what it should hold.
struct Filled {
  tn_device_buffer buffer{};
  Bytes bytes;
};

Filled filled(DeviceTrial& device, tn_stream* stream, Random& random, uint64_t bytes) {
  Filled made{device.allocate(bytes), random_bytes(random, bytes)};
  device.put(stream, made.buffer, made.bytes);
  return made;
}

// False after a finding.
bool holds(Checker& checker, DeviceTrial& device, tn_stream* stream, const Filled& filled,
           std::string_view when) {
  const std::string text =
      byte_difference(filled.bytes, device.get(stream, filled.buffer, filled.bytes.size()));
  if (!text.empty()) checker.finding(fmt::format("{}: {}", when, text));
  return text.empty();
}

void check_link(Checker& checker, const char* name, const tn_link& link) {
  const auto is_sound = [](double figure) { return std::isfinite(figure) && figure >= 0; };
  if (!is_sound(link.latency_ns))
    checker.finding(
        fmt::format("{}.latency_ns is {}, expected a time that is finite, 0 or more", name, link.latency_ns));
  if (!is_sound(link.bytes_per_ns))
    checker.finding(fmt::format("{}.bytes_per_ns is {}, expected a rate that is finite, or 0 for infinite",
                                name, link.bytes_per_ns));
}

bool same(const tn_link& a, const tn_link& b) {
  return a.latency_ns == b.latency_ns && a.bytes_per_ns == b.bytes_per_ns;
}

// Bytes in pieces to and from places within buffers, one at a time.
void check_pieces(Checker& checker, DeviceTrial& device, std::vector<Filled>& buffers, Random& random) {
  tn_stream* const streams[] = {device.stream(), device.copy_stream()};
  for (uint32_t i = 0; i < 40 * checker.request().effort; ++i) {
    Filled& one = buffers[random.below(buffers.size())];
    tn_stream* const stream = streams[random.below(2)];
    const uint64_t size = one.bytes.size();
    const uint64_t offset = device.alignment() * random.below((size - 1) / device.alignment() + 1);
    const uint64_t bytes = 1 + random.below(std::min<uint64_t>(size - offset, 5000));
    const auto place = fmt::format("{} bytes at offset {} of a buffer of {}", bytes, offset, size);
    if (random.chance(0.5)) {
      const Bytes piece = random_bytes(random, bytes);
      std::copy(piece.begin(), piece.end(), one.bytes.begin() + static_cast<ptrdiff_t>(offset));
      device.put(stream, at(one.buffer, offset), piece);
      if (!holds(checker, device, stream, one, "the buffer after an upload of " + place)) return;
      continue;
    }
    constexpr size_t guard = 32;
    Bytes& memory = device.host(bytes + 2 * guard, 0xb7);
    Bytes want = memory;
    std::copy_n(one.bytes.begin() + static_cast<ptrdiff_t>(offset), bytes, want.begin() + guard);
    const tn_device_buffer from = at(one.buffer, offset);
    device.require(device.record().download(stream, memory.data() + guard, &from, bytes), "download");
    device.finish(stream);
    if (const std::string text = byte_difference(want, memory); !text.empty()) {
      checker.finding(
          fmt::format("host memory with 32 bytes before and after, after a download of {}: {}", place, text));
      return;
    }
  }
}

void check_mapping(Checker& checker, DeviceTrial& device, const Filled& filled) {
  void* const address = device.record().map(device.handle(), filled.buffer.handle);
  if (address == nullptr) {
    checker.finding("its memory is visible to the host, but map gives no address");
  } else if (reinterpret_cast<uintptr_t>(address) % alignof(double) != 0) {
    checker.finding("map gives an address that is no multiple of 8; the host reads elements there");
  } else if (std::memcmp(address, filled.bytes.data(), filled.bytes.size()) != 0) {
    checker.finding("other bytes lie where map says than were put there");
  } else if (device.record().map(device.handle(), filled.buffer.handle) != address) {
    checker.finding("map gives another address the second time; runs keep the first");
  }
}

}  // namespace

void check_devices_open(Checker& checker) {
  for (const DeviceEntry& entry : checker.records().devices()) {
    const std::string kind = device_name(entry, 0, 1);
    const bool looks = checker.begin(kind + ": count, ten times");
    if (!looks && checker.ended_here()) continue;
    const uint32_t count = entry.record->count(entry.instance);
    if (looks && count == 0)
      checker.note(fmt::format("there is no {} on this machine; check it where there is one", kind));
    if (looks && count > most_devices)
      checker.finding(fmt::format("there are {} of them; no machine has so many", count));
    for (int i = 1; looks && i < 10; ++i) {
      const uint32_t again = entry.record->count(entry.instance);
      if (again == count) continue;
      checker.finding(fmt::format("it counts {}, then {}", count, again));
      break;
    }
    each_ordinal(
        checker, entry, count, "open and close, three times", [&](const DeviceEntry&, uint32_t ordinal) {
          for (int time = 1; time <= 3; ++time) {
            Diagnostics said;
            tn_device* device = nullptr;
            const tn_status status = entry.record->open(entry.instance, ordinal, 1, said.abi(), &device);
            if (status == TN_OK && device != nullptr) {
              entry.record->close(device);
              continue;
            }
            checker.finding(fmt::format("time {}: open answers status {}{}: {}", time, status,
                                        status == TN_OK ? " without a device" : "",
                                        said.empty() ? "it does not say why" : said.all().front().text));
            return;
          }
        });
  }
}

void check_device_properties(Checker& checker) {
  each_open_device(checker, "properties", [&](DeviceTrial& device, Random&) {
    struct Guarded {
      tn_device_properties properties{};
      uint8_t after[64];
    } guarded;
    std::memset(guarded.after, 0xb7, sizeof guarded.after);
    tn_device_properties& p = guarded.properties;
    p.size = sizeof p;
    device.require(device.record().properties(device.handle(), &p), "properties, asked again,");
    for (const uint8_t byte : guarded.after)
      if (byte != 0xb7) {
        checker.finding(fmt::format("it writes beyond the {} bytes that size allows", sizeof p));
        break;
      }
    constexpr uint32_t known = TN_DEVICE_COPY_STREAM | TN_DEVICE_PEER_COPY | TN_DEVICE_HOST_VISIBLE;
    if ((p.flags & ~known) != 0)
      checker.finding(fmt::format("flags is {:#x}, of which {:#x} means nothing", p.flags, p.flags & ~known));
    if (p.alignment > uint64_t{1} << 30)
      checker.finding(fmt::format("its alignment is {}; no buffer would fit", p.alignment));
    if (p.description.size != 0 && p.description.data == nullptr)
      checker.finding("its description has a size, but no text");
    check_link(checker, "upload", p.upload);
    check_link(checker, "download", p.download);
    check_link(checker, "peer", p.peer);
    const tn_device_properties& q = device.properties();
    if (p.flags != q.flags || p.alignment != q.alignment || p.memory_bytes != q.memory_bytes ||
        !(same(p.upload, q.upload) || std::isnan(p.upload.latency_ns + p.upload.bytes_per_ns)) ||
        !(same(p.download, q.download) || std::isnan(p.download.latency_ns + p.download.bytes_per_ns)) ||
        view(p.description) != view(q.description))
      checker.finding("its properties are others when they are asked for again; plans are made from them");
  });
}

void check_device_memory(Checker& checker) {
  each_open_device(checker, "uploads come back", [&](DeviceTrial& device, Random& random) {
    tn_stream* const stream = device.copy_stream();
    std::vector<Filled> buffers;
    for (const uint64_t bytes : buffer_sizes) {
      buffers.push_back(filled(device, stream, random, bytes));
      for (size_t i = 0; i + 1 < buffers.size(); ++i)
        if (buffers[i].buffer.handle == buffers.back().buffer.handle)
          checker.finding(fmt::format("two buffers that are there at once have the handle {}",
                                      buffers.back().buffer.handle));
    }
    const auto look_at_all = [&](const char* when) {
      for (const Filled& one : buffers)
        if (!holds(checker, device, stream, one,
                   fmt::format("a buffer of {} bytes{}", one.bytes.size(), when)))
          return false;
      return true;
    };
    if (!look_at_all("")) return;
    check_pieces(checker, device, buffers, random);
    if (device.has(TN_DEVICE_HOST_VISIBLE))
      for (const Filled& one : buffers) check_mapping(checker, device, one);
    // Every other one goes, and others take its place.
    for (size_t i = 0; i < buffers.size(); i += 2) {
      device.release(buffers[i].buffer);
      buffers[i] = filled(device, stream, random, buffers[i].bytes.size() + 5);
    }
    look_at_all(", after others were released and new ones allocated");
  });
}

void check_device_copies(Checker& checker) {
  each_open_device(checker, "copies", [&](DeviceTrial& device, Random& random) {
    tn_stream* const stream = device.copy_stream();
    std::vector<Filled> buffers = {filled(device, stream, random, 4101),
                                   filled(device, stream, random, 70001)};
    for (uint32_t i = 0; i < 60 * checker.request().effort; ++i) {
      Filled& from = buffers[random.below(2)];
      Filled& to = buffers[random.below(2)];
      const auto place = [&](const Filled& in) {
        return device.alignment() * random.below((in.bytes.size() - 1) / device.alignment() + 1);
      };
      const uint64_t a = place(from), b = place(to);
      uint64_t most = std::min(from.bytes.size() - a, to.bytes.size() - b);
      if (&from == &to) most = std::min(most, a < b ? b - a : a - b);  // over one another is not promised
      if (most == 0) continue;
      const uint64_t bytes = 1 + random.below(most);
      std::copy_n(from.bytes.begin() + static_cast<ptrdiff_t>(a), bytes,
                  to.bytes.begin() + static_cast<ptrdiff_t>(b));
      device.copy(stream, at(to.buffer, b), at(from.buffer, a), bytes);
      device.finish(stream);
      const auto when = fmt::format(
          "after a copy of {} bytes from offset {} of {} to offset {}{}", bytes, a, from.bytes.size(), b,
          &from == &to ? " of the same buffer" : fmt::format(" of another of {}", to.bytes.size()));
      if (!holds(checker, device, stream, to, when)) return;
    }
    for (const Filled& one : buffers) holds(checker, device, stream, one, "after all copies");
  });
  each_device(checker, "copies from its peer's memory", [&](const DeviceEntry& entry, uint32_t ordinal) {
    const uint32_t count = entry.record->count(entry.instance);
    DeviceTrial device(entry, ordinal, 1);
    if (!device.has(TN_DEVICE_PEER_COPY) || count < 2) return;
    DeviceTrial peer(entry, (ordinal + 1) % count, 2);
    Random random = checker.random("peers");
    const Filled theirs = filled(peer, peer.copy_stream(), random, 70001);
    tn_stream* const stream = device.copy_stream();
    Filled own = filled(device, stream, random, 70001);
    own.bytes = theirs.bytes;
    device.copy(stream, own.buffer, theirs.buffer, own.bytes.size());
    device.finish(stream);
    holds(checker, device, stream, own, "after a copy from its peer");
  });
}

void check_device_memory_limit(Checker& checker) {
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  for (const uint64_t bytes : {uint64_t{1} << 62, most - 4094, most}) {
    each_open_device(
        checker, fmt::format("allocate of {} bytes", bytes), [&](DeviceTrial& device, Random& random) {
          tn_stream* const stream = device.copy_stream();
          const Filled before = filled(device, stream, random, 4097);
          uint64_t handle = 0;
          const tn_status status = device.record().allocate(device.handle(), bytes, &handle);
          if (status == TN_OK) {
            checker.finding("it is given; no machine has so much, sizes wrap on the way");
            device.record().release(device.handle(), handle);
          } else if (status != TN_ERR_MEMORY) {
            checker.finding(fmt::format("it answers status {}, expected TN_ERR_MEMORY ({}): {}", status,
                                        static_cast<int>(TN_ERR_MEMORY), device.explained()));
          }
          const Filled after = filled(device, stream, random, 4097);
          holds(checker, device, stream, before, "a buffer from before");
          holds(checker, device, stream, after, "a buffer allocated afterwards");
        });
  }
}

void check_device_leaks(Checker& checker) {
  const auto use = [](DeviceTrial& device) {
    tn_stream* const compute = device.stream();
    tn_stream* const copies = device.copy_stream();
    tn_event* const event = device.event();
    const tn_device_buffer a = device.allocate(40000), b = device.allocate(40000);
    const Bytes bytes(40000, 7);
    device.upload(copies, a, bytes);
    device.record(copies, event);
    device.wait(compute, event);
    device.copy(compute, b, a, bytes.size());
    device.finish(copies);
    device.finish(compute);
    device.destroy(event);
    device.destroy(copies);
    device.destroy(compute);
    device.release(a);
    device.release(b);
  };
  const auto watched = [&](int turns, const std::function<void(int)>& repeat, const char* remedy) {
    repeat(2);  // what is made once stays
    const size_t threads = thread_count();
    const std::set<std::string> files = open_files();
    if (const size_t bytes = kept_by_each(turns, repeat))
      checker.finding(fmt::format("{} bytes stay each time; free in {}", bytes, remedy));
    if (const size_t now = thread_count(); now > threads)
      checker.finding(fmt::format("{} threads are left; end them in {}", now - threads, remedy));
    if (const std::set<std::string> now = open_files(); now.size() > files.size())
      checker.finding(
          fmt::format("{} files are left open; close them in {}", now.size() - files.size(), remedy));
  };
  each_open_device(checker, "memory, streams and events made, used and given back",
                   [&](DeviceTrial& device, Random&) {
                     watched(
                         40,
                         [&](int times) {
                           for (int i = 0; i < times; ++i) use(device);
                         },
                         "release, destroy_stream or destroy_event");
                   });
  each_device(checker, "opened, used and closed", [&](const DeviceEntry& entry, uint32_t ordinal) {
    watched(
        10,
        [&](int times) {
          for (int i = 0; i < times; ++i) {
            DeviceTrial device(entry, ordinal);
            use(device);
          }
        },
        "close");
  });
}

}  // namespace tenon::check
