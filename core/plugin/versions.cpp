#include <charconv>
#include <cstdint>
#include <fstream>
#include <vector>

#include "core/plugin/plugin_set.hpp"
#include "core/plugin/sha256.hpp"

namespace tenon {

namespace {

// Takes "1.10-rc1" apart at its dots and dashes; a part that is no number compares as text, before any
// number, so that 1.0-rc1 is older than 1.0.1 but newer than 0.9.
std::string_view next_part(std::string_view& version) {
  const size_t end = version.find_first_of(".-+");
  const std::string_view part = version.substr(0, end);
  version = end == std::string_view::npos ? std::string_view() : version.substr(end + 1);
  return part;
}

bool as_number(std::string_view part, uint64_t& number) {
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
  return error == std::errc() && end == part.data() + part.size();
}

}  // namespace

int compare_versions(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const std::string_view left = a.empty() ? "0" : next_part(a);
    const std::string_view right = b.empty() ? "0" : next_part(b);
    uint64_t left_number = 0;
    uint64_t right_number = 0;
    const bool left_is_number = as_number(left, left_number);
    const bool right_is_number = as_number(right, right_number);
    if (left_is_number != right_is_number) return left_is_number ? 1 : -1;
    if (left_is_number && left_number != right_number) return left_number < right_number ? -1 : 1;
    if (!left_is_number && left != right) return left < right ? -1 : 1;
  }
  return 0;
}

std::string sha256_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(exit_bad_input, path.string(), "cannot be read; check that it exists and its permissions");
  Sha256 sum;
  std::vector<char> buffer(1 << 16);
  while (file) {
    file.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    sum.update(buffer.data(), static_cast<size_t>(file.gcount()));
  }
  if (file.bad()) throw Error(exit_bad_input, path.string(), "cannot be read to its end");
  return sum.hex();
}

}  // namespace tenon
