// A run as IDtrace's files, and back to the instructions that it was.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

#include "formats/idtrace/count_file.h"
#include "formats/idtrace/idtrace_reader.h"
#include "tools/idtrace/entry_plan.h"
#include "tools/idtrace/execution_reader.h"
#include "tools/idtrace/totals.h"
#include "tools/idtrace/trace_output.h"
#include "unit/temporary_folder.h"
#include "x86/decode/decoded_instruction.h"

namespace citcat::tools {
namespace {

using ::testing::ElementsAre;
using Bytes = std::vector<std::uint8_t>;

DecodedInstruction decode(const Bytes& bytes) {
  const DecodedInstruction info = decode_instruction(bytes, {true, false}, CpuModel::unknown);
  EXPECT_EQ(info.state, DecodeState::ok);
  EXPECT_EQ(info.length, bytes.size());
  return info;
}

// ---- entries of instructions -------------------------------------------------------------------

/// "TARG 1, WR4 0": tag and bytes, and the address of the KT record.
std::string plan_text(const Bytes& bytes) {
  const IdtraceEntryPlan plan = idtrace_entry_plan(decode(bytes));
  std::string text;
  for (std::uint8_t i = 0; i < plan.count; ++i) {
    const auto& e = plan.entries[i];
    text += (i == 0 ? "" : ", ") + std::string(idtrace_tag_name(e.tag));
    if (e.size_code != 0) text += std::to_string(idtrace_size_bytes(e.size_code));
    text += " " + std::to_string(e.slot);
  }
  return text;
}

TEST(IdtraceEntries, AreThoseThatTheReportNames) {
  EXPECT_EQ(plan_text({0x90}), "");                                // nop
  EXPECT_EQ(plan_text({0x8b, 0x03}), "read4 0");                   // mov eax, [ebx]
  EXPECT_EQ(plan_text({0x66, 0x89, 0x03}), "write2 0");            // mov [ebx], ax
  EXPECT_EQ(plan_text({0xfe, 0x03}), "read-write1 0");             // inc byte [ebx]
  EXPECT_EQ(plan_text({0x74, 0x10}), "target 0");                  // jz
  EXPECT_EQ(plan_text({0xe8, 0, 0, 0, 0}), "target 0, write4 1");  // call
  EXPECT_EQ(plan_text({0xff, 0x13}), "target 1, write4 0");  // call [ebx]: KT has the stack first
  EXPECT_EQ(plan_text({0xff, 0x1b}), "target 0, write4 1");  // call far [ebx]
  EXPECT_EQ(plan_text({0xff, 0x23}), "target 0");            // jmp [ebx]
  EXPECT_EQ(plan_text({0xff, 0xe3}), "target 0");            // jmp ebx
  EXPECT_EQ(plan_text({0xff, 0x33}), "read4 1, write4 0");   // push [ebx]
  EXPECT_EQ(plan_text({0x8f, 0x03}), "write4 0");            // pop [ebx]
  EXPECT_EQ(plan_text({0x60}), "write4 0");                  // pusha
  EXPECT_EQ(plan_text({0x61}), "read4 0");                   // popa
  EXPECT_EQ(plan_text({0xc3}), "read4 0");                   // ret
  EXPECT_EQ(plan_text({0xc9}), "read4 0");                   // leave
  EXPECT_EQ(plan_text({0xa4}), "read1 0, write1 1");         // movsb
  EXPECT_EQ(plan_text({0xf3, 0xa5}), "repeat-read4 0, repeat-write4 1");
  EXPECT_EQ(plan_text({0xf3, 0xa6}), "repeat-read1 0, repeat-read1 1");
  EXPECT_EQ(plan_text({0xf3, 0xab}), "repeat-write4 0");
  EXPECT_EQ(plan_text({0xf2, 0xae}), "repeat-read1 0");
  EXPECT_EQ(plan_text({0xdb, 0x2b}), "read10 0");  // fld tword [ebx]
}

// ---- a run and its files -----------------------------------------------------------------------

/// A run of instructions, and the KT records that it stands for.
class IdtraceRun : public test::TemporaryFolder {
 protected:
  void add(std::uint32_t address, const Bytes& code, std::vector<std::uint32_t> addresses = {}) {
    KtInstruction record;
    record.eip = address;
    record.size = static_cast<std::uint8_t>(code.size());
    std::copy(code.begin(), code.end(), record.code.begin());
    record.address_count = static_cast<std::uint8_t>(addresses.size());
    std::copy(addresses.begin(), addresses.end(), record.address.begin());
    run_.push_back(record);
  }

