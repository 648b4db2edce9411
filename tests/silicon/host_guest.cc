#include "silicon/host_guest.h"

#include <algorithm>
#include <cstring>

namespace citcat::silicon {
namespace {

// Linear addresses. All of the memory is there twice, the second time with rights by page.
constexpr std::uint32_t kLow = 0x10000, kLowPages = 16, kWhole = 0x100000, kByRights = 0x200000,
                        kTop = 0xffffe000, kTopFrame = 5;
constexpr std::uint32_t kFrames = kGuestRam / kPageSize;

HostProcessor::Rights rights_of(std::uint32_t page) {
  constexpr std::array kRights{HostProcessor::Rights::write, HostProcessor::Rights::read,
                               HostProcessor::Rights::none, HostProcessor::Rights::write};
  return kRights[page % kRights.size()];
}

// Offsets of the replay's tables from kSystem on.
constexpr std::uint32_t kGdt = 0, kIdt = 0x1000, kLdt = 0x2000, kTss = 0x3000, kHandlers = 0x4000;
constexpr std::uint32_t kDirectory = kGuestRam, kTables = kGuestRam + 0x1000;

constexpr std::uint16_t kFlatCode = 0x07, kFlatData = 0x0f, kCode16 = 0x17, kData16 = 0x1f;
constexpr std::uint32_t kFlagIf = 0x200, kFlagDf = 0x400;

}  // namespace

std::string step_mode_name(StepMode mode) {
  constexpr std::array<const char*, 4> kNames{"flat32", "code16", "mixed", "floating"};
  return kNames[static_cast<std::size_t>(mode)];
}

std::vector<HostProcessor::Page> HostGuest::pages() {
  std::vector<HostProcessor::Page> out;
  using Rights = HostProcessor::Rights;
  for (std::uint32_t p = 0; p < kLowPages; ++p) {
    out.push_back({kLow + p * kPageSize, p, Rights::write});
  }
  for (std::uint32_t p = 0; p < kFrames; ++p) {
    out.push_back({kWhole + p * kPageSize, p, Rights::write});
    out.push_back({kByRights + p * kPageSize, p, rights_of(p)});
  }
  out.push_back({kTop, kTopFrame, Rights::write});
  out.push_back({kTop + kPageSize, kTopFrame + 1, Rights::write});
  return out;
}

HostGuest::HostGuest(std::uint64_t seed) : random_(seed), ram_(kMachineRam) {
  make_ldt();
  fill_memory();
  make_tables();
}

void HostGuest::put(std::uint32_t at, std::uint32_t value, std::uint32_t size) {
  std::memcpy(&ram_[at], &value, size);
}

void HostGuest::make_ldt() {
  HostProcessor::Descriptor flat;
  flat.limit = 0xfffff;
  flat.pages = flat.wide = true;
  HostProcessor::Descriptor code = flat;
  code.code = true;
  ldt_ = {code, flat};
  HostProcessor::Descriptor small;
  small.base = kWhole;
  small.limit = 0xffff;
  HostProcessor::Descriptor small_code = small;
  small_code.code = true;
  ldt_.push_back(small_code);
  ldt_.push_back(small);
  while (ldt_.size() < 56) ldt_.push_back(random_descriptor());
}

HostProcessor::Descriptor HostGuest::random_descriptor() {
  HostProcessor::Descriptor d;
  d.code = chance(3);
  d.expand_down = !d.code && chance(3);
  d.read_write = !chance(4);
  d.wide = chance(2);
  d.present = !chance(10);
  d.empty = chance(16);
  const std::array<std::uint32_t, 6> bases{
      0, kWhole, kByRights, kWhole + (pick(32) << 12), kByRights + pick(kGuestRam), 0xffff0000};
  d.base = bases[pick(6)];
  if (chance(3)) {
    d.pages = true;
    d.limit = chance(3) ? 0xfffff : chance(2) ? pick(0x40) : 0xfff00 + pick(0x100);
  } else {
    const std::array<std::uint32_t, 5> limits{0xffff, pick(64), pick(0x10000),
                                              (1 + pick(16)) * kPageSize - 1, pick(0x100000)};
    d.limit = limits[pick(5)];
  }
  return d;
}

/// What the replay's processor needs to stand where the child process stands: Linux's own
/// descriptors, as far as selectors of ring 3 can tell, and its gates' privileges.
void HostGuest::make_tables() {
  std::fill(ram_.begin() + kGuestRam, ram_.end(), std::uint8_t{0});
  const std::uint32_t at = kSystemFrames;
  const auto descriptor = [&](std::uint32_t index, std::uint32_t low, std::uint32_t high) {
    put(at + kGdt + 8 * index, low);
    put(at + kGdt + 8 * index + 4, high);
  };
  descriptor(1, 0xffff, 0xcf9b00);
  descriptor(2, 0xffff, 0xaf9b00);
  descriptor(3, 0xffff, 0xcf9300);
  descriptor(4, 0xffff, 0xcffb00);
  descriptor(5, 0xffff, 0xcff300);
  descriptor(6, 0xffff, 0xaffb00);
  for (std::uint32_t vector = 0; vector < 256; ++vector) {
    const bool open = vector == 3 || vector == 4;
    put(at + kIdt + 8 * vector, 0x80000 | kHandlers);
    put(at + kIdt + 8 * vector + 4, (kSystem & 0xffff0000) | (open ? 0xee00 : 0x8e00));
  }
  put(at + kIdt + 8 * 0x80 + 4, (kSystem & 0xffff0000) | 0xee00);
  for (std::size_t i = 0; i < ldt_.size(); ++i) {
    put(at + kLdt + 8 * static_cast<std::uint32_t>(i), ldt_[i].low());
    put(at + kLdt + 8 * static_cast<std::uint32_t>(i) + 4, ldt_[i].high());
  }
  put(at + kTss + 4, kSystem + kKernelStack);
  put(at + kTss + 8, 0x18);
  put(at + kTss + 0x64, 0x680000);
  std::fill_n(ram_.begin() + at + kHandlers, kPageSize, std::uint8_t{0xf4});

  std::uint32_t tables = 0;
  const auto map = [&](std::uint32_t linear, std::uint32_t physical, std::uint32_t rights) {
    const std::uint32_t pde = kDirectory + (linear >> 22) * 4;
    std::uint32_t entry = 0;
    std::memcpy(&entry, &ram_[pde], 4);
    if (entry == 0) {
      entry = (kTables + tables++ * kPageSize) | 0x67;
      put(pde, entry);
    }
    put((entry & ~0xfffu) + (linear >> 12 & 0x3ff) * 4, physical | rights);
  };
  for (const HostProcessor::Page& page : pages()) {
    if (page.rights == HostProcessor::Rights::none) continue;
    map(static_cast<std::uint32_t>(page.linear), page.frame * kPageSize,
        page.rights == HostProcessor::Rights::read ? 0x65 : 0x67);
  }
  for (std::uint32_t p = 0; p < 8; ++p) {
    map(kSystem + p * kPageSize, kSystemFrames + p * kPageSize, 0x63);
  }
}

std::uint32_t HostGuest::value_for_memory() {
  switch (pick(8)) {
    case 0:
    case 1:
      return dword();
    case 2:
    case 3:
      return pick(60) << 3 | 7 | (chance(2) ? dword() << 16 : 0);
    case 4:
      return pick(0x100);
    case 5:
      return pick(0x10000) | (chance(2) ? pick(60) << 19 | 7u << 16 : 0);
    case 6:
      return linear_address();
    default:
      return chance(2) ? 0 : 0x202;
  }
}

void HostGuest::fill_memory() {
  for (std::uint32_t at = 0; at < kGuestRam; at += 4) put(at, value_for_memory());
}

Segment HostGuest::segment(std::uint16_t selector) const {
  Segment s;
  s.selector = selector;
  if ((selector & 0xfffc) == 0) {
    s.base = s.limit = 0;
    s.attributes = 0;
    s.unusable = true;
    return s;
  }
  const HostProcessor::Descriptor& d = ldt_[selector >> 3];
  s.base = d.base;
  s.limit = d.pages ? d.limit << 12 | 0xfff : d.limit;
  s.attributes = static_cast<std::uint16_t>(d.high() >> 8 & 0xf0ff);
  return s;
}

std::uint16_t HostGuest::pick_selector(bool code, bool stack) {
  for (;;) {
    const std::uint32_t i = pick(static_cast<std::uint32_t>(ldt_.size()));
    const HostProcessor::Descriptor& d = ldt_[i];
    if (d.empty || !d.present || (code && !d.code)) continue;
    if (stack && (d.code || !d.read_write)) continue;
    if (!code && d.code && !d.read_write) continue;
    return static_cast<std::uint16_t>(i << 3 | 7);
  }
}

/// Mostly close to the end of a page.
std::uint32_t HostGuest::linear_address() {
  const std::uint32_t page = pick(kFrames) * kPageSize;
  const std::array<std::uint32_t, 6> starts{kWhole,
                                            kByRights,
                                            kByRights,
                                            kLow + page % (kLowPages * kPageSize) - page,
                                            kTop + page % (2 * kPageSize) - page,
                                            kByRights};
  const std::uint32_t start = starts[pick(6)] + page;
  return start + (chance(3) ? pick(kPageSize) : kPageSize - pick(20));
}

/// An offset that reaches memory, or the segment's end.
std::uint32_t HostGuest::address_in(const Segment& s) {
  if (!s.unusable && chance(3)) return s.limit + 4 - pick(24);
  return linear_address() - s.base;
}

void HostGuest::set_segments(CpuState& s, StepMode mode) {
  const bool any = mode == StepMode::mixed || (mode == StepMode::floating && chance(2));
  for (int i = 0; i < 6; ++i) {
    std::uint16_t selector = 0;
    if (any) {
      const bool flat = chance(3);
      selector = i == kCs ? (flat ? (chance(2) ? kFlatCode : kCode16) : pick_selector(true, false))
                 : i == kSs
                     ? (flat ? (chance(2) ? kFlatData : kData16) : pick_selector(false, true))
                 : chance(8) ? std::uint16_t{0}
                             : pick_selector(false, false);
    } else if (mode == StepMode::code16) {
      selector = i == kCs ? kCode16 : kData16;
    } else {
      selector = i == kCs ? kFlatCode : kFlatData;
    }
    s.segment[static_cast<std::size_t>(i)] = segment(selector);
  }
}

void HostGuest::set_registers(CpuState& s) {
  const auto any_segment = [&]() -> const Segment& {
    constexpr std::array<int, 5> kSome{kDs, kDs, kEs, kSs, kFs};
    return s.segment[static_cast<std::size_t>(kSome[pick(5)])];
  };
  for (std::size_t r = 0; r < 8; ++r) {
    switch (pick(6)) {
      case 0:
        s.gpr[r] = dword();
        break;
      case 1:
        s.gpr[r] = chance(2) ? pick(40) : 0u - pick(40);
        break;
      case 2:
        s.gpr[r] = value_for_memory();
        break;
      default:
        s.gpr[r] = address_in(any_segment());
        break;
    }
  }
  if (!chance(4)) s.gpr[kEsp] = address_in(s.segment[kSs]);
  if (chance(3)) s.gpr[kEcx] = pick(40);
  s.eflags = 2 | kFlagIf | (dword() & 0x8d5) | (chance(8) ? kFlagDf : 0);
}

CpuState HostGuest::next(StepMode mode) {
  for (const auto& [at, value] : replaced_) ram_[at] = value;
  replaced_.clear();
  CpuState s;
  s.model = CpuModel::p6;
  s.ram_bytes = kMachineRam;
  s.cr0 = 0x80010033;
  s.cr3 = kDirectory;
  s.cr4 = 0x690;
  s.gdtr = {kSystem + kGdt, 0x7f};
  s.idtr = {kSystem + kIdt, 0x7ff};
  s.ldtr = {0x50, kSystem + kLdt, static_cast<std::uint32_t>(ldt_.size() * 8 - 1), 0x82, false};
  s.tr = {0x40, kSystem + kTss, 0x67, 0x8b, false};
  set_segments(s, mode);
  set_registers(s);
  set_floating_point(s);
  const Segment& cs = s.segment[kCs];
  const bool wide = (cs.attributes & 0x4000) != 0;
  s.eip = chance(8) ? address_in(cs)
                    : (chance(4) ? linear_address() : kWhole + pick(kGuestRam - 16)) - cs.base;
  if (chance(6) && cs.limit < 0x100000) s.eip = cs.limit - pick(15);
  if (!wide) s.eip &= 0xffff;
  if (!chance(16) && s.eip > cs.limit) s.eip = cs.limit == 0 ? 0 : pick(cs.limit);
  const std::vector<std::uint8_t> bytes = forced_.empty() ? instruction(s, mode) : forced_;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    put_linear(cs.base + s.eip + static_cast<std::uint32_t>(i), bytes[i]);
  }
  return s;
}

