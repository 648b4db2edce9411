#include "silicon/wide_guest.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace citcat::silicon {
namespace {

// Linear addresses. All of the memory is there three times, once with rights by page.
constexpr std::uint64_t kWideLow = 0x10000000, kWideByRights = 0x20000000,
                        kWideHigh = 0x7e0000000000;
constexpr std::uint32_t kWideFrames = WideGuest::kRam / kPageSize;

HostProcessor::Rights wide_rights_of(std::uint32_t page) {
  constexpr std::array kRights{HostProcessor::Rights::write, HostProcessor::Rights::read,
                               HostProcessor::Rights::none, HostProcessor::Rights::write};
  return kRights[page % kRights.size()];
}

// Offsets of the replay's tables from kSystem on.
constexpr std::uint32_t kWideGdt = 0, kWideIdt = 0x1000, kWideTss = 0x3000, kWideHandlers = 0x4000;
constexpr std::uint32_t kWideTables = WideGuest::kRam;
constexpr std::uint16_t kKernelCode = 0x10;
constexpr std::uint32_t kWideFlagIf = 0x200, kWideFlagDf = 0x400;

bool is_wide_prefix(std::uint8_t op) {
  constexpr std::array<std::uint8_t, 11> kAll{0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65,
                                              0x66, 0x67, 0xf0, 0xf2, 0xf3};
  return std::find(kAll.begin(), kAll.end(), op) != kAll.end();
}

bool has_modrm(std::uint8_t op) {
  if (op < 0x40) return (op & 7) < 4;
  if (op >= 0x80 && op <= 0x8f) return true;
  if (op >= 0xd0 && op <= 0xd3) return true;
  constexpr std::array<std::uint8_t, 10> kOthers{0x63, 0x69, 0x6b, 0xc0, 0xc1,
                                                 0xc6, 0xc7, 0xf6, 0xf7, 0xfe};
  return op == 0xff || std::find(kOthers.begin(), kOthers.end(), op) != kOthers.end();
}

/// Not executed: what begins vector instructions, what enters the kernel, and IRET, whose frame is
/// looked at in an order that no manual gives.
bool excluded_wide_one(std::uint8_t op) {
  constexpr std::array<std::uint8_t, 10> kAll{0x0f, 0x62, 0xc4, 0xc5, 0xca,
                                              0xcb, 0xcc, 0xcd, 0xcf, 0xf1};
  const bool rex = (op & 0xf0) == 0x40, x87 = op >= 0xd8 && op <= 0xdf;
  return rex || x87 || is_wide_prefix(op) || std::find(kAll.begin(), kAll.end(), op) != kAll.end();
}

/// The same of the two-byte map, with what Linux emulates (UMIP), what depends on the model of the
/// processor, and the vectors, which have a mode of their own.
bool excluded_wide_two(std::uint8_t op) {
  constexpr std::array<std::uint8_t, 23> kAll{0x01, 0x05, 0x07, 0x0e, 0x0f, 0x24, 0x26, 0x31,
                                              0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a,
                                              0x78, 0x79, 0xa2, 0xa6, 0xa7, 0xae, 0xff};
  if (std::find(kAll.begin(), kAll.end(), op) != kAll.end()) return true;
  if (op >= 0x10 && op <= 0x1e) return true;
  return (op >= 0x28 && op <= 0x2f) || (op >= 0x3b && op <= 0x3f) || (op >= 0x50 && op <= 0x7f) ||
         op == 0xc2 || (op >= 0xc4 && op <= 0xc6) || op >= 0xd0;
}

bool is_near_branch(bool two_byte, std::uint8_t op) {
  if (two_byte) return op >= 0x80 && op <= 0x8f;
  return (op >= 0x70 && op <= 0x7f) || (op >= 0xe0 && op <= 0xe3) || op == 0xe8 || op == 0xe9 ||
         op == 0xeb || op == 0xc2 || op == 0xc3;
}

}  // namespace

const char* wide_mode_name(WideMode mode) {
  return mode == WideMode::integer  ? "integer64"
         : mode == WideMode::vector ? "vector64"
                                    : "newer64";
}

