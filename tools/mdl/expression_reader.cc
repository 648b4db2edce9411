#include "tools/mdl/expression_reader.h"

#include <utility>

namespace citcat::mdl {

namespace {

using Kind = Expression::Kind;

/// An expression is as deep as it has operators, and whoever walks through one calls itself.
constexpr unsigned kMostOperators = 1000;

struct Operator {
  unsigned precedence;  ///< the higher, the closer it binds
  const char* sign;
  const char* unless;  ///< characters of which none may be right after it
};

/// A sign before those that it begins.
constexpr Operator kOperators[] = {
    {0, "||", ""}, {1, "&&", ""}, {2, "==", ""},  {2, "!=", ""},  {2, "<=", ""}, {2, ">=", ""},
    {2, "<", ""},  {2, ">", ""},  {3, "+", "=+"}, {3, "-", "=+"}, {4, "*", ")"}, {4, "/", "/"},
};
constexpr unsigned kHighest = 4;

Expression make(Kind kind, Place at) {
  Expression e;
  e.kind = kind;
  e.at = at;
  return e;
}

}  // namespace

Expression ExpressionReader::around(Expression outer, Expression part) {
  if (++operators_ > kMostOperators) {
    in_.refuse(outer.at,
               "at most " + std::to_string(kMostOperators) + " operators in an expression", "more");
  }
  outer.parts.insert(outer.parts.begin(), std::move(part));
  return outer;
}

Expression ExpressionReader::expression(const std::string& expected) {
  operators_ = 0;
  return inner(expected);
}

Expression ExpressionReader::inner(const std::string& expected) {
  std::optional<Expression> e = inner();
  if (!e) in_.refuse(expected);
  return *std::move(e);
}

/// An assignment is an expression whose name has been read when its sign comes.
std::optional<Expression> ExpressionReader::inner() {
  const Nesting nesting(depth_, in_);
  std::optional<Expression> e = binary(0);
  if (!e || e->kind != Kind::variable) return e;
  std::string operation;
  if (!take_assignment(operation)) return e;
  Expression assignment = make(Kind::assign, e->at);
  assignment.name = std::move(e->name);
  assignment.operation = std::move(operation);
  return around(std::move(assignment), inner("an expression"));
}

bool ExpressionReader::take_assignment(std::string& operation) {
  for (const char* const sign : {"+=", "-=", "="}) {
    if (!in_.take(sign, *sign == '=' ? "=" : "")) continue;
    operation = sign;
    return true;
  }
  return false;
}

/// Operands of a higher precedence with signs of this one between them, from the left.
std::optional<Expression> ExpressionReader::binary(unsigned precedence) {
  if (precedence > kHighest) return unary();
  std::optional<Expression> e = binary(precedence + 1);
  while (e) {
    const Place at = in_.place();
    const Operator* found = nullptr;
    for (const Operator& o : kOperators) {
      if (found == nullptr && o.precedence == precedence && in_.take(o.sign, o.unless)) found = &o;
    }
    if (found == nullptr) break;
    Expression outer = make(Kind::binary, at);
    outer.operation = found->sign;
    std::optional<Expression> right = binary(precedence + 1);
    if (!right) in_.refuse("a value");
    outer.parts.push_back(*std::move(right));
    e = around(std::move(outer), *std::move(e));
  }
  return e;
}

std::optional<Expression> ExpressionReader::unary() {
  std::vector<Expression> signs;
  for (;;) {
    const Place at = in_.place();
    if (in_.take("-", "=")) {
      signs.push_back(make(Kind::negate, at));
    } else if (in_.take("&", "&")) {
      signs.push_back(make(Kind::address, at));
    } else {
      break;
    }
  }
  std::optional<Expression> e = postfix();
  if (!e && !signs.empty()) in_.refuse("a value");
  for (; !signs.empty(); signs.pop_back()) e = around(std::move(signs.back()), *std::move(e));
  return e;
}

std::optional<Expression> ExpressionReader::postfix() {
  std::optional<Expression> e = primary();
  while (e) {
    Place at = in_.place();
    Expression outer;
    if (in_.take("++")) {
      outer = make(Kind::increment, at);
    } else if (in_.take(".")) {
      at = in_.place();
      outer = make(Kind::field, at);
      outer.name = in_.name("the name of a field");
    } else {
      break;
    }
    e = around(std::move(outer), *std::move(e));
  }
  return e;
}

std::optional<Expression> ExpressionReader::primary() {
  const Place at = in_.place();
  if (const auto number = in_.take_number()) {
    Expression e = make(Kind::number, at);
    e.number = *number;
    return e;
  }
  if (auto text = in_.take_text()) {
    Expression e = make(Kind::text, at);
    e.name = *std::move(text);
    return e;
  }
  if (in_.take("(", "*")) {
    Expression e = inner("an expression");
    in_.expect(")", ")");
    return e;
  }
  return named();
}

/// A variable, an element or a call.
std::optional<Expression> ExpressionReader::named() {
  const Place at = in_.place();
  std::optional<std::string> name = in_.take_name();
  if (!name) return std::nullopt;
  Expression e = make(Kind::variable, at);
  e.name = *std::move(name);
  if (in_.take("[")) {
    e.kind = Kind::element;
    e.parts.push_back(inner("an expression"));
    in_.expect("]", "]");
  } else if (in_.take("(", "*")) {
    e.kind = Kind::call;
    if (auto first = inner()) {
      e.parts.push_back(*std::move(first));
      while (in_.take(",")) e.parts.push_back(inner("an expression"));
    }
    in_.expect(")", ")");
  }
  return e;
}

}  // namespace citcat::mdl
