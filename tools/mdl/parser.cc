// From the tree that PEGTL makes of a text to the definitions that stand in it.

#include "tools/mdl/parser.h"

#include <tao/pegtl/contrib/limit_depth.hpp>
#include <tao/pegtl/contrib/parse_tree.hpp>
#include <memory>
#include <utility>

#include "tools/mdl/grammar_internal.h"

namespace citcat::mdl {

namespace {

namespace pegtl = tao::pegtl;
using Node = pegtl::parse_tree::node;

/// Brackets and statements that lie in each other.
constexpr std::size_t kDeepest = 100;

template <class Rule>
struct Action : pegtl::nothing<Rule> {};
template <>
struct Action<grammar::expression> : pegtl::limit_depth<kDeepest> {};
template <>
struct Action<grammar::statement> : pegtl::limit_depth<kDeepest> {};

template <class Rule>
using Control = pegtl::must_if<grammar::Expected>::control<Rule>;

template <class Rule>
using Selected = pegtl::parse_tree::selector<
    Rule,
    pegtl::parse_tree::store_content::on<
        grammar::name_text, grammar::number_text, grammar::literal_text, grammar::assignment,
        grammar::assign_sign, grammar::call, grammar::element, grammar::variable, grammar::field,
        grammar::increment, grammar::prefix_sign, grammar::product_sign, grammar::sum_sign,
        grammar::compare_sign, grammar::and_sign, grammar::or_sign, grammar::code_condition,
        grammar::code_line, grammar::position_word, grammar::where_word, grammar::constrained_word,
        grammar::request, grammar::sequence, grammar::foreach, grammar::condition, grammar::body,
        grammar::path_star, grammar::path, grammar::base_word, grammar::flag_word, grammar::flavor,
        grammar::metric_name, grammar::metric_units, grammar::metric_aggregate,
        grammar::aggregate_word, grammar::metric_style, grammar::style_word, grammar::metric_mode,
        grammar::mode_word, grammar::metric_units_type, grammar::units_type_word,
        grammar::metric_temporary, grammar::metric_base, grammar::own_constraint,
        grammar::metric_constraint, grammar::metric, grammar::default_word,
        grammar::default_constraint, grammar::counter_constraint, grammar::constraint,
        grammar::list_word, grammar::list_items, grammar::list_library, grammar::resource_list>,
    pegtl::parse_tree::fold_one::on<grammar::prefix, grammar::postfix, grammar::product,
                                    grammar::sum, grammar::comparison, grammar::conjunction,
                                    grammar::disjunction>>;

Place place_of(const Node& node) {
  const auto at = node.begin();
  return {at.line, at.column};
}

class Builder {
 public:
  explicit Builder(const Source& source) : source_(source) {}

  Program program(const Node& root) const {
    Program program;
    for (const auto& node : root.children) {
      if (node->is_type<grammar::metric>()) {
        program.metrics.push_back(metric(*node));
      } else if (node->is_type<grammar::constraint>()) {
        program.constraints.push_back(constraint(*node));
      } else {
        program.lists.push_back(list(*node));
      }
    }
    return program;
  }

 private:
  using Kind = Expression::Kind;

  static Expression make(Kind kind, const Node& at) {
    Expression e;
    e.kind = kind;
    e.at = place_of(at);
    return e;
  }

  std::uint64_t number(const Node& node) const {
    const std::string text = node.string();
    const bool hexadecimal = text.size() > 1 && (text[1] == 'x' || text[1] == 'X');
    constexpr std::size_t kMostDigits = 18, kMostHexDigits = 15;
    if (text.size() - (hexadecimal ? 2 : 0) > (hexadecimal ? kMostHexDigits : kMostDigits)) {
      source_.refuse(place_of(node), "a number below 10^18");
    }
    return std::stoull(text, nullptr, hexadecimal ? 16 : 10);
  }

  Expression expression(const Node& node) const {
    if (node.is_type<grammar::number_text>()) {
      Expression e = make(Kind::number, node);
      e.number = number(node);
      return e;
    }
    if (node.is_type<grammar::literal_text>()) {
      Expression e = make(Kind::text, node);
      e.name = node.string();
      return e;
    }
    if (node.is_type<grammar::variable>()) return named(Kind::variable, node);
    if (node.is_type<grammar::call>()) return named(Kind::call, node);
    if (node.is_type<grammar::element>()) return named(Kind::element, node);
    if (node.is_type<grammar::assignment>()) return assignment(node);
    if (node.is_type<grammar::prefix>()) return prefixed(node);
    if (node.is_type<grammar::postfix>()) return postfixed(node);
    return chained(node);
  }

