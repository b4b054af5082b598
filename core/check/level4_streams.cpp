// Level 4: streams and events of devices: what is done in which order, and what goes on at once.
#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/device_trial.hpp"
#include "core/check/levels.hpp"

namespace tenon::check {

namespace {

// Uploads, downloads and copies drawn at random, enqueued without waiting, on one stream or on several that
// events order; and what they must give when each is done in its turn.
class Work {
 public:
  Work(DeviceTrial& device, Random& random, std::vector<tn_stream*> streams)
      : device_(device), random_(random), streams_(std::move(streams)) {
    for (const uint64_t bytes : {4099, 40001, 40001, 131}) {
      Place place{device_.allocate(bytes), random_bytes(random_, bytes), streams_[0]};
      Bytes& from = device_.host(bytes);
      from = place.bytes;
      device_.upload(place.last, place.buffer, from);
      places_.push_back(std::move(place));
    }
  }

  void enqueue(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) enqueue_one();
  }

  // All done: where something is other than it should be; empty: nowhere.
  std::string finish() {
    for (size_t i = streams_.size(); i-- > 0;) std::swap(streams_[i], streams_[random_.below(i + 1)]);
    for (tn_stream* const stream : streams_) device_.finish(stream);
    for (const auto& [what, got, want] : downloads_)
      if (const std::string text = byte_difference(want, *got); !text.empty()) return what + ": " + text;
    for (size_t i = 0; i < places_.size(); ++i) {
      const Bytes got = device_.get(streams_[0], places_[i].buffer, places_[i].bytes.size());
      if (const std::string text = byte_difference(places_[i].bytes, got); !text.empty())
        return fmt::format("buffer {} when all is done: {}", i, text);
    }
    return {};
  }

 private:
  struct Place {
    tn_device_buffer buffer{};
    Bytes bytes;                // as of what is enqueued so far
    tn_stream* last = nullptr;  // that touches it
  };
  struct Download {
    std::string what;
    const Bytes* got;
    Bytes want;
  };

  void touch(Place& place, tn_stream* stream) {
    if (place.last != stream) {
      tn_event* const event = device_.event();
      device_.record(place.last, event);
      device_.wait(stream, event);
    }
    place.last = stream;
  }

  void enqueue_one() {
    ++number_;
    tn_stream* const stream = streams_[random_.below(streams_.size())];
    Place& place = places_[random_.below(places_.size())];
    const size_t kind = random_.below(3);
    touch(place, stream);
    if (kind == 0) {
      Bytes& from = device_.host(place.bytes.size());
      from = place.bytes = random_bytes(random_, place.bytes.size());
      device_.upload(stream, place.buffer, from);
    } else if (kind == 1) {
      Bytes& to = device_.host(place.bytes.size(), 0xa5);
      downloads_.push_back({fmt::format("download, {} in order", number_), &to, place.bytes});
      device_.download(stream, to, place.buffer);
    } else {
      Place& from = places_[random_.below(places_.size())];
      if (&from == &place) return;
      touch(from, stream);
      const size_t bytes = std::min(from.bytes.size(), place.bytes.size());
      std::copy_n(from.bytes.begin(), bytes, place.bytes.begin());
      device_.copy(stream, place.buffer, from.buffer, bytes);
    }
  }

  DeviceTrial& device_;
  Random& random_;
  std::vector<tn_stream*> streams_;
  std::vector<Place> places_;
  std::vector<Download> downloads_;
  uint32_t number_ = 0;
};

// Rounds of work over such streams; false after a finding.
bool work_on(Checker& checker, DeviceTrial& device, Random& random, const std::vector<tn_stream*>& streams) {
  for (uint32_t round = 0; round < 4 * checker.request().effort; ++round) {
    Work work(device, random, streams);
    work.enqueue(50);
    const std::string text = work.finish();
    if (text.empty()) continue;
    checker.finding(text);
    return false;
  }
  return true;
}

void check_work_at_once(Checker& checker, DeviceTrial& device) {
  constexpr int count = 4;
  std::mutex mutex;
  std::vector<std::string> found;
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      std::string text;
      const tn_device_record& record = device.record();
      tn_stream* stream = nullptr;
      uint64_t memory = 0;
      Bytes from, to;
      try {
        Random random = checker.random(fmt::format("thread {}", t));
        device.require(record.create_stream(device.handle(), TN_STREAM_COMPUTE, &stream), "create_stream");
        for (int round = 0; round < 20 && text.empty(); ++round) {
          from = random_bytes(random, 20000 + random.below(1000));
          to.assign(from.size(), 0xa5);
          device.require(record.allocate(device.handle(), from.size(), &memory), "allocate");
          const tn_device_buffer buffer{memory, 0, 1, 1};
          device.require(record.upload(stream, &buffer, from.data(), from.size()), "upload");
          device.require(record.download(stream, to.data(), &buffer, to.size()), "download");
          device.require(record.finish(stream), "finish");
          text = byte_difference(from, to);
          record.release(device.handle(), std::exchange(memory, 0));
        }
      } catch (const DeviceFault& fault) {
        text = fault.what();
      }
      if (stream != nullptr) {
        record.finish(stream);
        record.destroy_stream(device.handle(), stream);
      }
      const std::lock_guard<std::mutex> lock(mutex);
      if (!text.empty()) found.push_back(text);
    });
  for (std::thread& thread : threads) thread.join();
  if (!found.empty()) checker.finding(found.front());
}

}  // namespace

