// Texts in MDL: what they say, and what is said of those that are none.

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "golden/process.h"
#include "tools/mdl/library.h"
#include "tools/mdl/plan.h"

namespace citcat::mdl {
namespace {

std::string metric(const std::string& code) {
  return "metric m {\n  units u;\n  base is counter {\n    " + code + "\n  }\n}\n";
}

/// What is wrong with the text: "LINE:COLUMN: expected ..., found ...", and the excerpt.
std::string refusal(const std::string& text) {
  Library library;
  try {
    library.add("t", text);
  } catch (const TextError& error) {
    const std::string what = error.what();
    return what.substr(what.find(':') + 1) + "\n" + error.excerpt();
  }
  return "(none)";
}

TEST(MdlText, IsRefusedWhereItIsWrongWithACaretBelow) {
  EXPECT_EQ(refusal("metric m {\n  aggregateOperator sun;\n}"),
            "2:21: expected sum, avg, min or max, found sun\n"
            "    aggregateOperator sun;\n"
            "                      ^\n");
  EXPECT_EQ(refusal(metric("append preInsn $block.entry (* m++ *)")),
            "4:40: expected a semicolon, found *\n"
            "      append preInsn $block.entry (* m++ *)\n"
            "                                         ^\n");
}

TEST(MdlText, IsToldWhatWouldHaveBeenRight) {
  const auto expect = [](const std::string& text, const std::string& message) {
    EXPECT_EQ(refusal(text).substr(0, message.size()), message) << text;
  };
  expect("metrik m {}", "1:1: expected metric, constraint, list or resourceList, found metrik");
  expect("metric m { units u; }", "1:8: expected a metric with base is, found m without one");
  expect("metric m { units 7; }", "1:18: expected a name, found 7");
  expect("metric m { name \"a;\n",
         "1:20: expected the quotation mark that ends the text, on the "
         "same line, found the end of the line");
  expect(metric("append preInsn func.entry (* m++; *)"),
         "4:20: expected a variable of foreach, a resourceList, $procedures, $modules or "
         "$constraint, found func");
  expect(metric("append preInsn $block.end (* m++; *)"), "4:27: expected entry, found end");
  expect(metric("append preInsn $block.entry (* n++; *)"), "4:36: expected a counter: m, found n");
  expect(metric("append preInsn $block.entry (* m = $arg[0]; *)"),
         "4:40: expected $arg at points that have arguments only, found $arg");
  expect(metric("append preInsn $block.entry (* startProcessTimer(m); *)"),
         "4:54: expected a metric whose base is processTimer, found m");
  expect(metric("append preInsn $block.entry (* Call(\"f\", 1); *)"),
         "4:36: expected startProcessTimer, stopProcessTimer, startWallTimer, stopWallTimer, "
         "setCounter, addCounter, subCounter, readSymbol or readAddress: procedures of the "
         "recorded program cannot be called, found Call");
  expect(metric("append preInsn $block.entry (* m = 1 + ; *)"), "4:44: expected a value, found ;");
  expect("constraint c /Cod/* is default;", "1:12: expected a constraint for /Code/*");
  expect("metric m { constraint c; base is counter { } }",
         "1:23: expected the name of a constraint, found c");
}

TEST(MdlText, IsToldWhatWouldHaveBeenRightInEachProduction) {
  const auto expect = [](const std::string& text, const std::string& message) {
    EXPECT_EQ(refusal(text).substr(0, message.size()), message) << text;
  };
  const auto in_metric = [&](const std::string& field, const std::string& message) {
    expect("metric m { " + field, "1:" + message);
  };
  in_metric("unit u;",
            "12: expected name, units, aggregateOperator, style, flavor, mode, unitsType, counter, "
            "constraint, base or }, found unit");
  in_metric("name n;", "17: expected a text in quotation marks, found n");
  in_metric("units u }", "20: expected a semicolon, found }");
  in_metric("style Counter;", "18: expected EventCounter or SampledFunction, found Counter");
  in_metric("mode fast;", "17: expected developer or normal, found fast");
  in_metric("unitsType none;", "22: expected normalized, unnormalized or sampled, found none");
  in_metric("flavor = ;", "21: expected a name or {, found ;");
  in_metric("flavor { a b };", "23: expected }, found b");
  in_metric("constraint c /Code", "30: expected is, found the end of the text");
  in_metric("constraint c /Code/+", "31: expected a name or *, found +");
  in_metric("constraint c is;", "25: expected a semicolon, or a path such as /Code/*, found is");
  in_metric("constraint c /Code is counter", "34: expected replace, found counter");
  in_metric("base counter", "17: expected is, found counter");
  in_metric("base is float", "20: expected counter, processTimer, wallTimer or void, found float");
  in_metric("base is counter (", "28: expected {, found (");
  in_metric("units a; units b;", "21: expected units once only, found it again");
  expect("constraint c is counter {}", "1:14: expected a path such as /Code/*, found is");
  expect("constraint c /Code is replace {}", "1:23: expected counter or default, found replace");
  expect("list l is file {}", "1:11: expected procedure, module, string, int or float, found file");
  expect("list l is module { item", "1:20: expected items, flavor, library or }, found item");
  expect("list l is module { items { a } }", "1:28: expected a text in quotation marks, found a");
  expect("list l is module { library maybe; }", "1:28: expected true or false, found maybe");
  expect("list l is module { }", "1:6: expected a list with items, found l without any");
  expect("resourceList (module \"m\")", "1:22: expected ,, found \"");
  expect("list l is module {\n  // }\n",
         "3:1: expected items, flavor, library or }, found the end of the text");
  const auto in_base = [&](const std::string& statement, const std::string& message) {
    expect(metric(statement), "4:" + message);
  };
  in_base("for x in y", "5: expected foreach, if, append, prepend, { or }, found for");
  in_base("foreach (", "13: expected the name of a variable, found (");
  in_base("foreach f of $procedures", "15: expected in, found of");
  in_base("foreach f in ;", "18: expected an expression, found ;");
  in_base("if f.name == ;", "18: expected a value, found ;");
  in_base("if (f.name == \"x\" {", "23: expected ), found {");
  in_base("foreach f in $procedures f", "30: expected foreach, if, append, prepend or {, found f");
  in_base("append f.entry", "12: expected preInsn or postInsn, found f");
  in_base("append preInsn ;", "20: expected points such as func.entry, found ;");
  in_base("append preInsn f.;", "22: expected the name of a field, found ;");
  in_base("append preInsn f.entry m++;", "28: expected constrained, or (* and code, found m");
  in_base("append preInsn f.entry (* * *)", "31: expected code, or *) after it, found *");
  in_base("append preInsn f.entry { *)", "30: expected code, or } after it, found *");
  in_base("append preInsn f.entry (* if m = 1; *)", "34: expected (, found m");
  in_base("append preInsn f.entry (* if (m) *)", "38: expected an expression, found *");
  in_base("append preInsn f.entry (* m = ; *)", "35: expected an expression, found ;");
  in_base("append preInsn f.entry (* m = 7x; *)", "35: expected an expression, found 7x");
  in_base("append preInsn f.entry (* m = $arg[0; *)", "41: expected ], found ;");
  in_base("append preInsn f.entry (* m = 1234567890123456789; *)",
          "35: expected a number below 10^18, found 1234567890123456789");
  in_base("append preInsn f.entry (* m = - ; *)", "37: expected a value, found ;");
  in_base("append preInsn f.entry (* m = (1; *)", "37: expected ), found ;");
}

TEST(MdlText, IsToldWhatCodeCannotDo) {
  const auto expect = [](const std::string& code, const std::string& message) {
    const std::string text = refusal(metric("append preInsn $block.entry (* " + code + " *)"));
    EXPECT_EQ(text.substr(0, message.size()), message) << code;
  };
  expect("setCounter(m);", "4:36: expected setCounter(COUNTER, VALUE), found something else");
  expect("addCounter(1, 2);", "4:36: expected addCounter(COUNTER, VALUE), found something else");
  expect("subCounter(n, 2);", "4:47: expected a counter: m, found n");
  expect("m = readSymbol(7);", "4:40: expected readSymbol(\"NAME\"), found something else");
  expect("m = readAddress(\"x\");", "4:40: expected readAddress(ADDRESS), found something else");
}

TEST(MdlText, MayNotNestWithoutEnd) {
  const std::string open(5000, '(');
  EXPECT_NE(refusal(metric("append preInsn $block.entry (* m = " + open + "1; *)"))
                .find("expected at most 100 brackets in each other, found more"),
            std::string::npos);
  // What is deep without a bracket.
  const auto repeated = [](const std::string& text) {
    std::string all;
    for (int i = 0; i < 100'000; ++i) all += text;
    return all;
  };
  for (const std::string& deep :
       {"m = " + repeated("-") + "1", "m" + repeated(".m"), "m" + repeated("++"),
        "m = 1" + repeated("+1"), repeated("m=") + "1"}) {
    const std::string found = refusal(metric("append preInsn $block.entry (* " + deep + "; *)"));
    EXPECT_TRUE(found.find("expected at most 1000 operators in an expression, found more") !=
                    std::string::npos ||
                found.find("expected at most 100 brackets in each other, found more") !=
                    std::string::npos)
        << found.substr(0, 200);
  }
  const std::string blocks = refusal(metric(repeated("{")));
  EXPECT_NE(blocks.find("expected at most 100 brackets in each other, found more"),
            std::string::npos);
}

TEST(MdlText, CombinesConstraintsWithoutMultiplyingThem) {
  Library library;
  library.add_file(CITCAT_SOURCE_DIR "/tests/unit/tools/mdl/figures.mdl");
  const auto attachments = [&](const std::string& request) {
    return make_plan(library, parse_metric_request(request)).attachments.size();
  };
  // The code of the metric, and that of the one constraint that has some.
  EXPECT_EQ(attachments("msgs"), 1u);
  EXPECT_EQ(attachments("msgs@/Code/vmlinux/schedule"), 3u);
  EXPECT_EQ(attachments("msgs@/Code/vmlinux/schedule,/Process/sh,/Level/0,/Interrupt/30"), 3u);
  EXPECT_EQ(attachments("cpuTime@/Code/vmlinux/schedule,/Process/sh"), 2u);
}

TEST(MdlText, OfThePaperMeansTheSame) {
  Library library;
  library.add_file(CITCAT_SOURCE_DIR "/tests/unit/tools/mdl/paper.mdl");
  library.add("later", R"(
    resourceList sends2 is procedure { items { "c491bc40", "c42665d0" }; flavor { pvm }; }
    metric messages2 {
      units operations;
      constraint procedure2;
      base is counter {
        foreach func in sends2 { append preInsn func.entry constrained (* messages2 += 1; *) }
      }
    }
    constraint procedure2 /Code/*/* is counter {
      prepend preInsn $constraint[0].entry (* procedure2 += 1; *)
      append preInsn $constraint[0].return (* procedure2 -= 1; *)
    })");
  const auto attachments = [&](const std::string& request) {
    std::string all;
    for (const Attachment& a : make_plan(library, parse_metric_request(request)).attachments) {
      all += a.procedures.text() + " " + point_row(a.point).field + (a.prepend ? " before" : "") +
             (a.constrained ? " constrained" : "") + (a.of_constraint ? " of constraint" : "") +
             " " + std::to_string(a.cost()) + "\n";
    }
    return all;
  };
  EXPECT_EQ(attachments("messages@/Code/vmlinux/schedule"),
            attachments("messages2@/Code/vmlinux/schedule"));
  EXPECT_EQ(attachments("messages"), attachments("messages2"));
}

TEST(MdlText, OfThePaperMaySayWhatIsOfItsHierarchyAlone) {
  Library library;
  for (const char* const root : {"Process", "Level", "Interrupt", "Syscall", "Port", "Data"}) {
    const std::string name = std::string("in") + root;
    EXPECT_NO_THROW(library.add("t", "constraint " + name + " /" + root + " is default;")) << root;
    EXPECT_EQ(library.constraint(name).definition->path, (std::vector<std::string>{root, "*"}));
  }
  library.add("t", "constraint code /Code is default;");
  EXPECT_EQ(library.constraint("code").definition->path,
            (std::vector<std::string>{"Code", "*", "*"}));
  EXPECT_EQ(refusal("constraint c /Machine is default;").substr(0, 35),
            "1:12: expected a constraint for /Co");
}

/// The metric itself, as the only variable.
class One final : public Variables {
 public:
  std::int64_t get(std::size_t) const override { return value; }
  void set(std::size_t, std::int64_t to) override { value = to; }
  void start_timer() override {}
  void stop_timer() override {}
  std::int64_t value = 0;
};

/// What the metric is after the code; nothing if a line came upon what is not known.
std::optional<std::int64_t> result_of(const std::string& code, const PointValues& point,
                                      std::int64_t* metric_after = nullptr) {
  Library library;
  library.add("t", metric("append preInsn $reference.any (* " + code + " *)"));
  const Plan plan = make_plan(library, parse_metric_request("m"));
  One m;
  bool known = true;
  for (const CodeNode& line : plan.attachments.at(0).code) {
    known = line.run(m, point).has_value() && known;
  }
  if (metric_after != nullptr) *metric_after = m.value;
  if (!known) return std::nullopt;
  return m.value;
}

TEST(MdlText, OfCodeHasThePrecedenceOfC) {
  const auto result = [](const std::string& code) { return result_of(code, {}); };
  EXPECT_EQ(result("m = 2 + 3 * 4 - 10 / 2;"), 9);
  EXPECT_EQ(result("m = -2 * -(3 - 1);"), 4);
  EXPECT_EQ(result("m = 1 < 2 && 3 >= 4 || 5 != 6;"), 1);
  EXPECT_EQ(result("m = 7; m -= 0x3; m++;"), 5);
  EXPECT_EQ(result("m = 7 / 0;"), 0);
  EXPECT_EQ(result("if (m == 1) m = 2; if (m == 0) m = 3;"), 3);
}

TEST(MdlText, OfCodeWithAnArgumentThatIsNotKnownChangesNothing) {
  const std::optional<std::int64_t> arguments[] = {7, std::nullopt};
  const PointValues point{arguments, 0};
  std::int64_t after = 0;
  for (const char* const code :
       {"m = 5; m = $arg[1];", "m = 5; m += 1 + $arg[1];", "m = 5; m -= -$arg[1];",
        "m = 5; if ($arg[1] == 0) m = 6;", "m = 5; if (1 && $arg[1]) m = 6;",
        "m = 5; if (0 || $arg[1]) m = 6;", "m = 5; m = $arg[$arg[1]];"}) {
    EXPECT_FALSE(result_of(code, point, &after)) << code;
    EXPECT_EQ(after, 5) << code;
  }
  EXPECT_EQ(result_of("m = $arg[0]; if (0 && $arg[1]) m = 6; if (1 || $arg[1]) m++;", point), 8);
  EXPECT_EQ(result_of("m = 5; m += $arg[2];", point), 5) << "there is no such argument";
}

/// Four bytes of 1000h alone are known.
class FourBytes final : public PointMemory {
 public:
  std::optional<std::int64_t> integer(std::int64_t address) const override {
    return address == 0x1000 ? std::optional<std::int64_t>(-3) : std::nullopt;
  }
};

TEST(MdlText, OfCodeReadsMemoryWhereItIsKnown) {
  const FourBytes memory;
  PointValues point;
  point.memory = &memory;
  std::int64_t after = 0;
  EXPECT_EQ(result_of("m = 5; m += readAddress(0x1000);", point), 2);
  EXPECT_FALSE(result_of("m = 5; m += readAddress(4096 + 4);", point, &after));
  EXPECT_EQ(after, 5);
  EXPECT_FALSE(result_of("m = 5; m += readAddress(0x1000);", {}, &after));
  EXPECT_EQ(after, 5);
}

TEST(MdlFocus, IsRefusedWhereItIsNoPath) {
  for (const char* const text : {"Code/a", "/Cod/a", "/Level/x", "/Process/a,/Process/b",
                                 "/Machine/a", "/Data/z", "/Code/a/"}) {
    EXPECT_THROW(parse_focus(text), UsageError) << text;
  }
  EXPECT_EQ(parse_focus("/Code/a/b;/Port/03f8").text(), "/Code/a/b,/Port/3f8");
  EXPECT_EQ(parse_focus("/Process").text(), "/");
}

}  // namespace
}  // namespace citcat::mdl
