#include "acceptance/golden_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace citcat::test {
namespace {

constexpr std::size_t kMostListed = 12;
constexpr std::uint32_t kSystemFlags = 0x003e7700, kStatusFlags = 0x000008d5;

bool floating_point(InstructionClass kind) {
  switch (kind) {
    case InstructionClass::x87:
    case InstructionClass::fxsave:
    case InstructionClass::xsave:
    case InstructionClass::mmx:
    case InstructionClass::sse:
    case InstructionClass::sse_fp:
    case InstructionClass::stmxcsr:
      return true;
    default:
      return false;
  }
}

std::string start_text(const GoldenStart& s) {
  std::string bytes;
  for (const std::uint8_t byte : s.bytes) bytes += fmt::format("{:02x}", byte);
  return fmt::format("{:04x}:{:08x} linear {:08x} physical {:08x} {}", s.cs, s.eip, s.linear,
                     s.physical, bytes);
}

std::string bytes_text(const std::vector<GoldenByte>& bytes) {
  std::string text;
  for (const GoldenByte& b : bytes) text += fmt::format(" {:08x}={:02x}", b.physical, b.value);
  return text;
}

}  // namespace

GoldenCheck::GoldenCheck(const GoldenPaths& paths)
    : groups_(paths.golden),
      golden_instructions_(paths.golden_instructions),
      events_(load_golden_events(paths.events)),
      hashes_(load_golden_hashes(paths.hashes)) {}

void GoldenCheck::mismatch(std::uint64_t icount, const std::string& text) {
  if (++mismatch_count_ <= kMostListed) {
    mismatches_.push_back(fmt::format("instruction {}: {}", icount, text));
  }
}

/// Called first by everything that is reported: notes the registers as soon as an instruction is
/// complete, before anything changes them again.
void GoldenCheck::at(Position now) {
  if (now.instruction == icount_) return;
  if (now.instruction != icount_ + 1) {
    mismatch(icount_, fmt::format("the replay reports position {} next", now.instruction));
  }
  if (!after_) {
    after_.emplace();
    for (int i = 0; i < 8; ++i)
      after_->gpr[static_cast<std::size_t>(i)] = machine_->engine().gpr(i);
    after_->eflags = machine_->engine().eflags();
  }
  close_group();
  icount_ = now.instruction;
  completed_ = true;
}

/// The first instruction or delivery after one that completed tells where execution went on.
void GoldenCheck::next_starts_at(std::uint32_t eip, std::uint32_t linear, Position now) {
  if (!completed_) return;
  completed_ = false;
  if (target_ && *target_ != linear) {
    mismatch(now.instruction - 1, fmt::format("branch target {:08x} in the trace, execution went "
                                              "on at {:08x}",
                                              *target_, linear));
  }
  target_.reset();
  hash_.add(*after_, eip);
  after_.reset();
  if (next_hash_ >= hashes_.size() || hashes_[next_hash_].icount != now.instruction) return;
  const GoldenHash& row = hashes_[next_hash_++];
  ++counts_.hashes;
  if (row.eip_hash != hash_.eip || row.eip != eip) mismatch(now.instruction, "hash of EIP");
  if (tolerant_) return;
  if (row.gpr_hash != hash_.gpr) mismatch(now.instruction, "hash of the general registers");
  if (row.system_hash != hash_.system) mismatch(now.instruction, "hash of the system flags");
}

void GoldenCheck::fetch(PhysAddr, std::uint32_t, Position now) {
  at(now);
  switched_stack_ = false;
  cs_ = machine_->engine().segment_selector(kCs);
}