  /// A name, then parts.
  Expression named(Kind kind, const Node& node) const {
    Expression e = make(kind, node);
    e.name = node.children.front()->string();
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      e.parts.push_back(expression(*node.children[i]));
    }
    return e;
  }

  Expression assignment(const Node& node) const {
    Expression e = make(Kind::assign, node);
    e.name = node.children[0]->string();
    e.operation = node.children[1]->string();
    e.parts.push_back(expression(*node.children[2]));
    return e;
  }

  Expression prefixed(const Node& node) const {
    Expression e = expression(*node.children.back());
    for (std::size_t i = node.children.size() - 1; i-- > 0;) {
      const Node& sign = *node.children[i];
      Expression outer = make(sign.string_view() == "-" ? Kind::negate : Kind::address, sign);
      outer.parts.push_back(std::move(e));
      e = std::move(outer);
    }
    return e;
  }

  Expression postfixed(const Node& node) const {
    Expression e = expression(*node.children.front());
    for (std::size_t i = 1; i < node.children.size(); ++i) {
      const Node& part = *node.children[i];
      const bool is_field = part.is_type<grammar::field>();
      Expression outer = make(is_field ? Kind::field : Kind::increment, part);
      if (is_field) {
        outer.name = part.children.front()->string();
        outer.at = place_of(*part.children.front());
      }
      outer.parts.push_back(std::move(e));
      e = std::move(outer);
    }
    return e;
  }

  /// Operands with signs between them, from the left.
  Expression chained(const Node& node) const {
    Expression e = expression(*node.children.front());
    for (std::size_t i = 1; i + 1 < node.children.size(); i += 2) {
      Expression outer = make(Kind::binary, *node.children[i]);
      outer.operation = node.children[i]->string();
      outer.parts.push_back(std::move(e));
      outer.parts.push_back(expression(*node.children[i + 1]));
      e = std::move(outer);
    }
    return e;
  }

  CodeLine code_line(const Node& node) const {
    CodeLine line;
    if (node.children.size() == 2) line.condition = expression(*node.children[0]->children[0]);
    line.action = expression(*node.children.back());
    return line;
  }

  Statement statement(const Node& node) const {
    Statement s;
    s.at = place_of(node);
    if (node.is_type<grammar::sequence>()) {
      s.kind = Statement::Kind::sequence;
      s.body = statements(node);
    } else if (node.is_type<grammar::foreach>()) {
      s.kind = Statement::Kind::foreach;
      s.variable = node.children[0]->string();
      s.subject = expression(*node.children[1]);
      s.body.push_back(statement(*node.children[2]));
    } else if (node.is_type<grammar::condition>()) {
      s.kind = Statement::Kind::condition;
      s.subject = expression(*node.children[0]);
      s.body.push_back(statement(*node.children[1]));
    } else {
      request(node, s);
    }
    return s;
  }

  void request(const Node& node, Statement& s) const {
    s.kind = Statement::Kind::request;
    s.prepend = node.children[0]->string_view() == "prepend";
    s.post = node.children[1]->string_view() == "postInsn";
    s.subject = expression(*node.children[2]);
    for (std::size_t i = 3; i < node.children.size(); ++i) {
      if (node.children[i]->is_type<grammar::constrained_word>()) {
        s.constrained = true;
      } else {
        s.code.push_back(code_line(*node.children[i]));
      }
    }
  }

  std::vector<Statement> statements(const Node& node) const {
    std::vector<Statement> all;
    for (const auto& child : node.children) all.push_back(statement(*child));
    return all;
  }

  static Base base(const Node& node) {
    const std::string_view text = node.string_view();
    return text == "counter"        ? Base::counter
           : text == "processTimer" ? Base::process_timer
           : text == "wallTimer"    ? Base::wall_timer
                                    : Base::nothing;
  }

  static std::vector<std::string> texts(const Node& node) {
    std::vector<std::string> all;
    for (const auto& child : node.children) all.push_back(child->string());
    return all;
  }

  Constraint constraint(const Node& node) const {
    Constraint c;
    c.at = place_of(*node.children[0]);
    c.name = node.children[0]->string();
    c.path = texts(*node.children[1]);
    const Node& kind = *node.children[2];
    c.by_context = kind.is_type<grammar::default_constraint>();
    if (!c.by_context) c.body = statements(*kind.children[0]);
    return c;
  }