std::vector<HostProcessor::Page> WideGuest::pages() {
  std::vector<HostProcessor::Page> out;
  using Rights = HostProcessor::Rights;
  for (std::uint32_t p = 0; p < kWideFrames; ++p) {
    out.push_back({kWideLow + p * kPageSize, p, Rights::write});
    out.push_back({kWideByRights + p * kPageSize, p, wide_rights_of(p)});
    out.push_back({kWideHigh + p * kPageSize, p, Rights::write});
  }
  return out;
}

std::uint32_t WideGuest::physical(std::uint64_t linear) {
  for (const std::uint64_t start : {kWideLow, kWideByRights, kWideHigh}) {
    const std::uint64_t at = linear - start;
    if (at >= kRam) continue;
    const bool there =
        start != kWideByRights ||
        wide_rights_of(static_cast<std::uint32_t>(at) / kPageSize) != HostProcessor::Rights::none;
    return there ? static_cast<std::uint32_t>(at) : kRam;
  }
  return kRam;
}

WideGuest::WideGuest(std::uint64_t seed) : random_(seed), ram_(kMachineRam) {
  for (std::uint32_t at = 0; at < kRam; at += 8) put(at, value_for_memory());
  make_tables();
}

void WideGuest::put(std::uint32_t at, std::uint64_t value, std::uint32_t size) {
  std::memcpy(&ram_[at], &value, size);
}

/// What the replay's processor needs to stand where the child process stands: Linux's own
/// descriptors, as far as selectors of ring 3 can tell, and its gates' privileges.
void WideGuest::make_tables() {
  const std::uint32_t at = kSystemFrames;
  constexpr std::array<std::uint64_t, 7> kDescriptors{0,
                                                      0xcf9b000000ffff,
                                                      0xaf9b000000ffff,
                                                      0xcf93000000ffff,
                                                      0xcffb000000ffff,
                                                      0xcff3000000ffff,
                                                      0xaffb000000ffff};
  for (std::uint32_t i = 0; i < kDescriptors.size(); ++i)
    put(at + kWideGdt + 8 * i, kDescriptors[i]);
  constexpr std::uint64_t kHandler = kSystem + kWideHandlers;
  for (std::uint32_t vector = 0; vector < 256; ++vector) {
    const bool open = vector == 3 || vector == 4 || vector == 0x80;
    put(at + kWideIdt + 16 * vector, (kHandler & 0xffff) | std::uint64_t{kKernelCode} << 16 |
                                         std::uint64_t{open ? 0xee00u : 0x8e00u} << 32 |
                                         (kHandler >> 16 & 0xffff) << 48);
    put(at + kWideIdt + 16 * vector + 8, kHandler >> 32);
  }
  put(at + kWideTss + 4, kSystem + kKernelStack);
  put(at + kWideTss + 0x66, 0x68, 2);
  std::fill_n(ram_.begin() + at + kWideHandlers, kPageSize, std::uint8_t{0xf4});

  std::uint32_t used = kWideTables + kPageSize;
  const auto entry_of = [&](std::uint32_t table, std::uint64_t index) {
    const auto entry = static_cast<std::uint32_t>(table + 8 * (index & 0x1ff));
    std::uint64_t value = 0;
    std::memcpy(&value, &ram_[entry], 8);
    if (value == 0) {
      value = used | 0x67;
      used += kPageSize;
      put(entry, value);
    }
    return static_cast<std::uint32_t>(value & ~std::uint64_t{0xfff});
  };
  const auto map = [&](std::uint64_t linear, std::uint64_t entry) {
    std::uint32_t table = kWideTables;
    for (const unsigned shift : {39u, 30u, 21u}) table = entry_of(table, linear >> shift);
    put(static_cast<std::uint32_t>(table + 8 * (linear >> 12 & 0x1ff)), entry);
  };
  for (const HostProcessor::Page& page : pages()) {
    if (page.rights == HostProcessor::Rights::none) continue;
    map(page.linear,
        page.frame * kPageSize | (page.rights == HostProcessor::Rights::read ? 0x65u : 0x67u));
  }
  for (std::uint32_t p = 0; p < 8; ++p) {
    map(kSystem + p * kPageSize, (kSystemFrames + p * kPageSize) | 0x63u);
  }
}

std::uint64_t WideGuest::value_for_memory() {
  switch (pick(6)) {
    case 0:
    case 1:
      return random_();
    case 2:
      return pick(0x100);
    case 3:
      return std::uint64_t{pick(8) << 3 | 3u} << 32 | pick(0x10000);
    case 4:
      return linear_address();
    default:
      return chance(2) ? 0 : 0x202;
  }
}