/// Where the page is there at all.
void HostGuest::put_linear(std::uint32_t linear, std::uint8_t value) {
  static const std::vector<HostProcessor::Page> all = pages();
  for (const HostProcessor::Page& page : all) {
    if (page.linear != (linear & ~0xfffu)) continue;
    const std::uint32_t at = page.frame * kPageSize + (linear & 0xfff);
    replaced_.insert(replaced_.begin(), {at, ram_[at]});
    ram_[at] = value;
    return;
  }
}

// --- instructions

namespace {

bool has_modrm_one(std::uint8_t op) {
  if (op < 0x40) return (op & 7) < 4;
  if (op >= 0x80 && op <= 0x8f) return true;
  if (op >= 0xd0 && op <= 0xd3) return true;
  switch (op) {
    case 0x62:
    case 0x63:
    case 0x69:
    case 0x6b:
    case 0xc0:
    case 0xc1:
    case 0xc4:
    case 0xc5:
    case 0xc6:
    case 0xc7:
    case 0xf6:
    case 0xf7:
    case 0xfe:
    case 0xff:
      return true;
    default:
      return false;
  }
}

bool is_prefix(std::uint8_t op) {
  switch (op) {
    case 0x26:
    case 0x2e:
    case 0x36:
    case 0x3e:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xf0:
    case 0xf2:
    case 0xf3:
      return true;
    default:
      return false;
  }
}

/// Not executed: what enters the kernel, what the kernel emulates (UMIP), what the processor has
/// and the P6 has not, and what depends on its model.
bool excluded_two(std::uint8_t op) {
  switch (op) {
    case 0x05:  // SYSCALL
    case 0x07:  // SYSRET
    case 0x0d:  // PREFETCHW
    case 0x0e:  // FEMMS
    case 0x31:  // RDTSC
    case 0x33:  // RDPMC
    case 0x34:  // SYSENTER
    case 0x35:
    case 0x38:  // three-byte maps
    case 0x3a:
    case 0x78:  // EXTRQ, INSERTQ
    case 0x79:
    case 0xa2:  // CPUID
    case 0xae:
    case 0x0f:
      return true;
    default:
      break;
  }
  if (op >= 0x18 && op <= 0x1f) return true;  // hints
  // MMX and SSE have a mode of their own.
  return (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) || (op >= 0x50 && op <= 0x7f) ||
         op == 0xc2 || (op >= 0xc3 && op <= 0xc6) || (op >= 0xd0 && op <= 0xfe);
}

}  // namespace