void check_device_stream_order(Checker& checker) {
  for (const bool copies : {false, true})
    each_open_device(checker, copies ? "work on its copy stream" : "work on its compute stream",
                     [&](DeviceTrial& device, Random& random) {
                       tn_stream* const stream = copies ? device.copy_stream() : device.stream();
                       device.finish(stream);  // nothing was enqueued
                       if (!work_on(checker, device, random, {stream})) return;
                       device.finish(stream);
                     });
}

void check_device_events(Checker& checker) {
  each_open_device(checker, "two streams, ordered by events", [&](DeviceTrial& device, Random& random) {
    work_on(checker, device, random, {device.stream(), device.copy_stream()});
  });
  each_open_device(checker, "four streams, ordered by events", [&](DeviceTrial& device, Random& random) {
    work_on(checker, device, random,
            {device.stream(), device.copy_stream(), device.stream(), device.stream()});
  });
  each_open_device(
      checker, "an event waited for twice, by two streams, and recorded again",
      [&](DeviceTrial& device, Random& random) {
        constexpr uint64_t size = 40001;
        tn_stream* const first = device.stream();
        tn_stream* const others[] = {device.copy_stream(), device.stream()};
        const tn_device_buffer a = device.allocate(size), b = device.allocate(size);
        tn_event* const event = device.event();
        for (int time = 0; time < 3; ++time) {
          Bytes& one = device.host(size);
          Bytes& two = device.host(size);
          one = random_bytes(random, size);
          two = random_bytes(random, size);
          std::vector<Bytes*> got;
          const auto read_behind = [&](tn_stream* stream, const tn_device_buffer& buffer) {
            got.push_back(&device.host(size, 0xa5));
            device.wait(stream, event);
            device.wait(stream, event);
            device.download(stream, *got.back(), buffer);
          };
          device.upload(first, a, one);
          device.record(first, event);
          for (tn_stream* const other : others) read_behind(other, a);
          device.upload(first, b, two);
          device.record(first, event);
          for (tn_stream* const other : others) read_behind(other, b);
          for (tn_stream* const stream : {others[1], others[0], first}) device.finish(stream);
          for (size_t i = 0; i < got.size(); ++i)
            if (const std::string text = byte_difference(i < 2 ? one : two, *got[i]); !text.empty()) {
              checker.finding(fmt::format("behind the event{}: {}", i < 2 ? "" : ", recorded again", text));
              return;
            }
        }
      });
  each_open_device(checker, "synchronize", [&](DeviceTrial& device, Random& random) {
    constexpr uint64_t size = 200003;
    tn_stream* const stream = device.copy_stream();
    const tn_device_buffer buffer = device.allocate(size);
    tn_event* const event = device.event();
    for (int time = 0; time < 4; ++time) {
      Bytes& from = device.host(size);
      Bytes& to = device.host(size, 0xa5);
      from = random_bytes(random, size);
      device.upload(stream, buffer, from);
      device.record(stream, event);
      device.download(stream, to, buffer);
      device.record(stream, event);
      device.synchronize(event);
      if (const std::string text = byte_difference(from, to); !text.empty()) {
        checker.finding("a download before an event that the thread has synchronized with: " + text);
        return;
      }
      device.synchronize(event);
    }
    device.finish(stream);
  });
}

void check_devices_at_once(Checker& checker) {
  each_device(checker, "opened twice at once", [&](const DeviceEntry& entry, uint32_t ordinal) {
    const uint32_t count = entry.record->count(entry.instance);
    for (const uint32_t other : {ordinal, (ordinal + 1) % count}) {
      Random random = checker.random("twice");
      const Bytes own = random_bytes(random, 40001), theirs = random_bytes(random, 40001);
      DeviceTrial second(entry, other, 2);
      tn_stream* const stream = second.stream();
      const tn_device_buffer buffer = second.allocate(own.size());
      {
        DeviceTrial first(entry, ordinal, 1);
        second.upload(stream, buffer, own);
        tn_stream* const its = first.stream();
        const tn_device_buffer memory = first.allocate(theirs.size());
        first.put(its, memory, theirs);
        second.finish(stream);
        const std::string text = byte_difference(theirs, first.get(its, memory, theirs.size()));
        if (!text.empty()) checker.finding("memory of the first: " + text);
      }
      const std::string text = byte_difference(own, second.get(stream, buffer, own.size()));
      if (!text.empty()) checker.finding("memory of the second, when the first is closed: " + text);
    }
  });
  each_open_device(checker, "four threads, each with a stream and memory of its own",
                   [&](DeviceTrial& device, Random&) { check_work_at_once(checker, device); });
}

}  // namespace tenon::check
