// SQL over a recording: what it answers is what the tools say, and only questions are answered.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "golden/citcat_test.h"
#include "golden/samples.h"

namespace citcat::testing {
namespace {

using OrderedJson = nlohmann::ordered_json;

class SqlCommand : public CitcatTest {
 protected:
  void import_linux() const { import_linux_sample("r.citcat"); }
  OrderedJson rows(const std::string& query) const {
    return OrderedJson::parse(good({"sql", "r.citcat", query, "--json"}));
  }
  /// The only value.
  std::uint64_t value(const std::string& query) const {
    const OrderedJson all = rows(query);
    EXPECT_EQ(all.size(), 1u) << query;
    return all.at(0).begin().value().get<std::uint64_t>();
  }
  OrderedJson tool(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> line{"analyze", "r.citcat", "--tool", name, "--json"};
    line.insert(line.end(), more.begin(), more.end());
    const OrderedJson all = OrderedJson::parse(good(line));
    return all.contains("tools") ? all.at("tools").begin().value() : all;
  }
  std::string refusal(const std::string& query) const {
    const ProcessResult result = run({"sql", "r.citcat", query});
    EXPECT_EQ(result.exit_code, 2) << query << result.out;
    return result.err;
  }
  void expect_what_tools_say();
};

/// A tool's table as a map from one of its columns to another.
std::map<std::string, std::uint64_t> column_of(const OrderedJson& table, const char* key,
                                               const char* number) {
  std::map<std::string, std::uint64_t> all;
  for (const OrderedJson& row : table)
    all[row.at(key).get<std::string>()] += row.at(number).get<std::uint64_t>();
  return all;
}

std::string hex_text(std::uint64_t n, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(n));
  return text;
}

void SqlCommand::expect_what_tools_say() {
  // count, with and without a row of each instruction.
  const OrderedJson count = tool("count");
  const auto instructions = count.at("instructions").get<std::uint64_t>();
  EXPECT_EQ(value("select count(*) from instructions"), instructions);
  EXPECT_EQ(value("select count(position) from instructions"), instructions);
  EXPECT_EQ(value("select max(position) + 1 from instructions"), instructions);
  const auto executions = column_of(count.at("mix"), "mnemonic", "count");
  std::map<std::string, std::uint64_t> mnemonics, by_rows;
  for (const OrderedJson& r : rows("select mnemonic, count(*) n from instructions group by 1"))
    mnemonics[r.at("mnemonic")] = r.at("n");
  for (const OrderedJson& r :
       rows("select mnemonic, count(position) n from instructions group by 1"))
    by_rows[r.at("mnemonic")] = r.at("n");
  EXPECT_EQ(mnemonics, by_rows);
  std::uint64_t all = 0;
  for (const auto& [name, n] : executions) all += n;
  // A REP that is interrupted is begun once more, and has one row.
  if (all == instructions) {
    EXPECT_EQ(mnemonics, executions);
    EXPECT_EQ(value("select count(*) from blocks"), count.at("blocks").at("static"));
  }
  // An instruction that was only begun, a REP within which the run ends, has none.
  const std::size_t unfinished = executions.size() - mnemonics.size();
  EXPECT_LE(unfinished, 1u);

  // func: how much ran at each level, which the scope tells.
  for (const char* level : {"0", "3"}) {
    const auto there = tool("count", {"--where", std::string("level=") + level})
                           .at("instructions")
                           .get<std::uint64_t>();
    const std::string where = std::string(" from instructions where level=") + level;
    EXPECT_EQ(value("select count(*)" + where), there);
    EXPECT_EQ(value("select count(position)" + where), there);
  }

  // events.
  std::map<std::string, std::uint64_t> events;
  for (const OrderedJson& r : rows("select kind, vector, count(*) n from events group by 1, 2")) {
    std::string name = r.at("kind");
    if (name == "nmi" || name == "smi") {
      std::transform(name.begin(), name.end(), name.begin(),
                     [](char c) { return static_cast<char>(c - 'a' + 'A'); });
    } else if (!r.at("vector").is_null()) {
      name += " " + hex_text(r.at("vector"), 2);
    }
    events[name] = r.at("n");
  }
  for (const OrderedJson& r : rows("select kind, count(*) n from system group by 1"))
    events[r.at("kind")] = r.at("n");
  const auto external = value("select count(*) from external_writes");
  if (external != 0) events["external write"] = external;
  EXPECT_EQ(events, column_of(tool("events").at("events"), "event", "count"));

  // io.
  const OrderedJson io = tool("io");
  EXPECT_EQ(value("select count(*) from ports where direction='read'"), io.at("reads"));
  EXPECT_EQ(value("select count(*) from ports where direction='write'"), io.at("writes"));

  // syscalls.
  const OrderedJson calls = tool("syscalls");
  EXPECT_EQ(value("select count(*) from syscalls"), calls.at("calls"));
  EXPECT_EQ(value("select coalesce(sum(error), 0) from syscalls"), calls.at("errors"));
  EXPECT_EQ(value("select count(*) from syscalls where state='pending'"), calls.at("pending"));

  // calls.
  EXPECT_EQ(value("select count(*) from calls"), tool("calls").at("calls"));
  EXPECT_EQ(value("select coalesce(max(depth), 0) from calls"), tool("calls").at("deepest"));

  // coverage: different instructions that ran.
  EXPECT_EQ(value("select count(*) from (select distinct address, bytes from instructions)"),
            count.at("static_instructions").get<std::uint64_t>() - unfinished);

  // Groups of processes.
  const OrderedJson groups = tool("count", {"--by", "process"});
  for (const auto& [name, group] : groups.at("groups").items()) {
    const std::string process = name.substr(name.find('=') + 1);
    EXPECT_EQ(value("select count(*) from instructions where process='" + process + "'"),
              group.at("tools").at("count").at("instructions"));
    EXPECT_EQ(value("select sum(instructions) from processes where process='" + process + "'"),
              group.at("tools").at("count").at("instructions"));
  }
}

TEST_F(SqlCommand, SaysWhatToolsSayOfAnOldProcessor) {
  import_sample("r.citcat");
  expect_what_tools_say();
}

TEST_F(SqlCommand, SaysWhatToolsSayOfLinux) {
  import_linux();
  expect_what_tools_say();
}

TEST_F(SqlCommand, CountsAreThoseOfTheRows) {
  import_linux();
  // The second form of each has a row of each instruction or access.
  for (const std::string table : {"instructions", "refs"}) {
    for (const std::string where :
         {"", " where level = 0", " where address >= 0xc8000000",
          " where position between 500 and 70000",
          " where position >= 1000.5 and position < 2000 and address < 0xd0000000"}) {
      const std::string from = " from " + table + where;
      EXPECT_EQ(value("select count(*)" + from), value("select count(position)" + from)) << from;
      const std::string columns =
          table == "refs" ? "kind, class, size, level" : "mnemonic, size, level";
      EXPECT_EQ(rows("select " + columns + ", count(*) n" + from + " group by 1, 2, 3"),
                rows("select " + columns + ", count(position) n" + from + " group by 1, 2, 3"))
          << from;
    }
  }
  EXPECT_EQ(value("select sum(size) from refs"), value("select sum(size + 0*position) from refs"));
}

TEST_F(SqlCommand, RowsAreThoseOfTheTrace) {
  import_sample("r.citcat");
  std::vector<OrderedJson> trace;
  std::string line;
  std::istringstream lines(good({"cat", "r.citcat", "--format", "json", "--to", "60"}));
  while (std::getline(lines, line)) {
    const OrderedJson record = OrderedJson::parse(line);
    if (!record.contains("event") && record.at("iteration") == 0) trace.push_back(record);
  }
  const OrderedJson found = rows("select * from instructions where position < 60");
  ASSERT_EQ(found.size(), trace.size());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    EXPECT_EQ(found[i].at("position"), trace[i].at("number"));
    EXPECT_EQ(found[i].at("bytes"), trace[i].at("bytes"));
    EXPECT_EQ(found[i].at("text"), trace[i].at("text"));
    EXPECT_EQ(std::to_string(found[i].at("mode").get<int>()), trace[i].at("mode"));
  }
}

