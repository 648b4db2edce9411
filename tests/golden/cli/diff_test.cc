// diff and compare: where runs part, of a program that is short enough to be followed by hand.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "golden/citcat_test.h"

namespace citcat::testing {
namespace {

using Json = nlohmann::json;

/// 1000: mov cx, [0500]; 1004: inc ax; 1005: loop 1004; 1007: hlt. The interrupt's handler is
/// 2000: inc bx; 2001: iret. Where it reads a port it is another one: 2000: in al, 60; 2002: test
/// al, al; 2004: jnz 2007; 2006: iret; 2007: hlt.
class RunDifference : public CitcatTest {
 protected:
  /// `loops`: what lies at 0500; `interrupt_after`: so many instructions, 0 for none, -1
  /// before the first; `port`: what
  /// the handler reads, unless it reads nothing.
  void record(const std::string& name, int loops, int interrupt_after, int port = -1) const {
    const int in_handler = interrupt_after == 0 ? 0 : port < 0 ? 2 : 4;
    const int all = port > 0 ? interrupt_after + in_handler : 2 + 2 * loops + in_handler;
    std::string csv = "seq,icount,rep,clk,type,addr,size,be,flags,burst,data\n";
    int seq = 0;
    const auto add = [&](int icount, const std::string& row) {
      csv += std::to_string(seq) + "," + std::to_string(icount) + ",0," + std::to_string(2 * seq) +
             "," + row + "\n";
      ++seq;
    };
    const auto interrupt = [&](int at) {
      add(at, "INTA,00000000,1,0,-,0,08");
      add(at, "MEM_RD,00000020,4,f,-,0,00200000");
      add(at, std::string("CODE_RD,00002000,4,f,-,0,") + (port < 0 ? "43cf0000" : "e46084c0"));
      if (port < 0) return;
      add(at, "IO_RD,00000060,1,1,-,0,0" + std::to_string(port));
      add(at + 2, "CODE_RD,00002004,4,f,-,0,7501cff4");
    };
    const int first = interrupt_after < 0 ? in_handler : 0;
    if (interrupt_after < 0) interrupt(0);
    add(first, "CODE_RD,00001000,4,f,-,0,8b0e0005");
    add(first, "MEM_RD,00000500,2,3,-,0,0" + std::to_string(loops) + "00");
    add(first + 1, "CODE_RD,00001004,4,f,-,0,40e2fdf4");
    if (interrupt_after > 0) interrupt(interrupt_after);
    add(all - 1, "HALT,00000000,0,0,-,0,");
    write_file(file("bus.csv"), csv);
    write_file(file("state.json"),
               R"({"cpu":"386","registers":{"cs":"0x0000","eip":"0x1000","eflags":"0x0202",)"
               R"("ss":"0x0000","esp":"0x0800","ds":"0x0000","eax":"0","ebx":"0","ecx":"0"}})");
    good({"import", "bus.csv", "--format", "record-csv", "--cpu", "386", "--initial-state",
          "state.json", "--bus", "none", "-o", name, "-q"});
  }
  Json json(std::vector<std::string> line, int status) const {
    for (const char* more : {"--json", "-q", "--unchecked"}) line.emplace_back(more);
    const ProcessResult result = run(line);
    EXPECT_EQ(result.exit_code, status) << result.err;
    return Json::parse(result.out);
  }
};

/// Nobody knows that the second one begins within a handler; the first has seen its beginning.
TEST_F(RunDifference, ARunMayBeginWithinAHandler) {
  record("a.citcat", 5, 3);
  write_file(file("bus.csv"),
             "seq,icount,rep,clk,type,addr,size,be,flags,burst,data\n"
             "0,0,0,0,CODE_RD,00002000,4,f,-,0,43cf0000\n"
             "1,1,0,2,MEM_RD,000007fa,2,c,-,0,0410\n"
             "2,1,0,4,MEM_RD,000007fc,4,f,-,0,00000202\n"
             "3,2,0,6,CODE_RD,00001004,4,f,-,0,40e2fdf4\n"
             "4,10,0,8,HALT,00000000,0,0,-,0,\n");
  write_file(file("state.json"),
             R"({"cpu":"386","registers":{"cs":"0x0000","eip":"0x2000","eflags":"0x0002",)"
             R"("ss":"0x0000","esp":"0x07fa","ds":"0x0000","eax":"1","ebx":"0","ecx":"4"}})");
  good({"import", "bus.csv", "--format", "record-csv", "--cpu", "386", "--initial-state",
        "state.json", "--bus", "none", "-o", "cut.citcat", "-q"});
  EXPECT_EQ(json({"diff", "a.citcat", "cut.citcat", "--from-a", "3"}, 0).at("compared"), 11);
  EXPECT_EQ(json({"diff", "cut.citcat", "a.citcat", "--from-b", "3"}, 0).at("compared"), 11);
  EXPECT_EQ(json({"diff", "cut.citcat", "a.citcat"}, 1).at("verdict"), "differ");
}

TEST_F(RunDifference, InterruptsAtOtherMomentsAreNone) {
  record("a.citcat", 5, 3);
  record("b.citcat", 5, 6);
  record("c.citcat", 5, 0);
  for (const char* other : {"a.citcat", "b.citcat", "c.citcat"}) {
    const Json found = json({"diff", "a.citcat", other}, 0);
    EXPECT_EQ(found.at("verdict"), "equal");
    EXPECT_EQ(found.at("position"), nullptr);
    // With itself, the handler's two as well.
    const bool same = std::string(other) == "a.citcat";
    EXPECT_EQ(found.at("compared"), same ? 14 : 12);
    // Each handler that only one of them enters.
    EXPECT_EQ(found.at("handlers"), same ? 0 : std::string(other) == "b.citcat" ? 2 : 1);
  }
}

/// The sample begins in a handler, and ends within a REP.
TEST_F(RunDifference, CountsTheInstructionsThatAllOtherCommandsCount) {
  import_sample("r.citcat");
  const Json verdict = Json::parse(good({"verify", "r.citcat", "--json"}));
  EXPECT_EQ(json({"diff", "r.citcat", "r.citcat"}, 0).at("compared"), verdict.at("instructions"));
}

TEST_F(RunDifference, PartsWhereTheOneGoesOnAndTheOtherDoesNot) {
  record("a.citcat", 5, 3);
  record("b.citcat", 3, 0);
  const Json found = json({"diff", "a.citcat", "b.citcat"}, 1);
  EXPECT_EQ(found.at("verdict"), "differ");
  EXPECT_EQ(found.at("compared"), 7);
  // The handler's two instructions came before it in the one.
  EXPECT_EQ(found.at("position"), 9);
  EXPECT_EQ(found.at("a").at("address"), "00001004");
  EXPECT_EQ(found.at("b").at("position"), 7);
  EXPECT_EQ(found.at("b").at("address"), "00001007");
  EXPECT_EQ(found.at("last").at("a").at("position"), 8);
  EXPECT_EQ(found.at("last").at("b").at("position"), 6);
  // CX before the last LOOP, BX that the handler counts in, and what CX was loaded from.
  EXPECT_EQ(found.at("registers"),
            Json::parse(R"([{"name":"ecx","a":3,"b":1},{"name":"ebx","a":1,"b":0}])"));
  EXPECT_EQ(found.at("memory"), Json::parse(R"([{"name":"00000500","a":5,"b":3}])"));
  EXPECT_EQ(
      json({"diff", "a.citcat", "b.citcat", "--from-a", "9", "--from-b", "3"}, 0).at("compared"),
      5);
}

/// The interrupt comes before the first instruction of the one, or of the part that is compared.
TEST_F(RunDifference, AnInterruptBeforeTheFirstInstructionIsLeftOut) {
  record("first.citcat", 5, -1);
  record("later.citcat", 5, 3);
  record("none.citcat", 5, 0);
  for (const char* const other : {"later.citcat", "none.citcat"}) {
    EXPECT_EQ(json({"diff", "first.citcat", other}, 0).at("compared"), 12) << other;
    EXPECT_EQ(json({"diff", other, "first.citcat"}, 0).at("compared"), 12) << other;
  }
  EXPECT_EQ(json({"diff", "first.citcat", "first.citcat"}, 0).at("compared"), 14);
  const std::vector<std::string> parts{
      "diff", "later.citcat", "none.citcat", "--from-a", "3", "--from-b", "3"};
  EXPECT_EQ(json(parts, 0).at("compared"), 9);
}

/// A handler that takes another way and comes back is left out; one that does not has parted.
TEST_F(RunDifference, PartsInAHandlerThatOneDoesNotComeBackFrom) {
  record("back.citcat", 5, 3, 0);
  record("stays.citcat", 5, 3, 1);
  for (const bool swapped : {false, true}) {
    const char* const stays = swapped ? "b" : "a";
    const char* const back = swapped ? "a" : "b";
    const Json found = swapped ? json({"diff", "back.citcat", "stays.citcat"}, 1)
                               : json({"diff", "stays.citcat", "back.citcat"}, 1);
    EXPECT_EQ(found.at("verdict"), "differ");
    EXPECT_EQ(found.at("handlers"), 0);
    EXPECT_EQ(found.at("position"), 6);
    EXPECT_EQ(found.at(stays).at("address"), "00002007");
    EXPECT_EQ(found.at(back).at("address"), "00002006");
    EXPECT_EQ(found.at("last").at("a").at("address"), "00002004");
    EXPECT_EQ(found.at("registers").at(0).at("name"), "eax");
  }
}

TEST_F(RunDifference, LogsOfEmulatorsAreRead) {
  record("r.citcat", 3, 3);
  struct Log {
    const char* form;
    std::string same, other;
  };
  const std::vector<Log> logs{
      {"mame", "01000: mov cx,[0500h]\n01004: inc ax\n01005: loop 1004h\n   (loops for 9)\n",
       "01007: hlt\n"},
      {"qemu-execlog",
       "0, 0x1000, 0x05000e8b, \"movw\", load, 0x00000500\n0, 0x1004, 0x40, \"incw\"\n"
       "0, 0x1005, 0xfde2, \"loop\"\n",
       "0, 0x1007, 0xf4, \"hlt\"\n"},
      {"bochs",
       "(0).[1] [0x000000001000] 0000:1000 (unk. ctxt): mov cx, [0500] ; 8b0e0005\n"
       "(0).[2] [0x000000001004] 0000:1004 (unk. ctxt): inc ax ; 40\n"
       "(0).[3] [0x000000001005] 0000:1005 (unk. ctxt): loop .-3 ; e2fd\n",
       "(0).[4] [0x000000001007] 0000:1007 (unk. ctxt): hlt ; f4\n"},
      // Blocks: the first has three instructions.
      {"qemu-exec",
       "EAX=00000000 EBX=00000000\nTrace 0: 0x7f1000000100 [00000000/00001000/00000000/ff000000]\n",
       "Trace 0: 0x7f1000000300 [00000000/00001007/00000000/ff000000]\n"},
  };
  for (const Log& log : logs) {
    const bool blocks = std::string(log.form) == "qemu-exec";
    write_file(file("log"), "something else\n" + log.same);
    const Json same = json({"compare", "r.citcat", "log"}, 0);
    EXPECT_EQ(same.at("verdict"), "equal") << log.form;
    EXPECT_EQ(same.at("format"), log.form);
    EXPECT_EQ(same.at("compared"), blocks ? 1 : 3);
    // There are two more loops, of which the log knows nothing.
    write_file(file("log"), log.same + log.other);
    const Json other = json({"compare", "r.citcat", "log", "--format", log.form}, 1);
    EXPECT_EQ(other.at("verdict"), "differ") << log.form;
    EXPECT_EQ(other.at("a").at("address"), "00001004") << log.form;
    EXPECT_EQ(other.at("b").at("address"), "00001007") << log.form;
    const std::string wrong = std::string(log.form) == "mame" ? "bochs" : "mame";
    const ProcessResult refused = run({"compare", "r.citcat", "log", "--format", wrong});
    EXPECT_EQ(refused.exit_code, 3);
    EXPECT_NE(refused.err.find("expected lines of the format " + wrong), std::string::npos)
        << refused.err;
  }
}

/// Another instruction may lie at the same address.
TEST_F(RunDifference, BytesOfALogAreCompared) {
  record("r.citcat", 3, 0);
  const std::string execlog = "0, 0x1000, 0x5000e8b, \"movw\"\n0, 0x1004, 0x40, \"incw\"\n";
  const std::string bochs =
      "(0).[1] [0x000000001000] 0000:1000 (unk. ctxt): mov cx, [0500] ; 8b0e0005\n"
      "(0).[2] [0x000000001004] 0000:1004 (unk. ctxt): inc ax ; 40\n";
  for (const std::string& log : {execlog, bochs}) {
    write_file(file("log"), log);
    EXPECT_EQ(json({"compare", "r.citcat", "log"}, 0).at("compared"), 2) << log;
    std::string other = log;
    const std::size_t at = log == bochs ? log.rfind("40") : log.rfind("0x40") + 2;
    other.replace(at, 2, "48");
    write_file(file("log"), other);
    const Json found = json({"compare", "r.citcat", "log"}, 1);
    EXPECT_EQ(found.at("verdict"), "differ") << log;
    EXPECT_EQ(found.at("a").at("address"), "00001004") << log;
    EXPECT_EQ(found.at("b").at("address"), "00001004") << log;
  }
}

/// Those that QEMU and Bochs wrote of one boot sector (tests/golden/logs).
TEST_F(RunDifference, LogsThatEmulatorsWroteAreRead) {
  const std::string logs = CITCAT_SOURCE_DIR "/tests/golden/logs/";
  good({"import", logs + "boot.bin.zst", "-o", "r.citcat", "-q"});
  const auto instructions = Json::parse(good({"verify", "r.citcat", "--json"})).at("instructions");
  for (const char* const name : {"qemu-insn.log", "qemu-execlog.log", "bochs.log"}) {
    const Json same = json({"compare", "r.citcat", logs + name}, 0);
    EXPECT_EQ(same.at("verdict"), "equal") << name;
    EXPECT_EQ(same.at("compared"), instructions) << name;
    // One line that is another: the entry is told.
    std::string text = read_file(logs + name);
    for (std::size_t at = text.find("7c33"); at != std::string::npos; at = text.find("7c33", at)) {
      text.replace(at, 4, "7c34");
    }
    write_file(file("wrong.log"), text);
    const Json other = json({"compare", "r.citcat", "wrong.log"}, 1);
    EXPECT_EQ(other.at("a").at("text"), "iret") << name;
    EXPECT_EQ(other.at("b").at("address"), "00007c34") << name;
    // The log lacks the line of an instruction that another one follows.
    text = read_file(logs + name);
    const std::size_t begin = text.rfind('\n', text.rfind("7c32")) + 1;
    text.erase(begin, text.find('\n', begin) + 1 - begin);
    write_file(file("wrong.log"), text);
    const Json missing = json({"compare", "r.citcat", "wrong.log"}, 1);
    EXPECT_EQ(missing.at("a").at("address"), "00007c32") << name;
    EXPECT_EQ(missing.at("b").at("address"), "00007c33") << name;
  }
  EXPECT_EQ(json({"compare", "r.citcat", logs + "qemu-blocks.log"}, 0).at("verdict"), "equal");
  const ProcessResult chained = run({"compare", "r.citcat", logs + "qemu-chained.log"});
  EXPECT_EQ(chained.exit_code, 1);
  EXPECT_NE(chained.out.find("nochain"), std::string::npos) << chained.out;
}

/// Bochs has an entry for each iteration.
TEST_F(RunDifference, BytesOfARepeatedInstructionAreComparedInEachIteration) {
  const std::string logs = CITCAT_SOURCE_DIR "/tests/golden/logs/";
  good({"import", logs + "boot.bin.zst", "-o", "r.citcat", "-q"});
  std::string text = read_file(logs + "bochs.log");
  const std::size_t last = text.rfind("f3aa");
  ASSERT_GT(last, text.find("f3aa"));
  text.replace(last, 4, "f3ab");
  write_file(file("wrong.log"), text);
  const Json found = json({"compare", "r.citcat", "wrong.log"}, 1);
  EXPECT_EQ(found.at("b").at("address"), "00007c13");
  EXPECT_EQ(found.at("a").at("address"), "00007c15");
}

TEST_F(RunDifference, HandlersOfALogAreComparedWhereItHasThem) {
  record("r.citcat", 3, 3);
  // The interrupt comes after LOOP, the third instruction.
  const std::string before = "1000: mov\n1004: inc\n1005: loop\n";
  const std::string behind = "1004: inc\n1005: loop\n1004: inc\n1005: loop\n1007: hlt\n";
  write_file(file("with"), before + "2000: inc\n2001: iret\n" + behind);
  write_file(file("without"), before + behind);
  write_file(file("wrong"), before + "2000: inc\n2002: nop\n" + behind);
  EXPECT_EQ(json({"compare", "r.citcat", "with"}, 0).at("compared"), 10);
  EXPECT_EQ(json({"compare", "r.citcat", "without"}, 0).at("compared"), 8);
  const Json wrong = json({"compare", "r.citcat", "wrong"}, 1);
  EXPECT_EQ(wrong.at("b").at("line"), 5);
  // Where the handlers part, and not behind them.
  EXPECT_EQ(wrong.at("a").at("address"), "00002001");
}

// A block goes on to what is jumped back to later: which of the two an entry is only later ones
// say.
TEST_F(RunDifference, BlocksThatFallIntoLoopsAreRead) {
  record("r.citcat", 3, 3);
  const auto block = [](const char* address) {
    return "Trace 0: 0x7f1000000100 [00000000/0000" + std::string(address) +
           "/00000000/ff000000]\n";
  };
  const std::string handler = block("2000"), behind = block("1004") + block("1004") + block("1007");
  // The first block has the first iteration in it, or not; the handler is in the log, or not.
  for (const std::string& before : {block("1000"), block("1000") + block("1004")}) {
    for (const std::string& between : {std::string(), handler}) {
      write_file(file("log"), before + between + behind);
      EXPECT_EQ(json({"compare", "r.citcat", "log"}, 0).at("verdict"), "equal");
      // An iteration too many, unless the first block ends before the first one.
      const bool fits = before == block("1000") && between.empty();
      write_file(file("log"), before + between + block("1004") + behind);
      EXPECT_EQ(json({"compare", "r.citcat", "log"}, fits ? 0 : 1).at("verdict"),
                fits ? "equal" : "differ")
          << before << between;
    }
  }
}

TEST_F(RunDifference, OneProcessorOfALogIsCompared) {
  record("r.citcat", 3, 3);
  const auto block = [](const char* processor, const char* address) {
    return "Trace " + std::string(processor) + ": 0x7f1000000100 [00000000/0000" + address +
           "/00000000/ff000000]\n";
  };
  const std::string other = block("1", "5000");
  write_file(file("log"), block("0", "1000") + other + block("0", "1004") + other + other +
                              block("0", "1004") + block("0", "1007"));
  const ProcessResult unchosen = run({"compare", "r.citcat", "log"});
  EXPECT_EQ(unchosen.exit_code, 2);
  EXPECT_NE(unchosen.err.find("line 2 is of processor 1, earlier ones of processor 0"),
            std::string::npos)
      << unchosen.err;
  EXPECT_EQ(json({"compare", "r.citcat", "log", "--log-processor", "0"}, 0).at("compared"), 4);
  EXPECT_EQ(run({"compare", "r.citcat", "log", "--log-processor", "1"}).exit_code, 2);
  EXPECT_EQ(run({"compare", "r.citcat", "log", "--log-processor", "7"}).exit_code, 3);
  EXPECT_EQ(
      run({"compare", "r.citcat", "log", "--log-processor", "0", "--format", "mame"}).exit_code, 2);
}

TEST_F(RunDifference, FilesThatAreNoLogsAreRefused) {
  record("r.citcat", 3, 0);
  write_file(file("log"), "nothing\nof the kind\n");
  EXPECT_EQ(run({"compare", "r.citcat", "log"}).exit_code, 3);
  write_file(file("log"), "77777: nop\n");
  const ProcessResult other = run({"compare", "r.citcat", "log", "--unchecked"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("no entry has the address"), std::string::npos) << other.err;
}

}  // namespace
}  // namespace citcat::testing
