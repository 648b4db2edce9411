#include "tools/host/scope.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "formats/io/error.h"

namespace citcat::tools {

struct Scope::Term {
  enum class Kind : std::uint8_t { process, processor, level, interrupt, syscall, code, data };
  Kind kind = Kind::process;
  std::string pattern;                  ///< of process
  const NameSource* names = nullptr;    ///< of process
  std::optional<std::uint32_t> number;  ///< of level; of interrupt and syscall: none for any
  std::vector<LinearRange> ranges;      ///< of code and data
  bool is_this_one = false;             ///< of processor

  bool holds(const Context& context) const {
    switch (kind) {
      case Kind::process:
        return names->is_process(pattern, context);
      case Kind::processor:
        return is_this_one;
      case Kind::level:
        return context.level_within() == *number;
      case Kind::interrupt: {
        const auto vector = context.interrupt();
        return vector && (!number || *vector == *number);
      }
      case Kind::syscall: {
        const auto call = context.system_call();
        return call && (!number || *call == *number);
      }
      case Kind::code:
      case Kind::data:
        break;
    }
    return false;
  }
  bool has(LinearAddr a) const {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const LinearRange& r) { return r.has(a); });
  }
};

struct Scope::Node {
  enum class Kind : std::uint8_t { everything, term, negation, both, either };
  Kind kind = Kind::everything;
  std::size_t term = 0;
  std::unique_ptr<Node> left, right;

  bool holds(std::uint64_t terms) const {
    switch (kind) {
      case Kind::everything:
        break;
      case Kind::term:
        return (terms >> term & 1) != 0;
      case Kind::negation:
        return !left->holds(terms);
      case Kind::both:
        return left->holds(terms) && right->holds(terms);
      case Kind::either:
        return left->holds(terms) || right->holds(terms);
    }
    return true;
  }
};

class Scope::Parser {
 public:
  Parser(const std::string& text, const NameSource& names, std::size_t processor,
         std::size_t processors, Scope& scope)
      : text_(text), names_(names), processor_(processor), processors_(processors), scope_(scope) {}

  std::unique_ptr<Node> parse() {
    auto root = parse_either();
    if (skip_blanks(); at_ != text_.size()) fail("& or | or the end");
    return root;
  }

 private:
  static constexpr unsigned kMaxDepth = 200;