std::uint8_t HostGuest::one_byte_opcode() {
  for (;;) {
    const std::uint8_t op = byte();
    if (op == 0x0f || is_prefix(op) || op == 0xf1 || (op >= 0xd8 && op <= 0xdf)) continue;
    return op;
  }
}

std::uint8_t HostGuest::two_byte_opcode() {
  for (;;) {
    const std::uint8_t op = byte();
    if (!excluded_two(op)) return op;
  }
}

void HostGuest::add_modrm(std::vector<std::uint8_t>& out, std::uint8_t modrm, bool address32) {
  out.push_back(modrm);
  const unsigned mod = modrm >> 6, rm = modrm & 7;
  const auto displacement = [&](unsigned bytes) {
    const std::uint32_t value = bytes == 1  ? byte()
                                : chance(3) ? linear_address()
                                : chance(2) ? linear_address() & 0xffff
                                            : 0x20 - pick(0x40);
    for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  };
  if (mod == 3) return;
  if (!address32) {
    if (mod == 1) displacement(1);
    if (mod == 2 || (mod == 0 && rm == 6)) displacement(2);
    return;
  }
  bool base_is_displacement = mod == 0 && rm == 5;
  if (rm == 4) {
    const std::uint8_t sib = byte();
    out.push_back(sib);
    base_is_displacement = mod == 0 && (sib & 7) == 5;
  }
  if (mod == 1) displacement(1);
  if (mod == 2 || base_is_displacement) displacement(4);
}

