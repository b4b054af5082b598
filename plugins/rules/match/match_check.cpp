#include "match/match_check.hpp"

#include <algorithm>

namespace tenon::rules {
namespace {

constexpr tn_dim unset = INT64_MIN;

}  // namespace

gx::Value attribute_value(const tn_attr& a) {
  switch (a.kind) {
    case TN_ATTR_INT:
      return gx::Value::integer(a.u.i);
    case TN_ATTR_FLOAT:
      return gx::Value::real(a.u.f);
    case TN_ATTR_STRING:
      return gx::Value::string(sdk::view(a.u.s));
    case TN_ATTR_INTS:
      return gx::Value::ints({a.u.ints, a.count});
    case TN_ATTR_FLOATS: {
      gx::Value v = gx::Value::items({});
      for (uint64_t i = 0; i < a.count; ++i) v.list.push_back(gx::Value::real(a.u.floats[i]));
      return v;
    }
    case TN_ATTR_STRINGS: {
      gx::Value v = gx::Value::items({});
      for (uint64_t i = 0; i < a.count; ++i) v.list.push_back(gx::Value::string(sdk::view(a.u.strings[i])));
      return v;
    }
    case TN_ATTR_TENSOR: {
      gx::Tensor t;
      if (a.u.tensor && gx::load(*a.u.tensor, &t)) return gx::Value::of(std::move(t));
      return gx::Value::unknown("an attribute without numbers");
    }
    default:
      return gx::Value::unknown("an attribute of a kind that expressions cannot read");
  }
}

gx::Value MatchScope::value(uint32_t index) {
  if (rule_.is_list(index)) {
    gx::Value all = gx::Value::items({});
    for (const tn_value v : match_.list(index)) {
      const std::string name = rule_.values[index] + "[" + std::to_string(all.list.size()) + "]";
      all.list.push_back(v == TN_NONE ? gx::Value{} : gx::Value::of_graph(v, name));
    }
    return all;
  }
  const tn_value v = match_.value(index);
  return v == TN_NONE ? gx::Value{} : gx::Value::of_graph(v, rule_.values[index]);
}

gx::Value MatchScope::attribute(uint32_t node, const std::string& name) {
  const tn_node_info info = graph_.node(match_.node(node));
  tn_attr scratch;
  const tn_attr* a = effective_attribute(info, graph_.api()->symbol(sdk::str(name)), name, ops_, &scratch);
  return a ? attribute_value(*a) : gx::Value{};
}

std::string MatchScope::op(uint32_t node) {
  const tn_node n = match_.node(node);
  return n == TN_NONE ? std::string() : std::string(graph_.op_name(graph_.node(n).op));
}

tn_type MatchScope::type(tn_value v) { return graph_.value(v).type; }

bool MatchScope::elements(tn_value v, std::vector<tn_dim>* out) {
  const tn_dim* e = nullptr;
  uint32_t n = 0;
  if (graph_.api()->known_elements(graph_.raw(), v, &e, &n) != TN_OK) return false;
  out->assign(e, e + n);
  // Negative numbers are handles too.
  for (auto& d : *out) {
    int64_t known = 0;
    if (d < 0 && graph_.symbols()->as_number(graph_.raw(), d, &known) && known >= 0) d = known;
  }
  return true;
}

int64_t MatchScope::least(tn_dim dim) {
  int64_t lo = 0, hi = 0;
  graph_.symbols()->range(graph_.raw(), dim, &lo, &hi);
  return lo;
}

/// The axes a node reduces: attribute or second operand, counted from the front; all when none are named.
gx::Value MatchScope::axes(uint32_t node) {
  const tn_node n = match_.node(node);
  const tn_node_info info = graph_.node(n);
  const tn_type t = info.input_count ? graph_.value(info.inputs[0]).type : tn_type{};
  const int64_t rank = info.input_count && t.kind == TN_KIND_TENSOR ? t.rank : -1;
  std::vector<int64_t> list;
  tn_attr scratch;
  const auto integer = [&](const char* name, int64_t otherwise) {
    const tn_attr* a = effective_attribute(info, graph_.api()->symbol(sdk::str(name)), name, ops_, &scratch);
    return a && a->kind == TN_ATTR_INT ? a->u.i : otherwise;
  };
  const tn_attr* a = sdk::find_attr(info, graph_.api()->symbol(sdk::str("axes")));
  if (a && a->kind == TN_ATTR_INTS) {
    list.assign(a->u.ints, a->u.ints + a->count);
  } else if (info.input_count > 1 && info.inputs[1] != TN_NONE &&
             graph_.op_name(info.op).compare(0, 6, "Reduce") == 0) {
    tn_tensor c;
    if (!graph_.constant(info.inputs[1], &c))
      return gx::Value::unknown("the axes of " + rule_.nodes[node] + " are not constant");
    const sdk::TensorView view(c);
    if (view.count() > 64) return gx::Value::unknown("the axes of " + rule_.nodes[node]);
    for (int64_t i = 0; i < view.count(); ++i) list.push_back(view.int_at(i));
  }
  if (list.empty()) {
    if (integer("noop_with_empty_axes", 0) == 1) return gx::Value::items({});
    if (rank < 0) return gx::Value::unknown("rank of the input of " + rule_.nodes[node]);
    const tn_attr* axis =
        effective_attribute(info, graph_.api()->symbol(sdk::str("axis")), "axis", ops_, &scratch);
    int64_t from =
        axis && axis->kind == TN_ATTR_INT ? axis->u.i : 0;  // of normalisations: from there to the end
    if (from < 0) from += rank;
    for (int64_t i = from; i < rank; ++i) list.push_back(i);
  }
  for (auto& i : list) {
    if (i >= 0) continue;
    if (rank < 0) return gx::Value::unknown("rank of the input of " + rule_.nodes[node]);
    i += rank;
  }
  std::sort(list.begin(), list.end());
  return gx::Value::ints(list);
}

Escape escape_of(const Variant& variant, uint32_t value) {
  Escape e = Escape::Forbid;
  for (const auto& w : variant.pattern->values) {
    uint32_t v = w.value;
    for (size_t i = 0; v != none && i < variant.alias.size() && variant.alias[v] != v; ++i)
      v = variant.alias[v];
    if (v == value && w.escape != Escape::Forbid) e = w.escape;
  }
  return e;
}

bool MatchChecker::refuse(int progress, tn_reason reason, tn_value value,
                          const std::function<void(Refusal&)>& text) {
  if (progress <= refusal_->progress) return false;
  *refusal_ = {};
  refusal_->progress = progress;
  refusal_->reason = reason;
  refusal_->value = value;
  refusal_->variant = match_->variant;
  if (detailed_) {
    text(*refusal_);
    refusal_->nodes = match_->nodes;
  }
  return false;
}

bool MatchChecker::shape(const ValueWish& w, tn_value v) {
  const auto info = graph_.value(v);
  const std::string& name = rule_->values[w.value];
  if (info.type.kind != TN_KIND_TENSOR || info.type.rank < 0)
    return refuse(3, TN_REASON_UNKNOWN, v, [&](Refusal& r) {
      r.expr = "shape of '" + name + "'";
      r.got = "not known";
    });
  const auto dims = sdk::dims_of(info.type);
  const auto& wish = *w.shape;
  size_t rest = wish.size();
  for (size_t i = 0; i < wish.size(); ++i)
    if (wish[i].kind == DimWish::Rest) rest = i;
  const bool open = rest < wish.size();
  const auto said = [&] {
    std::string s;
    for (const auto& d : wish)
      s += (s.empty() ? "" : ",") + (d.kind == DimWish::Rest     ? "..."
                                     : d.kind == DimWish::Symbol ? rule_->symbols[d.symbol]
                                                                 : std::to_string(d.number));
    return "shape of '" + name + "' is [" + s + "]";
  };
  const auto shown = [&] {
    std::string s;
    for (const tn_dim d : dims)
      s += (s.empty() ? "" : ",") +
           (d >= 0 ? std::to_string(d) : sdk::text(graph_.symbols()->text(graph_.raw(), d)));
    return "[" + s + "]";
  };
  if (open ? dims.size() + 1 < wish.size() : dims.size() != wish.size())
    return refuse(3, TN_REASON_SHAPE, v, [&](Refusal& r) {
      r.expr = said();
      r.got = shown();
    });
  for (size_t i = 0; i < wish.size(); ++i) {
    if (wish[i].kind == DimWish::Rest) continue;
    const tn_dim d = dims[i < rest ? i : dims.size() - (wish.size() - i)];
    tn_dim wanted = wish[i].number;
    if (wish[i].kind == DimWish::Symbol) {
      if (symbols_[wish[i].symbol] == unset) symbols_[wish[i].symbol] = d;
      wanted = symbols_[wish[i].symbol];
    }
    if (d == wanted) continue;
    const tn_truth same = graph_.symbols()->compare(graph_.raw(), TN_DIM_EQ, d, wanted);
    if (same == TN_YES) continue;
    return refuse(3, same == TN_NO ? TN_REASON_SHAPE : TN_REASON_UNKNOWN, v, [&](Refusal& r) {
      r.expr = said();
      r.got = shown();
    });
  }
  return true;
}

bool MatchChecker::wish(const ValueWish& w, tn_value v) {
  const auto info = graph_.value(v);
  const std::string& name = rule_->values[w.value];
  if (w.constant && info.kind != TN_VALUE_CONSTANT)
    return refuse(1, TN_REASON_CONST, v, [&](Refusal& r) {
      r.expr = "'" + name + "' is constant";
      if (info.kind == TN_VALUE_RESULT)
        r.got = "output of " + std::string(graph_.op_name(graph_.node(info.producer).op)) + " " +
                graph_.node_name(info.producer);
      else
        r.got = "it is an input of the graph";
    });
  if (w.forbid_shared && info.use_count > 1)
    return refuse(1, TN_REASON_CONST, v, [&](Refusal& r) {
      r.expr = "'" + name + "' is used once";
      r.got = std::to_string(info.use_count) + " uses";
    });
  if (!w.dtype.empty()) {
    if (info.type.dtype == TN_DTYPE_NONE)
      return refuse(2, TN_REASON_UNKNOWN, v, [&](Refusal& r) {
        r.expr = "dtype of '" + name + "'";
        r.got = "not known";
      });
    if (!w.dtype.text(sdk::dtype_name(info.type.dtype)))
      return refuse(2, TN_REASON_DTYPE, v, [&](Refusal& r) {
        r.expr = "dtype of '" + name + "' is " + w.dtype.show();
        r.got = sdk::dtype_name(info.type.dtype);
      });
  }
  if (!w.rank.empty()) {
    if (info.type.kind != TN_KIND_TENSOR || info.type.rank < 0)
      return refuse(3, TN_REASON_UNKNOWN, v, [&](Refusal& r) {
        r.expr = "rank of '" + name + "'";
        r.got = "not known";
      });
    if (!w.rank.number(info.type.rank))
      return refuse(3, TN_REASON_SHAPE, v, [&](Refusal& r) {
        r.expr = "rank of '" + name + "' is " + w.rank.show();
        r.got = std::to_string(info.type.rank);
      });
  }
  return !w.shape || shape(w, v);
}

bool MatchChecker::values() {
  symbols_.assign(rule_->symbols.size(), unset);
  for (const auto& w : match_->variant->pattern->values) {
    if (rule_->is_list(w.value)) {
      for (const tn_value v : match_->list(w.value))
        if (v != TN_NONE && !wish(w, v)) return false;
    } else if (const tn_value v = match_->value(w.value); v != TN_NONE && !wish(w, v)) {
      return false;
    }
  }
  return true;
}

bool MatchChecker::chain() {
  for (const auto& w : match_->variant->pattern->chain_wishes) {
    const tn_node_info first = graph_.node(match_->nodes.front()), last = graph_.node(match_->nodes.back());
    const auto dtype = [&](tn_value v) {
      return std::string(v == TN_NONE ? "none" : sdk::dtype_name(graph_.value(v).type.dtype));
    };
    bool ok = false;
    std::string got;
    switch (w.kind) {
      case ChainWish::InputDtype:
        ok = w.wish.text(got = dtype(first.input_count ? first.inputs[0] : TN_NONE));
        break;
      case ChainWish::OutputDtype:
        ok = w.wish.text(got = dtype(last.output_count ? last.outputs[0] : TN_NONE));
        break;
      case ChainWish::WeightDtype: {
        tn_value weight = TN_NONE;
        for (uint32_t i = 0; i < first.input_count && weight == TN_NONE; ++i)
          if (first.inputs[i] != TN_NONE && graph_.value(first.inputs[i]).kind == TN_VALUE_CONSTANT)
            weight = first.inputs[i];
        ok = w.wish.text(got = dtype(weight));
        break;
      }
      case ChainWish::Rank: {
        const tn_type t = first.input_count && first.inputs[0] != TN_NONE
                              ? graph_.value(first.inputs[0]).type
                              : tn_type{TN_KIND_NONE, 0, -1, 0, nullptr};
        ok = t.rank >= 0 && w.wish.number(t.rank);
        got = std::to_string(t.rank);
        break;
      }
      case ChainWish::Type:
      case ChainWish::Attribute: {
        const tn_attr* a = nullptr;
        tn_attr scratch;
        for (size_t i = 0; i < match_->nodes.size() && !a; ++i) {
          const tn_node_info info = graph_.node(match_->nodes[i]);
          a = effective_attribute(info, w.symbol, w.key, ops_, &scratch);
        }
        if (a) {
          ok = meets(w.wish, *a);
          got = attribute_value(*a).show();
        } else if (w.kind == ChainWish::Type) {
          ok = w.wish.text(got = snake_case(graph_.op_name(last.op)));
        } else {
          got = "no node has it";
        }
        break;
      }
    }
    if (!ok)
      return refuse(4, w.kind <= ChainWish::OutputDtype ? TN_REASON_DTYPE : TN_REASON_GUARD, TN_NONE,
                    [&](Refusal& r) {
                      r.expr = w.key + " is " + w.wish.show();
                      r.got = got;
                    });
  }
  return true;
}

/// What comes from outside is not made inside: the replacement would read what it takes away. A node that
/// stays (escape "keep") may be read.
bool MatchChecker::own_operands() {
  const Variant& v = *match_->variant;
  const auto outside = [&](uint32_t pattern_value, tn_value value) {
    if (value == TN_NONE || value == unbound) return true;
    const auto info = graph_.value(value);
    if (info.kind != TN_VALUE_RESULT || !match_->has(info.producer)) return true;
    uint32_t made_as = none;
    for (size_t i = 0; i < match_->nodes.size(); ++i)
      if (match_->nodes[i] == info.producer && info.index < v.nodes[i].out.size())
        made_as = v.nodes[i].out[info.index];
    if (made_as != none && escape_of(v, made_as) == Escape::Keep) return true;
    return refuse(5, TN_REASON_ESCAPE, value, [&](Refusal& r) {
      r.expr = "'" +
               (pattern_value < rule_->values.size() ? rule_->values[pattern_value] : std::string("_")) +
               "' comes from outside the match";
      r.got = "it is the result of " + graph_.node_name(info.producer) + ", which the rule replaces";
    });
  };
  for (uint32_t i = 0; i < match_->values.size(); ++i)
    if (v.alias[i] == i && v.producer[i] == none && !outside(i, match_->values[i])) return false;
  for (const auto& r : match_->rests)
    for (const tn_value x : r.second)
      if (!outside(r.first, x)) return false;
  return true;
}

bool MatchChecker::escapes() {
  const Variant& v = *match_->variant;
  if (!own_operands()) return false;
  const bool chain = !v.pattern->nodes.empty() && rule_->replace.chain;
  const auto look = [&](tn_value value, uint32_t pattern_value) {
    if (pattern_value != none &&
        std::find(v.outputs.begin(), v.outputs.end(), pattern_value) != v.outputs.end())
      return true;
    const Escape policy = pattern_value == none ? Escape::Forbid : escape_of(v, pattern_value);
    if (policy != Escape::Forbid) return true;
    uint32_t inside = 0;
    for (const auto& use : graph_.users(value)) {
      if (use.node != TN_NONE && match_->has(use.node) && (!chain || ++inside == 1)) continue;
      return refuse(5, TN_REASON_ESCAPE, value, [&](Refusal& r) {
        const std::string name =
            pattern_value != none && pattern_value < rule_->values.size()
                ? "'" + rule_->values[pattern_value] + "' (" + graph_.value_name(value) + ")"
                : graph_.value_name(value);
        r.expr = name + " is read inside the match alone";
        r.got = use.node == TN_NONE ? "it is an output of the graph or of a body"
                : inside > 1        ? graph_.node_name(use.node) + " reads it twice"
                                    : "it is also read by " + graph_.node_name(use.node);
        if (inside < 2) r.hint = "escape \"keep\", or fuse the other reader first";
        if (use.node != TN_NONE) r.by.push_back(graph_.node_name(use.node));
      });
    }
    return true;
  };
  for (size_t i = 0; i < match_->nodes.size(); ++i) {
    const tn_node_info info = graph_.node(match_->nodes[i]);
    for (uint32_t k = 0; k < info.output_count; ++k) {
      if (info.outputs[k] == TN_NONE) continue;
      if (!look(info.outputs[k], k < v.nodes[i].out.size() ? v.nodes[i].out[k] : none)) return false;
    }
  }
  return true;  // inner nodes of assoc trees have one reader, inside
}

bool MatchChecker::guards() {
  if (rule_->where.empty()) return true;
  MatchScope scope(graph_, ops_, *match_);
  gx::Evaluator eval(scope);
  // Guards may use computed constants; those are small then, and computed here too.
  bool lets_wanted = false;
  for (const auto& g : rule_->where)
    for (const auto& e : g.expr.program.nodes) lets_wanted = lets_wanted || e.ref.kind == gx::Ref::Let;
  if (lets_wanted)
    for (const auto& l : rule_->lets) scope.lets.push_back(evaluate(l, scope, eval, nullptr));
  for (size_t i = 0; i < rule_->where.size(); ++i) {
    const Guard& g = rule_->where[i];
    gx::Value v = eval.run(g.expr.program);
    if (v.kind == gx::Value::Graph || v.kind == gx::Value::Tensor)
      v = gx::Value::unknown("the guard is a tensor; use all() or any()");
    const bool unknown = v.is_unknown() || v.kind == gx::Value::Dim;
    if (unknown ? g.accept_unknown
                : ((v.is_number() && v.number != 0) || (v.kind == gx::Value::List && !v.list.empty()) ||
                   (v.kind == gx::Value::Text && !v.text.empty())))
      continue;
    return refuse(6 + static_cast<int>(i), unknown ? TN_REASON_UNKNOWN : TN_REASON_GUARD, TN_NONE,
                  [&](Refusal& r) {
                    r.expr = "where[" + std::to_string(i) + "]: " + g.expr.program.source;
                    r.got = unknown ? "unknown: " + v.text : eval.describe(g.expr.program);
                    r.hint = g.why;
                  });
  }
  return true;
}

bool MatchChecker::gain() {
  measured_.clear();
  if (at_any_cost) return true;
  if (rule_->measure != Rule::MeasureOff && measure) {
    if (!cycles()) return false;
    Measured m = measure(*match_);
    if (m.choice == Measured::Keep)
      return refuse(202, TN_REASON_COST, TN_NONE, [&](Refusal& r) {
        r.expr = "the replacement is faster";
        r.got = m.text;
      });
    if (m.choice == Measured::Rewrite) {
      measured_ = std::move(m.text);
      return true;
    }
  }
  if (rule_->gain.program.empty()) return true;
  MatchScope scope(graph_, ops_, *match_);
  gx::Evaluator eval(scope);
  eval.set_estimate(true);
  const gx::Value v = eval.run(rule_->gain.program);
  if (!v.is_number() || v.number > rule_->min_gain) return true;  // an unknown cost never blocks
  return refuse(200, TN_REASON_COST, TN_NONE, [&](Refusal& r) {
    r.expr = "gain " + rule_->gain.program.source + " > " + sdk::format("%.7g", rule_->min_gain);
    r.got = v.show();
  });
}

bool MatchChecker::check(const Match& match, Refusal* refusal, bool detailed) {
  match_ = &match;
  rule_ = match.variant->rule;
  refusal_ = refusal;
  detailed_ = detailed;
  try {
    return values() && chain() && escapes() && guards() && gain() && cycles();
  } catch (const sdk::Failure& e) {  // sizes that overflow, types without numbers
    return refuse(6, TN_REASON_UNKNOWN, TN_NONE, [&](Refusal& r) { r.got = e.what(); });
  }
}

}  // namespace tenon::rules
