#include "replay/machine/units/system_management.h"

#include <cstring>

#include "replay/machine/replay_stopped.h"
#include "replay/machine/units/debug_unit.h"
#include "replay/machine/units/retirement.h"
#include "replay/machine/units/table_descriptor.h"

namespace citcat {

namespace {

constexpr std::uint32_t kSaveTop = 0x10000;  ///< from SMBASE; the saved state grows down from here

constexpr std::uint32_t kSmiHandler = 0x8000;

/// Upper half of an attributes dword: bits 8 to 12 belong to no descriptor and hold what the
/// processor keeps beside it. Bit 8 is set for a segment that may be used.
constexpr std::uint32_t kUsable = 1u << 24, kInternalBits = 0x1f;

/// A task segment in TR is marked as busy; emulators save its type as it was before LTR, and no
/// manual says which it is.
constexpr std::uint32_t kBusy = 2u << 16;
/// P. Some emulators save no bit 8.
constexpr std::uint32_t kSegmentPresent = 0x80u << 16;

/// What Bochs 2.7 saves of a segment that holds a null selector: a segment's, all else clear. No
/// manual says, and a cache that holds the stores back leaves nothing to adopt it from.
constexpr std::uint32_t kNullAttributes = 0x10u << 16;

constexpr std::uint16_t kDescriptorBits = 0xe0ff;

}  // namespace

Segment SystemManagement::saved_segment(unsigned index) const {
  if (index == kSmmLdtr) return cpu_.engine.ldtr();
  if (index == kSmmTr) return cpu_.engine.tr();
  return cpu_.engine.segment(static_cast<int>(index));
}

std::uint64_t SystemManagement::saved_base(unsigned index) const {
  if (index == kSmmLdtr) return cpu_.engine.wide().ldtr_base();
  if (index == kSmmTr) return cpu_.engine.wide().tr_base();
  return cpu_.engine.wide().segment_base(static_cast<int>(index));
}

/// All 64 bits of what may have them.
std::uint64_t SystemManagement::saved_value(SmmField field) const {
  const WideRegisters wide = cpu_.engine.wide();
  switch (field.item) {
    case SmmItem::control:
      return wide.cr(field.index);
    case SmmItem::eflags:
      return cpu_.engine.eflags();
    case SmmItem::eip:
      return cpu_.ip();
    case SmmItem::gpr:
      return wide.gpr(field.index);
    case SmmItem::debug:
      return debug_.value(field.index);
    case SmmItem::selector:
      return saved_segment(field.index).selector;
    case SmmItem::limit:
      return saved_segment(field.index).limit;
    case SmmItem::base:
      return saved_base(field.index);
    case SmmItem::attributes:
    case SmmItem::selector_and_attributes: {
      const Segment s = saved_segment(field.index);
      if (s.unusable && field.index < kSmmLdtr) return s.selector | kNullAttributes;
      return s.selector | std::uint32_t{s.attributes} << 16 | (s.unusable ? 0 : kUsable);
    }
    case SmmItem::gdt_base:
      return wide.gdtr_base();
    case SmmItem::gdt_limit:
      return cpu_.engine.gdtr().limit;
    case SmmItem::idt_base:
      return wide.idtr_base();
    case SmmItem::idt_limit:
      return cpu_.engine.idtr().limit;
    case SmmItem::smbase:
      return smbase_;
    case SmmItem::efer:
      return cpu_.engine.efer();
    case SmmItem::revision:
      break;  // is the map's
  }
  return 0;
}

std::uint32_t SystemManagement::saved_word(SmmField field) const {
  constexpr unsigned kUpper = 32;
  return static_cast<std::uint32_t>(saved_value(field) >> (field.upper ? kUpper : 0));
}

/// Where the layout is that of a processor with long mode, and known.
const SmmSaveMap& SystemManagement::map_of(std::uint8_t revision) const {
  const SmmSaveMap& map = smm_save_map(revision);
  if (!cpu_.traits.has_long_mode) return map;
  if ((long_mode_save_map().revision & 0xff) == revision) return long_mode_save_map();
  throw ReplayStopped{
      cpu_.position,
      "system management mode of a processor with long mode that saves its state in "
      "another layout than AMD64's (revision identifier ..64h), which is not executed"};
}

std::array<std::uint32_t, kSmmSavedWords> SystemManagement::saved_state(
    const SmmSaveMap& map) const {
  std::array<std::uint32_t, kSmmSavedWords> words{};
  for (const SmmField& f : map.fields) words[f.word()] = saved_word(f);
  words[kSmmRevisionWord] = map.revision;
  return words;
}

/// The bits of each saved dword that no manual defines.
std::array<std::uint32_t, kSmmSavedWords> SystemManagement::unspecified_state(
    const SmmSaveMap& map) const {
  constexpr std::uint32_t kAll = 0xffffffff, kAttributes = 0xffff0000;
  std::array<std::uint32_t, kSmmSavedWords> bits;
  bits.fill(kAll);
  for (const SmmField& f : map.fields) {
    const bool attributes =
        f.item == SmmItem::attributes || f.item == SmmItem::selector_and_attributes;
    const bool unusable = attributes && saved_segment(f.index).unusable;
    bits[f.word()] = unusable ? kAttributes : attributes ? kInternalBits << 24 : 0;
    if (attributes && f.index == kSmmTr) bits[f.word()] |= kBusy;
    // Whether a REP that is to go on is saved with RF, as it is pushed, no manual says.
    if (f.item == SmmItem::eflags && !f.upper) bits[f.word()] = kFlagRf;
  }
  return bits;
}

void SystemManagement::save_state(const SmmSaveMap& map) {
  const auto words = saved_state(map);
  const auto unspecified = unspecified_state(map);
  for (std::uint32_t i = 0; i < kSmmSavedWords; ++i) {
    const PhysAddr at{smbase_ + kSaveTop - 4 * (i + 1)};
    cpu_.memory.ensure_mapped(at.page());
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &words[i], 4);
    cpu_.memory.store(at, bytes);
    reserved_bits_ = unspecified[i];
    cpu_.audience.write(at, bytes, AccessKind::system, cpu_.position);
  }
  reserved_bits_ = 0;
}