TEST_F(SqlCommand, JoinsReadOneReplay) {
  import_linux();
  EXPECT_EQ(value("select count(*) from instructions i join refs r using (position)"),
            value("select count(*) from refs where class <> 'delivery'") +
                value("select count(*) from refs r where class = 'delivery' and exists (select 1 "
                      "from instructions i where i.position = r.position)"));
  // A neighbour, and an instruction far behind.
  EXPECT_EQ(value("select count(*) from instructions a join instructions b on b.position = "
                  "a.position + 1"),
            value("select count(*) - 1 from instructions"));
  EXPECT_EQ(value("select b.position from instructions a join instructions b on b.position = "
                  "a.position - 140000 where a.position = 149000"),
            9000u);
}

TEST_F(SqlCommand, RegistersAndMemoryAreThoseOfTheMoment) {
  import_sample("r.citcat");
  // The first instruction, PUSH CX, puts CX where SP points behind it.
  const OrderedJson before = rows("select name, value from registers where position = 0");
  std::map<std::string, std::uint64_t> registers;
  for (const OrderedJson& r : before) {
    if (!r.at("value").is_null()) registers[r.at("name")] = r.at("value");
  }
  const std::uint64_t slot = registers.at("ss") * 16 + registers.at("esp") - 2;
  const std::string there = std::to_string(slot);
  EXPECT_EQ(value("select sum(value << (8 * (address - " + there + "))) from memory(1, " + there +
                  ", " + std::to_string(slot + 1) + ")"),
            registers.at("ecx"));
  EXPECT_EQ(value("select address from refs where position = 0 and class = 'data'"), slot);
  // The program has loaded DI by then, and not DX.
  const auto known = [&](int position, const std::string& name) {
    return value("select known from registers where position = " + std::to_string(position) +
                 " and name = '" + name + "'");
  };
  EXPECT_EQ(known(0, "edi"), 0u);
  EXPECT_EQ(known(120, "edi"), 1u);
  EXPECT_EQ(known(120, "edx"), 0u);
  EXPECT_EQ(rows("select * from registers where position = 100000000").size(), 0u);
  EXPECT_NE(refusal("select * from registers").find("expected where position = N"),
            std::string::npos);
  EXPECT_NE(refusal("select * from memory").find("memory(POSITION, FIRST, LAST)"),
            std::string::npos);
  // A text that is a number equals it, another text equals none.
  EXPECT_NE(rows("select * from registers where position = '120'").size(), 0u);
  EXPECT_EQ(rows("select * from registers where position = 'x'").size(), 0u);
}

