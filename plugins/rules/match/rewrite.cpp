#include "match/rewrite.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::rules {

bool OwnedAttribute::copy(const tn_attr& a) {
  name = a.name;
  kind = a.kind;
  switch (a.kind) {
    case TN_ATTR_INT:
      i = a.u.i;
      return true;
    case TN_ATTR_FLOAT:
      f = a.u.f;
      return true;
    case TN_ATTR_STRING:
      s = sdk::text(a.u.s);
      return true;
    case TN_ATTR_INTS:
      ints.assign(a.u.ints, a.u.ints + a.count);
      return true;
    case TN_ATTR_FLOATS:
      floats.assign(a.u.floats, a.u.floats + a.count);
      return true;
    case TN_ATTR_STRINGS:
      for (uint64_t k = 0; k < a.count; ++k) strings.push_back(sdk::text(a.u.strings[k]));
      return true;
    case TN_ATTR_TENSOR:
      if (!a.u.tensor || a.u.tensor->dtype == TN_STRING) return false;
      tensor = sdk::OwnedTensor(*a.u.tensor);
      return true;
    default:
      return false;
  }
}

tn_attr OwnedAttribute::view() {
  tn_attr a{};
  a.name = name;
  a.kind = kind;
  switch (kind) {
    case TN_ATTR_INT:
      a.u.i = i;
      break;
    case TN_ATTR_FLOAT:
      a.u.f = f;
      break;
    case TN_ATTR_STRING:
      a.u.s = sdk::str(s);
      break;
    case TN_ATTR_INTS:
      a.u.ints = ints.data(), a.count = ints.size();
      break;
    case TN_ATTR_FLOATS:
      a.u.floats = floats.data(), a.count = floats.size();
      break;
    case TN_ATTR_STRINGS:
      string_views.clear();
      for (const auto& t : strings) string_views.push_back(sdk::str(t));
      a.u.strings = string_views.data(), a.count = string_views.size();
      break;
    default:
      tensor_view = tensor.raw(), a.u.tensor = &tensor_view;
      break;
  }
  return a;
}

tn_sym Rewriter::op_of(const NewNode& n) const {
  return n.op_of == none ? n.op : graph_.node(match_->node(n.op_of)).op;
}

bool Rewriter::let_is_operand(uint32_t let) const {
  for (const auto& n : rule_->replace.nodes)
    for (const auto& o : n.in)
      for (const auto& c : o.choices)
        if (c.kind == NameRef::Let && c.index == let) return true;
  return false;
}

/// Everything that can fail on values is done before the graph is touched.
bool Rewriter::compute(Refusal* refusal) {
  MatchScope scope(graph_, ops_, *match_);
  gx::Evaluator eval(scope);
  lets_.clear();
  exact_.clear();
  for (uint32_t i = 0; i < rule_->lets.size(); ++i) {
    sdk::OwnedTensor exact;
    gx::Value v = evaluate(rule_->lets[i], scope, eval, &exact);
    exact_.push_back(std::move(exact));
    const bool made = exact_.back().dtype() != TN_DTYPE_NONE;
    const bool wanted = let_is_operand(i);
    if ((v.is_unknown() && !made) ||
        (wanted && !made && v.kind != gx::Value::Tensor && !v.is_number() && v.kind != gx::Value::Graph &&
         v.kind != gx::Value::List && v.kind != gx::Value::Absent)) {
      *refusal = {v.is_unknown() ? TN_REASON_UNKNOWN : TN_REASON_GUARD,
                  300,
                  TN_NONE,
                  "let " + rule_->lets[i].name + ": " + rule_->lets[i].source,
                  v.is_unknown() ? v.text : v.show() + " is no tensor",
                  {}};
      return false;
    }
    if (v.kind == gx::Value::Tensor) {
      const bool finite = std::all_of(v.tensor.data->begin(), v.tensor.data->end(),
                                      [](double d) { return std::isfinite(d); });
      if (!finite && sdk::is_float(v.tensor.dtype)) {
        *refusal = {TN_REASON_GUARD,
                    300,
                    TN_NONE,
                    "let " + rule_->lets[i].name + ": " + rule_->lets[i].source,
                    "E310: the computed constant is not finite",
                    "the constants of the model may hold an infinity, a NaN or a zero variance"};
        return false;
      }
    }
    scope.lets.push_back(std::move(v));
  }
  attrs_.clear();
  body_attrs_.clear();
  const auto all = [&](const std::vector<NewNode>& nodes, std::vector<std::vector<OwnedAttribute>>* out) {
    for (const auto& n : nodes) {
      out->emplace_back();
      if (n.op_of != none && match_->node(n.op_of) == TN_NONE)
        continue;  // its node is absent; handled where it is built
      for (const auto& a : n.attrs) {
        gx::Value v;
        if (!a.literal) {
          v = eval.run(a.expr.program);
          if (v.kind == gx::Value::Graph ||
              v.kind == gx::Value::Tensor) {  // a constant of one element is a number here
            tn_tensor t;
            gx::Tensor loaded;
            if (v.kind == gx::Value::Tensor)
              loaded = v.tensor;
            else if (!graph_.constant(v.graph, &t) || !gx::load(t, &loaded))
              loaded.data->clear();
            v = loaded.count() == 1 ? gx::Value::real((*loaded.data)[0])
                                    : gx::Value::unknown("not one number");
          }
        } else if (a.literal->kind == Json::Bool) {
          v = gx::Value::boolean(a.literal->boolean);
        } else if (a.literal->is_number()) {
          v = a.literal->kind == Json::Int ? gx::Value::integer(a.literal->integer)
                                           : gx::Value::real(a.literal->number);
        } else {
          v = gx::Value::items({});
          for (const auto& item : a.literal->items)
            v.list.push_back(item.is_string()         ? gx::Value::string(item.text)
                             : item.kind == Json::Int ? gx::Value::integer(item.integer)
                                                      : gx::Value::real(item.number));
        }
        if (v.kind == gx::Value::Absent) continue;  // the operator's default holds
        uint32_t kind = 0;
        if (const tn_op_def* def = ops_.find(op_of(n)))
          for (uint32_t k = 0; k < def->attr_count; ++k)
            if (sdk::view(def->attrs[k].name) == a.name) kind = def->attrs[k].kind;
        OwnedAttribute attribute;
        inexact_ = false;
        attribute.name = graph_.api()->symbol(sdk::str(a.name));
        if (v.is_unknown() || !convert(v, kind, &attribute)) {
          *refusal = {v.is_unknown() ? TN_REASON_UNKNOWN : TN_REASON_GUARD,
                      300,
                      TN_NONE,
                      "attribute " + a.name + " of " + n.name,
                      v.is_unknown() ? v.text : v.show() + " does not fit its type",
                      {}};
          return false;
        }
        if (inexact_ && wide()) {
          *refusal = {TN_REASON_DTYPE,
                      300,
                      TN_NONE,
                      "attribute " + a.name + " of " + n.name + " is exact in float32",
                      sdk::format("%.17g", v.number) + ", and the match computes in float64",
                      {}};
          return false;
        }
        out->back().push_back(std::move(attribute));
      }
    }
    return true;
  };
  const bool ok = all(rule_->replace.nodes, &attrs_) && all(rule_->replace.body_nodes, &body_attrs_);
  lets_ = std::move(scope.lets);
  return ok;
}