/// Firmware moves SMBASE: the value after a reset is no guess for it.
void SystemManagement::require_smbase() const {
  if (smbase_known_) return;
  throw ReplayStopped{cpu_.position,
                      "system management mode, and SMBASE is not known: give it as smbase with the "
                      "initial state"};
}

void SystemManagement::interrupt(std::uint8_t revision) {
  require_smbase();
  const SmmSaveMap& map = map_of(revision);
  cpu_.halted = false;
  flight_.active = false;
  DeliveredEvent event;
  event.kind = DeliveredEvent::Kind::smi;
  event.cs = cpu_.engine.segment_selector(kCs);
  event.eip = cpu_.ip();
  event.cr2 = cpu_.engine.wide().cr(2);
  event.eflags = cpu_.engine.eflags();
  cpu_.audience.delivered(event, cpu_.position);
  save_state(map);

  // SDM vol. 3, table 34-4.
  constexpr std::uint32_t kCleared = 1u << 31 | 1u << 3 | 1u << 2 | 1u;  // PG, TS, EM, PE
  cpu_.engine.set_cr(0, cpu_.engine.cr(0) & ~kCleared);
  cpu_.engine.set_cr(4, 0);
  if (cpu_.traits.has_long_mode) cpu_.engine.set_efer(0);
  debug_.set(7, 0x400);
  cpu_.engine.set_eflags(2);
  constexpr std::uint16_t kFlatData = 0x8093;
  for (int i = 0; i < 6; ++i) cpu_.engine.set_segment(i, {0, 0, 0xffffffff, kFlatData, false});
  cpu_.engine.set_segment(
      kCs, {static_cast<std::uint16_t>(smbase_ >> 4), smbase_, 0xffffffff, kFlatData, false});
  cpu_.engine.set_rip(kSmiHandler);
  active_ = true;
  flight_.discard();
  cpu_.position.iteration = 0;
  cpu_.resume_flag = false;
  debug_.set_pending(0);
  mode_replaced();
}

void SystemManagement::leave_handler() {
  if (!active_) throw CpuException{6, std::nullopt, 0};
  require_smbase();
  std::array<std::uint32_t, kSmmSavedWords> words{};
  for (std::uint32_t i = 0; i < kSmmSavedWords; ++i) {
    const PhysAddr at{smbase_ + kSaveTop - 4 * (i + 1)};
    if (!cpu_.memory.is_mapped(at.page()) || !cpu_.memory.is_defined(at, 4)) {
      throw UndefinedMemory{at, 4, "saved processor state"};
    }
    std::memcpy(&words[i], cpu_.memory.host(at), 4);
    if (cpu_.wants_reads) cpu_.audience.read(at, 4, AccessKind::system, cpu_.position);
  }
  const SmmSaveMap& map = map_of(static_cast<std::uint8_t>(words[kSmmRevisionWord]));
  retirement_.report_completed();
  active_ = false;
  for (const SmmField& f : map.fields) {
    if (f.upper) {
      restore_upper(f, words[f.word()]);
    } else {
      restore_saved(f, words[f.word()]);
    }
  }
  if (cpu_.traits.has_long_mode) take_restored();
  retirement_.retire();
  cpu_.resume_flag = (cpu_.engine.system_flags() & kFlagRf) != 0;
  mode_replaced();
  cpu_.audience.address_space(cpu_.engine.address_space(), cpu_.position);
}

