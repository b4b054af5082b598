// What the fuzz targets share. A target is one LLVMFuzzerTestOneInput: libFuzzer drives it, or
// replay_main.cpp, which hands it files. It must be deterministic, keep nothing from one input to the next,
// and abort when what it checks does not hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/pipeline/pipeline.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tenon::fuzz {

// A folder of this process in memory, gone at its end.
const std::filesystem::path& scratch_folder();
// Writes a file there and gives its path. The same name is the same file, so nothing grows.
std::filesystem::path scratch_file(std::string_view name, const void* data, size_t bytes);

// The default manifest with these plugins, no rules and no passes; its model is scratch_folder()/model_name.
Manifest bare_manifest(std::initializer_list<const char*> plugins, const char* model_name = "model.onnx");
// An engine over it, made once. Ends the program with the reason when a plugin cannot be loaded.
Engine& make_engine(std::initializer_list<const char*> plugins, const char* model_name = "model.onnx");

// Aborts, with the text, so that libFuzzer keeps the input.
[[noreturn]] void broken(std::string_view what, std::string_view text);
// The full verifier; what it finds is a fault of ours whatever the input was.
void require_sound(const Graph& graph, std::string_view when);
// An error that says nothing, or lacks its place, is a fault too.
void require_explained(const Error& error);

}  // namespace tenon::fuzz