/// Mostly close to the end of a page.
std::uint64_t WideGuest::linear_address() {
  constexpr std::array<std::uint64_t, 6> kStarts{kWideLow,      kWideLow,  kWideByRights,
                                                 kWideByRights, kWideHigh, kWideHigh};
  const std::uint64_t at = kStarts[pick(6)] + std::uint64_t{pick(kWideFrames)} * kPageSize;
  return at + (chance(2) ? pick(kPageSize) : kPageSize - pick(40));
}

void WideGuest::set_registers(CpuState& s) {
  const auto value = [&]() -> std::uint64_t {
    switch (pick(8)) {
      case 0:
        return random_();
      case 1:
        return chance(2) ? pick(70) : 0 - std::uint64_t{pick(70)};
      case 2:
        return value_for_memory();
      case 3:
        return chance(4) ? std::uint64_t{0x800000000000} - pick(40) : random_() >> 32;
      default:
        return linear_address();
    }
  };
  constexpr std::array<const char*, 16> kNames{"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                               "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                               "r12", "r13", "r14", "r15"};
  for (const char* const name : kNames) set_register(s, name, value());
  if (!chance(6)) set_register(s, "rsp", linear_address());
  if (chance(3)) set_register(s, "rcx", pick(70));
  set_register(s, "fs.base", chance(2) ? linear_address() : 0);
  set_register(s, "gs.base", chance(2) ? linear_address() : 0);
  s.eflags = 2 | kWideFlagIf | (static_cast<std::uint32_t>(random_()) & 0x8d5) |
             (chance(8) ? kWideFlagDf : 0);
}

void WideGuest::set_floating_point(CpuState& s) {
  const auto word = [&](std::size_t at, std::uint32_t value) {
    s.fx[at] = static_cast<std::uint8_t>(value);
    s.fx[at + 1] = static_cast<std::uint8_t>(value >> 8);
  };
  word(0, chance(4) ? 0x27f : 0x37f);
  word(2, pick(8) << 11 | (static_cast<std::uint32_t>(random_()) & 0x4700));
  s.fx[4] = chance(2) ? byte() : 0;
  word(24, 0x1f80);
  word(28, 0xffff);
  word(30, 2);
  for (std::size_t at = 32; at < 416; ++at) {
    if (at < 160 && at % 16 >= 10) continue;
    s.fx[at] = chance(4) ? 0 : byte();
  }
  for (std::size_t r = 0; r < 8; ++r) word(32 + 16 * r + 8, 0x3ff0 + pick(32) + pick(2) * 0x8000);
}

CpuState WideGuest::next(WideMode mode) {
  for (const auto& [at, value] : replaced_) ram_[at] = value;
  replaced_.clear();
  CpuState s;
  s.model = CpuModel::x86_64;
  s.ram_bytes = kMachineRam;
  s.long_mode.emplace();
  const std::pair<const char*, std::uint64_t> kSystemRegisters[] = {
      {"cr0", 0x80050033},
      {"cr3", kWideTables},
      {"cr4", 0x6b0},
      {"efer", 0xd01},
      {"gdtr.base", kSystem},
      {"gdtr.limit", 0x7f},
      {"idtr.limit", 0xfff},
      {"idtr.base", kSystem + kWideIdt},
      {"cs", 0x33},
      {"cs.limit", ~0u},
      {"cs.attributes", 0xa0fb},
      {"ss", 0x2b},
      {"ss.limit", ~0u},
      {"ss.attributes", 0xc0f3},
      {"tr", 0x40},
      {"tr.base", kSystem + kWideTss},
      {"tr.limit", 0x67},
      {"tr.attributes", 0x8b}};
  for (const auto& [name, value] : kSystemRegisters) set_register(s, name, value);
  if (mode == WideMode::newer) {
    // MOVBE; FSGSBASE, BMI1, BMI2 and ADX; LZCNT.
    s.cpuid = {{0, 7, 0, 0, 0},
               {1, 0, 0, 1u << 22, 0},
               {7, 0, 1u << 0 | 1u << 3 | 1u << 8 | 1u << 19, 0, 0},
               {0x80000001, 0, 0, 1u << 5, 0}};
    set_register(s, "cr4", 0x106b0);
  }
  for (const int i : {kEs, kDs, kFs, kGs}) {
    s.segment[static_cast<std::size_t>(i)].unusable = true;
    s.segment[static_cast<std::size_t>(i)].attributes = 0;
    s.segment[static_cast<std::size_t>(i)].limit = 0;
  }
  s.ldtr = {0, 0, 0, 0, true};
  set_registers(s);
  set_floating_point(s);
  std::uint64_t rip = chance(6) ? linear_address() : kWideLow + pick(kRam - 16);
  if (chance(3)) rip = kWideHigh + pick(kRam - 16);
  set_register(s, "rip", rip);
  make_instruction(mode);
  for (std::size_t i = 0; i < instruction_.size(); ++i) {
    const std::uint32_t at = physical(rip + i);
    if (at == kRam) continue;
    replaced_.insert(replaced_.begin(), {at, ram_[at]});
    ram_[at] = instruction_[i];
  }
  return s;
}