/// Attributes are float32 in every file format.
double Rewriter::narrow(double v) {
  const double f = static_cast<double>(static_cast<float>(v));
  inexact_ = inexact_ || (f != v && !std::isnan(v));
  return f;
}

/// Does the match compute in float64? An attribute that is rounded would then be the least exact part of it.
bool Rewriter::wide() const {
  const auto is_wide = [&](tn_value v) {
    return v != TN_NONE && v != unbound && graph_.value(v).type.dtype == TN_FLOAT64;
  };
  for (const tn_node n : match_->nodes) {
    const tn_node_info info = graph_.node(n);
    for (uint32_t k = 0; k < info.output_count; ++k)
      if (is_wide(info.outputs[k])) return true;
  }
  return false;
}

bool Rewriter::convert(const gx::Value& v, uint32_t kind, OwnedAttribute* out) {
  if (!kind) {
    if (v.kind == gx::Value::Text)
      kind = TN_ATTR_STRING;
    else if (v.is_number())
      kind = v.is_int ? TN_ATTR_INT : TN_ATTR_FLOAT;
    else if (v.kind == gx::Value::List) {
      kind = TN_ATTR_INTS;
      for (const auto& i : v.list) {
        if (i.kind == gx::Value::Text)
          kind = TN_ATTR_STRINGS;
        else if (kind == TN_ATTR_INTS && !i.is_int)
          kind = TN_ATTR_FLOATS;
      }
    } else
      return false;
  }
  out->kind = kind;
  switch (kind) {
    case TN_ATTR_INT:
      if (!v.is_number() || v.number != std::floor(v.number) || std::fabs(v.number) > 9e18) return false;
      out->i = static_cast<int64_t>(v.number);
      return true;
    case TN_ATTR_FLOAT:
      out->f = narrow(v.number);
      return v.is_number();
    case TN_ATTR_STRING:
      out->s = v.text;
      return v.kind == gx::Value::Text;
    case TN_ATTR_INTS:
    case TN_ATTR_FLOATS:
    case TN_ATTR_STRINGS:
      if (v.kind != gx::Value::List) return false;
      for (const auto& i : v.list) {
        if (kind == TN_ATTR_STRINGS ? i.kind != gx::Value::Text : !i.is_number()) return false;
        if (kind == TN_ATTR_INTS && i.number != std::floor(i.number)) return false;
        if (kind == TN_ATTR_INTS)
          out->ints.push_back(static_cast<int64_t>(i.number));
        else if (kind == TN_ATTR_FLOATS)
          out->floats.push_back(narrow(i.number));
        else
          out->strings.push_back(i.text);
      }
      return true;
    default:
      return false;
  }
}

