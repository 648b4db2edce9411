// System management mode (Intel SDM vol. 3, chapter 34): an SMI saves the processor's state in
// memory and starts the handler; RSM takes it back from there. The bus shows both.

#include <algorithm>
#include <array>
#include <cstring>

#include "replay/machine_descriptor.h"

namespace citcat {

namespace {

/// The state save map, offsets from SMBASE + 8000h. The manual gives the places of some registers
/// (SDM vol. 3, table 34-1) and calls the rest reserved; the P6 family's map as sandpile.org lists
/// it ("SMM state save map") has those of the hidden parts. Selector and attributes share a dword.
enum class SaveItem : std::uint8_t {
  control,
  eflags,
  eip,
  gpr,
  debug,
  selector,
  attributes,
  limit,
  base,
  gdt_base,
  gdt_limit,
  idt_base,
  idt_limit,
  revision,
  smbase,
};
struct SaveField {
  std::uint16_t offset;
  SaveItem item;
  std::uint8_t index = 0;  ///< register number; segments in SegmentRegister order, then LDTR, TR
};
constexpr std::uint8_t kLdtrIndex = 6, kTrIndex = 7;
constexpr std::array<SaveField, 53> kSaveMap = {{
    {0x7ffc, SaveItem::control, 0},
    {0x7ff8, SaveItem::control, 3},
    {0x7ff4, SaveItem::eflags},
    {0x7ff0, SaveItem::eip},
    {0x7fec, SaveItem::gpr, kEdi},
    {0x7fe8, SaveItem::gpr, kEsi},
    {0x7fe4, SaveItem::gpr, kEbp},
    {0x7fe0, SaveItem::gpr, kEsp},
    {0x7fdc, SaveItem::gpr, kEbx},
    {0x7fd8, SaveItem::gpr, kEdx},
    {0x7fd4, SaveItem::gpr, kEcx},
    {0x7fd0, SaveItem::gpr, kEax},
    {0x7fcc, SaveItem::debug, 6},
    {0x7fc8, SaveItem::debug, 7},
    {0x7fc4, SaveItem::selector, kTrIndex},
    {0x7fc0, SaveItem::selector, kLdtrIndex},
    {0x7fbc, SaveItem::selector, kGs},
    {0x7fb8, SaveItem::selector, kFs},
    {0x7fb4, SaveItem::selector, kDs},
    {0x7fb0, SaveItem::selector, kSs},
    {0x7fac, SaveItem::selector, kCs},
    {0x7fa8, SaveItem::selector, kEs},
    {0x7fa4, SaveItem::base, kSs},
    {0x7fa0, SaveItem::limit, kSs},
    {0x7f9c, SaveItem::attributes, kSs},
    {0x7f98, SaveItem::base, kCs},
    {0x7f94, SaveItem::limit, kCs},
    {0x7f90, SaveItem::attributes, kCs},
    {0x7f8c, SaveItem::base, kEs},
    {0x7f88, SaveItem::limit, kEs},
    {0x7f84, SaveItem::attributes, kEs},
    {0x7f80, SaveItem::base, kLdtrIndex},
    {0x7f7c, SaveItem::limit, kLdtrIndex},
    {0x7f78, SaveItem::attributes, kLdtrIndex},
    {0x7f74, SaveItem::gdt_base},
    {0x7f70, SaveItem::gdt_limit},
    {0x7f64, SaveItem::base, kTrIndex},
    {0x7f60, SaveItem::limit, kTrIndex},
    {0x7f5c, SaveItem::attributes, kTrIndex},
    {0x7f58, SaveItem::idt_base},
    {0x7f54, SaveItem::idt_limit},
    {0x7f4c, SaveItem::base, kGs},
    {0x7f48, SaveItem::limit, kGs},
    {0x7f44, SaveItem::attributes, kGs},
    {0x7f40, SaveItem::base, kFs},
    {0x7f3c, SaveItem::limit, kFs},
    {0x7f38, SaveItem::attributes, kFs},
    {0x7f34, SaveItem::base, kDs},
    {0x7f30, SaveItem::limit, kDs},
    {0x7f2c, SaveItem::attributes, kDs},
    {0x7f14, SaveItem::control, 4},
    {0x7efc, SaveItem::revision},
    {0x7ef8, SaveItem::smbase},
}};
constexpr std::uint32_t kSaveTop = 0x10000;  ///< from SMBASE; the map grows down from here
constexpr std::uint32_t kSaveWords = 128;
constexpr std::uint32_t kHandler = 0x8000;
/// SMM revision: SMBASE may be relocated, no I/O instruction restart (SDM vol. 3, 34.16).
constexpr std::uint32_t kRevision = 0x00020000;
/// Upper half of an attributes dword: bits 8 to 12 belong to no descriptor and hold what the
/// processor keeps beside it. Bit 8 is set for a segment that may be used.
constexpr std::uint32_t kUsable = 1u << 24, kInternalBits = 0x1f;
constexpr std::uint16_t kDescriptorBits = 0xe0ff;

constexpr std::size_t word_of(std::uint32_t offset) { return (0x7ffc - offset) / 4; }

}  // namespace

Segment Machine::saved_segment(unsigned index) const {
  if (index == kLdtrIndex) return engine_.ldtr();
  if (index == kTrIndex) return engine_.tr();
  return engine_.segment(static_cast<int>(index));
}

std::array<std::uint32_t, 128> Machine::save_map() const {
  std::array<std::uint32_t, kSaveWords> words{};
  for (const SaveField& f : kSaveMap) {
    std::uint32_t& word = words[word_of(f.offset)];
    switch (f.item) {
      case SaveItem::control:
        word = engine_.cr(f.index);
        break;
      case SaveItem::eflags:
        word = engine_.eflags();
        break;
      case SaveItem::eip:
        word = engine_.eip();
        break;
      case SaveItem::gpr:
        word = engine_.gpr(f.index);
        break;
      case SaveItem::debug:
        word = dr_[f.index];
        break;
      case SaveItem::selector:
        word = saved_segment(f.index).selector;
        break;
      case SaveItem::limit:
        word = saved_segment(f.index).limit;
        break;
      case SaveItem::base:
        word = saved_segment(f.index).base;
        break;
      case SaveItem::attributes: {
        const Segment s = saved_segment(f.index);
        word = s.selector | std::uint32_t{s.attributes} << 16 | (s.unusable ? 0 : kUsable);
        break;
      }
      case SaveItem::gdt_base:
        word = engine_.gdtr().base;
        break;
      case SaveItem::gdt_limit:
        word = engine_.gdtr().limit;
        break;
      case SaveItem::idt_base:
        word = engine_.idtr().base;
        break;
      case SaveItem::idt_limit:
        word = engine_.idtr().limit;
        break;
      case SaveItem::revision:
        word = kRevision;
        break;
      case SaveItem::smbase:
        word = smbase_;
        break;
    }
  }
  return words;
}

void Machine::enter_system_management() {
  DeliveredEvent event;
  event.kind = DeliveredEvent::Kind::smi;
  event.cs = engine_.segment_selector(kCs);
  event.eip = engine_.eip();
  event.cr2 = engine_.cr(2);
  event.eflags = engine_.eflags();
  if (sink_ != nullptr) sink_->delivered(event, position_);
  std::array<std::uint32_t, kSaveWords> reserved;
  reserved.fill(0xffffffff);
  for (const SaveField& f : kSaveMap) {
    reserved[word_of(f.offset)] = f.item == SaveItem::attributes ? kInternalBits << 24 : 0;
  }
  const std::array<std::uint32_t, kSaveWords> words = save_map();
  for (std::uint32_t i = 0; i < kSaveWords; ++i) {
    const PhysAddr at{smbase_ + kSaveTop - 4 * (i + 1)};
    memory_.ensure_mapped(at.page());
    std::array<std::uint8_t, 4> bytes;
    std::memcpy(bytes.data(), &words[i], 4);
    memory_.store(at, bytes);
    reserved_bits_ = reserved[i];
    if (sink_ != nullptr) sink_->write(at, bytes, AccessKind::system, position_);
  }
  reserved_bits_ = 0;

  // SDM vol. 3, table 34-4.
  constexpr std::uint32_t kCleared = 1u << 31 | 1u << 3 | 1u << 2 | 1u;  // PG, TS, EM, PE
  engine_.set_cr(0, engine_.cr(0) & ~kCleared);
  engine_.set_cr(4, 0);
  dr_[7] = 0x400;
  engine_.set_eflags(2);
  constexpr std::uint16_t kFlatData = 0x8093;
  for (int i = 0; i < 6; ++i) engine_.set_segment(i, {0, 0, 0xffffffff, kFlatData, false});
  engine_.set_segment(
      kCs, {static_cast<std::uint16_t>(smbase_ >> 4), smbase_, 0xffffffff, kFlatData, false});
  engine_.set_eip(kHandler);
  in_smm_ = true;
  discard_in_flight();
  resume_flag_ = false;
  debug_pending_ = 0;
  mode_replaced();
}

void Machine::emulate_rsm() {
  if (!in_smm_) throw CpuException{6, std::nullopt, 0};
  std::array<std::uint32_t, kSaveWords> words{};
  for (std::uint32_t i = 0; i < kSaveWords; ++i) {
    const PhysAddr at{smbase_ + kSaveTop - 4 * (i + 1)};
    if (!memory_.is_mapped(at.page()) || !memory_.is_defined(at, 4)) {
      throw UndefinedMemory{at, 4, "saved processor state"};
    }
    std::memcpy(&words[i], memory_.host(at), 4);
    if (wants_reads_) sink_->read(at, 4, AccessKind::system, position_);
  }
  report_completed();
  in_smm_ = false;
  for (const SaveField& f : kSaveMap)
    restore_saved(static_cast<unsigned>(f.item), f.index, words[word_of(f.offset)]);
  retire();
  resume_flag_ = (engine_.system_flags() & kFlagRf) != 0;
  mode_replaced();
  if (sink_ != nullptr) sink_->address_space(engine_.cr(3), position_);
}

void Machine::restore_saved(unsigned item, unsigned index, std::uint32_t word) {
  Segment s;
  const auto put_back = [&] {
    if (index == kLdtrIndex) {
      engine_.set_ldtr(s);
    } else if (index == kTrIndex) {
      engine_.set_tr(s);
    } else {
      engine_.set_segment(static_cast<int>(index), s);
    }
  };
  switch (static_cast<SaveItem>(item)) {
    case SaveItem::control:
      engine_.set_cr(static_cast<int>(index), word);
      break;
    case SaveItem::eflags:
      engine_.set_eflags(word);
      break;
    case SaveItem::eip:
      engine_.set_eip(word);
      break;
    case SaveItem::gpr:
      engine_.set_gpr(static_cast<int>(index), word);
      break;
    case SaveItem::debug:
      dr_[index] = word;
      break;
    case SaveItem::selector:
      s = saved_segment(index);
      s.selector = static_cast<std::uint16_t>(word);
      put_back();
      break;
    case SaveItem::limit:
      s = saved_segment(index);
      s.limit = word;
      put_back();
      break;
    case SaveItem::base:
      s = saved_segment(index);
      s.base = word;
      put_back();
      break;
    case SaveItem::attributes:
      s = saved_segment(index);
      s.attributes = static_cast<std::uint16_t>(word >> 16 & kDescriptorBits);
      s.unusable = (word & kUsable) == 0;
      put_back();
      break;
    case SaveItem::gdt_base:
      engine_.set_gdtr({word, engine_.gdtr().limit});
      break;
    case SaveItem::gdt_limit:
      engine_.set_gdtr({engine_.gdtr().base, static_cast<std::uint16_t>(word)});
      break;
    case SaveItem::idt_base:
      engine_.set_idtr({word, engine_.idtr().limit});
      break;
    case SaveItem::idt_limit:
      engine_.set_idtr({engine_.idtr().base, static_cast<std::uint16_t>(word)});
      break;
    case SaveItem::revision:
      break;
    case SaveItem::smbase:
      smbase_ = word;
      break;
  }
}

/// Mode, paging and segments are others than before: nothing derived from them may be kept.
void Machine::mode_replaced() {
  find_breakpoints();
  engine_.sync_mode();
  engine_.clear_inhibit();
  engine_.flush_tlb();
  mmu_.control_changed(true);
  mmu_.flush_all();
  code_page_ = kNoPage;
}

}  // namespace citcat
