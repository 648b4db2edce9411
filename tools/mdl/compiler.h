#pragma once
// Compiles the text of a metric and its constraints to code at points.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/mdl/plan.h"

namespace citcat::mdl {

class Compiler {
 public:
  /// `metric` may be one without a name: a constraint is compiled by itself then. All must outlive
  /// the object.
  Compiler(const Library& library, const Metric& metric, Plan& plan);

  /// The code of a constraint, for the resource. Throws TextError.
  void add(const Constraint& constraint, const Source& source, const Resource& resource);
  /// The code of the metric's base.
  void add_base(const Source& source);

 private:
  /// What a name stands for while a text is gone through.
  struct Meaning {
    enum class Kind : std::uint8_t { procedures, modules, points } kind = Kind::procedures;
    ProcedureSet procedures;  ///< of modules: all of theirs
    std::vector<PointKind> points;
  };
  /// Where the walk through the statements is.
  struct Scope {
    const Source* source = nullptr;
    const Resource* resource = nullptr;  ///< that $constraint is
    bool of_constraint = false;
    std::map<std::string, Meaning> names;
    std::vector<ProcedureTest> tests;
  };

  void statements(const std::vector<Statement>& all, const Scope& scope);
  void statement(const Statement& s, const Scope& scope);
  void condition(const Statement& s, Scope scope);
  void request(const Statement& s, const Scope& scope);
  Meaning meaning(const Expression& e, const Scope& scope) const;
  Meaning meaning_of_field(const Expression& e, const Scope& scope) const;
  Meaning meaning_of_constraint(const Expression& e, const Scope& scope) const;
  Meaning meaning_of_name(const Expression& e, const Scope& scope) const;
  ProcedureTest test(const Expression& e, const Scope& scope) const;
  std::optional<bool> by_module(const Expression& e, const Scope& scope) const;
  CodeNode line(const CodeLine& line, const Scope& scope, PointKind point);
  CodeNode code(const Expression& e, const Scope& scope, PointKind point);
  CodeNode call(const Expression& e, const Scope& scope, PointKind point);
  CodeNode timer(const Expression& e, CodeNode::Kind kind, Base base, const Scope& scope) const;
  CodeNode counter(const Expression& e, CodeNode::Kind kind, const Scope& scope, PointKind point);
  CodeNode memory(const Expression& e, bool by_name, const Scope& scope, PointKind point);
  CodeNode binary(const Expression& e, const Scope& scope, PointKind point);
  std::size_t variable(const std::string& name, Place at, const Scope& scope) const;
  std::size_t changed(const std::string& name, Place at, const Scope& scope) const;
  std::string variable_names() const;

  const Library& library_;
  const Metric& metric_;
  Plan& plan_;
  std::map<std::string, std::size_t> variables_;
};

}  // namespace citcat::mdl
