#include "silicon/host_steps.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <utility>

#include "silicon/host_rules.h"

namespace citcat::silicon {
namespace {

constexpr std::uint8_t kPushf = 0x9c, kPopSs = 0x17, kMovToSegment = 0x8e;

/// The physical address of a linear one, whatever the rights of its page.
std::optional<std::uint32_t> physical(std::uint32_t linear) {
  static const std::vector<HostProcessor::Page> all = HostGuest::pages();
  for (const HostProcessor::Page& page : all) {
    if (page.linear != (linear & ~0xfffu) || page.rights == HostProcessor::Rights::none) continue;
    return page.frame * kPageSize + (linear & 0xfff);
  }
  return std::nullopt;
}

/// The offset that a ModRM and what follows it name (SDM vol. 2, tables 2-1 to 2-3).
std::uint32_t operand_offset(const StepInstruction& i, unsigned modrm_at, bool address32,
                             const CpuState& s) {
  const auto byte = [&](unsigned at) { return std::uint32_t{at < 15 ? i.bytes[at] : 0u}; };
  const auto dword = [&](unsigned at) {
    return byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24;
  };
  const auto signed_byte = [&](unsigned at) {
    return static_cast<std::uint32_t>(static_cast<std::int8_t>(byte(at)));
  };
  const unsigned mod = i.modrm >> 6, rm = i.rm();
  unsigned at = modrm_at + 1;
  if (mod == 3) return 0x80000000;
  if (!address32) {
    constexpr std::array<int, 8> kBases{kEbx, kEbx, kEbp, kEbp, kEsi, kEdi, kEbp, kEbx};
    constexpr std::array<int, 4> kIndexes{kEsi, kEdi, kEsi, kEdi};
    if (mod == 0 && rm == 6) return dword(at) & 0xffff;
    std::uint32_t offset = s.gpr[static_cast<std::size_t>(kBases[rm])];
    if (rm < 4) offset += s.gpr[static_cast<std::size_t>(kIndexes[rm])];
    if (mod == 1) offset += signed_byte(at);
    if (mod == 2) offset += dword(at);
    return offset & 0xffff;
  }
  std::uint32_t offset = 0;
  unsigned base = rm;
  if (rm == 4) {
    const std::uint32_t sib = byte(at++);
    base = sib & 7;
    if ((sib >> 3 & 7) != 4) offset = s.gpr[sib >> 3 & 7] << (sib >> 6);
  }
  if (mod == 0 && base == 5) return offset + dword(at);
  offset += s.gpr[base];
  if (mod == 1) offset += signed_byte(at);
  if (mod == 2) offset += dword(at);
  return offset;
}

}  // namespace

std::uint64_t StepCounts::steps() const {
  std::uint64_t n = equal;
  for (const auto& [rule, count] : rules) n += count;
  for (const auto& [kind, found] : unexplained) n += found.count;
  return n;
}

LockStep::LockStep(ExecutionPath path, std::uint64_t seed)
    : guest_(seed), host_(kGuestRam, HostGuest::pages()), world_(path), seed_(seed) {
  machine_ = std::make_unique<Machine>(CpuModel::p6, BusModel{}, world_, &world_, path);
  machine_->set_polling(true);
  host_.set_ldt(guest_.ldt());
}

LockStep::~LockStep() = default;

StepInstruction LockStep::take_apart(const CpuState& state) const {
  constexpr std::array<std::uint8_t, 6> kOverrides{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65};
  StepInstruction out;
  const std::uint32_t linear = state.segment[kCs].base + state.eip;
  for (; out.available < out.bytes.size(); ++out.available) {
    const auto at = physical(linear + out.available);
    if (!at) break;
    out.bytes[out.available] = guest_.ram()[*at];
  }
  unsigned i = 0;
  bool address_prefix = false;
  for (; i < out.available; ++i) {
    const std::uint8_t b = out.bytes[i];
    const bool override =
        std::find(kOverrides.begin(), kOverrides.end(), b) != kOverrides.end() || b == 0x67;
    address_prefix = address_prefix || b == 0x67;
    out.lock = out.lock || b == 0xf0;
    out.repeat = out.repeat || b == 0xf2 || b == 0xf3;
    out.operand_prefix = out.operand_prefix || b == 0x66;
    if (!override && b != 0xf0 && b != 0xf2 && b != 0xf3 && b != 0x66) break;
  }
  const auto at = [&](unsigned n) { return n < out.available ? out.bytes[n] : std::uint8_t{0}; };
  if (at(i) == 0x0f) {
    out.two_byte = true;
    ++i;
  }
  out.opcode = at(i);
  out.modrm = at(i + 1);
  const bool code32 = (state.segment[kCs].attributes & 0x4000) != 0;
  out.wide = code32 != out.operand_prefix;
  out.address = operand_offset(out, i + 1, code32 != address_prefix, state);
  return out;
}

StepEnd LockStep::step_replay(unsigned instructions) {
  StepEnd end = replay_step(*machine_, world_, instructions);
  if (end.kind == StepEnd::Kind::exception) take_frame(end);
  return end;
}

/// The frame of the exception that the replay delivered; it on the kernel's stack has the rest of
/// the registers that it found.
void LockStep::take_frame(StepEnd& end) const {
  // INT n that its gate does not admit is told first.
  const std::vector<DeliveredEvent>& told = world_.delivered();
  const bool refused = told.size() == 2 && told.front().kind == DeliveredEvent::Kind::software;
  const DeliveredEvent& event = told.back();
  end.vector = event.vector;
  end.error_code = event.error_code;
  end.cr2 = end.cpu.cr2;
  const bool software = event.kind == DeliveredEvent::Kind::software;
  const bool code = has_error_code(event.vector) && !software;
  const std::uint32_t frame = kKernelStack - (code ? 24 : 20);
  if ((told.size() != 1 && !refused) || end.cpu.gpr[kEsp] != kSystem + frame) {
    end.kind = StepEnd::Kind::not_comparable;
    end.why = "the replay delivers more than one exception";
    return;
  }
  std::array<std::uint32_t, 6> words{};
  std::memcpy(words.data(), machine_->memory().host(PhysAddr{kSystemFrames + frame}),
              code ? 24 : 20);
  const std::uint32_t* const w = words.data() + (code ? 1 : 0);
  if (code && words[0] != event.error_code) end.why = "frame";
  end.cpu.eip = w[0];
  end.cpu.segment[kCs].selector = static_cast<std::uint16_t>(w[1]);
  end.cpu.eflags = w[2];
  end.cpu.gpr[kEsp] = w[3];
  end.cpu.segment[kSs].selector = static_cast<std::uint16_t>(w[4]);
}

StepEnd LockStep::step_host(const CpuState& before, const StepInstruction& instruction,
                            bool floating_point) {
  constexpr unsigned kMaxIterations = 0x10000;
  StepEnd end;
  end.cpu = before;
  // Other instructions with such a prefix may come back to where they stand by a branch.
  constexpr std::array<std::uint8_t, 7> kPairsOfStrings{0x6c, 0x6e, 0xa4, 0xa6, 0xaa, 0xac, 0xae};
  const bool string = !instruction.two_byte && instruction.repeat &&
                      std::find(kPairsOfStrings.begin(), kPairsOfStrings.end(),
                                instruction.opcode & 0xfe) != kPairsOfStrings.end();
  for (unsigned iteration = 0; iteration < kMaxIterations; ++iteration) {
    const HostProcessor::Step step = host_.step(end.cpu, floating_point);
    end.vector = step.vector;
    end.error_code = step.error_code;
    end.cr2 = static_cast<std::uint32_t>(step.cr2);
    switch (step.end) {
      case HostProcessor::Step::End::stepped:
        end.kind = StepEnd::Kind::retired;
        break;
      case HostProcessor::Step::End::exception:
        end.kind = StepEnd::Kind::exception;
        return end;
      case HostProcessor::Step::End::other:
        end.kind = StepEnd::Kind::not_comparable;
        end.why = "the host: " + step.why;
        return end;
    }
    if (!string || end.cpu.eip != before.eip) return end;
    if (const auto at = physical(before.segment[kCs].base + before.eip);
        !at || std::memcmp(&host_.ram()[*at], &guest_.ram()[*at], 4) != 0) {
      end.why = "a repeated string that stores over itself";
      break;
    }
  }
  end.kind = StepEnd::Kind::not_comparable;
  if (end.why.empty()) end.why = "a repeated string that is long";
  return end;
}

std::vector<std::uint32_t> LockStep::differing_bytes() const {
  std::vector<std::uint32_t> out;
  const std::span<const std::uint8_t> ram = host_.ram();
  for (std::uint32_t at = 0; at < kGuestRam; at += kPageSize) {
    const std::uint8_t* const replayed = machine_->memory().host(PhysAddr{at});
    if (std::memcmp(replayed, &ram[at], kPageSize) == 0) continue;
    for (std::uint32_t i = 0; i < kPageSize; ++i) {
      if (replayed[i] != ram[at + i]) out.push_back(at + i);
    }
  }
  return out;
}

/// The single step is made with TF set, and ID is what it is in the child: PUSHF shows both. No
/// other place is touched.
void LockStep::clear_own_flags(const StepInstruction& instruction, const StepEnd& host) {
  if (host.kind != StepEnd::Kind::retired || instruction.two_byte || instruction.opcode != kPushf) {
    return;
  }
  const Segment& ss = host.cpu.segment[kSs];
  const bool wide = (ss.attributes & 0x4000) != 0;
  const auto clear = [&](std::uint32_t byte, std::uint8_t bit) {
    const std::uint32_t esp = host.cpu.gpr[kEsp] + byte;
    if (const auto at = physical(ss.base + (wide ? esp : esp & 0xffff)))
      host_.ram()[*at] &= static_cast<std::uint8_t>(~bit);
  };
  clear(1, 0x01);
  if (instruction.wide) clear(2, 0x20);
}

/// What the replay changed without noting it.
void LockStep::repair_memory() {
  for (std::uint32_t at = 0; at < kGuestRam; at += kPageSize) {
    std::uint8_t* const held = machine_->memory().host(PhysAddr{at});
    if (std::memcmp(held, &guest_.ram()[at], kPageSize) == 0) continue;
    ++unnoticed_;
    std::memcpy(held, &guest_.ram()[at], kPageSize);
  }
}

/// The state and the memory that is its own, on both sides.
void LockStep::begin(const CpuState& state) {
  const std::vector<std::uint8_t>& ram = guest_.ram();
  if (!loaded_) {
    base_ = ram;
    for (std::uint32_t at = 0; at < kMachineRam; at += kPageSize) {
      image_.set(PhysAddr{at}, std::span(base_).subspan(at, kPageSize));
    }
    machine_->load(state, image_);
    loaded_ = machine_->snapshot();
  }
  Machine::Snapshot start = *loaded_;
  start.cpu = state;
  for (std::uint32_t at = 0; at < kGuestRam; at += kPageSize) {
    if (std::memcmp(&ram[at], &base_[at], kPageSize) == 0) continue;
    const auto page = std::make_shared<Memory::SavedPage>();
    page->number = at / kPageSize;
    std::memcpy(page->data.data(), &ram[at], kPageSize);
    page->defined.set();
    start.pages.push_back(page);
  }
  machine_->restore(start, image_);
  repair_memory();
  const std::span<std::uint8_t> of_host = host_.ram();
  for (std::uint32_t at = 0; at < kGuestRam; at += kPageSize) {
    if (std::memcmp(&of_host[at], &ram[at], kPageSize) != 0) {
      std::memcpy(&of_host[at], &ram[at], kPageSize);
    }
  }
}

void LockStep::step(const CpuState& state, bool floating_point, const std::string& name,
                    StepCounts& counts) {
  begin(state);
  const CpuState before = machine_->save();
  const StepInstruction instruction = take_apart(before);

  StepEnd replay = step_replay(1);
  // A load of SS holds the trap of the single step off until after the next instruction.
  const bool shadow = replay.kind == StepEnd::Kind::retired && !instruction.two_byte &&
                      (instruction.opcode == kPopSs ||
                       (instruction.opcode == kMovToSegment && instruction.reg() == kSs));
  if (shadow) replay = step_replay(1);
  if (replay.kind == StepEnd::Kind::not_comparable) {
    ++counts.not_comparable[replay.why];
    return;
  }
  if (alter_) alter_(replay.cpu);
  const StepEnd host = step_host(before, instruction, floating_point);
  if (host.kind == StepEnd::Kind::not_comparable) {
    ++counts.not_comparable[host.why];
    return;
  }
  constexpr std::uint16_t kCode64 = 0x33;
  if (host.cpu.segment[kCs].selector == kCode64) {
    ++counts.not_comparable["enters 64-bit mode"];
    return;
  }
  clear_own_flags(instruction, host);
  const std::uint64_t unnoticed = std::exchange(unnoticed_, 0);
  if (unnoticed != 0) counts.not_comparable["changed memory unnoticed before: " + last_name_]++;
  last_name_ = name;
  const StepComparison comparison{
      before,
      instruction,
      replay,
      host,
      differing_bytes(),
      host_.ram(),
      [this](std::uint32_t at) { return *machine_->memory().host(PhysAddr{at}); },
      floating_point};
  const StepVerdict verdict = judge(comparison);
  ++counts.ends[end_name(host)];
  if (verdict.differences.empty()) {
    if (verdict.rules.empty()) ++counts.equal;
    for (const std::string& rule : verdict.rules) ++counts.rules[rule];
    return;
  }
  StepCounts::Unexplained& found = counts.unexplained[verdict.key];
  if (found.count++ == 0) found.first = name + ": " + verdict.text();
}

void LockStep::run(StepMode mode, std::uint64_t steps, StepCounts& counts) {
  for (std::uint64_t n = 0; n < steps; ++n) {
    char name[60];
    std::snprintf(name, sizeof name, "seed %llu step %llu", static_cast<unsigned long long>(seed_),
                  static_cast<unsigned long long>(n));
    step(guest_.next(mode), mode == StepMode::floating, name, counts);
  }
}

}  // namespace citcat::silicon