std::vector<std::uint8_t> HostGuest::instruction(const CpuState& s, StepMode mode) {
  std::vector<std::uint8_t> out;
  const bool code32 = (s.segment[kCs].attributes & 0x4000) != 0;
  bool address32 = code32;
  const bool floating = mode == StepMode::floating;
  bool repeat = false, operand = false;
  for (unsigned n = chance(2) ? 0 : 1 + pick(2); n != 0; --n) {
    constexpr std::array<std::uint8_t, 12> kPrefixes{0x66, 0x66, 0x67, 0x67, 0x26, 0x2e,
                                                     0x36, 0x3e, 0x64, 0x65, 0xf2, 0xf3};
    std::uint8_t prefix = kPrefixes[pick(12)];
    if (chance(12)) prefix = 0xf0;
    if (floating && (prefix == 0x66 || prefix >= 0xf0)) continue;
    if (prefix == 0x67) address32 = !code32;
    if (prefix >= 0xf2) repeat = true;
    if (prefix == 0x66) operand = true;
    out.push_back(prefix);
  }
  if (floating) {
    floating_instruction(out, address32);
    for (int i = 0; i < 6; ++i) out.push_back(byte());
    return out;
  }
  std::uint8_t modrm = byte();
  if (chance(3)) modrm &= 0x3f;
  if (chance(4)) {
    std::uint8_t op = two_byte_opcode();
    const bool newer = op == 0xb8 || op == 0xbc || op == 0xbd || op == 0x01 || op == 0xc7;
    if (newer && repeat) op = 0xb6;
    if (op == 0xc7 && operand) op = 0xb7;
    if (op == 0x00 && (modrm & 0x30) == 0) modrm |= 0x20;  // not SLDT, STR: UMIP
    if (op == 0x01) {
      modrm &= 0x3f;
      if ((modrm >> 3 & 3) < 2 && (modrm >> 3 & 7) < 6) modrm |= 0x10;  // not SGDT, SIDT, SMSW
      if ((modrm >> 3 & 7) == 5) modrm ^= 8;
      if ((modrm >> 3 & 7) == 4) modrm |= 0x10;
    }
    if (op == 0xc7) modrm = static_cast<std::uint8_t>((modrm & 0x07) | (modrm & 0x80) | 8);
    out.insert(out.end(), {0x0f, op});
    const bool plain = (op >= 0x80 && op <= 0x8f) || (op >= 0xa0 && op <= 0xa1) ||
                       (op >= 0xa8 && op <= 0xaa) || op >= 0xc8 || op == 0x06 || op == 0x08 ||
                       op == 0x09 || op == 0x0b;
    if (plain) {
      out.push_back(modrm);
    } else {
      if (op == 0xb2 || op == 0xb4 || op == 0xb5 || chance(8)) modrm &= 0xbf;
      add_modrm(out, modrm, address32);
    }
  } else {
    const std::uint8_t op = one_byte_opcode();
    out.push_back(op);
    // Their register forms begin vector instructions.
    if (op == 0x62 || op == 0xc4 || op == 0xc5) modrm &= 0xbf;
    if (op == 0xcd) {
      out.push_back(chance(2) ? static_cast<std::uint8_t>(pick(32)) : 0x21);
      return out;
    }
    if (op == 0x9a || op == 0xea) {  // a far pointer
      const unsigned bytes = code32 != operand ? 4 : 2;
      const std::uint32_t offset = chance(2) ? linear_address() : pick(0x3000);
      for (unsigned i = 0; i < bytes; ++i)
        out.push_back(static_cast<std::uint8_t>(offset >> 8 * i));
      out.push_back(static_cast<std::uint8_t>(pick(32) << 3 | 7));
      out.push_back(static_cast<std::uint8_t>(chance(6) ? 1 : 0));
      return out;
    }
    if (has_modrm_one(op)) add_modrm(out, modrm, address32);
    const bool loads_stack = op == 0x17 || (op == 0x8e && (modrm >> 3 & 7) == kSs);
    if (loads_stack) {
      out.insert(out.end(), 12, 0x90);
      return out;
    }
  }
  for (int i = 0; i < 6; ++i) out.push_back(byte());
  return out;
}

