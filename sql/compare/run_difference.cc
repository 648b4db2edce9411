#include "sql/compare/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "events/machine/cpu_state.h"
#include "sql/compare/plain_run.h"
#include "tools/guest/machine_guest.h"

namespace citcat::sql {

namespace {

/// Instructions before the parting whose memory is compared.
constexpr std::uint64_t kLookedBack = 64;
/// Bytes that are told at most.
constexpr std::size_t kMostBytes = 64;

bool is_same(const tools::StaticInstruction& a, const tools::StaticInstruction& b) {
  return a.linear == b.linear && a.info.length == b.info.length &&
         std::equal(a.info.bytes.begin(), a.info.bytes.begin() + a.info.length,
                    b.info.bytes.begin());
}

/// Registers that have another value; the time stamp always has.
std::vector<ComparedValue> different_registers(const CpuState& a, const CpuState& b) {
  std::vector<ComparedValue> all;
  for (const std::string& name : register_names(a.model)) {
    if (name == "tsc" || is_unknown(a, name) || is_unknown(b, name)) continue;
    const auto in_a = get_register(a, name), in_b = get_register(b, name);
    if (in_a != in_b) all.push_back({name, in_a, in_b});
  }
  return all;
}

/// Linear addresses of the bytes that the instructions [from, to] accessed.
std::vector<std::uint64_t> accessed(RowSource& source, std::uint64_t from, std::uint64_t to) {
  source.begin_statement();
  RowNeeds needs;
  needs.accesses = true;
  source.need(needs);
  RowFilter filter;
  filter.positions = {static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)};
  std::map<std::uint64_t, bool> bytes;
  for (std::uint64_t at = from; at <= to;) {
    const auto stretch = source.stretch_at(at, filter);
    if (stretch == nullptr) break;
    for (const AccessRun& run : stretch->rows.access_runs) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        const Access& a = stretch->rows.accesses[i];
        const std::uint64_t position = run.first.instruction + a.instruction;
        if (a.kind != AccessClass::data || position < from || position > to) continue;
        for (std::uint32_t n = 0; n < a.size; ++n) bytes[a.linear.value + n] = true;
      }
    }
    if (stretch->is_last) break;
    at = stretch->to;
  }
  std::vector<std::uint64_t> all;
  for (const auto& [address, there] : bytes) all.push_back(address);
  return all;
}

std::optional<std::uint64_t> byte_of(const ReplayTimeline& timeline, std::uint64_t address) {
  const auto byte = tools::MachineGuest(timeline.machine()).byte(LinearAddr{address});
  if (!byte) return std::nullopt;
  return *byte;
}

}  // namespace

ComparedInstruction compared_instruction(const PlainRun& run) {
  const CodeText& text = run.text();
  return {run.position(), run.instruction().linear, text.bytes,
          text.text,      *run.context().process,   run.context().level};
}

RunDifference difference_of(RowSource& source_a, std::uint64_t from_a, RowSource& source_b,
                            std::uint64_t from_b) {
  RunDifference found;
  std::optional<std::uint64_t> left_a, left_b;  // where a handler went another way
  {
    PlainRun a(source_a, from_a), b(source_b, from_b);
    // Runs that begin alike may both begin within a handler; one that begins with an interrupt is
    // compared from where it comes back.
    if (!a.ended() && !b.ended() && !is_same(a.instruction(), b.instruction())) {
      a.count_first_interrupt();
      b.count_first_interrupt();
    }
    while (!a.ended() && !b.ended()) {
      if (!is_same(a.instruction(), b.instruction()) || a.in_interrupt() != b.in_interrupt()) {
        if (!a.in_interrupt() && !b.in_interrupt()) {
          found.differs = true;
          break;
        }
        // Interrupts come when they come, and what a handler finds to do is its own.
        const bool both = a.in_interrupt() && b.in_interrupt();
        if (both) left_a = a.position(), left_b = b.position();
        a.leave_interrupt();
        b.leave_interrupt();
        // What never comes back from there may have gone wrong there.
        found.differs = both && (a.ended() || b.ended());
        if (!found.differs) ++found.handlers;
        continue;
      }
      found.last_a = ComparedInstruction{a.position(), a.instruction().linear, {}, {}, {}, 0};
      found.last_b = ComparedInstruction{b.position(), b.instruction().linear, {}, {}, {}, 0};
      ++found.compared;
      a.advance();
      b.advance();
    }
    const bool in_handler = found.differs && (a.ended() || b.ended());
    if (in_handler) {
      found.a = compared_instruction(PlainRun(source_a, *left_a));
      found.b = compared_instruction(PlainRun(source_b, *left_b));
    } else {
      if (!a.ended()) found.a = compared_instruction(a);
      if (!b.ended()) found.b = compared_instruction(b);
    }
  }
  if (!found.differs || !found.last_a) return found;
  found.last_a = compared_instruction(PlainRun(source_a, found.last_a->position));
  found.last_b = compared_instruction(PlainRun(source_b, found.last_b->position));
  const std::uint64_t at_a = found.last_a->position, at_b = found.last_b->position;
  const auto addresses = accessed(source_a, at_a > kLookedBack ? at_a - kLookedBack : 0, at_a);
  source_a.timeline().seek({at_a, 0});
  source_b.timeline().seek({at_b, 0});
  found.registers = different_registers(source_a.registers(), source_b.registers());
  for (const std::uint64_t address : addresses) {
    const auto in_a = byte_of(source_a.timeline(), address);
    const auto in_b = byte_of(source_b.timeline(), address);
    if (!in_a || !in_b || in_a == in_b || found.memory.size() == kMostBytes) continue;
    found.memory.push_back({fmt::format("{:08x}", address), in_a, in_b});
  }
  return found;
}

}  // namespace citcat::sql