  /// Within a metric: of another name, or defined there.
  void metric_constraint(const Node& node, Metric& m) const {
    const Node& name = *node.children[0];
    if (node.children.size() == 1) {
      m.constraints.push_back({place_of(name), name.string()});
      return;
    }
    const Node& own = *node.children[1];
    Constraint c;
    c.at = place_of(name);
    c.name = name.string();
    c.path = texts(*own.children[0]);
    c.replaces = true;
    c.base = base(*own.children[1]);
    c.body = statements(*own.children[2]);
    m.own.push_back(std::move(c));
  }

  void once(bool first, const Node& node, const std::string& what) const {
    if (!first) source_.refuse(place_of(node), what + " once only", "it again");
  }

  void metric_field(const Node& node, Metric& m) const {
    const Node& first = *node.children[0];
    if (node.is_type<grammar::metric_name>()) {
      once(m.name.empty(), node, "name");
      m.name = first.string();
    } else if (node.is_type<grammar::metric_units>()) {
      once(m.units.empty(), node, "units");
      m.units = first.string();
    } else if (node.is_type<grammar::metric_aggregate>()) {
      once(!m.aggregate, node, "aggregateOperator");
      const std::string_view text = first.string_view();
      m.aggregate = text == "sum"   ? Aggregate::sum
                    : text == "avg" ? Aggregate::average
                    : text == "min" ? Aggregate::minimum
                                    : Aggregate::maximum;
    } else if (node.is_type<grammar::metric_style>()) {
      m.sampled = first.string_view() == "SampledFunction";
    } else if (node.is_type<grammar::metric_mode>()) {
      m.developer = first.string_view() == "developer";
    } else if (node.is_type<grammar::metric_units_type>()) {
      m.units_type = first.string();
    } else if (node.is_type<grammar::metric_temporary>()) {
      m.temporaries.push_back(first.string());
    } else if (node.is_type<grammar::flavor>()) {
      m.flavors = texts(node);
    } else if (node.is_type<grammar::metric_constraint>()) {
      metric_constraint(node, m);
    } else {
      once(!m.base, node, "base");
      m.base = base(first);
      m.body = statements(*node.children[1]);
    }
  }

  Metric metric(const Node& node) const {
    Metric m;
    m.at = place_of(*node.children[0]);
    m.id = node.children[0]->string();
    for (std::size_t i = 1; i < node.children.size(); ++i) metric_field(*node.children[i], m);
    if (!m.base) source_.refuse(m.at, "a metric with base is", m.id + " without one");
    if (m.name.empty()) m.name = m.id;
    return m;
  }

  ResourceList list(const Node& node) const {
    ResourceList l;
    l.at = place_of(*node.children[0]);
    l.name = node.children[0]->string();
    const std::string_view kind = node.children[1]->string_view();
    l.kind = kind == "procedure" ? ResourceList::Kind::procedure
             : kind == "module"  ? ResourceList::Kind::module
             : kind == "string"  ? ResourceList::Kind::text
             : kind == "int"     ? ResourceList::Kind::integer
                                 : ResourceList::Kind::real;
    for (std::size_t i = 2; i < node.children.size(); ++i) {
      const Node& part = *node.children[i];
      if (part.is_type<grammar::list_items>()) {
        l.items = texts(part);
      } else if (part.is_type<grammar::flavor>()) {
        l.flavors = texts(part);
      } else {
        const char c = part.children[0]->string_view().front();
        l.library = c == 't' || c == 'T';
      }
    }
    if (l.items.empty()) source_.refuse(l.at, "a list with items", l.name + " without any");
    return l;
  }

  const Source& source_;
};

}  // namespace

Program parse(const Source& source) {
  pegtl::memory_input in(source.text(), "");
  try {
    const auto root =
        pegtl::parse_tree::parse<grammar::file, Node, Selected, Action, Control>(in);
    return Builder(source).program(*root);
  } catch (const pegtl::parse_error& e) {
    const pegtl::position& at = e.positions().front();
    const std::string expected(e.message());
    const bool deep = expected.starts_with("maximum");
    source.refuse({at.line, at.column},
                  deep ? "at most " + std::to_string(kDeepest) + " brackets in each other"
                       : expected,
                  deep ? "more" : "");
  }
}

}  // namespace citcat::mdl