/// A processor shuts down where what it loads cannot be (AMD64 Architecture Programmer's Manual
/// vol. 2, 10.3.6).
void SystemManagement::take_restored() {
  constexpr std::uint64_t kPe = 1, kPg = 1u << 31, kPae = 1u << 5, kLme = 1u << 8, kLma = 1u << 10;
  const WideRegisters wide = cpu_.engine.wide();
  const std::uint64_t cr0 = wide.cr(0), efer = cpu_.engine.efer();
  const bool pages = (cr0 & kPg) != 0;
  const bool active = pages && (efer & kLme) != 0;
  const bool sound = (!pages || (cr0 & kPe) != 0) && active == ((efer & kLma) != 0) &&
                     (!active || (wide.cr(4) & kPae) != 0);
  if (!sound)
    throw ReplayStopped{cpu_.position, "RSM to control registers that contradict each other"};
}

void SystemManagement::set_saved_segment(unsigned index, const Segment& segment) {
  if (index == kSmmLdtr) {
    cpu_.engine.set_ldtr(segment);
  } else if (index == kSmmTr) {
    cpu_.engine.set_tr(segment);
  } else {
    cpu_.engine.set_segment(static_cast<int>(index), segment);
  }
}

/// An item of a segment.
void SystemManagement::restore_saved_segment(SmmField field, std::uint32_t word) {
  Segment s = saved_segment(field.index);
  const bool both = field.item == SmmItem::selector_and_attributes;
  if (both || field.item == SmmItem::selector) {
    s.selector = static_cast<std::uint16_t>(word);
  }
  if (both || field.item == SmmItem::attributes) {
    s.attributes = static_cast<std::uint16_t>(word >> 16 & kDescriptorBits);
    s.unusable = (word & (kUsable | kSegmentPresent)) == 0;
  }
  if (field.item == SmmItem::limit) s.limit = word;
  if (field.item == SmmItem::base) s.base = word;
  set_saved_segment(field.index, s);
}

/// After the lower half, which has cleared it.
void SystemManagement::restore_upper(SmmField field, std::uint32_t word) {
  WideRegisters wide = cpu_.engine.wide();
  const std::uint64_t lower =
      field.item == SmmItem::control ? wide.cr(field.index) : saved_value(field);
  const std::uint64_t value = std::uint64_t{word} << 32 | static_cast<std::uint32_t>(lower);
  switch (field.item) {
    case SmmItem::control:
      return wide.set_cr(field.index, value);
    case SmmItem::eip:
      return cpu_.engine.set_rip(value);
    case SmmItem::gpr:
      return wide.set_gpr(field.index, value);
    case SmmItem::base:
      if (field.index == kSmmLdtr) return wide.set_ldtr_base(value);
      if (field.index == kSmmTr) return wide.set_tr_base(value);
      return wide.set_segment_base(field.index, value);
    case SmmItem::gdt_base:
      return wide.set_gdtr_base(value);
    case SmmItem::idt_base:
      return wide.set_idtr_base(value);
    default:  // EFLAGS, DR6, DR7, EFER: nothing is there
      return;
  }
}

void SystemManagement::restore_saved(SmmField field, std::uint32_t word) {
  Engine& engine = cpu_.engine;
  switch (field.item) {
    case SmmItem::control:
      return engine.set_cr(field.index, word);
    case SmmItem::eflags:
      return engine.set_eflags(word);
    case SmmItem::eip:
      return engine.set_rip(word);
    case SmmItem::gpr:
      return engine.wide().set_gpr(field.index, word);
    case SmmItem::debug:
      return debug_.set(field.index, word);
    case SmmItem::selector:
    case SmmItem::attributes:
    case SmmItem::selector_and_attributes:
    case SmmItem::limit:
    case SmmItem::base:
      return restore_saved_segment(field, word);
    case SmmItem::gdt_base:
      return engine.set_gdtr({word, engine.gdtr().limit});
    case SmmItem::gdt_limit:
      return engine.set_gdtr({engine.gdtr().base, static_cast<std::uint16_t>(word)});
    case SmmItem::idt_base:
      return engine.set_idtr({word, engine.idtr().limit});
    case SmmItem::idt_limit:
      return engine.set_idtr({engine.idtr().base, static_cast<std::uint16_t>(word)});
    case SmmItem::smbase:
      smbase_ = word;
      return;
    case SmmItem::efer:
      return engine.set_efer(word);
    case SmmItem::revision:
      return;
  }
}

/// Mode, paging and segments are others than before: nothing derived from them may be kept.
void SystemManagement::mode_replaced() {
  debug_.find_breakpoints();
  cpu_.engine.sync_mode();
  cpu_.engine.clear_inhibit();
  cpu_.engine.flush_tlb();
  cpu_.mmu.control_changed(true);
  cpu_.mmu.flush_all();
  cpu_.code.forget();
}

void SystemManagement::load(const CpuState& state) {
  active_ = state.in_smm;
  smbase_ = state.smbase;
  smbase_known_ = !is_unknown(state, "smbase");
}

void SystemManagement::save(CpuState& state) const {
  state.in_smm = active_;
  state.smbase = smbase_;
  if (smbase_known_) std::erase(state.unknown, "smbase");
}

}  // namespace citcat
