#include "debugger/adapter/disassembly.h"

#include <algorithm>

namespace citcat::dap {
namespace {

DisassembledLine line_at(const Debuggee& debuggee, LinearAddr at) {
  DisassembledLine line;
  line.at = at;
  const DecodedInstruction info = debuggee.instruction_at(at);
  line.valid = info.length != 0;
  if (line.valid) {
    line.bytes.assign(info.bytes.begin(), info.bytes.begin() + info.length);
    line.text = debuggee.text_at(at, info);
    return line;
  }
  // What lies after it may be unknown, too.
  line.bytes = debuggee.target().read(at, kMaxInstructionBytes);
  line.text = line.bytes.size() < kMaxInstructionBytes ? "(unknown)" : "(bad)";
  line.bytes.resize(std::min<std::size_t>(line.bytes.size(), 1));
  return line;
}

LinearAddr behind(const Debuggee& debuggee, const DisassembledLine& line) {
  const std::size_t bytes = std::max<std::size_t>(line.bytes.size(), 1);
  return debuggee.target().address(line.at.value + bytes);
}

/// The instructions from `begin` on that lead up to `at`; none where one of them goes beyond it.
std::vector<DisassembledLine> lines_up_to(const Debuggee& debuggee, LinearAddr begin,
                                          LinearAddr at) {
  std::vector<DisassembledLine> lines;
  for (LinearAddr a = begin; a != at;) {
    if (at.value - a.value > at.value - begin.value) return {};  // beyond
    lines.push_back(line_at(debuggee, a));
    a = behind(debuggee, lines.back());
  }
  return lines;
}

/// `count` lines before `at`.
std::vector<DisassembledLine> lines_before(const Debuggee& debuggee, LinearAddr at,
                                           std::size_t count) {
  std::vector<DisassembledLine> best;
  const std::size_t reach = std::min<std::size_t>(count * 8 + kMaxInstructionBytes, at.value);
  // From further back most decodings come into step with the code.
  for (std::size_t slack = 0; slack <= kMaxInstructionBytes && slack <= reach; ++slack) {
    std::vector<DisassembledLine> lines =
        lines_up_to(debuggee, LinearAddr{at.value - reach + slack}, at);
    const auto bad = static_cast<std::size_t>(
        std::count_if(lines.begin(), lines.end(), [](const auto& l) { return !l.valid; }));
    if (lines.size() >= count && bad == 0) {
      best = std::move(lines);
      break;
    }
    if (lines.size() > best.size()) best = std::move(lines);
  }
  if (best.size() > count)
    best.erase(best.begin(), best.end() - static_cast<std::ptrdiff_t>(count));
  while (best.size() < count) {
    const LinearAddr first = best.empty() ? at : best.front().at;
    DisassembledLine line;
    line.at = debuggee.target().address(first.value - 1);
    line.text = "(unknown)";
    best.insert(best.begin(), line);
  }
  return best;
}

}  // namespace

std::vector<DisassembledLine> disassemble(const Debuggee& debuggee, LinearAddr at,
                                          std::int64_t offset, std::size_t count) {
  std::vector<DisassembledLine> lines;
  if (offset < 0) {
    lines = lines_before(debuggee, at, static_cast<std::size_t>(-offset));
    if (lines.size() > count) lines.resize(count);
  }
  for (std::int64_t skipped = 0; skipped < offset; ++skipped) {
    at = behind(debuggee, line_at(debuggee, at));
  }
  while (lines.size() < count) {
    lines.push_back(line_at(debuggee, at));
    at = behind(debuggee, lines.back());
  }
  return lines;
}

}  // namespace citcat::dap