TEST_F(SqlCommand, PrintsAHeaderAndRows) {
  import_sample("r.citcat");
  EXPECT_EQ(good({"sql", "r.citcat", "select count(*) from instructions", "--csv"}),
            "count(*)\n621\n");
  EXPECT_EQ(good({"sql", "r.citcat", "select 1 a, 'x,\"y\"' b, null c, 1.0 d", "--csv"}),
            "a,b,c,d\n1,\"x,\"\"y\"\"\",,1.0\n");
  EXPECT_EQ(good({"sql", "r.citcat", "select 1 a, 'x' b, null c; select 2", "--json"}),
            "[{\"a\":1,\"b\":\"x\",\"c\":null}]\n[{\"2\":2}]\n");
  EXPECT_EQ(good({"sql", "r.citcat", "select position, address from instructions limit 1"}),
            "position   address\n--------  --------\n       0  0000fc78\n");
  EXPECT_EQ(good({"sql", "r.citcat", "select 1 where 0", "--csv"}), "1\n");
  EXPECT_EQ(good({"sql", "r.citcat", "select x'00ff' b", "--csv"}), "b\n00ff\n");
}

TEST_F(SqlCommand, PrintsJsonWhateverTheValuesAre) {
  import_sample("r.citcat");
  EXPECT_EQ(good({"sql", "r.citcat",
                  "select x'00ff' a, 1e999 b, -1e999 c, cast(x'ff' as text) d, 1e20 e", "--json"}),
            "[{\"a\":\"00ff\",\"b\":9.0e+999,\"c\":-9.0e+999,\"d\":\"\uFFFD\",\"e\":1e+20}]\n");
  EXPECT_EQ(good({"sql", "r.citcat", "select 1 a, 2 a, 3 \"a:1\", 4 a", "--json"}),
            "[{\"a\":1,\"a:1\":2,\"a:1:1\":3,\"a:2\":4}]\n");
  const OrderedJson both = rows(
      "select i.*, r.* from instructions i, refs r where i.position = 0 "
      "and r.position = 0 limit 1");
  EXPECT_EQ(both.at(0).at("size"), 1);
  EXPECT_EQ(both.at(0).at("size:1").get<std::uint64_t>(),
            value("select size from refs where position = 0 limit 1"));
}

