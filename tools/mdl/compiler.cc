#include "tools/mdl/compiler.h"

#include <utility>

namespace citcat::mdl {

namespace {

using ExpressionKind = Expression::Kind;
using CodeKind = CodeNode::Kind;

constexpr const char* kConstraint = "$constraint";

CodeNode node(CodeKind kind, std::vector<CodeNode> parts = {}) {
  CodeNode n;
  n.kind = kind;
  n.parts = std::move(parts);
  return n;
}

std::optional<CodeKind> operation_of(const std::string& text) {
  static const std::map<std::string, CodeKind> kAll{
      {"+", CodeKind::add},
      {"-", CodeKind::subtract},
      {"*", CodeKind::multiply},
      {"/", CodeKind::divide},
      {"<", CodeKind::less},
      {">", CodeKind::greater},
      {"<=", CodeKind::less_or_equal},
      {">=", CodeKind::greater_or_equal},
      {"==", CodeKind::equal},
      {"!=", CodeKind::unequal},
      {"&&", CodeKind::both},
      {"||", CodeKind::either},
  };
  const auto found = kAll.find(text);
  return found != kAll.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace

Compiler::Compiler(const Library& library, const Metric& metric, Plan& plan)
    : library_(library), metric_(metric), plan_(plan) {
  variables_[metric.id] = 0;
  for (const std::string& name : metric.temporaries) {
    variables_[name] = ++plan_.temporaries;
  }
}

void Compiler::add(const Constraint& constraint, const Source& source, const Resource& resource) {
  if (constraint.replaces) {
    variables_[constraint.name] = 0;
  } else {
    variables_[constraint.name] = plan_.temporaries + ++plan_.constraints;
  }
  Scope scope;
  scope.source = &source;
  scope.resource = &resource;
  scope.of_constraint = !constraint.replaces;
  statements(constraint.body, scope);
}

void Compiler::add_base(const Source& source) {
  Scope scope;
  scope.source = &source;
  statements(metric_.body, scope);
}

// ---------------------------------------------------------------------------------------------
// Statements

void Compiler::statements(const std::vector<Statement>& all, const Scope& scope) {
  for (const Statement& s : all) statement(s, scope);
}

void Compiler::statement(const Statement& s, const Scope& scope) {
  switch (s.kind) {
    case Statement::Kind::sequence:
      return statements(s.body, scope);
    case Statement::Kind::foreach: {
      Scope inner = scope;
      inner.names[s.variable] = meaning(*s.subject, scope);
      return statements(s.body, inner);
    }
    case Statement::Kind::condition:
      return condition(s, scope);
    case Statement::Kind::request:
      return request(s, scope);
  }
}

void Compiler::condition(const Statement& s, Scope scope) {
  // The first of several conditions that must all hold.
  const Expression* e = &*s.subject;
  while (e->kind == ExpressionKind::binary && e->operation == "&&") {
    scope.tests.push_back(test(e->parts[1], scope));
    e = &e->parts[0];
  }
  scope.tests.push_back(test(*e, scope));
  statements(s.body, scope);
}

/// Whether it is the name of a module or of a procedure; neither: nullopt.
std::optional<bool> Compiler::by_module(const Expression& e, const Scope& scope) const {
  if (e.kind != ExpressionKind::field || e.name != "name") return std::nullopt;
  return meaning(e.parts[0], scope).kind == Meaning::Kind::modules;
}

ProcedureTest Compiler::test(const Expression& e, const Scope& scope) const {
  constexpr const char* kExpected = "a comparison such as func.name == \"schedule\"";
  if (e.kind != ExpressionKind::binary || (e.operation != "==" && e.operation != "!=")) {
    scope.source->refuse(e.at, kExpected);
  }
  const bool name_first = e.parts[1].kind == ExpressionKind::text;
  const Expression& text = e.parts[name_first ? 1 : 0];
  const std::optional<bool> module = by_module(e.parts[name_first ? 0 : 1], scope);
  if (text.kind != ExpressionKind::text || !module) scope.source->refuse(e.at, kExpected);
  return {*module, e.operation == "==", text.name};
}

void Compiler::request(const Statement& s, const Scope& scope) {
  Meaning at = meaning(*s.subject, scope);
  if (at.kind != Meaning::Kind::points) {
    scope.source->refuse(s.subject->at, "points such as func.entry");
  }
  // Those of a call are two: after it is where what was called came back.
  PointKind point = at.points.front();
  if (at.points.size() == 2 && s.post) point = at.points.back();
  Attachment a;
  a.point = point;
  a.procedures = std::move(at.procedures);
  a.tests = scope.tests;
  a.prepend = s.prepend;
  a.of_constraint = scope.of_constraint;
  a.constrained = s.constrained;
  for (const CodeLine& l : s.code) a.code.push_back(line(l, scope, point));
  plan_.attachments.push_back(std::move(a));
}

// ---------------------------------------------------------------------------------------------
// Names of resources and points

Compiler::Meaning Compiler::meaning(const Expression& e, const Scope& scope) const {
  switch (e.kind) {
    case ExpressionKind::field:
      return meaning_of_field(e, scope);
    case ExpressionKind::element:
      if (e.name == kConstraint) return meaning_of_constraint(e, scope);
      break;
    case ExpressionKind::variable:
      return meaning_of_name(e, scope);
    default:
      break;
  }
  scope.source->refuse(e.at, "procedures, modules or points");
}

Compiler::Meaning Compiler::meaning_of_name(const Expression& e, const Scope& scope) const {
  if (const auto known = scope.names.find(e.name); known != scope.names.end()) {
    return known->second;
  }
  if (e.name == kConstraint) return meaning_of_constraint(e, scope);
  if (e.name == "$procedures") return {Meaning::Kind::procedures, {{{"*", "*"}}}, {}};
  if (e.name == "$modules") return {Meaning::Kind::modules, {{{"*", "*"}}}, {}};
  const auto list = library_.list(e.name);
  if (list.definition == nullptr) {
    scope.source->refuse(e.at,
                         "a variable of foreach, a resourceList, $procedures, $modules or "
                         "$constraint");
  }
  Meaning m;
  const bool modules = list.definition->kind == ResourceList::Kind::module;
  if (!modules && list.definition->kind != ResourceList::Kind::procedure) {
    scope.source->refuse(e.at, "a list of procedures or modules", "another list, " + e.name);
  }
  m.kind = modules ? Meaning::Kind::modules : Meaning::Kind::procedures;
  for (const std::string& item : list.definition->items) {
    const std::size_t slash = item.find('/');
    if (modules) {
      m.procedures.patterns.push_back({item, "*"});
    } else if (slash == std::string::npos) {
      m.procedures.patterns.push_back({"*", item});
    } else {
      m.procedures.patterns.push_back({item.substr(0, slash), item.substr(slash + 1)});
    }
  }
  return m;
}

/// $constraint[0] is the resource itself, $constraint[1] the one that it lies in.
Compiler::Meaning Compiler::meaning_of_constraint(const Expression& e, const Scope& scope) const {
  if (scope.resource == nullptr || scope.resource->root != Root::code) {
    scope.source->refuse(e.at, "$constraint within a constraint for /Code only");
  }
  const std::vector<std::string>& parts = scope.resource->parts;
  std::uint64_t up = 0;
  if (e.kind == ExpressionKind::element) {
    if (e.parts[0].kind != ExpressionKind::number || e.parts[0].number >= parts.size()) {
      scope.source->refuse(e.parts[0].at, "a number below " + std::to_string(parts.size()) +
                                              ", the stars of the constraint's path");
    }
    up = e.parts[0].number;
  }
  if (parts.size() - up == 1) return {Meaning::Kind::modules, {{{parts[0], "*"}}}, {}};
  return {Meaning::Kind::procedures, {{{parts[0], parts[1]}}}, {}};
}

Compiler::Meaning Compiler::meaning_of_field(const Expression& e, const Scope& scope) const {
  const Expression& of = e.parts[0];
  if (of.kind == ExpressionKind::variable && scope.names.find(of.name) == scope.names.end()) {
    const bool known = of.name.starts_with('$');
    if (const PointRow* const row = find_point(of.name, e.name); known && row != nullptr) {
      return {Meaning::Kind::points, {}, {row->kind}};
    }
    const std::string fields = point_fields(of.name);
    if (known && !fields.empty()) scope.source->refuse(e.at, fields);
  }
  Meaning m = meaning(of, scope);
  switch (m.kind) {
    case Meaning::Kind::modules:
      if (e.name == "funcs") return {Meaning::Kind::procedures, std::move(m.procedures), {}};
      scope.source->refuse(e.at, "funcs or name, of a module");
    case Meaning::Kind::procedures:
      if (e.name == "calls") {
        m.points = {PointKind::procedure_call, PointKind::call_returned};
      } else if (const PointRow* const row = find_point("func", e.name); row != nullptr) {
        m.points = {row->kind};
      } else {
        scope.source->refuse(e.at, "entry, return, calls or name, of a procedure");
      }
      m.kind = Meaning::Kind::points;
      return m;
    case Meaning::Kind::points:
      break;
  }
  scope.source->refuse(e.at, "no field of points");
}

// ---------------------------------------------------------------------------------------------
// Code

std::string Compiler::variable_names() const {
  std::string names;
  for (const auto& [name, number] : variables_) {
    if (!name.empty()) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

std::size_t Compiler::variable(const std::string& name, Place at, const Scope& scope) const {
  const auto found = variables_.find(name);
  if (found == variables_.end() || name.empty()) {
    scope.source->refuse(at, "a counter: " + variable_names());
  }
  return found->second;
}

CodeNode Compiler::line(const CodeLine& line, const Scope& scope, PointKind point) {
  CodeNode action = code(line.action, scope, point);
  if (!line.condition) return action;
  std::vector<CodeNode> parts;
  parts.push_back(code(*line.condition, scope, point));
  parts.push_back(std::move(action));
  return node(CodeKind::when, std::move(parts));
}

CodeNode Compiler::timer(const Expression& e, CodeKind kind, Base base, const Scope& scope) const {
  const Expression* of = e.parts.size() == 1 ? e.parts.data() : nullptr;
  if (of != nullptr && of->kind == ExpressionKind::address) of = of->parts.data();
  const bool good = of != nullptr && of->kind == ExpressionKind::variable &&
                    variable(of->name, of->at, scope) == 0;
  if (!good || plan_.base != base) {
    scope.source->refuse(
        of != nullptr ? of->at : e.at,
        "a metric whose base is " +
            std::string(base == Base::process_timer ? "processTimer" : "wallTimer"));
  }
  return node(kind);
}

/// setCounter(x, 1) is x = 1.
CodeNode Compiler::counter(const Expression& e, CodeKind kind, const Scope& scope,
                           PointKind point) {
  const bool good = e.parts.size() == 2 && e.parts[0].kind == ExpressionKind::variable;
  if (!good) {
    scope.source->refuse(e.at, e.name + "(COUNTER, VALUE)", "something else in its brackets");
  }
  CodeNode n = node(kind);
  n.variable = changed(e.parts[0].name, e.parts[0].at, scope);
  n.parts.push_back(code(e.parts[1], scope, point));
  return n;
}

CodeNode Compiler::memory(const Expression& e, bool by_name, const Scope& scope, PointKind point) {
  const bool text = e.parts.size() == 1 && e.parts[0].kind == ExpressionKind::text;
  if (e.parts.size() != 1 || text != by_name) {
    scope.source->refuse(e.at, e.name + (by_name ? "(\"NAME\")" : "(ADDRESS)"),
                         "something else in its brackets");
  }
  plan_.reads_memory = true;
  CodeNode n = node(CodeKind::memory);
  if (by_name) {
    n.parts.push_back(node(CodeKind::symbol));
    n.parts[0].name = e.parts[0].name;
  } else {
    n.parts.push_back(code(e.parts[0], scope, point));
  }
  return n;
}

CodeNode Compiler::call(const Expression& e, const Scope& scope, PointKind point) {
  const auto timer_of = [&](CodeKind kind, Base base) { return timer(e, kind, base, scope); };
  if (e.name == "startProcessTimer") return timer_of(CodeKind::start_timer, Base::process_timer);
  if (e.name == "stopProcessTimer") return timer_of(CodeKind::stop_timer, Base::process_timer);
  if (e.name == "startWallTimer") return timer_of(CodeKind::start_timer, Base::wall_timer);
  if (e.name == "stopWallTimer") return timer_of(CodeKind::stop_timer, Base::wall_timer);
  if (e.name == "setCounter") return counter(e, CodeKind::set, scope, point);
  if (e.name == "addCounter") return counter(e, CodeKind::add_to, scope, point);
  if (e.name == "subCounter") return counter(e, CodeKind::take_from, scope, point);
  if (e.name == "readSymbol") return memory(e, true, scope, point);
  if (e.name == "readAddress") return memory(e, false, scope, point);
  scope.source->refuse(e.at,
                       "startProcessTimer, stopProcessTimer, startWallTimer, stopWallTimer, "
                       "setCounter, addCounter, subCounter, readSymbol or readAddress: procedures "
                       "of the recorded program cannot be called");
}

CodeNode Compiler::binary(const Expression& e, const Scope& scope, PointKind point) {
  const std::optional<CodeKind> kind = operation_of(e.operation);
  if (!kind) scope.source->refuse(e.at, "an operator");
  std::vector<CodeNode> parts;
  for (const Expression& p : e.parts) parts.push_back(code(p, scope, point));
  return node(*kind, std::move(parts));
}

/// The variable of that name, which is no timer.
std::size_t Compiler::changed(const std::string& name, Place at, const Scope& scope) const {
  const std::size_t number = variable(name, at, scope);
  if (number == 0 && plan_.is_timer()) scope.source->refuse(at, "a counter", "the timer " + name);
  return number;
}

CodeNode Compiler::code(const Expression& e, const Scope& scope, PointKind point) {
  CodeNode n;
  switch (e.kind) {
    case ExpressionKind::number:
      n.value = static_cast<std::int64_t>(e.number);
      return n;
    case ExpressionKind::variable:
      if (e.name == "$return") {
        if (!point_row(point).returns) {
          scope.source->refuse(e.at, "$return at a return only");
        }
        return node(CodeKind::result);
      }
      n = node(CodeKind::variable);
      n.variable = variable(e.name, e.at, scope);
      return n;
    case ExpressionKind::element: {
      if (e.name != "$arg") scope.source->refuse(e.at, "$arg[N]");
      if (*point_row(point).arguments == '\0') {
        scope.source->refuse(e.at, "$arg at points that have arguments only");
      }
      if (point <= PointKind::call_returned) plan_.wants_arguments = true;
      n = node(CodeKind::argument);
      n.parts.push_back(code(e.parts[0], scope, point));
      return n;
    }
    case ExpressionKind::assign:
      n = node(e.operation == "="    ? CodeKind::set
               : e.operation == "+=" ? CodeKind::add_to
                                     : CodeKind::take_from);
      n.variable = changed(e.name, e.at, scope);
      n.parts.push_back(code(e.parts[0], scope, point));
      return n;
    case ExpressionKind::increment:
      if (e.parts[0].kind != ExpressionKind::variable) {
        scope.source->refuse(e.parts[0].at, "a counter before ++");
      }
      n = node(CodeKind::count);
      n.variable = changed(e.parts[0].name, e.parts[0].at, scope);
      return n;
    case ExpressionKind::negate:
      n = node(CodeKind::negate);
      n.parts.push_back(code(e.parts[0], scope, point));
      return n;
    case ExpressionKind::binary:
      return binary(e, scope, point);
    case ExpressionKind::call:
      return call(e, scope, point);
    default:
      scope.source->refuse(e.at, "a number or a counter");
  }
}

}  // namespace citcat::mdl
