#include "debugger/server/run_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "debugger/server/call_scan.h"
#include "events/machine/cpu_place.h"
#include "replay/machine/code_place.h"

namespace citcat {

namespace {

/// Intel SDM vol. 3, table 6-1.
constexpr std::array<std::string_view, 20> kVectors{
    "divide error", "debug",          "NMI",         "breakpoint",    "overflow",
    "bound range",  "invalid opcode", "no unit",     "double fault",  "segment overrun",
    "invalid TSS",  "segment absent", "stack fault", "protection",    "page fault",
    "reserved",     "x87 error",      "alignment",   "machine check", "SIMD error"};

constexpr std::uint8_t kPageFaultVector = 14;

std::string value_text(std::uint32_t value, std::uint32_t size) {
  return fmt::format("{:0{}x}", value, 2 * size);
}

std::string stored_text(std::span<const std::uint8_t> bytes) {
  constexpr std::size_t kMost = 16;
  std::string text;
  for (const std::uint8_t b : bytes.first(std::min(bytes.size(), kMost))) {
    text += fmt::format("{:02x}", b);
  }
  return bytes.size() > kMost ? text + "..." : text;
}

const char* kind_text(AccessKind kind) {
  switch (kind) {
    case AccessKind::walk:
      return " (page walk)";
    case AccessKind::system:
      return " (system)";
    default:
      return "";
  }
}

}  // namespace

std::string event_name(const DeliveredEvent& event) {
  switch (event.kind) {
    case DeliveredEvent::Kind::smi:
      return "SMI";
    case DeliveredEvent::Kind::nmi:
      return "NMI";
    case DeliveredEvent::Kind::external:
      return fmt::format("interrupt {:02x}h", event.vector);
    case DeliveredEvent::Kind::software:
      return fmt::format("INT {:02x}h", event.vector);
    case DeliveredEvent::Kind::exception:
      break;
  }
  if (event.vector >= kVectors.size()) return fmt::format("exception {:02x}h", event.vector);
  return fmt::format("exception {:02x}h ({})", event.vector, kVectors[event.vector]);
}

std::string entered_name(const InterruptNest::Entered& entered) {
  if (entered.call == InstructionClass::sysenter) return "SYSENTER";
  if (entered.call == InstructionClass::syscall) return "SYSCALL";
  return event_name(entered.event);
}

void EventLog::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  lines_.push_back({now, fmt::format("port {:04x} read   {}", port, value_text(value, size))});
}

void EventLog::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  lines_.push_back({now, fmt::format("port {:04x} write  {}", port, value_text(value, size))});
}

void EventLog::delivered(const DeliveredEvent& event, Position now) {
  std::string text = fmt::format("{} at {:04x}:{:08x}", event_name(event), event.cs, event.eip);
  if (event.kind == DeliveredEvent::Kind::exception && event.vector == kPageFaultVector) {
    text += fmt::format(", address {:08x}, error code {:x}", event.cr2, event.error_code);
  }
  lines_.push_back({now, text});
}

void EventLog::external_write(PhysAddr at, std::span<const std::uint8_t> bytes, Position now) {
  lines_.push_back({now, fmt::format("another bus master writes {} bytes at physical {:08x}: {}",
                                     bytes.size(), at.value, stored_text(bytes))});
}

void EventLog::translation_dropped(LinearAddr page, Position now) {
  lines_.push_back(
      {now, fmt::format("the processor drops its translation of the page at {:08x}", page.value)});
}

void EventLog::halted(Position now) { lines_.push_back({now, "HLT"}); }

void EventLog::shutdown(Position now) { lines_.push_back({now, "shutdown"}); }

void EventLog::address_space(AddressSpaceId cr3, Position now) {
  lines_.push_back({now, fmt::format("CR3 = {:08x}", cr3)});
}

/// What memory holds, the bytes that nobody knows being 0.
std::uint64_t InterruptNest::value_at(LinearAddr linear, unsigned bytes) const {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) {
    const auto at = machine_.find(LinearAddr{linear.value + i});
    const auto byte = at ? machine_.memory().defined_byte(*at) : std::nullopt;
    value |= std::uint64_t{byte.value_or(0)} << 8 * i;
  }
  return value;
}

