// What the checks are given, in the parent and in its children alike.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace tenon::check {

struct Request {
  std::filesystem::path library;
  uint64_t seed = 1;
  // How much of what is drawn at random: graphs, damaged files, runs of the fuzzer. 1 is what CI takes.
  uint32_t effort = 1;
  // Graphs in the text form (*.graph) and model and tensor files of the vendor's own; may be empty.
  std::filesystem::path samples;
  // Where reproducers of crashes go.
  std::filesystem::path out = ".";
  // For the files of one child; the parent makes it and removes it.
  std::filesystem::path scratch;
};

}  // namespace tenon::check