  void write(const std::string& name, const IdtraceOptions& options = {}) const {
    IdtraceOutput output(IdtraceFiles::beside(path(name), options.content), options);
    for (const KtInstruction& i : run_) {
      const DecodedInstruction info = decode({i.bytes().begin(), i.bytes().end()});
      output.instruction(LinearAddr{i.eip}, info, std::span(i.address.data(), i.address_count));
    }
    EXPECT_EQ(output.instructions(), run_.size());
    output.finish();
  }

  std::vector<KtInstruction> read_back(const std::string& name) const {
    const IdtraceFiles files = IdtraceFiles::beside(path(name), IdtraceContent::execution);
    const IdtraceBlocks blocks = IdtraceBlocks::load(files.blocks);
    const IdtraceCode code = IdtraceCode::load(files.code, blocks);
    IdtraceReader trace(files.trace);
    IdtraceExecutionReader reader(trace, blocks, code);
    std::vector<KtInstruction> records;
    KtInstruction record;
    while (reader.next(record)) records.push_back(record);
    return records;
  }

  std::vector<std::string> entries(const std::string& name) const {
    IdtraceReader trace(path(name));
    std::vector<std::string> texts;
    IdtraceEntry e;
    while (trace.next(e)) {
      std::string text(idtrace_tag_name(e.tag));
      if (e.size_code != 0) text += std::to_string(idtrace_size_bytes(e.size_code));
      char value[16];
      std::snprintf(value, sizeof value, " %x", e.value);
      texts.push_back(text + value);
    }
    return texts;
  }

  /// A loop of a copy, twice, and a call.
  void add_program() {
    for (int round = 0; round < 2; ++round) {
      add(0x1000, {0x8b, 0x03}, {0x5000});
      add(0x1002, {0xf3, 0xa4}, {0x6000, 0x7000});
      add(0x1002, {0xf3, 0xa4}, {0x6001, 0x7001});
      add(0x1004, {0xff, 0x03}, {0x5004});
      add(0x1006, {0x75, 0xf8}, {0x1000});
    }
    add(0x1008, {0xff, 0x13}, {0x8ffc, 0x5008});
    add(0x2000, {0xf3, 0xab});
    add(0x2002, {0xc3}, {0x8ffc});
  }

