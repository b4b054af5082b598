// Passes: the context and the builder of records.
#pragma once
#include <deque>

#include "edit.hpp"
#include "tenon/abi/eval.h"
#include "tenon/abi/ops.h"
#include "tenon/abi/pass.h"

namespace tenon::sdk {

class Pass {
 public:
  explicit Pass(const tn_pass_ctx* ctx, const tn_diag* diag) noexcept : ctx_(ctx), diag_(diag) {}
  const tn_pass_ctx& raw() const noexcept { return *ctx_; }
  const tn_host* host() const noexcept { return ctx_->host; }
  template <class T>
  const T* service(const char* id) const {
    return static_cast<const T*>(ctx_->host->get_interface(ctx_->host, id));
  }
  GraphView graph() const { return GraphView(service<tn_graph_api>(TN_GRAPH_ID), ctx_->graph); }
  const tn_registry_api* registry() const { return service<tn_registry_api>(TN_REGISTRY_ID); }
  const tn_eval_api* eval() const { return service<tn_eval_api>(TN_EVAL_ID); }
  const tn_op_def* op(tn_sym s) const { return registry()->find(ctx_->host, s); }
  Diag diag() const noexcept { return diag_; }
  int64_t option_int(std::string_view name) const { return option(name).u.i; }
  bool option_bool(std::string_view name) const { return option(name).u.i != 0; }
  double option_float(std::string_view name) const { return option(name).u.f; }
  std::string_view option_string(std::string_view name) const { return sdk::view(option(name).u.s); }
  std::string_view precision() const noexcept { return sdk::view(ctx_->precision_mode); }
  int32_t level() const noexcept { return ctx_->level; }
  /// "on", "off" or "" when nothing was said about it.
  std::string_view switch_of(std::string_view name) const {
    return sdk::view(ctx_->switch_of(ctx_, str(name)));
  }
  void count(std::string_view who, uint64_t matched, uint64_t applied) const {
    ctx_->count(ctx_, str(who), matched, applied);
  }
  void spent(std::string_view who, uint64_t nanoseconds, uint64_t steps) const {
    if (TN_HAS(ctx_, spent) && ctx_->spent) ctx_->spent(ctx_, str(who), nanoseconds, steps);
  }
  bool cancelled() const { return ctx_->cancelled && ctx_->cancelled(ctx_); }
  /// A transaction named after the step; inactive when the limit of applied rewrites was reached.
  Transaction edit(std::string_view who) const {
    return Transaction(service<tn_graph_api>(TN_GRAPH_ID), service<tn_edit_api>(TN_GRAPH_EDIT_ID),
                       ctx_->graph, who);
  }
  bool detailed() const noexcept { return ctx_->explain && ctx_->explain->detailed; }
  void explain(tn_reason reason, std::string_view who, tn_node root, std::string_view got = {},
               std::string_view expr = {}, std::string_view hint = {}, tn_value value = TN_NONE) const {
    if (!ctx_->explain || !ctx_->explain->record) return;
    tn_explain_record r{};
    r.size = sizeof r;
    r.reason = reason;
    r.who = str(who);
    r.root = root;
    r.value = value;
    r.got = str(got);
    r.expr = str(expr);
    r.hint = str(hint);
    ctx_->explain->record(ctx_->explain->context, &r);
  }

 private:
  const tn_attr& option(std::string_view name) const {
    const auto* g = service<tn_graph_api>(TN_GRAPH_ID);
    const tn_sym s = g->symbol(str(name));
    for (uint32_t i = 0; i < ctx_->option_count; ++i)
      if (ctx_->options[i].name == s) return ctx_->options[i];
    throw Failure(TN_ERR_INTERNAL,
                  "the pass asked for option '" + std::string(name) + "', which its record does not declare");
  }
  const tn_pass_ctx* ctx_;
  Diag diag_;
};

class PassBuilder {
 public:
  explicit PassBuilder(const char* id) {
    r_.size = sizeof r_;
    r_.id = str(id);
  }
  PassBuilder(const PassBuilder&) = delete;
  PassBuilder& operator=(const PassBuilder&) = delete;
  PassBuilder& summary(const char* s) {
    r_.summary = str(s);
    return *this;
  }
  PassBuilder& doc(const char* s) {
    r_.doc = str(s);
    return *this;
  }
  PassBuilder& level(int32_t l) {
    r_.level = l;
    return *this;
  }
  PassBuilder& flags(uint32_t f) {
    r_.flags |= f;
    return *this;
  }
  PassBuilder& after(const char* s) {
    after_.push_back(str(s));
    return *this;
  }
  PassBuilder& before(const char* s) {
    before_.push_back(str(s));
    return *this;
  }
  PassBuilder& alias(const char* s) {
    aliases_.push_back(str(s));
    return *this;
  }
  PassBuilder& option_int(const char* name, int64_t otherwise, double min, double max, const char* doc) {
    auto& o = option(name, TN_ATTR_INT, doc);
    o.default_int = otherwise;
    o.min = min;
    o.max = max;
    return *this;
  }
  PassBuilder& option_bool(const char* name, bool otherwise, const char* doc) {
    auto& o = option(name, TN_ATTR_INT, doc);
    o.is_bool = 1;
    o.default_int = otherwise;
    return *this;
  }
  PassBuilder& option_float(const char* name, double otherwise, double min, double max, const char* doc) {
    auto& o = option(name, TN_ATTR_FLOAT, doc);
    o.default_float = otherwise;
    o.min = min;
    o.max = max;
    return *this;
  }
  PassBuilder& option_string(const char* name, const char* otherwise, const char* doc) {
    option(name, TN_ATTR_STRING, doc).default_string = str(otherwise);
    return *this;
  }
  template <void (*F)(Pass&)>
  PassBuilder& run() {
    r_.run = [](void*, const tn_pass_ctx* ctx, const tn_diag* diag) noexcept -> tn_status {
      return guarded(diag, [&] {
        Pass p(ctx, diag);
        F(p);
      });
    };
    return *this;
  }
  const tn_pass_record* finish() {
    r_.options = options_.data();
    r_.option_count = static_cast<uint32_t>(options_.size());
    r_.after = after_.data();
    r_.after_count = static_cast<uint32_t>(after_.size());
    r_.before = before_.data();
    r_.before_count = static_cast<uint32_t>(before_.size());
    r_.aliases = aliases_.data();
    r_.alias_count = static_cast<uint32_t>(aliases_.size());
    return &r_;
  }

 private:
  tn_option_def& option(const char* name, uint32_t kind, const char* doc) {
    options_.push_back({});
    auto& o = options_.back();
    o.name = str(name);
    o.kind = kind;
    o.doc = str(doc);
    o.min = 1;
    o.max = 0;
    return o;
  }
  tn_pass_record r_{};
  std::vector<tn_option_def> options_;
  std::vector<tn_str> after_, before_, aliases_;
};

}  // namespace tenon::sdk
