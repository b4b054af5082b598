#include "core/check/damage.hpp"

#include <algorithm>
#include <cstddef>

namespace tenon::check {

std::vector<size_t> cuts(size_t size, size_t count) {
  std::vector<size_t> all;
  for (size_t i = 0; i < std::min(size, count / 3); ++i) all.push_back(i);
  const size_t step = std::max<size_t>(1, size / std::max<size_t>(1, count - count / 3));
  for (size_t i = all.size(); i < size; i += step) all.push_back(i);
  if (size > 1 && all.back() != size - 1) all.push_back(size - 1);
  return all;
}

std::string flipped(std::string bytes, Random& random) {
  if (bytes.empty()) return bytes;
  // Heads are where the structure is.
  const auto place = [&] {
    return random.chance(0.5) ? random.below(std::min<size_t>(bytes.size(), 256))
                              : random.below(bytes.size());
  };
  for (size_t changes = 1 + random.below(4); changes > 0; --changes) {
    const size_t at = place();
    if (random.chance(0.5))
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
    else
      bytes[at] = static_cast<char>(random.chance(0.3) ? 0xff : random.next());
  }
  return bytes;
}

std::string mangled(std::string bytes, Random& random) {
  for (size_t changes = 1 + random.below(6); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = random.below(bytes.size());
    const size_t length = std::min(bytes.size() - at, 1 + random.below(24));
    switch (random.below(6)) {
      case 0:
        bytes.erase(at, length);
        break;
      case 1:
        bytes.insert(random.below(bytes.size()), bytes.substr(at, length));
        break;
      case 2:
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), length,
                    random.of({'\0', '\xff', '\x7f', '\x80'}));
        break;
      case 3:
        for (size_t i = 0; i < length; ++i) bytes[at + i] = static_cast<char>(random.next());
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        bytes = flipped(std::move(bytes), random);
    }
  }
  return bytes;
}

}  // namespace tenon::check