/// A body is kept by operators that are not of ai.onnx, and by any that no kernel runs.
bool Rewriter::wants_body(tn_sym op) const {
  if (rule_->replace.body == Replacement::NoBody) return false;
  const auto* r = services_.registry;
  return graph_.op_name(op).find("::") != std::string_view::npos || !ops_.find(op) ||
         (r && r->has_kernel && !r->has_kernel(services_.host, op));
}

bool Rewriter::kernels(Refusal* refusal) {
  const auto* r = services_.registry;
  if (!r || !r->has_kernel) return true;
  for (const auto& n : rule_->replace.nodes) {
    const tn_sym op = op_of(n);
    const auto& wanted = rule_->replace.needs_kernel;
    const bool there = wanted.empty() || !kernels_
                           ? r->has_kernel(services_.host, op) != 0
                           : std::any_of(wanted.begin(), wanted.end(), [&](const std::string& device) {
                               return kernels_->has_kernel_on(services_.host, op, sdk::str(device)) != 0;
                             });
    if (there) continue;
    const tn_op_def* def = ops_.find(op);
    bool was_there = false;  // the model used it before, so the rewrite takes nothing away
    for (const tn_node m : match_->nodes) was_there = was_there || graph_.node(m).op == op;
    const bool runs = was_there || rule_->replace.body != Replacement::NoBody || (def && def->decompose);
    if (runs && wanted.empty()) continue;
    std::string devices;
    for (const auto& d : wanted) devices += (devices.empty() ? "" : ", ") + d;
    const std::string plugin = def ? std::string() : ops_.provider(graph_.op_name(op));
    *refusal = {
        TN_REASON_KERNEL,
        250,
        TN_NONE,
        "a kernel for " + std::string(graph_.op_name(op)),
        "no device of this run has one" + (devices.empty() ? "" : " (the rule wants it on " + devices + ")"),
        plugin.empty() ? "load a plugin that provides it"
                       : "plugin " + plugin + ", which is installed, provides it: add it to \"plugins\""};
    return false;
  }
  return true;
}

/// New constants may not outgrow the matched ones by more than the rule allows; 64 KiB are always free.
bool Rewriter::growth(Refusal* refusal) {
  uint64_t before = 0, after = 0;
  std::vector<tn_value> seen;
  std::vector<tn_value> matched = match_->values;
  for (const auto& r : match_->rests) matched.insert(matched.end(), r.second.begin(), r.second.end());
  for (const tn_value v : matched) {
    if (v == unbound || v == TN_NONE || std::find(seen.begin(), seen.end(), v) != seen.end()) continue;
    seen.push_back(v);
    const auto info = graph_.value(v);
    if (info.kind != TN_VALUE_CONSTANT || info.type.rank < 0) continue;
    double bytes = TN_DTYPE_BITS(info.type.dtype) / 8.0;
    for (int32_t i = 0; i < info.type.rank; ++i) bytes *= static_cast<double>(info.type.dims[i]);
    before += static_cast<uint64_t>(bytes);
  }
  for (uint32_t i = 0; i < lets_.size(); ++i)
    if (let_is_operand(i) && exact_[i].dtype() != TN_DTYPE_NONE)
      after += exact_[i].bytes();
    else if (let_is_operand(i) && lets_[i].kind == gx::Value::Tensor)
      after += sdk::packed_bytes(lets_[i].tensor.dtype, lets_[i].tensor.count());
  added_ = after;
  matched_bytes_ = before;
  if (static_cast<double>(after) <= rule_->max_const_growth * static_cast<double>(before) + 65536)
    return true;
  *refusal = {TN_REASON_COST,
              301,
              TN_NONE,
              "max_const_growth " + sdk::format("%.7g", rule_->max_const_growth),
              std::to_string(after) + " bytes of new constants for " + std::to_string(before),
              {}};
  return false;
}

bool Rewriter::outside_reads(tn_value v) const {
  for (const auto& u : graph_.users(v))
    if (u.node == TN_NONE || !match_->has(u.node)) return true;
  return false;
}

Rewriter::Outcome Rewriter::apply(const Match& match, Refusal* refusal) {
  match_ = &match;
  rule_ = match.variant->rule;
  anchor_ = match.nodes[match.variant->anchor];
  made_.clear();
  added_ = 0;
  try {
    if (!kernels(refusal) || !compute(refusal) || !growth(refusal)) return Refused;
    sdk::Transaction tx(graph_.api(), services_.edit, graph_.raw(), rule_->name);
    if (!tx.active()) return LimitReached;
    if (rule_->replace.chain)
      chain_node(tx);
    else
      build(tx);
    erase_matched(tx);
    if (tx.commit()) {
      lets_.clear();
      return Applied;
    }
    *refusal = {TN_REASON_ROLLBACK, 400, TN_NONE, "the rewritten graph is right", tx.said(), {}};
  } catch (const sdk::Failure& e) {
    *refusal = {TN_REASON_ROLLBACK, 400, TN_NONE, "the rewrite can be built", e.what(), {}};
  }
  lets_.clear();
  made_.clear();
  return Refused;
}

}  // namespace tenon::rules
