// The program's manual pages, made from its own description of verbs and options.
#pragma once
#include <CLI/App.hpp>

#include <filesystem>
#include <string>

namespace tenon::cli {

/// tenon.1 and tenon-VERB.1 for every verb, into this folder. The exit code; what is wrong goes to stderr.
int write_man_pages(const CLI::App& app, const std::filesystem::path& folder);

/// One page as troff with the man macros. `parents`: "tenon " for a verb, empty for the program.
std::string man_page(const CLI::App& app, const std::string& parents);

}  // namespace tenon::cli