  std::vector<KtInstruction> run_;
};

TEST_F(IdtraceRun, ComesBackFromItsExecutionTrace) {
  add_program();
  write("run.trc");
  EXPECT_EQ(read_back("run.trc"), run_);
  EXPECT_THAT(names(), ElementsAre("run.blk", "run.code", "run.trc"));
}

TEST_F(IdtraceRun, OfACacheTraceHasTheLinesOfABlockBeforeItsData) {
  add_program();
  run_.resize(5);
  write("run.trc", {IdtraceContent::cache, 4, false});
  EXPECT_THAT(entries("run.trc"),
              ElementsAre("line 1000", "line 1004", "read4 5000", "read1 6000", "write1 7000",
                          "read1 6001", "write1 7001", "read4 5004", "write4 5004"));
  write("run.trc", {IdtraceContent::cache, 16, true});
  EXPECT_THAT(entries("run.trc"),
              ElementsAre("line 1000", "read4 5000", "repeat-read1 6000", "repeat-write1 7000",
                          "repeat-read1 6001", "repeat-write1 7001", "repeat-end 0", "read4 5004",
                          "write4 5004"));
}

TEST_F(IdtraceRun, OfACacheTraceReadsThePointerOfACall) {
  add(0x1008, {0xff, 0x13}, {0x8ffc, 0x5008});
  write("run.trc", {IdtraceContent::cache, 16, false});
  EXPECT_THAT(entries("run.trc"), ElementsAre("line 1000", "read4 5008", "write4 8ffc"));
}

TEST_F(IdtraceRun, OfABranchTraceTellsWhatWasTaken) {
  add_program();
  write("run.trc", {IdtraceContent::branch, 16, false});
  EXPECT_THAT(entries("run.trc"),
              ElementsAre("block-start 1000", "control 1007", "block-start 1000", "control 1007",
                          "block-start 1008", "control 1009", "block-start 2000", "control 2002"));
  IdtraceReader trace(path("run.trc"));
  const auto totals = IdtraceEntryTotals::of(trace);
  EXPECT_EQ(totals.taken, 2U);  // the loop, the call
  EXPECT_EQ(totals.not_taken, 1U);
}

TEST_F(IdtraceRun, OfAProfileCountsBlocks) {
  add_program();
  write("run.cnt", {IdtraceContent::profile, 16, false});
  EXPECT_THAT(names(), ElementsAre("run.blk", "run.cnt", "run.code"));
  const IdtraceBlocks blocks = IdtraceBlocks::load(path("run.blk"));
  const IdtraceCounts counts = IdtraceCounts::load(path("run.cnt"), blocks.size());
  counts.require(blocks, "run.cnt");
  EXPECT_THAT(counts.executions, ElementsAre(2U, 1U, 1U));
  const IdtraceCode code = IdtraceCode::load(path("run.code"), blocks);
  const IdtraceTotals totals = IdtraceTotals::of(blocks, counts, &code);
  EXPECT_EQ(totals.executions, 11U);
  EXPECT_EQ(totals.mix.at("movsb"), 2U);
  EXPECT_EQ(totals.mix.at("jnz"), 2U);
}

TEST_F(IdtraceRun, TellsWhatRepeatedStringsDid) {
  add_program();
  write("run.trc");
  const IdtraceBlocks blocks = IdtraceBlocks::load(path("run.blk"));
  const IdtraceCode code = IdtraceCode::load(path("run.code"), blocks);
  IdtraceReader trace(path("run.trc"));
  const auto repeats = IdtraceRepeats::of(trace, blocks, code);
  EXPECT_EQ(repeats.rows.at("rep movsb").begun, 2U);
  EXPECT_EQ(repeats.rows.at("rep movsb").iterations, 4U);
  EXPECT_THAT(repeats.rows.at("rep movsb").by_length, ElementsAre(0U, 2U));
  EXPECT_EQ(repeats.rows.at("rep stosd").nothing_done, 1U);
}

/// The run was left within a block for another program, and came back.
TEST_F(IdtraceRun, LeftWithinABlockAndItsRepeatGoesOnInAnother) {
  add(0x1000, {0x90});
  add(0x1001, {0xf3, 0xa4}, {0x6000, 0x7000});
  add(0x1000, {0x8b, 0x03}, {0x9000});  // other bytes at the same address
  add(0x1001, {0xf3, 0xa4}, {0x6001, 0x7001});
  add(0x1003, {0xc3}, {0x8ffc});
  write("run.trc");
  EXPECT_EQ(read_back("run.trc"), run_);
  EXPECT_EQ(IdtraceBlocks::load(path("run.blk")).size(), 3U);
}

TEST_F(IdtraceRun, LongerThanABlockMayBeIsSplit) {
  constexpr std::uint32_t kInstructions = 2039;  // as many stand in a row in a Linux kernel
  for (std::uint32_t i = 0; i < kInstructions; ++i) add(0x1000 + i, {0x90});
  write("run.trc");
  EXPECT_EQ(read_back("run.trc"), run_);
  const IdtraceBlocks blocks = IdtraceBlocks::load(path("run.blk"));
  ASSERT_EQ(blocks.size(), (kInstructions + 126) / 127);
  EXPECT_EQ(blocks[0].instructions.size(), 127U);
}

TEST_F(IdtraceRun, OfManyIterationsEndsItsBlockWithThem) {
  add(0x1000, {0x90});
  for (std::uint32_t i = 0; i < 70'000; ++i)
    add(0x1001, {0xf3, 0xa4}, {0x100000 + i, 0x200000 + i});
  add(0x1003, {0xc3}, {0x8ffc});
  write("run.trc");
  EXPECT_EQ(read_back("run.trc"), run_);
  EXPECT_EQ(IdtraceBlocks::load(path("run.blk")).size(), 2U);
}

/// Any run at all comes back: random instructions at addresses that follow one another, or do not.
TEST_F(IdtraceRun, OfAnyKindComesBack) {
  const std::vector<Bytes> kCode{{0x90},
                                 {0x8b, 0x03},
                                 {0xff, 0x03},
                                 {0x74, 0x10},
                                 {0xff, 0x13},
                                 {0xff, 0x33},
                                 {0xe8, 0, 0, 0, 0},
                                 {0xf3, 0xa5},
                                 {0xf3, 0xa6},
                                 {0xf2, 0xae},
                                 {0xa4},
                                 {0x60},
                                 {0xf3, 0xab},
                                 {0xc3},
                                 {0x8f, 0x03},
                                 {0xff, 0xe3}};
  std::mt19937 random(7);
  std::uint32_t address = 0x1000;
  for (int i = 0; i < 20'000; ++i) {
    if (random() % 8 == 0) address = 0x1000 + random() % 64;
    const Bytes& code = kCode[random() % kCode.size()];
    const DecodedInstruction info = decode(code);
    const std::uint32_t times = info.is_repeated() ? random() % 4 : 1;
    if (times == 0) add(address, code);
    for (std::uint32_t t = 0; t < times; ++t) {
      std::vector<std::uint32_t> addresses;
      for (int a = 0; a < info.ea_count; ++a)
        addresses.push_back(static_cast<std::uint32_t>(random()));
      add(address, code, addresses);
    }
    address += info.length;
  }
  write("run.trc");
  EXPECT_EQ(read_back("run.trc"), run_);
}

TEST_F(IdtraceRun, WithOtherEntriesThanItsInstructionsIsRefused) {
  add_program();
  write("run.trc");
  const std::string whole = load("run.trc");
  const auto expect_refused = [&](const std::string& bytes) {
    store("run.trc", bytes);
    EXPECT_THROW(read_back("run.trc"), FormatError);
  };
  for (std::size_t size = 5; size < whole.size(); size += 5) {
    // Between two blocks a trace may end; it does so behind 45 bytes and 90, the first two.
    if (size == 45 || size == 90 || size == 105) continue;
    expect_refused(whole.substr(0, size));
  }
  std::string other = whole;
  other[1] = 17;  // where no block's record begins
  expect_refused(other);
  other = whole;
  other[5] = '\x90';  // a target in place of the read of MOV
  expect_refused(other);
}

TEST(IdtraceNames, OfProfilesAreThoseOfTheirFiles) {
  EXPECT_TRUE(is_idtrace_profile("run.cnt"));
  EXPECT_TRUE(is_idtrace_profile("run.blk.zst"));
  EXPECT_FALSE(is_idtrace_profile("run.trc"));
  const IdtraceFiles files = IdtraceFiles::beside("a/run.trc.zst", IdtraceContent::execution);
  EXPECT_EQ(files.trace, "a/run.trc.zst");
  EXPECT_EQ(files.blocks, "a/run.blk");
  EXPECT_THROW(IdtraceFiles::beside("-", IdtraceContent::execution), UsageError);
  EXPECT_EQ(IdtraceFiles::beside("-", IdtraceContent::branch).trace, "-");
}

}  // namespace
}  // namespace citcat::tools