void GoldenCheck::instruction(const ExecutedInstruction& e, Position now) {
  at(now);
  const auto eip = static_cast<std::uint32_t>(e.offset);
  if (now.iteration == 0) next_starts_at(eip, e.linear.low32(), now);
  if (now.instruction >= golden_instructions_) return;
  const DecodedInstruction& info = *e.info;
  if (now.iteration == 0) {
    starts_.push_back({cs_,
                       eip,
                       e.linear.low32(),
                       e.physical.low32(),
                       {info.bytes.begin(), info.bytes.begin() + info.length}});
  }
  floating_point_ = floating_point_ || floating_point(info.kind);
  for (unsigned i = 0; i < e.ea_count; ++i) {
    const EaSlot& slot = info.ea[i];
    switch (slot.source) {
      case EaSource::operand: {
        const MemoryOperand& operand = info.operands[slot.argument];
        if (operand.read || operand.write)
          addresses_.push_back({e.ea[i].low32(), now.iteration, false});
        break;
      }
      case EaSource::target:
      case EaSource::reg:
        // A conditional branch that is not taken goes on at the next instruction; far ones into a
        // gate go where the gate says.
        if (info.kind == InstructionClass::jump || info.kind == InstructionClass::call) {
          target_ = e.ea[i].low32();
        }
        break;
      case EaSource::stack_push:
        // Through a gate that changes the stack, the trace keeps to the one before (kt.md).
        if (switched_stack_ && info.kind == InstructionClass::int_n) break;
        addresses_.push_back({e.ea[i].low32(), now.iteration, false});
        break;
      case EaSource::stack_pop:
      case EaSource::frame:
        addresses_.push_back({e.ea[i].low32(), now.iteration, false});
        break;
    }
  }
}

void GoldenCheck::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position now) {
  at(now);
  if (now.instruction >= golden_instructions_) return;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    written_.push_back({a.low32() + static_cast<std::uint32_t>(i), bytes[i]});
  }
}

void GoldenCheck::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                          Position now) {
  at(now);
  if (now.instruction < golden_instructions_) {
    ports_.push_back({port, static_cast<std::uint8_t>(size), false, value});
  }
}

void GoldenCheck::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                           Position now) {
  at(now);
  if (now.instruction < golden_instructions_) {
    ports_.push_back({port, static_cast<std::uint8_t>(size), true, value});
  }
}

void GoldenCheck::check_event(const std::string& kind, std::uint8_t vector,
                              std::uint32_t error_code, std::uint16_t cs, std::uint32_t eip,
                              Position now) {
  const std::string found =
      fmt::format("{} {} error {:x} at {:04x}:{:08x} cr2 {:08x} iteration {}", kind, vector,
                  error_code, cs, eip, machine_->engine().cr(2), now.iteration);
  if (next_event_ >= events_.size()) {
    mismatch(now.instruction, "no event left, found " + found);
    return;
  }
  const GoldenEvent& e = events_[next_event_++];
  ++counts_.events;
  const std::string expected =
      fmt::format("{} {} error {:x} at {:04x}:{:08x} cr2 {:08x} iteration {}", e.kind, e.vector,
                  e.error_code, e.cs, e.eip, e.cr2, e.rep);
  if (e.icount != now.instruction || expected != found) {
    mismatch(now.instruction, fmt::format("event expected {} at instruction {}, found {}", expected,
                                          e.icount, found));
  }
}

void GoldenCheck::delivered(const DeliveredEvent& event, Position now) {
  at(now);
  const bool software = event.kind == DeliveredEvent::Kind::software;
  // Linux enters privilege level 0 through every gate, on a stack of its own.
  constexpr std::uint16_t kPrivilege = 3;
  switched_stack_ = software && (event.cs & kPrivilege) != 0;
  const auto eip = static_cast<std::uint32_t>(event.eip);
  next_starts_at(eip, eip + machine_->engine().segment_base(kCs), now);
  // The list of some captures has no SMIs.
  const bool listed = next_event_ < events_.size() && events_[next_event_].kind == "SMI";
  if (event.kind == DeliveredEvent::Kind::smi && !listed) return;
  check_event(software                                        ? "SWINT"
              : event.kind == DeliveredEvent::Kind::exception ? "EXC"
              : event.kind == DeliveredEvent::Kind::smi       ? "SMI"
                                                              : "HWINT",
              event.vector, event.error_code, event.cs, eip, now);
}

void GoldenCheck::halted(Position now) {
  at(now);
  check_event("HLT", 0, 0, machine_->engine().segment_selector(kCs), machine_->engine().eip(), now);
}

void GoldenCheck::cache_flushed(bool write_back, Position now) {
  at(now);
  if (next_event_ >= events_.size()) return;
  const GoldenEvent& e = events_[next_event_];
  if (e.kind != (write_back ? "WBINVD" : "INVD") || e.icount != now.instruction) return;
  ++next_event_;
  ++counts_.events;
}