  std::unique_ptr<Node> parse_either() {
    auto left = parse_both();
    while (take('|')) left = make(Node::Kind::either, std::move(left), parse_both());
    return left;
  }
  std::unique_ptr<Node> parse_both() {
    auto left = parse_factor();
    while (take('&')) left = make(Node::Kind::both, std::move(left), parse_factor());
    return left;
  }
  std::unique_ptr<Node> parse_factor() {
    if (++depth_ > kMaxDepth) fail("less depth");
    std::unique_ptr<Node> node;
    if (take('!')) {
      node = make(Node::Kind::negation, parse_factor(), nullptr);
    } else if (take('(')) {
      node = parse_either();
      if (!take(')')) fail(")");
    } else {
      node = parse_term();
    }
    --depth_;
    return node;
  }
  std::unique_ptr<Node> parse_term() {
    skip_blanks();
    const std::size_t begin = at_;
    const std::string word = take_until(" =&|!()");
    if (word.empty()) fail("a term");
    std::string value;
    const bool valued = at_ < text_.size() && text_[at_] == '=';
    if (valued) {
      ++at_;
      value = take_until(" &|!()");
    }
    if (scope_.terms_.size() == 64) fail("64 terms at most");
    Term term = make_term(word, valued, value, begin);
    auto node = std::make_unique<Node>();
    node->kind = Node::Kind::term;
    node->term = scope_.terms_.size();
    scope_.terms_.push_back(std::move(term));
    return node;
  }
  Term make_term(const std::string& word, bool valued, const std::string& value,
                 std::size_t begin) {
    static constexpr std::pair<const char*, Term::Kind> kWords[] = {
        {"process", Term::Kind::process}, {"processor", Term::Kind::processor},
        {"level", Term::Kind::level},     {"interrupt", Term::Kind::interrupt},
        {"syscall", Term::Kind::syscall}, {"code", Term::Kind::code},
        {"data", Term::Kind::data}};
    const auto* const row = std::find_if(std::begin(kWords), std::end(kWords),
                                         [&](const auto& w) { return word == w.first; });
    if (row == std::end(kWords)) {
      at_ = begin;
      fail("process, processor, level, interrupt, syscall, code or data");
    }
    Term term;
    term.kind = row->second;
    const bool may_stand_alone =
        term.kind == Term::Kind::interrupt || term.kind == Term::Kind::syscall;
    if (value.empty() && (valued || !may_stand_alone)) fail(word + "=VALUE");
    switch (term.kind) {
      case Term::Kind::process:
        term.pattern = value;
        term.names = &names_;
        scope_.names_processes_ = true;
        break;
      case Term::Kind::processor: {
        constexpr std::uint64_t kMostNumber = 13;  // as positions P:N have them
        const std::uint64_t meant = number(value, kMostNumber);
        if (meant >= processors_) {
          throw UsageError("--where: processor=" + value + ": " +
                           (processors_ == 1 ? "the recording has one processor, number 0"
                                             : "the recording has " + std::to_string(processors_) +
                                                   " processors, from number 0 on"));
        }
        term.is_this_one = meant == processor_;
        break;
      }
      case Term::Kind::level:
        term.number = number(value, 3);
        break;
      case Term::Kind::interrupt:
        if (valued) term.number = number(value, 255);
        scope_.needs_history_ = true;
        break;
      case Term::Kind::syscall:
        if (valued) term.number = number(value, 0xffffffff);
        scope_.needs_history_ = true;
        break;
      case Term::Kind::code:
        term.ranges = names_.code(value);
        break;
      case Term::Kind::data:
        term.ranges = {parse_linear_range(value, "--where: data=")};
        scope_.has_data_ = true;
        break;
    }
    return term;
  }
  std::uint32_t number(const std::string& text, std::uint64_t most) const {
    const bool hex = text.starts_with("0x");
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] =
        std::from_chars(text.data() + (hex ? 2 : 0), end, value, hex ? 16 : 10);
    if (error != std::errc{} || stop != end || value > most) {
      throw UsageError("--where: expected a number of at most " + std::to_string(most) +
                       ", found \"" + text + "\"");
    }
    return static_cast<std::uint32_t>(value);
  }

  static std::unique_ptr<Node> make(Node::Kind kind, std::unique_ptr<Node> left,
                                    std::unique_ptr<Node> right) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->left = std::move(left);
    node->right = std::move(right);
    return node;
  }
  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::string take_until(const char* ends) {
    const std::size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    return text_.substr(std::exchange(at_, end), end - at_);
  }
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string found = at_ < text_.size() ? "\"" + text_.substr(at_) + "\"" : "the end";
    throw UsageError("--where:" + std::to_string(at_ + 1) + ": expected " + expected + ", found " +
                     found);
  }

  const std::string& text_;
  const NameSource& names_;
  std::size_t processor_, processors_;
  Scope& scope_;
  std::size_t at_ = 0;
  unsigned depth_ = 0;
};

Scope::Scope() : root_(std::make_unique<Node>()) {}
Scope::Scope(Scope&&) noexcept = default;
Scope& Scope::operator=(Scope&&) noexcept = default;
Scope::~Scope() = default;

Scope::Scope(const std::string& text, const NameSource& names, std::size_t processor,
             std::size_t processors) {
  root_ = Parser(text, names, processor, processors, *this).parse();
}

std::uint64_t Scope::context_terms(const Context& context) const {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].holds(context)) mask |= std::uint64_t{1} << i;
  }
  return mask;
}

std::uint64_t Scope::code_terms(const StaticInstruction& instruction) const {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].kind == Term::Kind::code && terms_[i].has(instruction.linear)) {
      mask |= std::uint64_t{1} << i;
    }
  }
  return mask;
}

std::uint64_t Scope::data_terms(const Execution& execution) const {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (terms_[i].kind != Term::Kind::data) continue;
    bool found = false;
    for_each_access(execution, [&](const Reference& r) {
      for (std::uint32_t b = 0; b < r.size && !found && r.kind == AccessKind::data; ++b) {
        found = terms_[i].has(LinearAddr{r.linear.value + b});
      }
    });
    if (found) mask |= std::uint64_t{1} << i;
  }
  return mask;
}

bool Scope::holds(std::uint64_t terms) const { return root_->holds(terms); }

}  // namespace citcat::tools
