// A text in MDL, from its definitions down to its lines of code, by recursive descent: a function
// for each production.
//
// Facts of the language: the paper (syntax.h), and the productions of Paradyn's own parser
// (paradyn/src/met/metParser.y in the history of Dyninst). Both of its dialects are read: that of
// revision 1.28 of June 1997, from before expressions had operators that assign, and the later one.

#include "tools/mdl/parser.h"

#include <utility>

#include "tools/mdl/expression_reader.h"
#include "tools/mdl/text_cursor.h"

namespace citcat::mdl {

namespace {

constexpr Word<Base> kBases[] = {{"counter", Base::counter},
                                 {"processTimer", Base::process_timer},
                                 {"wallTimer", Base::wall_timer},
                                 {"void", Base::nothing}};
constexpr Word<Aggregate> kAggregates[] = {{"sum", Aggregate::sum},
                                           {"avg", Aggregate::average},
                                           {"min", Aggregate::minimum},
                                           {"max", Aggregate::maximum}};
constexpr Word<bool> kStyles[] = {{"EventCounter", false}, {"SampledFunction", true}};
constexpr Word<bool> kModes[] = {{"developer", true}, {"normal", false}};
constexpr Word<const char*> kUnitsTypes[] = {
    {"normalized", "normalized"}, {"unnormalized", "unnormalized"}, {"sampled", "sampled"}};
constexpr Word<ResourceList::Kind> kListKinds[] = {{"procedure", ResourceList::Kind::procedure},
                                                   {"module", ResourceList::Kind::module},
                                                   {"string", ResourceList::Kind::text},
                                                   {"int", ResourceList::Kind::integer},
                                                   {"float", ResourceList::Kind::real}};
constexpr Word<bool> kWhere[] = {{"preInsn", false}, {"postInsn", true}};

constexpr const char* kStatements = "foreach, if, append, prepend";

class Parser {
 public:
  explicit Parser(const Source& source) : in_(source) {}

  Program program() {
    Program program;
    while (!in_.at_end()) {
      if (in_.take_word("metric")) {
        program.metrics.push_back(metric());
      } else if (in_.take_word("constraint")) {
        program.constraints.push_back(constraint());
      } else if (in_.take_word("resourceList") || in_.take_word("list")) {
        program.lists.push_back(list());
      } else {
        in_.refuse("metric, constraint, list or resourceList");
      }
    }
    return program;
  }

 private:
  // -------------------------------------------------------------------------------------------
  // Metrics

  Metric metric() {
    Metric m;
    m.at = in_.place();
    m.id = in_.name();
    in_.expect("{", "{");
    while (!in_.take("}")) metric_field(m);
    if (!m.base) in_.refuse(m.at, "a metric with base is", m.id + " without one");
    if (m.name.empty()) m.name = m.id;
    return m;
  }

  void metric_field(Metric& m) {
    const Place at = in_.place();
    const auto once = [&](bool first, const char* what) {
      if (!first) in_.refuse(at, std::string(what) + " once only", "it again");
    };
    if (in_.take_word("name")) {
      once(m.name.empty(), "name");
      m.name = in_.quoted_text();
    } else if (in_.take_word("units")) {
      once(m.units.empty(), "units");
      m.units = in_.name();
    } else if (in_.take_word("aggregateOperator")) {
      once(!m.aggregate, "aggregateOperator");
      m.aggregate = one_of(in_, kAggregates);
    } else if (in_.take_word("style")) {
      m.sampled = one_of(in_, kStyles);
    } else if (in_.take_word("mode")) {
      m.developer = one_of(in_, kModes);
    } else if (in_.take_word("unitsType")) {
      m.units_type = one_of(in_, kUnitsTypes);
    } else if (in_.take_word("counter")) {
      m.temporaries.push_back(in_.name());
    } else if (in_.take_word("flavor")) {
      m.flavors = flavors();
    } else if (in_.take_word("constraint")) {
      return metric_constraint(m);
    } else if (in_.take_word("base")) {
      once(!m.base, "base");
      in_.expect_word("is");
      m.base = one_of(in_, kBases);
      m.body = body();
      return;
    } else {
      in_.refuse(
          "name, units, aggregateOperator, style, flavor, mode, unitsType, counter, "
          "constraint, base or }");
    }
    in_.expect(";", "a semicolon");
  }

  /// One that is defined elsewhere, or here.
  void metric_constraint(Metric& m) {
    const Place at = in_.place();
    const std::string name = in_.name();
    if (in_.take(";")) {
      m.constraints.push_back({at, name});
      return;
    }
    Constraint c;
    c.at = at;
    c.name = name;
    c.path = path("a semicolon, or a path such as /Code/*");
    in_.expect_word("is");
    in_.expect_word("replace");
    c.replaces = true;
    c.base = one_of(in_, kBases);
    c.body = body();
    m.own.push_back(std::move(c));
  }

  /// "{ unix, pvm }", with an equals sign before it or without; one may do without the brackets.
  std::vector<std::string> flavors() {
    in_.take("=");
    const bool brackets = in_.take("{");
    std::vector<std::string> all{in_.name(brackets ? "a name" : "a name or {")};
    while (in_.take(",")) all.push_back(in_.name());
    if (brackets) in_.expect("}", "}");
    return all;
  }