// --- instructions

void WideGuest::make_instruction(WideMode mode) {
  instruction_ = forced_;
  if (!forced_.empty()) return;
  operand_ = repeat_ = false;
  rex_ = 0;
  for (unsigned n = chance(2) ? 0 : 1 + pick(2); n != 0; --n) {
    constexpr std::array<std::uint8_t, 12> kPrefixes{0x66, 0x66, 0x66, 0x67, 0x67, 0x26,
                                                     0x3e, 0x64, 0x64, 0x65, 0xf2, 0xf3};
    std::uint8_t prefix = kPrefixes[pick(12)];
    if (chance(12)) prefix = 0xf0;
    // In a vector instruction they select which one it is.
    if (mode == WideMode::vector && (prefix == 0x66 || prefix >= 0xf0)) continue;
    if (mode == WideMode::newer && prefix >= 0xf0 && !chance(10)) continue;
    repeat_ = repeat_ || prefix >= 0xf2;
    operand_ = operand_ || prefix == 0x66;
    instruction_.push_back(prefix);
  }
  if (mode == WideMode::vector) {
    vector_instruction();
  } else if (mode == WideMode::newer) {
    newer_instruction();
  } else {
    if (!chance(3)) instruction_.push_back(rex_ = static_cast<std::uint8_t>(0x40 | pick(16)));
    integer_instruction();
  }
  for (int i = 0; i < 9; ++i) instruction_.push_back(byte());
}

void WideGuest::add_modrm(std::uint8_t modrm) {
  instruction_.push_back(modrm);
  const unsigned mod = modrm >> 6, rm = modrm & 7;
  if (mod == 3) return;
  bool absolute = mod == 0 && rm == 5;
  if (rm == 4) {
    const std::uint8_t sib = byte();
    instruction_.push_back(sib);
    absolute = mod == 0 && (sib & 7) == 5;
  }
  const auto displacement = [&](unsigned bytes) {
    // Around the place, for addresses by RIP.
    const std::uint32_t value = bytes == 1  ? byte()
                                : chance(3) ? static_cast<std::uint32_t>(linear_address())
                                            : 0x8000 - pick(0x10000);
    for (unsigned i = 0; i < bytes; ++i) {
      instruction_.push_back(static_cast<std::uint8_t>(value >> 8 * i));
    }
  };
  if (mod == 1) displacement(1);
  if (mod == 2 || absolute) displacement(4);
}

void WideGuest::integer_instruction() {
  if (chance(3)) return two_byte_instruction();
  std::uint8_t op = byte();
  const auto is_loop = [](std::uint8_t o) { return o == 0xe0 || o == 0xe1; };
  while (excluded_wide_one(op) || (operand_ && is_near_branch(false, op)) ||
         (repeat_ && is_loop(op))) {
    op = byte();
  }
  std::uint8_t modrm = byte();
  if (chance(3)) modrm &= 0x3f;
  // Behind 8F an AMD processor has XOP; far transfers are made through memory alone.
  if (op == 0x8f) modrm &= 0xc7;
  if (op == 0xff && (modrm >> 3 & 7) >= 2 && (modrm >> 3 & 7) <= 5) {
    modrm = static_cast<std::uint8_t>(operand_ ? modrm | 0x30 : modrm & 0xf7);
  }
  if ((op == 0xc6 || op == 0xc7) && (modrm >> 3 & 7) == 7) modrm &= 0xc7;  // XABORT, XBEGIN
  instruction_.push_back(op);
  if (has_modrm(op)) add_modrm(modrm);
  if (op == 0x8e && (modrm >> 3 & 7) == kSs) instruction_.insert(instruction_.end(), 12, 0x90);
}

