#include "debugger/server/monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "debugger/server/bus_window.h"
#include "debugger/server/run_events.h"
#include "events/completed_instructions.h"
#include "events/machine/address_space.h"
#include "events/machine/cpu_place.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "x86/disassembler.h"

namespace citcat {

namespace {

/// How far back `where` looks for interrupts that have not returned, in instructions.
constexpr std::uint64_t kNestReach = 4'000'000;
constexpr std::size_t kLines = 20, kMostLines = 10'000;

/// As AddressSpaces has it.
AddressSpaceId address_space(const CpuState& state) {
  return address_space_of(state.cr3, state.cr4);
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream in(command);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// Decimal, or hexadecimal with 0x.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool hex = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Hexadecimal, with 0x or without.
std::optional<std::uint64_t> parse_address(std::string_view text) {
  const bool prefixed = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
  return parse_number(prefixed ? std::string(text) : "0x" + std::string(text));
}

/// The optional count of lines that a command was given.
std::size_t line_count(const std::vector<std::string>& words) {
  if (words.size() < 2) return kLines;
  const auto count = parse_number(words[1]);
  if (!count || *count == 0 || *count > kMostLines || words.size() > 2) {
    throw UsageError(
        fmt::format("{}: expected a number up to {}, found '{}'", words[0], kMostLines, words[1]));
  }
  return static_cast<std::size_t>(*count);
}

void expect_nothing_more(const std::vector<std::string>& words, std::size_t count) {
  if (words.size() > count) {
    throw UsageError(fmt::format("{}: expected nothing more, found '{}'", words[0], words[count]));
  }
}

Position instructions_before(Position at, std::uint64_t count) {
  return {at.instruction - std::min(at.instruction, count), 0};
}

std::string bytes_text(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (const std::uint8_t b : bytes) text += fmt::format("{:02x}", b);
  return bytes.empty() ? "not known" : text;
}

std::string mode_text(const CpuState& cpu, int bits) {
  constexpr std::uint32_t kVirtual8086 = 1u << 17, kPaging = 1u << 31;
  std::string mode = "real mode";
  if ((cpu.cr0 & 1) != 0) {
    mode = (cpu.eflags & kVirtual8086) != 0
               ? "virtual-8086 mode"
               : fmt::format("protected mode, level {}", cpu.segment[kCs].selector & 3);
  }
  mode += fmt::format(", {}-bit code", bits);
  if ((cpu.cr0 & kPaging) != 0) mode += fmt::format(", paging (CR3 {:08x})", cpu.cr3);
  if (cpu.in_smm) mode += ", system management mode";
  if (cpu.halted) mode += ", halted";
  return mode;
}

}  // namespace

const std::vector<Monitor::Command>& Monitor::commands() {
  static const std::vector<Command> all{
      {"where", "", "the position, mode, process and interrupts in progress", &Monitor::where},
      {"seek", "N|N+K|begin|end|divergence", "go there (then: maintenance flush register-cache)",
       &Monitor::seek_to},
      {"last-write", "ADDRESS [BYTES]", "who stored to this memory last; phys:ADDRESS is physical",
       &Monitor::last_write},
      {"events", "[N]", "interrupts, ports, other masters' writes around here", &Monitor::events},
      {"bus", "[N]", "captured transactions around here, and the replay's accesses", &Monitor::bus},
      {"processes", "", "address spaces of the run so far, and how long each ran",
       &Monitor::processes},
      {"symbols", "", "what runs here, and where its symbols are", &Monitor::symbols},
      {"fork", "[end]", "open a branch that may be changed; discard it", &Monitor::fork},
      {"help", "", "this", &Monitor::help},
  };
  return all;
}

std::string Monitor::run(const std::string& command, const Interrupt& interrupt) {
  const Words words = words_of(command);
  if (words.empty()) return help({"help"}, interrupt);
  for (const Command& c : commands()) {
    if (words[0] == c.name) return (this->*c.run)(words, interrupt);
  }
  throw UsageError(fmt::format("there is no monitor command '{}' (see monitor help)", words[0]));
}

std::string Monitor::help(const Words& words, const Interrupt&) {
  expect_nothing_more(words, 1);
  std::string text;
  for (const Command& c : commands()) {
    text +=
        fmt::format("  {:<40} {}\n", fmt::format("monitor {} {}", c.name, c.arguments), c.summary);
  }
  return text;
}

// ---------------------------------------------------------------------------------------------
// Where it is

/// "instruction 5+2 of 1000".
std::string Monitor::place() const {
  ReplayTimeline& timeline = target_.timeline();
  std::string text = "instruction " + position_text(timeline.position());
  const auto known = completed_instructions(target_.file().recording());
  if (known) text += fmt::format(" of {}", *known);
  return text;
}

std::string Monitor::next_instruction_text() const {
  const LinearAddr at = target_.next_instruction();
  std::vector<std::uint8_t> bytes = target_.read(at, kMaxInstructionBytes);
  Disassembler disassembler(target_.code_bits());
  // The text wants the bytes of one instruction: the shortest that are one.
  for (std::size_t n = 1; n <= bytes.size(); ++n) {
    const std::string text = disassembler.text(std::span(bytes).first(n), at.value);
    if (text != "(bad)") return fmt::format("{:08x}  {}", at.value, text);
  }
  return fmt::format("{:08x}  (not known)", at.value);
}

std::string Monitor::nest(const Interrupt& interrupt) {
  ReplayTimeline& timeline = target_.timeline();
  const Position from = instructions_before(timeline.position(), kNestReach);
  InterruptNest nest(timeline.machine());
  if (!timeline.tell(from, timeline.moment(), nest, false, interrupt)) return "interrupted\n";
  const AddressSpaceId cr3 = address_space(timeline.registers());
  std::string text;
  for (const InterruptNest::Entered& entered : nest.entered()) {
    const bool elsewhere = entered.cr3 != cr3;
    text += fmt::format("  in {}, entered at instruction {}{}\n", entered_name(entered),
                        position_text(entered.at),
                        elsewhere ? fmt::format(" (with CR3 {:08x})", entered.cr3) : "");
  }
  if (text.empty()) text = "  in no interrupt or exception\n";
  text.pop_back();
  if (from != Position{}) text += fmt::format(" (looked back {} instructions)", kNestReach);
  return text + "\n";
}

std::string Monitor::where(const Words& words, const Interrupt& interrupt) {
  expect_nothing_more(words, 1);
  const CpuState cpu = target_.registers().cpu;
  std::string text = place() + (target_.forked() ? ", in a branch\n" : "\n");
  text += fmt::format("  {:04x}:{:08x}, linear {}\n", cpu.segment[kCs].selector,
                      instruction_pointer(cpu), next_instruction_text());
  text += "  " + mode_text(cpu, target_.code_bits()) + "\n";
  text += nest(interrupt);
  return text + divergence_text();
}

std::string Monitor::divergence_text() const {
  const auto& divergence = target_.timeline().divergence();
  if (!divergence) return "";
  std::string text =
      target_.forked() ? "the branch goes no further: " : "the replay diverges from its evidence: ";
  text += place_text(*divergence) + ": " + divergence->reason;
  if (!divergence->expected.empty()) text += "; expected " + divergence->expected;
  if (!divergence->found.empty()) text += ", found " + divergence->found;
  return text + "\n";
}

std::string Monitor::seek(const std::string& where, const Interrupt& interrupt) {
  ReplayTimeline& timeline = target_.timeline();
  if (target_.forked())
    throw UsageError(
        "a branch cannot go to another position; leave it with 'monitor fork end' first");
  constexpr Position kEnd{~std::uint64_t{0} - 1, 0};
  // Seeking the first position would lead behind what is delivered there; `begin` is before that.
  if (where == "begin" || parse_position(where) == Position{}) {
    timeline.seek({});
    timeline.rewind();
  } else if (where == "end") {
    timeline.seek(kEnd, interrupt);
  } else if (where == "divergence") {
    timeline.seek(kEnd, interrupt);
    if (!timeline.interrupted() && !timeline.divergence()) {
      throw UsageError("the replay agrees with its evidence up to its end, at instruction " +
                       position_text(timeline.position()));
    }
  } else {
    const auto to = parse_position(where);
    if (!to) {
      throw UsageError("expected a position N or N+K, begin, end or divergence, found '" + where +
                       "'");
    }
    timeline.seek(*to, interrupt);
    if (timeline.position() < *to && !timeline.interrupted()) {
      return std::string(kEndsBefore) + place() + "\n" + divergence_text();
    }
  }
  const char* const how = timeline.interrupted() ? "interrupted at " : "";
  return how + place() + "\n" + divergence_text();
}

std::string Monitor::seek_to(const Words& words, const Interrupt& interrupt) {
  if (words.size() != 2) throw UsageError("seek: expected one position");
  return seek(words[1], interrupt);
}

// ---------------------------------------------------------------------------------------------
// What happened

std::string Monitor::last_write(const Words& words, const Interrupt& interrupt) {
  if (words.size() < 2 || words.size() > 3) {
    throw UsageError("last-write: expected an address, and perhaps how many bytes");
  }
  constexpr std::string_view kPhysical = "phys:";
  const bool physical = words[1].compare(0, kPhysical.size(), kPhysical) == 0;
  const auto address =
      parse_address(physical ? std::string_view(words[1]).substr(kPhysical.size()) : words[1]);
  const auto size = words.size() == 3 ? parse_number(words[2]) : 1;
  if (!address || target_.address(*address).value != *address) {
    throw UsageError("last-write: expected an address like 0xc0101234, found '" + words[1] + "'");
  }
  if (!size || *size == 0 || *size > kPageSize) {
    throw UsageError(
        fmt::format("last-write: expected 1 to {} bytes, found '{}'", kPageSize, words.back()));
  }
  ReplayTimeline& timeline = target_.timeline();
  const std::uint64_t at = *address;
  const auto lies = physical ? std::optional(PhysAddr{at}) : target_.machine().find(LinearAddr{at});
  if (!lies) throw UsageError(fmt::format("last-write: nothing is mapped at {:08x}", at));
  // Within one frame: what lies after it is elsewhere.
  const auto bytes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(*size, kPageSize - lies->offset_in_page()));
  StopSet stops;
  stops.memory.push_back({*lies, bytes, false, true});
  const auto held = [&] {
    std::vector<std::uint8_t> held_bytes;
    for (std::uint32_t i = 0; i < bytes; ++i) {
      const auto byte = timeline.memory().defined_byte(lies->plus32(i));
      if (!byte) return std::vector<std::uint8_t>();
      held_bytes.push_back(*byte);
    }
    return held_bytes;
  };
  const std::size_t here = timeline.mark();
  const ReplayTimeline::Stop stop = timeline.run_back_to_stop(stops, interrupt);
  std::string text = fmt::format("{} bytes at physical {:08x}\n", bytes, lies->value);
  if (stop.why == ReplayTimeline::Stop::Why::interrupted) {
    text += "interrupted\n";
  } else if (!stop.hit) {
    text += "  nobody has stored to them before here\n";
  } else {
    const std::string by = stop.hit->outside ? "another bus master wrote"
                           : stop.hit->access == AccessKind::walk
                               ? "stored by a page walk (accessed and dirty bits)"
                           : stop.hit->access == AccessKind::system
                               ? "stored by the processor itself (a frame, a descriptor, a task)"
                               : "stored";
    text +=
        fmt::format("  {} at instruction {}, {} bytes at physical {:08x}\n", by,
                    position_text(stop.hit->at.position), stop.hit->size, stop.hit->address.value);
    if (!stop.hit->outside) text += "  " + next_instruction_text() + "\n";
    text += "  before: " + bytes_text(held()) + "\n";
    timeline.step();
    text += "  after:  " + bytes_text(held()) + "\n";
  }
  timeline.return_to(here);
  timeline.forget(here);
  return text;
}

std::string Monitor::events(const Words& words, const Interrupt& interrupt) {
  const std::size_t count = line_count(words);
  ReplayTimeline& timeline = target_.timeline();
  const Position here = timeline.position();
  std::vector<std::string> before, after;
  constexpr std::uint64_t kFirstReach = 1 << 14, kLastReach = 1 << 24;
  for (std::uint64_t reach = kFirstReach; reach <= kLastReach && before.size() < count;
       reach *= 8) {
    EventLog log;
    const Position from = instructions_before(here, reach);
    if (!timeline.tell(from, timeline.moment(), log, false, interrupt)) return "interrupted\n";
    before.clear();
    const std::size_t first = log.lines().size() - std::min(log.lines().size(), count);
    for (std::size_t i = first; i < log.lines().size(); ++i) {
      const auto& [at, line] = log.lines()[i];
      before.push_back(fmt::format("{:>14}  {}\n", position_text(at), line));
    }
    if (from == Position{}) break;
  }
  for (std::uint64_t reach = kFirstReach; reach <= kLastReach && after.size() < count; reach *= 8) {
    EventLog log;
    const Moment to{~std::uint64_t{0}, {here.instruction + reach, 0}};
    if (!timeline.tell(here, {timeline.moment().deliveries, to.position}, log, false, interrupt)) {
      return "interrupted\n";
    }
    after.clear();
    for (const auto& [at, line] : log.lines()) {
      if (after.size() == count) break;
      const std::string text = fmt::format("{:>14}  {}\n", position_text(at), line);
      const bool past = at == here && std::find(before.begin(), before.end(), text) != before.end();
      if (!past) after.push_back(text);
    }
    if (timeline.end() && to.position >= *timeline.end()) break;
  }
  std::string text;
  for (const std::string& line : before) text += line;
  text += fmt::format("{:>14}  <- here\n", position_text(here));
  for (const std::string& line : after) text += line;
  return text;
}

std::string Monitor::processes(const Words& words, const Interrupt& interrupt) {
  expect_nothing_more(words, 1);
  if (target_.forked())
    throw UsageError("this is not possible in a branch; leave it with 'monitor fork end' first");
  ReplayTimeline& timeline = target_.timeline();
  const CpuState& initial = target_.file().recording().initial;
  AddressSpaces spaces(address_space(initial), {});
  if (!timeline.tell({}, timeline.moment(), spaces, false, interrupt)) return "interrupted\n";
  spaces.end(timeline.position());
  const AddressSpaceId now = address_space(timeline.registers());
  std::string text = "   CR3       first seen at   instructions  loads, up to here\n";
  for (const auto& [cr3, space] : spaces.spaces()) {
    text += fmt::format("{}  {:08x}  {:>13}  {:>13}  {:>5}\n", cr3 == now ? "*" : " ", cr3,
                        position_text(space.first), space.instructions, space.loads);
  }
  return text;
}

std::string Monitor::bus(const Words& words, const Interrupt& interrupt) {
  return bus_window(target_, line_count(words), transaction_text_, interrupt);
}

// ---------------------------------------------------------------------------------------------
// What it is, and what if

std::string Monitor::symbols(const Words& words, const Interrupt&) {
  expect_nothing_more(words, 1);
  constexpr std::string_view kBanner = "Linux version ";
  constexpr std::size_t kMost = 200;
  const Memory& memory = target_.machine().memory();
  for (const FrameNumber page : memory.mapped_pages()) {
    if (!memory.has_defined(page)) continue;
    const auto* const bytes =
        reinterpret_cast<const char*>(memory.host(PhysAddr{page * kPageSize}));
    const std::string_view frame(bytes, kPageSize);
    for (std::size_t at = frame.find(kBanner); at != std::string_view::npos;
         at = frame.find(kBanner, at + 1)) {
      std::string banner;
      for (std::size_t i = at;
           i < kPageSize && banner.size() < kMost && frame[i] >= ' ' &&
           memory.defined_byte({page * kPageSize + static_cast<std::uint32_t>(i)});
           ++i) {
        banner += frame[i];
      }
      const std::string release =
          banner.substr(kBanner.size(), banner.find(' ', kBanner.size()) - kBanner.size());
      // A format has it too.
      if (release.empty() || release.front() < '0' || release.front() > '9') continue;
      return banner + "\n  symbols: file /usr/lib/debug/boot/vmlinux-" + release +
             "  (Debian's linux-image-" + release + "-dbg)\n";
    }
  }
  return "memory does not name a Linux kernel. Load other symbols in gdb: file, add-symbol-file "
         "PROGRAM -o OFFSET\n";
}

std::string Monitor::fork(const Words& words, const Interrupt&) {
  if (words.size() == 2 && words[1] == "end") {
    if (!target_.forked()) throw UsageError("there is no branch");
    target_.join();
    return "back in the recorded run: " + place() + "\n";
  }
  expect_nothing_more(words, 1);
  if (target_.forked()) throw UsageError("this is a branch already");
  target_.fork();
  return "a branch: registers and memory may be changed, and it runs as long as the recorded port "
         "reads and interrupts fit; 'monitor fork end' discards it\n";
}

}  // namespace citcat
