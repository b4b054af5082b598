// --set a.b=c on a manifest's JSON.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/pipeline/json_source.hpp"

namespace tenon {

// Changes the document; a text without '=', or a path through something that is no object, is an error.
// Returns the pointers that were given a value, with the option's text.
std::vector<std::pair<std::string, std::string>> apply_settings(Json& document,
                                                                const std::vector<std::string>& settings,
                                                                Diagnostics& diagnostics);

}  // namespace tenon
