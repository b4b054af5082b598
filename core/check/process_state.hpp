// What of this process may have grown.
#pragma once
#include <cstddef>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace tenon::check {

// Memory that the C library has handed out. A sanitizer's allocator counts nothing, and finds leaks by
// itself.
size_t memory_in_use();

// Bytes that each turn keeps; 0: none does. `repeat` takes so many turns.
size_t kept_by_each(int turns, const std::function<void(int times)>& repeat);

std::set<std::string> names_in(const std::filesystem::path& folder);
// Descriptor and what it is open on: "5 (/dev/null)".
std::set<std::string> open_files();
size_t thread_count();

}  // namespace tenon::check
