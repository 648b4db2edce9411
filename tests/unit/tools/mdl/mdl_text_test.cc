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
  expect("metrik m {}", "1:1: expected metric, constraint or resourceList, found metrik");
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
         "4:40: expected $arg at points that have arguments only, found $");
  expect(metric("append preInsn $block.entry (* startProcessTimer(m); *)"),
         "4:54: expected a metric whose base is processTimer, found m");
  expect(metric("append preInsn $block.entry (* Call(\"f\", 1); *)"),
         "4:36: expected startProcessTimer, stopProcessTimer, startWallTimer or stopWallTimer");
  expect(metric("append preInsn $block.entry (* m = 1 + ; *)"), "4:44: expected a value, found ;");
  expect("constraint c /Cod/* is default;", "1:12: expected a constraint for /Code/*");
  expect("metric m { constraint c; base is counter { } }",
         "1:23: expected the name of a constraint, found c");
}

TEST(MdlText, MayNotNestWithoutEnd) {
  const std::string open(5000, '(');
  EXPECT_NE(refusal(metric("append preInsn $block.entry (* m = " + open + "1; *)"))
                .find("expected at most 100 brackets in each other, found more"),
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
