#include "tools/idtrace/totals.h"

#include <array>
#include <bit>
#include <cstdio>

#include "tools/analyses/instruction_table.h"
#include "tools/idtrace/execution_reader.h"
#include "x86/disassembler.h"

namespace citcat::tools {
namespace {

std::string text_of(std::span<const std::uint8_t> code, unsigned bits) {
  return Disassembler(static_cast<int>(bits)).text(code, 0);
}

/// "rep movsd": what is before the operands.
std::string repeat_of(std::span<const std::uint8_t> code, unsigned bits) {
  const std::string text = text_of(code, bits);
  std::size_t end = text.find(' ');
  for (const char* const prefix : {"rep ", "repe ", "repz ", "repne ", "repnz ", "lock "}) {
    if (text.rfind(prefix, 0) == 0) end = text.find(' ', std::char_traits<char>::length(prefix));
  }
  return text.substr(0, end);
}

/// An instruction whose bytes nobody has.
std::string number_of(const IdtraceInstruction& instruction) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "id %04x", static_cast<std::uint16_t>(instruction.id));
  return text.data();
}

std::vector<std::string> mnemonics_of(const IdtraceBlock& block, const IdtraceCode* code) {
  std::vector<std::string> names;
  std::uint32_t begin = 0;
  for (const IdtraceInstruction& i : block.instructions) {
    names.push_back(code == nullptr ? number_of(i)
                                    : mnemonic_of(text_of(code->code(block).subspan(begin, i.bytes),
                                                          code->bits(block))));
    begin += i.bytes;
  }
  return names;
}

}  // namespace

IdtraceTotals IdtraceTotals::of(const IdtraceBlocks& blocks, const IdtraceCounts& counts,
                                const IdtraceCode* code) {
  IdtraceTotals totals;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const IdtraceBlock& block = blocks[b];
    const std::uint64_t executions = counts.executions[b];
    const auto size = static_cast<std::uint32_t>(block.instructions.size());
    totals.blocks.push_back({LinearAddr{block.address}, size, executions});
    totals.executions += executions * size;
    if (executions == 0) continue;
    for (const std::string& name : mnemonics_of(block, code)) totals.mix[name] += executions;
  }
  return totals;
}

IdtraceTotals IdtraceTotals::of(IdtraceReader& trace, const IdtraceBlocks& blocks,
                                const IdtraceCode& code) {
  IdtraceCounts counts;
  counts.executions.resize(blocks.size());
  IdtraceExecutionReader reader(trace, blocks, code);
  std::uint64_t records = 0;
  KtInstruction record;
  while (reader.next(record)) {
    ++records;
    if (reader.begins_block()) ++counts.executions[reader.block_number()];
  }
  IdtraceTotals totals = of(blocks, counts, &code);
  totals.iterations = records - totals.executions;
  return totals;
}

std::uint64_t IdtraceEntryTotals::of(IdtraceTag tag) const {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : by_tag[static_cast<std::size_t>(tag) >> 4]) sum += count;
  return sum;
}

IdtraceEntryTotals IdtraceEntryTotals::of(IdtraceReader& trace) {
  IdtraceEntryTotals totals;
  bool ended = false;  // the entry before ended a block, there
  std::uint32_t control = 0;
  IdtraceEntry entry;
  while (trace.next(entry)) {
    ++totals.entries;
    ++totals.by_tag[static_cast<std::size_t>(entry.tag) >> 4][entry.size_code];
    if (entry.tag == IdtraceTag::block_start && ended) {
      ++(entry.value == control + 1 ? totals.not_taken : totals.taken);
    }
    ended = entry.tag == IdtraceTag::control || entry.tag == IdtraceTag::control_two;
    control = entry.value;
  }
  return totals;
}

void IdtraceRepeats::Row::add(std::uint64_t count) {
  ++begun;
  iterations += count;
  longest = std::max(longest, count);
  if (count == 0) {
    ++nothing_done;
    return;
  }
  const auto length = static_cast<std::size_t>(std::bit_width(count) - 1);
  if (by_length.size() <= length) by_length.resize(length + 1);
  ++by_length[length];
}

IdtraceRepeats IdtraceRepeats::of(IdtraceReader& trace, const IdtraceBlocks& blocks,
                                  const IdtraceCode& code) {
  IdtraceRepeats repeats;
  IdtraceExecutionReader reader(trace, blocks, code);
  std::string name;
  std::uint64_t iterations = 0;
  KtInstruction record;
  const auto end_repeat = [&] {
    if (!name.empty()) repeats.rows[name].add(iterations);
    name.clear();
    iterations = 0;
  };
  while (reader.next(record)) {
    if (reader.begins_instruction()) end_repeat();
    if (!reader.decoded().is_repeated()) continue;
    if (name.empty()) name = repeat_of(record.bytes(), reader.bits());
    if (record.address_count != 0) ++iterations;
  }
  end_repeat();
  return repeats;
}

IdtraceRepeats IdtraceRepeats::of(IdtraceReader& trace) {
  if (trace.kind() != IdtraceKind::cache) {
    trace.fail("expected a cache trace or an execution trace with its blocks, found kind " +
               std::string(idtrace_kind_name(trace.kind())));
  }
  IdtraceRepeats repeats;
  std::uint64_t reads = 0, writes = 0;
  IdtraceEntry entry;
  while (trace.next(entry)) {
    if (entry.tag == IdtraceTag::repeat_read) ++reads;
    if (entry.tag == IdtraceTag::repeat_write) ++writes;
    if (entry.tag != IdtraceTag::repeat_end) continue;
    // The trace has references alone: one that both reads and writes in each iteration copies; two
    // reads are a comparison, which one read with twice the iterations looks like.
    const char* const name = reads != 0 && writes != 0 ? "copy" : writes != 0 ? "store" : "read";
    repeats.rows[reads + writes == 0 ? "nothing" : name].add(std::max(reads, writes));
    reads = writes = 0;
  }
  return repeats;
}

}  // namespace citcat::tools
