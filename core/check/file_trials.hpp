// Handing bytes to frontends and tensor formats and judging how they take them.
#pragma once
#include <string>
#include <vector>

#include "core/check/stage.hpp"

namespace tenon::check {

std::vector<SampleFile> samples_of(Checker& checker, const FrontendEntry& frontend);
// Whatever the bytes are, the answer is a graph or an error with a reason. The file is the reproducer.
void load_and_judge(Checker& checker, const FrontendEntry& frontend, const std::string& name,
                    const std::string& bytes);

std::vector<std::string> tensor_file_samples(Checker& checker, const TensorFileEntry& format);
void read_and_judge(Checker& checker, const TensorFileEntry& format, const std::string& name,
                    const std::string& bytes);
std::string file_name(const TensorFileEntry& format, const std::string& stem);

}  // namespace tenon::check