void WideGuest::two_byte_instruction() {
  std::uint8_t op = byte();
  while (excluded_wide_two(op) || (operand_ && is_near_branch(true, op))) op = byte();
  const bool counts_zeros = op == 0xbc || op == 0xbd;               // behind F3 TZCNT and LZCNT
  const bool far_pointer = op == 0xb2 || op == 0xb4 || op == 0xb5;  // of 64 bits on Intel's alone
  if ((counts_zeros && repeat_) || (far_pointer && (rex_ & 8) != 0)) op = 0xaf;
  std::uint8_t modrm = byte();
  if (chance(3)) modrm &= 0x3f;
  const bool locked =
      std::find(instruction_.begin(), instruction_.end(), 0xf0) != instruction_.end();
  // An AMD's processor refuses them late, not at all, or takes them for others.
  if (locked && (op == 0x00 || (op >= 0x20 && op <= 0x23))) op = 0xaf;
  if (op == 0x00 && (modrm & 0x30) == 0) modrm |= 0x20;  // not SLDT, STR: UMIP
  if (far_pointer) modrm &= 0xbf;
  if (op == 0xc7) modrm = static_cast<std::uint8_t>((modrm & 0x87) | 8);  // CMPXCHG8B and 16B
  if (op == 0xc7 && (operand_ || repeat_)) op = 0xb7;
  if (op == 0xc3) modrm &= 0xbf;  // MOVNTI
  instruction_.insert(instruction_.end(), {0x0f, op});
  const bool plain = (op >= 0x80 && op <= 0x8f) || op == 0xa0 || op == 0xa1 || op == 0xa8 ||
                     op == 0xa9 || op == 0xaa || (op >= 0xc8 && op <= 0xcf) || op < 0x10;
  if (plain && op != 0x00 && op != 0x02 && op != 0x03 && op != 0x0d) {
    instruction_.push_back(modrm);
  } else {
    add_modrm(modrm);
  }
}

void WideGuest::newer_instruction() {
  const auto rex = [this] {
    if (!chance(3)) instruction_.push_back(rex_ = static_cast<std::uint8_t>(0x40 | pick(16)));
  };
  const auto bytes = [this](std::initializer_list<std::uint8_t> all) {
    instruction_.insert(instruction_.end(), all);
  };
  const std::uint8_t modrm = byte();
  switch (pick(8)) {
    case 0:  // TZCNT, LZCNT
      bytes({0xf3});
      rex();
      bytes({0x0f, static_cast<std::uint8_t>(0xbc + pick(2))});
      return add_modrm(modrm);
    case 1:  // MOVBE
      rex();
      bytes({0x0f, 0x38, static_cast<std::uint8_t>(repeat_ ? 0x82 : 0xf0 + pick(2))});
      return add_modrm(repeat_ ? 0xc0 : modrm % 0xc0);
    case 2:  // ADCX, ADOX
      bytes({static_cast<std::uint8_t>(chance(2) ? 0x66 : 0xf3)});
      rex();
      bytes({0x0f, 0x38, 0xf6});
      return add_modrm(modrm);
    case 3:  // RDFSBASE and its like
      bytes({0xf3});
      rex();
      return bytes({0x0f, 0xae, static_cast<std::uint8_t>(0xc0 | (modrm & 0x1f))});
    default:
      return vex_instruction();
  }
}