void HostGuest::floating_instruction(std::vector<std::uint8_t>& out, bool address32) {
  if (chance(2)) {  // x87
    out.push_back(static_cast<std::uint8_t>(0xd8 + pick(8)));
    add_modrm(out, byte(), address32);
    return;
  }
  constexpr std::array<std::uint8_t, 84> kMap{
      0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d,
      0x2e, 0x2f, 0x50, 0x51, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5c, 0x5d, 0x5e, 0x5f,
      0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6e, 0x6f,
      0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x7e, 0x7f, 0xc2, 0xc4, 0xc5, 0xc6,
      0xd1, 0xd2, 0xd3, 0xd5, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0,
      0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed, 0xee, 0xef};
  constexpr std::array<std::uint8_t, 11> kMore{0xf1, 0xf2, 0xf3, 0xf5, 0xf6, 0xf7,
                                               0xf8, 0xf9, 0xfa, 0xfc, 0xfd};
  const std::uint8_t op = chance(8) ? kMore[pick(11)] : kMap[pick(84)];
  const bool scalar = op == 0x10 || op == 0x11 || op == 0x2a || op == 0x2c || op == 0x2d ||
                      op == 0x51 || (op >= 0x58 && op <= 0x5f) || op == 0xc2;
  if (scalar && chance(2)) out.push_back(0xf3);
  out.insert(out.end(), {0x0f, op});
  add_modrm(out, byte(), address32);
}

void HostGuest::set_floating_point(CpuState& s) {
  const auto word = [&](std::size_t at, std::uint32_t value) {
    s.fx[at] = static_cast<std::uint8_t>(value);
    s.fx[at + 1] = static_cast<std::uint8_t>(value >> 8);
  };
  word(0, chance(4) ? 0x27f : 0x37f);
  word(2, pick(8) << 11 | (dword() & 0x4700));
  s.fx[4] = chance(2) ? byte() : 0;
  word(24, 0x1f80);
  for (std::size_t at = 32; at < 288; ++at) {
    if (at < 160 && at % 16 >= 10) continue;
    s.fx[at] = chance(4) ? 0 : byte();
  }
  for (std::size_t r = 0; r < 8; ++r) word(32 + 16 * r + 8, 0x3ff0 + pick(32) + pick(2) * 0x8000);
}

}  // namespace citcat::silicon
