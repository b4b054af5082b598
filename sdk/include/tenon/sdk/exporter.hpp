// Writers of graphs: a file that appears only when it is whole, and the builder of records.
#pragma once
#include "graph.hpp"
#include "service.hpp"
#include "tenon/abi/exporter.h"
#include "tenon/abi/files.h"

namespace tenon::sdk {

/// A file being written by the host: a temporary one that replaces `path` on keep(), and goes otherwise.
class FileWriter {
 public:
  FileWriter(const tn_host* host, std::string_view path)
      : api_(required_service<tn_files_api>(host, TN_FILES_ID)), path_(path) {
    DiagBuffer said;
    const tn_status status = api_->create(str(path), said.raw(), &writer_);
    check(status, ("creating " + path_).c_str(), &said);
  }
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter() {
    if (writer_) api_->close(writer_, 0, nullptr);
  }
  void write(std::string_view text) {
    check(api_->write(writer_, text.data(), text.size()), ("writing " + path_).c_str());
  }
  void keep() {
    DiagBuffer said;
    const tn_status status = api_->close(std::exchange(writer_, nullptr), 1, said.raw());
    check(status, ("writing " + path_).c_str(), &said);
  }

 private:
  const tn_files_api* api_;
  tn_writer* writer_ = nullptr;
  std::string path_;
};

/// What an exporter writes, and where.
struct ExportJob {
  const tn_host* host;
  tn_graph* raw;  // the exporter's own to change
  GraphView graph;
  std::string_view path;
};

/// An exporter's record. Lives as long as the plugin.
class ExporterBuilder {
 public:
  /// Texts must be literals or outlive the plugin.
  ExporterBuilder(const char* id, const char* summary) {
    r_.size = sizeof r_;
    r_.id = str(id);
    r_.summary = str(summary);
  }
  ExporterBuilder(const ExporterBuilder&) = delete;
  ExporterBuilder& operator=(const ExporterBuilder&) = delete;
  ExporterBuilder& suffix(const char* s) {
    suffixes_.push_back(str(s));
    return *this;
  }
  /// Writes the whole file; throws Failure for what the format cannot say. [main]
  template <void (*F)(const ExportJob& job)>
  ExporterBuilder& write() {
    r_.write = [](void*, const tn_host* host, tn_graph* graph, tn_str path, const tn_attr*, uint32_t,
                  const tn_diag* diag) noexcept {
      return guarded(diag, [&] {
        const auto* api = required_service<tn_graph_api>(host, TN_GRAPH_ID);
        F({host, graph, GraphView(api, graph), view(path)});
      });
    };
    return *this;
  }
  const tn_exporter_record* record() {
    r_.suffixes = suffixes_.data();
    r_.suffix_count = static_cast<uint32_t>(suffixes_.size());
    return &r_;
  }

 private:
  tn_exporter_record r_{};
  std::vector<tn_str> suffixes_;
};

}  // namespace tenon::sdk