/// frame_of() by a gate of 16 bytes: SDM vol. 3, 6.14. The stack is aligned to 16 bytes, and always
/// has five words on it.
LinearAddr InterruptNest::frame_in_long_mode(const DeliveredEvent& event) const {
  constexpr std::uint64_t kGateBytes = 16, kAlignment = 16, kFrameBytes = 5 * 8;
  constexpr std::uint64_t kFirstStack = 4, kFirstInterruptStack = 0x24;  // in the task segment
  const Engine& engine = machine_.engine();
  const std::uint64_t gate = engine.wide().idtr_base() + event.vector * kGateBytes;
  const std::uint64_t selector = value_at(LinearAddr{gate + 2}, 2);
  const std::uint64_t number = value_at(LinearAddr{gate + 4}, 1) & 7;
  const std::uint64_t table =
      (selector & 4) != 0 ? engine.wide().ldtr_base() : engine.wide().gdtr_base();
  const std::uint64_t level =
      value_at(LinearAddr{table + (selector & ~std::uint64_t{7}) + 4}, 4) >> 13 & 3;
  const auto stack_at = [&](std::uint64_t offset) {
    return value_at(LinearAddr{engine.wide().tr_base() + offset}, 8);
  };
  std::uint64_t top = engine.wide().gpr(kEsp);
  if (number != 0) {
    top = stack_at(kFirstInterruptStack + 8 * (number - 1));
  } else if (level < (engine.hflags() & kHfCpl)) {
    top = stack_at(kFirstStack + 8 * level);
  }
  return LinearAddr{top / kAlignment * kAlignment - kFrameBytes};
}

/// Where the handler is going to find its return address: SDM vol. 3, 6.12.1 and figure 20-4, and
/// in real mode 20.1.4. The stack of another level is in the task segment (7.2.1).
LinearAddr InterruptNest::frame_of(const DeliveredEvent& event) const {
  constexpr std::uint32_t kVirtual8086 = 1u << 17;
  if (in_long_mode(machine_.engine())) return frame_in_long_mode(event);
  const CpuState cpu = machine_.save();
  constexpr std::uint16_t kBig = 1u << 14;
  const std::uint32_t ss = cpu.segment[kSs].base;
  const std::uint32_t bits = (cpu.segment[kSs].attributes & kBig) != 0 ? 0xffffffff : 0xffff;
  if ((cpu.cr0 & 1) == 0) return LinearAddr{ss + ((cpu.gpr[kEsp] - 6) & bits)};
  const auto word_at = [&](std::uint32_t linear, unsigned bytes) {
    return static_cast<std::uint32_t>(value_at(LinearAddr{linear}, bytes));
  };
  // Bit 11 of the second dword of a gate: it is of 32 bits. Bits 13 and 14 of a code descriptor:
  // DPL.
  const std::uint32_t gate = word_at(cpu.idtr.base + event.vector * 8u + 4, 4);
  const std::uint32_t size = (gate & 1u << 11) != 0 ? 4 : 2;
  const std::uint32_t selector = word_at(cpu.idtr.base + event.vector * 8u + 2, 2);
  const std::uint32_t table = (selector & 4) != 0 ? cpu.ldtr.base : cpu.gdtr.base;
  const std::uint32_t level = word_at(table + (selector & ~7u) + 4, 4) >> 13 & 3;
  const bool v86 = (cpu.eflags & kVirtual8086) != 0;
  const std::uint32_t now = v86 ? 3 : cpu.segment[kCs].selector & 3;
  if (level >= now) return LinearAddr{ss + ((cpu.gpr[kEsp] - 3 * size) & bits)};
  const bool wide_task = (cpu.tr.attributes & 8) != 0;
  const std::uint32_t top =
      wide_task ? word_at(cpu.tr.base + 4 + 8 * level, 4) : word_at(cpu.tr.base + 2 + 4 * level, 2);
  return LinearAddr{top - (v86 ? 9 : 5) * size};
}

void InterruptNest::delivered(const DeliveredEvent& event, Position now) {
  entered_ = entered();
  const CpuState cpu = machine_.save();
  Entered entered{event, now, machine_.engine().address_space(), frame_of(event)};
  entered.stack = stack_place(machine_);
  if ((cpu.cr0 & 1) == 0) entered.real_stack = cpu.segment[kSs].base;
  entered.from = is_in_64_bit_mode(cpu)
                     ? LinearAddr{event.eip}
                     : linear32(cpu.segment[kCs].base, static_cast<std::uint32_t>(event.eip));
  // An event whose frame overwrites the frame of another one ends it: programs may never return.
  const bool has_frame = event.kind != DeliveredEvent::Kind::smi;
  std::erase_if(entered_, [&](const Entered& e) {
    return has_frame && e.event.kind != DeliveredEvent::Kind::smi &&
           e.call == InstructionClass::plain && e.frame == entered.frame && e.cr3 == entered.cr3;
  });
  entered_.push_back(entered);
}

/// Told of while the registers are still the program's.
void InterruptNest::called(const ExecutedInstruction& e, Position now) {
  Entered entered;
  entered.at = now;
  entered.cr3 = machine_.engine().address_space();
  entered.frame = LinearAddr{whole_gpr(machine_.engine(), kEsp)};
  entered.from = e.linear;
  entered.call = e.info->kind;
  entered.stack = stack_place(machine_);
  // Whoever called with this stack before does not come back.
  called_back(entered.frame.value);
  entered_.push_back(entered);
}