void GoldenCheck::close_group() {
  if (icount_ < golden_instructions_) {
    if (!groups_.next(golden_) || golden_.icount != icount_) {
      mismatch(icount_, fmt::format("the ground truth has instruction {} next", golden_.icount));
      golden_instructions_ = 0;  // no use in comparing on
    } else {
      ++counts_.instructions;
      counts_.starts += starts_.size();
      if (golden_.starts != starts_) {
        std::string text = "instructions: expected";
        for (const GoldenStart& s : golden_.starts) text += " [" + start_text(s) + "]";
        text += ", found";
        for (const GoldenStart& s : starts_) text += " [" + start_text(s) + "]";
        mismatch(icount_, text);
      }
      if (golden_.ports != ports_) {
        mismatch(icount_, fmt::format("port accesses: expected {}, found {}", golden_.ports.size(),
                                      ports_.size()));
      }
      counts_.ports += ports_.size();
      compare_written();
      compare_addresses();
      compare_registers();
    }
  }
  starts_.clear();
  written_.clear();
  ports_.clear();
  addresses_.clear();
  floating_point_ = false;
}

/// Bytes of one instruction may come in another order; values of one byte may not.
void GoldenCheck::compare_written() {
  counts_.bytes_written += written_.size();
  const auto by_address = [](const GoldenByte& a, const GoldenByte& b) {
    return a.physical < b.physical;
  };
  std::stable_sort(written_.begin(), written_.end(), by_address);
  std::stable_sort(golden_.written.begin(), golden_.written.end(), by_address);
  if (written_ == golden_.written) return;
  const bool same_places =
      std::equal(written_.begin(), written_.end(), golden_.written.begin(), golden_.written.end(),
                 [](const GoldenByte& a, const GoldenByte& b) { return a.physical == b.physical; });
  // A write-back cache shows a result late: what was computed from it until then differs as well.
  if (tolerant_ && same_places && (floating_point_ || tolerated_ != 0)) {
    ++tolerated_;
    return;
  }
  mismatch(icount_, fmt::format("bytes written: expected{}, found{}", bytes_text(golden_.written),
                                bytes_text(written_)));
}

void GoldenCheck::compare_addresses() {
  for (const Address& a : addresses_) {
    ++counts_.addresses;
    const bool known = std::any_of(golden_.references.begin(), golden_.references.end(),
                                   [&](const GoldenReference& r) {
                                     return r.linear == a.linear && r.repetition == a.iteration;
                                   });
    if (known) continue;
    std::string text = fmt::format("effective address {:08x}: accessed were", a.linear);
    for (const GoldenReference& r : golden_.references) text += fmt::format(" {:08x}", r.linear);
    if (!starts_.empty()) text += " by " + start_text(starts_.back());
    mismatch(icount_, text);
  }
}

void GoldenCheck::compare_registers() {
  if (!golden_.after || !after_) return;
  ++counts_.registers;
  const std::uint32_t flags = golden_.after->eflags ^ after_->eflags;
  if ((flags & kStatusFlags) != 0) ++counts_.status_flags_differ;
  if (tolerant_) return;
  if (golden_.after->gpr != after_->gpr) {
    mismatch(icount_, "registers: expected " +
                          fmt::format("{:08x}", fmt::join(golden_.after->gpr, " ")) + ", found " +
                          fmt::format("{:08x}", fmt::join(after_->gpr, " ")));
  }
  if ((flags & kSystemFlags) != 0) {
    mismatch(icount_, fmt::format("system flags: expected {:08x}, found {:08x}",
                                  golden_.after->eflags, after_->eflags));
  }
}

void GoldenCheck::finish(Position end) {
  at(end);
  const Engine& engine = machine_->engine();
  next_starts_at(engine.eip(), engine.eip() + engine.segment_base(kCs), end);
  if (next_event_ < events_.size() && events_[next_event_].icount < end.instruction) {
    mismatch(events_[next_event_].icount,
             fmt::format("event {} {} was not delivered", events_[next_event_].kind,
                         events_[next_event_].vector));
  }
}

}  // namespace citcat::test
