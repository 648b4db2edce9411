#pragma once
// The definitions of a text in MDL, as a tree.
//
// MDL, the metric description language of Paradyn: Hollingsworth, Niam, Miller, Xu, Goncalves,
// Zheng, "MDL: A Language and Compiler for Dynamic Program Instrumentation", PACT 1997.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace citcat::mdl {

/// Where something begins in its text; lines and columns count from 1, columns in bytes.
struct Place {
  std::size_t line = 1, column = 1;
};

struct Expression {
  enum class Kind : std::uint8_t {
    number,     ///< `number`
    text,       ///< `name`, without its quotes
    variable,   ///< `name`, perhaps with a dollar sign
    element,    ///< `name`[parts[0]]
    field,      ///< parts[0].`name`
    call,       ///< `name`(parts...)
    assign,     ///< `name` `operation` parts[0]: "=", "+=" or "-="
    increment,  ///< parts[0]++
    negate,     ///< -parts[0]
    address,    ///< &parts[0]
    binary,     ///< parts[0] `operation` parts[1]
  };
  Kind kind = Kind::number;
  Place at;
  std::uint64_t number = 0;
  std::string name;
  std::string operation;
  std::vector<Expression> parts;
};

/// A line of code between (* and *).
struct CodeLine {
  std::optional<Expression> condition;  ///< of if (...)
  Expression action;
};

struct Statement {
  enum class Kind : std::uint8_t {
    sequence,   ///< `body`
    foreach,    ///< `body[0]` for each `variable` of `subject`
    condition,  ///< `body[0]` where `subject` is true
    request,    ///< `code` at the points `subject`
  };
  Kind kind = Kind::sequence;
  Place at;
  std::string variable;
  std::optional<Expression> subject;
  std::vector<Statement> body;
  // For a request:
  bool prepend = false;      ///< before what is at the points already
  bool post = false;         ///< after the instruction of the point
  bool constrained = false;  ///< only where the constraints of the focus hold
  std::vector<CodeLine> code;
};

enum class Base : std::uint8_t { counter, process_timer, wall_timer, nothing };
enum class Aggregate : std::uint8_t { sum, average, minimum, maximum };

struct Constraint {
  Place at;
  std::string name;
  std::vector<std::string> path;  ///< "Code", "*"
  bool by_context = false;        ///< is default: what runs is part of the resource, or is not
  bool replaces = false;          ///< takes the place of the metric's own base
  Base base = Base::counter;
  std::vector<Statement> body;
};

struct ResourceList {
  enum class Kind : std::uint8_t { procedure, module, text, integer, real };
  Place at;
  std::string name;
  Kind kind = Kind::procedure;
  std::vector<std::string> items;
  std::vector<std::string> flavors;
  bool library = false;
};

struct Metric {
  struct Reference {
    Place at;
    std::string name;
  };
  Place at;
  std::string id;
  std::string name;  ///< for people
  std::string units;
  std::optional<Aggregate> aggregate;
  bool sampled = false;  ///< style SampledFunction
  bool developer = false;
  std::string units_type;
  std::vector<std::string> flavors;
  std::vector<std::string> temporaries;
  std::vector<Reference> constraints;  ///< defined elsewhere
  std::vector<Constraint> own;         ///< defined here
  std::optional<Base> base;
  std::vector<Statement> body;
};

struct Program {
  std::vector<ResourceList> lists;
  std::vector<Constraint> constraints;
  std::vector<Metric> metrics;
};

}  // namespace citcat::mdl
