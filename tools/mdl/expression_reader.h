#pragma once
// Expressions of MDL: the operators of C with their precedence, names, numbers, texts and calls.

#include <cstdint>
#include <optional>

#include "tools/mdl/syntax.h"
#include "tools/mdl/text_cursor.h"

namespace citcat::mdl {

/// Brackets and statements that may lie in each other.
inline constexpr unsigned kDeepest = 100;

/// One level more while the object lives. Throws TextError where that is one too many.
class Nesting {
 public:
  Nesting(unsigned& depth, const TextCursor& in) : depth_(depth) {
    if (depth == kDeepest) {
      in.refuse("at most " + std::to_string(kDeepest) + " brackets in each other", "more");
    }
    ++depth_;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  unsigned& depth_;
};

class ExpressionReader {
 public:
  explicit ExpressionReader(TextCursor& in) : in_(in) {}

  /// The expression that is here. Throws TextError where there is none; `expected` says what
  /// would be right.
  Expression expression(const std::string& expected = "an expression");

 private:
  std::optional<Expression> inner();
  Expression inner(const std::string& expected);
  std::optional<Expression> binary(unsigned precedence);
  std::optional<Expression> unary();
  std::optional<Expression> postfix();
  std::optional<Expression> primary();
  std::optional<Expression> named();
  bool take_assignment(std::string& operation);
  /// `outer` with `part` in it: an operator more.
  Expression around(Expression outer, Expression part);

  TextCursor& in_;
  unsigned depth_ = 0;
  unsigned operators_ = 0;  ///< of the outermost expression
};

}  // namespace citcat::mdl
