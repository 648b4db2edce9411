#include "sql/database/count_query.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace citcat::sql {

namespace {

struct Token {
  std::string_view text;
  std::string word;  ///< in lower case; empty where it is no word
  std::size_t begin = 0;
  bool is(char c) const { return text.size() == 1 && text[0] == c; }
};

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// Nullopt where there is something that a query of counts does not have.
std::optional<std::vector<Token>> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++at;
      continue;
    }
    Token token;
    token.begin = at;
    std::size_t end = at + 1;
    if (c == '\'') {
      // A quote within is doubled: to the next token of the same kind.
      end = text.find('\'', end);
      if (end == std::string_view::npos) return std::nullopt;
      ++end;
    } else if (is_word_char(c)) {
      while (end < text.size() && (is_word_char(text[end]) || text[end] == '.')) ++end;
      if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
        token.word = std::string(text.substr(at, end - at));
        std::transform(token.word.begin(), token.word.end(), token.word.begin(), [](char l) {
          return static_cast<char>(std::tolower(static_cast<unsigned char>(l)));
        });
      }
    } else if (c == '"' || c == '`' || c == '[' || text.substr(at, 2) == "--" ||
               text.substr(at, 2) == "/*") {
      return std::nullopt;
    }
    token.text = text.substr(at, end - at);
    tokens.push_back(std::move(token));
    at = end;
  }
  if (!tokens.empty() && tokens.back().is(';')) tokens.pop_back();
  return tokens;
}

constexpr std::array kRefused = {"join",  "union",   "intersect", "except", "over",   "with",
                                 "rowid", "_rowid_", "oid",       "exists", "filter", "window"};
/// Whatever their arguments, they give the same for rows that are alike; min() and max() also
/// however often a row comes.
constexpr std::array kFunctions = {
    "count",  "min",    "max",    "printf",  "format", "hex",      "upper",     "lower",
    "substr", "abs",    "round",  "length",  "instr",  "replace",  "coalesce",  "ifnull",
    "iif",    "nullif", "typeof", "cast",    "sum",    "trim",     "substring", "and",
    "or",     "not",    "in",     "between", "like",   "glob",     "by",        "where",
    "having", "select", "when",   "then",    "else",   "distinct", "as"};

template <class List>
bool is_in(const List& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

const Table* table_named(const std::string& name) {
  for (const Table* table : table_list()) {
    if (name == table->name()) return table;
  }
  return nullptr;
}

/// The name of a column without that of the table before it.
std::string column_name(const std::string& word, const Table& table) {
  const std::string prefix = std::string(table.name()) + ".";
  return word.starts_with(prefix) ? word.substr(prefix.size()) : word;
}

/// The only table that is named after FROM; null where there is another one beside it.
const Table* table_of(const std::vector<Token>& tokens) {
  constexpr std::array kBehind = {"where", "group", "order", "limit", "having"};
  const auto from =
      std::find_if(tokens.begin(), tokens.end(), [](const Token& t) { return t.word == "from"; });
  if (from == tokens.end() || from + 1 == tokens.end()) return nullptr;
  const bool ends = from + 2 == tokens.end() || is_in(kBehind, (from + 2)->word);
  return ends ? table_named((from + 1)->word) : nullptr;
}

/// Tokens `at`, `at` + 1 ... are these.
bool stands(const std::vector<Token>& tokens, std::size_t at,
            std::initializer_list<const char*> texts) {
  for (const char* text : texts) {
    if (at >= tokens.size()) return false;
    const Token& t = tokens[at++];
    if (t.word.empty() ? t.text != text : t.word != text) return false;
  }
  return true;
}

}  // namespace

std::optional<CountQuery> as_count_query(std::string_view statement) {
  const auto tokens = tokens_of(statement);
  if (!tokens || tokens->empty() || tokens->front().word != "select") return std::nullopt;
  const auto& all = *tokens;
  CountQuery query;
  query.table = table_of(all);
  if (query.table == nullptr || query.table->counts_column() < 0) return std::nullopt;
  const std::string rows =
      query.table->columns()[static_cast<std::size_t>(query.table->counts_column())].name;
  std::size_t counts = 0, copied = 0;
  const auto replace = [&](std::size_t first, std::size_t last, const std::string& by) {
    query.text += statement.substr(copied, all[first].begin - copied);
    query.text += by;
    copied = all[last].begin + all[last].text.size();
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Token& t = all[i];
    if (i != 0 && t.word == "select") return std::nullopt;
    if (is_in(kRefused, t.word)) return std::nullopt;
    query.has_or |= t.word == "or";
    if (stands(all, i, {"count", "(", "*", ")"})) {
      replace(i, i + 3, "coalesce(sum(" + rows + "),0)");
      ++counts;
      i += 3;
      continue;
    }
    if (t.is('*') &&
        (i == 0 || all[i - 1].word == "select" || all[i - 1].is(',') || all[i - 1].is('.'))) {
      return std::nullopt;
    }
    const bool is_call = !t.word.empty() && i + 1 < all.size() && all[i + 1].is('(');
    if (is_call && !is_in(kFunctions, t.word)) return std::nullopt;
    if (is_call && t.word == "count" && !stands(all, i, {"count", "(", "distinct"}))
      return std::nullopt;
    if (is_call && t.word == "sum") {
      if (stands(all, i, {"sum", "(", "distinct"})) return std::nullopt;
      replace(i + 1, i + 1, "(" + rows + "*(");
      int depth = 0;
      std::size_t close = i + 1;
      for (; close < all.size(); ++close) {
        depth += all[close].is('(') ? 1 : all[close].is(')') ? -1 : 0;
        if (depth == 0) break;
      }
      if (close == all.size()) return std::nullopt;
      // Words between are looked at below; only plain ones, so that nothing is replaced twice.
      for (std::size_t j = i + 2; j < close; ++j) {
        if (all[j].word == "sum" || all[j].word == "count") return std::nullopt;
      }
      replace(close, close, "))");
      // What lies between was not copied yet: done by replace() of the closing bracket.
      ++counts;
    }
    const std::string name = column_name(t.word, *query.table);
    if (name == rows) return std::nullopt;
    const auto columns = query.table->columns();
    for (int c = 0; c < static_cast<int>(columns.size()); ++c) {
      if (name != columns[static_cast<std::size_t>(c)].name) continue;
      if (!has_column(query.table->single_columns(), c)) continue;
      query.constraints[c] += stands(all, i + 1, {"between"}) ? 2 : 1;
    }
  }
  if (counts == 0) return std::nullopt;
  query.text += statement.substr(copied);
  return query;
}

}  // namespace citcat::sql
