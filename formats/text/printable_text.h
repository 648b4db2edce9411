#pragma once
// Makes texts from outside - names of files and symbols, strings of a recorded machine, what a
// capture says about itself - harmless to print. Nothing in them can control a terminal, reverse
// the reading order, or begin a line or a field of its own.

#include <cstdint>
#include <string>
#include <string_view>

namespace citcat {

/// Characters that are not seen but do something: controls, formats (the marks that turn the
/// direction of writing among them), separators of lines and paragraphs.
bool is_unseen(std::uint32_t character);

/// `text` with each such character as \xHH or \u{HHHH}, and each byte that is not UTF-8 as \xHH. So
/// one text stays one line. `kept`: ASCII characters that are left as they are.
std::string printable_text(std::string_view text, std::string_view kept = "");

/// A field of CSV (RFC 4180, 2.5 to 2.7): between quotes where it holds a comma, a quote or either
/// half of a line end.
std::string csv_field(std::string_view text);
/// A spreadsheet would take the field for a formula and run it: it begins with = + - @, a tab or
/// CR, and is not just a number or a dash (OWASP, "CSV Injection").
bool is_formula(std::string_view text);

/// JSON text with the characters that are not seen as \uHHHH, which is the same JSON. Line ends
/// between values stay.
std::string printable_json(std::string json);

}  // namespace citcat