  // -------------------------------------------------------------------------------------------
  // Constraints and lists

  std::vector<std::string> path(const std::string& expected) {
    std::vector<std::string> all;
    while (in_.take("/", "/")) {
      all.push_back(in_.take("*") ? std::string("*") : in_.name("a name or *"));
    }
    if (all.empty()) in_.refuse(expected);
    return all;
  }

  Constraint constraint() {
    Constraint c;
    c.at = in_.place();
    c.name = in_.name();
    c.path = path("a path such as /Code/*");
    in_.expect_word("is");
    if (in_.take_word("default")) {
      c.by_context = true;
      in_.expect(";", "a semicolon");
    } else if (in_.take_word("counter")) {
      c.body = body();
    } else {
      in_.refuse("counter or default");
    }
    return c;
  }

  ResourceList list() {
    ResourceList l;
    if (in_.take("(")) {
      list_in_brackets(l);
    } else {
      l.at = in_.place();
      l.name = in_.name();
      in_.expect_word("is");
      l.kind = one_of(in_, kListKinds);
      in_.expect("{", "{");
      while (!in_.take("}")) list_field(l);
    }
    if (l.items.empty()) in_.refuse(l.at, "a list with items", l.name + " without any");
    return l;
  }

  void list_field(ResourceList& l) {
    if (in_.take_word("items")) {
      l.items = items();
    } else if (in_.take_word("library")) {
      l.library = truth();
    } else if (in_.take_word("flavor")) {
      l.flavors = flavors();
    } else {
      in_.refuse("items, flavor, library or }");
    }
    in_.expect(";", "a semicolon");
  }

  /// The oldest form: resourceList (procedure, "sends", ("pvm_send", "pvm_mcast"), true, pvm);
  void list_in_brackets(ResourceList& l) {
    l.kind = one_of(in_, kListKinds);
    in_.expect(",", ",");
    l.at = in_.place();
    l.name = in_.quoted_text();
    in_.expect(",", ",");
    l.items = items();
    in_.expect(",", ",");
    l.library = truth();
    in_.expect(",", ",");
    l.flavors = flavors();
    in_.expect(")", ")");
    in_.expect(";", "a semicolon");
  }

  std::vector<std::string> items() {
    const bool round = in_.take("(");
    if (!round) in_.expect("{", "{");
    std::vector<std::string> all{in_.quoted_text()};
    while (in_.take(",")) all.push_back(in_.quoted_text());
    const char* const end = round ? ")" : "}";
    in_.expect(end, end);
    return all;
  }

  /// Small letters or capitals, as one likes.
  bool truth() {
    const Place at = in_.place();
    std::string word = in_.take_name().value_or("");
    for (char& c : word) c = static_cast<char>(c | 0x20);
    if (word != "true" && word != "false") in_.refuse(at, "true or false");
    return word == "true";
  }

  // -------------------------------------------------------------------------------------------
  // Statements

  std::vector<Statement> body() {
    in_.expect("{", "{");
    return statements_to_end();
  }

  std::vector<Statement> statements_to_end() {
    std::vector<Statement> all;
    while (!in_.take("}")) all.push_back(statement(std::string(kStatements) + ", { or }"));
    return all;
  }

  Statement statement(const std::string& expected) {
    const Nesting nesting(depth_, in_);
    Statement s;
    s.at = in_.place();
    if (in_.take("{")) {
      s.kind = Statement::Kind::sequence;
      s.body = statements_to_end();
    } else if (in_.take_word("foreach")) {
      s.kind = Statement::Kind::foreach;
      s.variable = in_.name("the name of a variable");
      in_.expect_word("in");
      s.subject = expressions_.expression();
      s.body.push_back(inner_statement());
    } else if (in_.take_word("if")) {
      s.kind = Statement::Kind::condition;
      s.subject = expressions_.expression();
      s.body.push_back(inner_statement());
    } else if (in_.take_word("append")) {
      request(s);
    } else if (in_.take_word("prepend")) {
      s.prepend = true;
      request(s);
    } else {
      in_.refuse(expected);
    }
    return s;
  }

  Statement inner_statement() { return statement(std::string(kStatements) + " or {"); }

  void request(Statement& s) {
    s.kind = Statement::Kind::request;
    s.post = one_of(in_, kWhere);
    s.subject = expressions_.expression("points such as func.entry");
    s.constrained = in_.take_word("constrained");
    const bool curly = in_.take("{");
    if (!curly) in_.expect("(*", "constrained, or (* and code");
    const char* const end = curly ? "}" : "*)";
    while (!in_.take(end)) {
      s.code.push_back(code_line(std::string("code, or ") + end + " after it"));
    }
  }

  CodeLine code_line(const std::string& expected) {
    CodeLine line;
    const bool conditional = in_.take_word("if");
    if (conditional) {
      in_.expect("(", "(");
      line.condition = expressions_.expression();
      in_.expect(")", ")");
    }
    line.action = expressions_.expression(conditional ? "an expression" : expected);
    in_.expect(";", "a semicolon");
    return line;
  }

  TextCursor in_;
  ExpressionReader expressions_{in_};
  unsigned depth_ = 0;
};

}  // namespace

Program parse(const Source& source) { return Parser(source).program(); }

}  // namespace citcat::mdl