/// Now and then with a prefix, a length or a register that it may not have.
void WideGuest::vex_instruction() {
  if (chance(20)) instruction_.push_back(static_cast<std::uint8_t>(0x40 | pick(16)));
  struct Encoding {
    std::uint8_t map, prefix, opcode, reg;
  };
  constexpr std::uint8_t kAny = 8;
  constexpr std::array<Encoding, 13> kAll{{{2, 0, 0xf2, kAny},
                                           {2, 0, 0xf3, 1},
                                           {2, 0, 0xf3, 2},
                                           {2, 0, 0xf3, 3},
                                           {2, 0, 0xf5, kAny},
                                           {2, 2, 0xf5, kAny},
                                           {2, 3, 0xf5, kAny},
                                           {2, 3, 0xf6, kAny},
                                           {2, 0, 0xf7, kAny},
                                           {2, 1, 0xf7, kAny},
                                           {2, 2, 0xf7, kAny},
                                           {2, 3, 0xf7, kAny},
                                           {3, 3, 0xf0, kAny}}};
  const Encoding& e = kAll[pick(13)];
  const unsigned prefix = chance(30) ? pick(4) : e.prefix, length = chance(40) ? 4 : 0;
  const unsigned vvvv = e.map == 3 && !chance(10) ? 15 : pick(16);
  std::uint8_t modrm = byte();
  if (e.reg != kAny && !chance(20)) modrm = static_cast<std::uint8_t>((modrm & 0xc7) | e.reg << 3);
  instruction_.insert(
      instruction_.end(),
      {0xc4, static_cast<std::uint8_t>(pick(8) << 5 | e.map),
       static_cast<std::uint8_t>(pick(2) << 7 | vvvv << 3 | length | prefix), e.opcode});
  add_modrm(modrm);
}

void WideGuest::vector_instruction() {
  if (chance(4)) {  // x87
    if (chance(2)) instruction_.push_back(static_cast<std::uint8_t>(0x40 | pick(16)));
    const auto op = static_cast<std::uint8_t>(0xd8 + pick(8));
    std::uint8_t modrm = byte();
    // FNSTENV and FNSAVE show selectors that the host's state does not have; some register forms
    // are undocumented.
    const bool memory = modrm < 0xc0;
    if (memory && (op == 0xd9 || op == 0xdd) && (modrm >> 3 & 7) == 6) modrm ^= 8;
    if (!memory && op == 0xd9 && (modrm & 0xf8) == 0xd8) modrm ^= 0x18;
    if (!memory && op == 0xdf && (modrm & 0xf8) == 0xc0) modrm |= 0x20;
    instruction_.push_back(op);
    add_modrm(modrm);
    return;
  }
  constexpr std::array<std::uint8_t, 95> kMap{
      0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d,
      0x2e, 0x2f, 0x50, 0x51, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x5b, 0x5c, 0x5d,
      0x5e, 0x5f, 0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b,
      0x6e, 0x6f, 0x70, 0x74, 0x75, 0x76, 0x77, 0x7e, 0x7f, 0xc2, 0xc4, 0xc5, 0xc6, 0xd1,
      0xd2, 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xdb, 0xdc, 0xdd, 0xde, 0xdf,
      0xe0, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xeb, 0xec, 0xed,
      0xee, 0xef, 0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xfa, 0xfe};
  constexpr std::array<std::uint8_t, 56> kMap38{
      0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x14,
      0x15, 0x17, 0x1c, 0x1d, 0x1e, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x28, 0x29, 0x2a,
      0x2b, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d,
      0x3e, 0x3f, 0x40, 0x41, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xf0, 0xf1, 0xf0, 0xf1, 0xf0};
  constexpr std::array<std::uint8_t, 26> kMap3A{
      0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x14, 0x15, 0x16, 0x17, 0x20,
      0x21, 0x22, 0x40, 0x41, 0x42, 0x44, 0x60, 0x61, 0x62, 0x63, 0xdf, 0x0f, 0x0e};
  constexpr std::array<std::uint8_t, 4> kSelecting{0, 0x66, 0xf3, 0xf2};
  const unsigned map = pick(4);
  const std::uint8_t op = map == 0   ? kMap38[pick(56)]
                          : map == 1 ? kMap3A[pick(26)]
                                     : kMap[pick(95)];
  std::uint8_t prefix = kSelecting[pick(4)];
  if (map > 1 && op == 0x2b && prefix > 0x66) prefix = 0;  // SSE4A
  if (map < 2) prefix = chance(4) ? 0 : 0x66;
  if (map == 0 && op >= 0xf0) prefix = 0xf2;
  if (prefix != 0) instruction_.push_back(prefix);
  if (!chance(3)) instruction_.push_back(static_cast<std::uint8_t>(0x40 | pick(16)));
  instruction_.push_back(0x0f);
  if (map == 0) instruction_.push_back(0x38);
  if (map == 1) instruction_.push_back(0x3a);
  instruction_.push_back(op);
  add_modrm(byte());
}

}  // namespace citcat::silicon