/// The processor goes back to a program with this stack pointer. False where no call is known that
/// came from there.
bool InterruptNest::called_back(std::uint64_t stack_pointer) {
  const AddressSpaceId cr3 = machine_.engine().address_space();
  return std::erase_if(entered_, [&](const Entered& entered) {
           return entered.call != InstructionClass::plain && entered.cr3 == cr3 &&
                  entered.frame.value == stack_pointer;
         }) != 0;
}

/// The stack pointer to which an IRET to level 3 goes back: SDM vol. 3, figure 6-4. A system call
/// may return so, too.
std::optional<std::uint64_t> InterruptNest::programs_stack(const ExecutedInstruction& iret) const {
  if (iret.ea_count == 0) return std::nullopt;
  const unsigned size = iret.info->operand_bytes;
  const auto word = [&](unsigned number) {
    return value_at(LinearAddr{iret.ea[0].value + number * size}, size);
  };
  if ((word(1) & 3) != 3) return std::nullopt;
  return word(3);
}

std::vector<InterruptNest::Entered> InterruptNest::entered() const {
  const CpuState cpu = machine_.save();
  const std::uint32_t stack = cpu.segment[kSs].base;
  const bool is_real = (cpu.cr0 & 1) == 0;
  std::vector<Entered> left;
  std::copy_if(entered_.begin(), entered_.end(), std::back_inserter(left), [&](const Entered& e) {
    const bool is_over = is_real && e.event.kind != DeliveredEvent::Kind::smi &&
                         e.real_stack == stack && (cpu.gpr[kEsp] & 0xffff) > e.frame.value - stack;
    return !is_over;
  });
  return left;
}

void InterruptNest::instruction(const ExecutedInstruction& e, Position now) {
  switch (e.info->kind) {
    case InstructionClass::sysenter:
    case InstructionClass::syscall:
      return called(e, now);
    // SDM vol. 2, SYSEXIT and SYSRET. They are told of while the registers are the kernel's.
    case InstructionClass::sysexit:
      called_back(whole_gpr(machine_.engine(), kEcx));
      return;
    case InstructionClass::sysret:
      called_back(whole_gpr(machine_.engine(), kEsp));
      return;
    default:
      break;
  }
  const bool rsm = e.info->kind == InstructionClass::rsm;
  if (e.info->kind != InstructionClass::iret && !rsm) return;
  // A handler may have moved its frame down, to make room for what it pushes for the interrupted
  // code (Linux, arch/x86/entry/entry_64.S: idtentry of INT3).
  constexpr std::uint64_t kMostMoved = 64;
  const auto ends_within = [&](std::uint64_t moved) {
    return std::find_if(entered_.rbegin(), entered_.rend(), [&](const Entered& entered) {
      const bool smi = entered.event.kind == DeliveredEvent::Kind::smi;
      if (smi || rsm) return smi && rsm;
      const bool delivered = entered.call == InstructionClass::plain;
      return delivered && e.ea_count != 0 && entered.frame.value - e.ea[0].value <= moved;
    });
  };
  auto ended = ends_within(0);
  if (ended == entered_.rend() && e.info->bits64) ended = ends_within(kMostMoved);
  if (ended == entered_.rend()) {
    const auto stack = rsm ? std::nullopt : programs_stack(e);
    if (!stack || !called_back(*stack)) ++entered_before_;
  } else {
    entered_.erase(std::next(ended).base());
  }
}

AddressSpaces::AddressSpaces(AddressSpaceId cr3, Position from) : cr3_(cr3), since_(from) {
  spaces_[cr3].first = from;
}

void AddressSpaces::leave(Position now) {
  spaces_[cr3_].instructions += now.instruction - since_.instruction;
  since_ = now;
}

void AddressSpaces::address_space(AddressSpaceId cr3, Position now) {
  leave(now);
  cr3_ = cr3;
  const auto [space, is_new] = spaces_.try_emplace(cr3);
  if (is_new) space->second.first = now;
  ++space->second.loads;
}

void AccessLog::fetch(PhysAddr a, std::uint32_t size, Position now) {
  lines_.push_back({now, fmt::format("fetch  {:08x} {} bytes", a.value, size)});
}

void AccessLog::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  lines_.push_back({now, fmt::format("read   {:08x} {} bytes{}", a.value, size, kind_text(kind))});
}

void AccessLog::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                      Position now) {
  lines_.push_back(
      {now, fmt::format("write  {:08x} {}{}", a.value, stored_text(bytes), kind_text(kind))});
}

void AccessLog::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  lines_.push_back({now, fmt::format("in     {:04x} {}", port, value_text(value, size))});
}

void AccessLog::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                         Position now) {
  lines_.push_back({now, fmt::format("out    {:04x} {}", port, value_text(value, size))});
}

}  // namespace citcat
