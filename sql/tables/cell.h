#pragma once
// A value of a row, as SQL has it.

#include <cstdint>
#include <string_view>

namespace citcat::sql {

struct Cell {
  enum class Kind : std::uint8_t {
    null,
    integer,
    real,         ///< of a constraint
    text,         ///< valid as long as the rows that it came from
    passing_text  ///< valid until the next cell is asked for
  } kind = Kind::null;
  std::int64_t number = 0;
  double real = 0;
  std::string_view text;

  static Cell null() { return {}; }
  static Cell of(std::uint64_t number) {
    return {Kind::integer, static_cast<std::int64_t>(number), 0, {}};
  }
  static Cell lasting(std::string_view text) { return {Kind::text, 0, 0, text}; }
  static Cell passing(std::string_view text) { return {Kind::passing_text, 0, 0, text}; }
  bool is_text() const { return kind >= Kind::text; }
};

}  // namespace citcat::sql