TEST_F(SqlCommand, EndsAtAnInterruptHoweverLongTheQuery) {
  import_sample("r.citcat");
  for (const std::string from : {"select count(*) from c", "select x from c where x < 0",
                                 "select count(*) from c, instructions"}) {
    // Without --foreground, timeout(1) interrupts its group, too: twice, which ends a command at
    // once.
    const ProcessResult result = run_shell(
        "timeout --foreground -s INT -k 30 2 $CITCAT sql r.citcat 'with recursive c(x) as "
        "(select 1 union all select x + 1 from c) " +
            from + "'",
        file(""));
    EXPECT_EQ(result.exit_code, 124) << from;
    EXPECT_NE(result.err.find("interrupted"), std::string::npos) << result.err;
  }
}

TEST_F(SqlCommand, ReadsStatementsFromItsInput) {
  import_sample("r.citcat");
  const ProcessResult result = run_shell(
      "printf '.mode csv\\nselect count(*)\\nfrom instructions;\\n.tables\\nselect 7' | $CITCAT "
      "sql "
      "r.citcat",
      file(""));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with("count(*)\n621\ninstructions")) << result.out;
  EXPECT_TRUE(result.out.ends_with("7\n7\n")) << result.out;
}

TEST_F(SqlCommand, AnswersOnlyQuestions) {
  import_sample("r.citcat");
  for (const char* text :
       {"delete from events", "insert into events values (1)", "update events set kind = 1",
        "create table t(a)", "create temp view v as select 1", "drop table events",
        "attach 'x.db' as x", "pragma journal_mode = off", "begin", "vacuum into 'x.db'",
        "select load_extension('x')", "create virtual table t using instructions"}) {
    EXPECT_NE(refusal(text), "") << text;
  }
  EXPECT_FALSE(std::filesystem::exists(file("x.db")));
  EXPECT_NE(refusal("select 1; select nix from events").find("query:17: no such column"),
            std::string::npos);
}

TEST_F(SqlCommand, WhatDoesNotFitIntoMemoryIsSaid) {
  import_linux();
  const ProcessResult result =
      run({"sql", "r.citcat", "select count(*) from calls", "--memory-limit", "64K", "-q"});
  EXPECT_NE(result.exit_code, 0) << result.out;
  EXPECT_NE(result.err.find("--memory-limit"), std::string::npos) << result.err;
}

}  // namespace
}  // namespace citcat::testing
