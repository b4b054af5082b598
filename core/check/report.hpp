// What the checks found, for people and for programs.
#pragma once
#include <nlohmann/json.hpp>

#include "core/check/runner.hpp"

namespace tenon::check {

// The command that does one check again.
std::string repro(const Result& result, const Request& request);

// One line for a check, and what it found below.
std::string text_of(const Result& result, const Request& request);
std::string summary_of(const std::vector<Result>& results);
nlohmann::json to_json(const std::vector<Result>& results, const Request& request);

bool any_failed(const std::vector<Result>& results);

}  // namespace tenon::check
