// Random programs of 64-bit mode, as random_guest.cc and random_code.cc have them for other modes;
// and the surroundings of those in compatibility mode.

#include <array>
#include <initializer_list>
#include <utility>
#include <vector>

#include "unit/replay/machine/random_code.h"
#include "unit/replay/machine/random_draws.h"
#include "unit/replay/machine/random_emitter.h"
#include "unit/replay/machine/random_guest.h"

namespace citcat {
namespace {

using namespace random_layout;

constexpr std::uint32_t kWideGdt = 0x1000, kWideTss = 0x2000, kWideStubs = 0x3000,
                        kWideSkip = 0x3800, kWideRepair = 0x3900, kWideNmi = 0x3a00,
                        kWideState = 0x5000, kWideIdt = 0x6000, kPointers4 = 0x7000,
                        kPointers3 = 0x8000, kWideDirectory = 0x9000, kWideTable = 0xa000,
                        kWideKernelStack = 0x34f00;
constexpr std::uint32_t kWideMemory = 0x40000, kWideChunkBytes = 160;
/// Linear memory is there again and again, every 2 MiB: pages that share an entry of the TLB drop
/// each other.
constexpr std::uint32_t kWideAgain = 0x400000;
/// As random_code.cc has them: a page of code that is there twice.
constexpr std::uint32_t kWideTwicePage = 0x11000, kWideOtherFrame = 0x13000;

/// Code, whose addresses are those of physical memory above `base`.
class WideCode : private RandomEmitter {
 public:
  WideCode(std::uint64_t base, bool user, bool patches, std::mt19937_64& random,
           std::vector<std::uint8_t>& ram)
      : RandomEmitter(random, ram), base_(base), user_(user), patches_(patches) {}

  void make() {
    for (std::uint32_t c = 0; c < kChunks; ++c) chunk(c);
    // What takes the place of the page that is there twice is the same but for some bytes.
    for (std::uint32_t i = 0; i < kPageSize; ++i)
      ram_[kWideOtherFrame + i] = ram_[kWideTwicePage + i];
    for (const std::uint32_t at : patchable) {
      if (at / kPageSize == kWideTwicePage / kPageSize)
        ram_[kWideOtherFrame + at % kPageSize] = byte();
    }
  }
  std::vector<std::uint32_t> patchable;

 private:
  std::uint32_t near_page_end() {
    return kDataAt + pick(kDataPages) * kPageSize +
           (chance(2) ? kPageSize - pick(24) : pick(kPageSize));
  }

  /// Prefixes of what follows. Returns the bytes of an immediate of the operand's size.
  std::uint32_t prefixes() {
    operand_prefix_ = chance(6);
    if (operand_prefix_) emit({0x66});
    if (chance(12)) emit({0x64 | pick(2)});
    if (chance(30)) emit({0x2e});
    if (chance(25)) emit({0x67});
    rex_ = chance(4) ? 0 : 0x40 | (chance(2) ? 8u : 0u) | pick(8);
    if (rex_ != 0) emit({rex_});
    return (rex_ & 8) != 0 || !operand_prefix_ ? 4 : 2;
  }
  void memory(std::uint32_t field) {
    const std::uint32_t f = field << 3;
    switch (pick(6)) {
      case 0:  // somewhere in the data, from here
        emit({f | 5});
        imm(near_page_end() - at_, 4);
        break;
      case 1:
        emit({f | 4, 0x25});
        imm(base_ + near_page_end(), 4);
        break;
      case 2:
        emit({0x40 | f | 4, pick(4) << 6 | 1u << 3 | 3u, byte()});  // [rbx+rcx*n+d]
        break;
      case 3:
        emit({0x80 | f | 6});
        imm(pick(0x2000), 4);
        break;
      default:
        emit({0x40 | f | (chance(2) ? 3u : chance(2) ? 6u : 7u), byte()});
        break;
    }
  }
  void operand(std::uint32_t field) {
    if (chance(2)) {
      memory(field);
    } else {
      emit({0xc0 | field << 3 | reg()});
    }
  }
  void load(std::uint32_t r, std::uint64_t value) {
    emit({0x48 | r >> 3, 0xb8 | (r & 7)});
    imm(value, 8);
  }

  void chunk(std::uint32_t number) {
    const std::uint32_t begin = kCodeAt + number * kWideChunkBytes;
    at_ = begin;
    load(4, base_ + kStackAt);
    for (const std::uint32_t r : {3u, 5u, 6u, 7u, 11u, 13u, 14u, 15u}) {
      if (chance(3)) load(r, base_ + near_page_end());
    }
    if (chance(2)) load(chance(2) ? 1 : 9, pick(90));
    if (chance(3)) load(0, std::uint64_t{any()} << 32 | any());
    if (chance(40)) load(3, std::uint64_t{any()} << 32 | any());
    // Room for the longest thing below and the jump.
    while (at_ < begin + kWideChunkBytes - 44) instruction();
    const std::uint32_t next = kCodeAt + (number + 1) % kChunks * kWideChunkBytes;
    emit({0xe9});
    imm(next - (at_ + 4) + (chance(4) ? kWideAgain : 0), 4);
  }

  void instruction() {
    switch (pick(36)) {
      case 0:
      case 1:
      case 2:
      case 3:
        prefixes();
        emit({pick(8) << 3 | pick(4)});
        operand(reg());
        break;
      case 4: {
        const std::uint32_t bytes = prefixes();
        emit({pick(8) << 3 | 5});
        imm(any(), bytes);
        break;
      }
      case 5:
        prefixes();
        emit({0x83});
        operand(pick(8));
        emit({byte()});
        break;
      case 6: {
        const std::uint32_t bytes = prefixes();
        emit({0x81});
        operand(pick(8));
        imm(any(), bytes);
        break;
      }
      case 7:
      case 8:
        prefixes();
        emit({0x88 + pick(4)});
        operand(reg());
        break;
      case 9:
        prefixes();
        emit({0x8d});
        memory(reg());
        break;
      case 10:
        if (chance(2)) emit({0x41});
        emit({0x50 | reg()});
        break;
      case 11:
        if (chance(8)) emit({0x66});
        emit({0x50 | reg(), 0x41, 0x58 | reg()});
        break;
      case 12: {
        emit({0x70 | pick(16), 0});  // over the next instruction
        const std::uint32_t from = at_;
        emit({0x40 | (chance(2) ? 8u : 0u), pick(8) << 3 | 3, 0xc0 | reg() << 3 | reg()});
        ram_[from - 1] = static_cast<std::uint8_t>(at_ - from);
        break;
      }
      case 13:
        prefixes();
        emit({chance(2) ? 0x86 | pick(2) : 0x63});
        operand(reg());
        break;
      case 14:
        prefixes();
        emit({chance(2) ? 0x98 | pick(2) : 0x90 | pick(4)});
        break;
      case 15:
        emit({0x9c, 0x41, 0x58 | reg()});
        break;
      case 16:
      case 17: {
        constexpr std::array<std::uint32_t, 10> kStrings{0xa4, 0xa5, 0xa6, 0xa7, 0xaa,
                                                         0xab, 0xac, 0xad, 0xae, 0xaf};
        if (chance(2)) load(1, chance(2) ? pick(7) : pick(128));
        const bool whole = chance(2);
        // At most 7 times, or as often as lets iterations be made together.
        if (!chance(3)) emit({0x83, 0xe1, chance(2) ? 7u : 0x7fu, 0xf2 | pick(2)});
        if (whole) emit({0x48});
        emit({kStrings[pick(10)]});
        break;
      }
      case 18:
        prefixes();
        emit({0xd0 | pick(4)});
        operand(pick(8));
        break;
      case 19:
        prefixes();
        emit({0xc0 | pick(2)});
        operand(pick(8));
        emit({byte()});
        break;
      case 20:
        emit({0xe8});  // over a patchable place
        imm(2, 4);
        patch_place();
        emit({0x58 | reg()});
        break;
      case 21:
        prefixes();
        emit({0xf6 | pick(2)});
        operand(2 + pick(6));
        break;
      case 22:
        prefixes();
        emit({0xfe | pick(2)});
        operand(pick(2));
        break;
      case 23:
        emit({0xff});
        memory(6);
        break;
      case 24:
      case 25:
      case 26:
        two_byte();
        break;
      case 27:
        rare();
        break;
      case 28:
        patch_place();
        break;
      case 29:
        if (patches_) patch();
        break;
      case 30:
        emit({0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x08, 0xc9});
        break;
      case 31: {
        const std::uint32_t bytes = prefixes();
        emit({0xc7});
        operand(0);
        imm(any(), bytes);
        break;
      }
      case 33:
      case 34:
        vector();
        break;
      case 32:  // through a register, and back
        emit({0x48, 0x8d, 0x05});
        imm(chance(2) ? 3 : 2, 4);
        emit({0xff, chance(2) ? 0xd0u : 0xe0u, 0x90});
        break;
      default:
        emit({0xb0 | reg(), byte()});
        break;
    }
  }

  void two_byte() {
    constexpr std::array<std::uint32_t, 4> kBits{0xa3, 0xab, 0xb3, 0xbb};
    constexpr std::array<std::uint32_t, 4> kExtend{0xb6, 0xb7, 0xbe, 0xbf};
    constexpr std::array<std::uint32_t, 7> kBinary{0xaf, 0xb0, 0xb1, 0xc0, 0xc1, 0x1f, 0x18};
    prefixes();
    switch (pick(9)) {
      case 0:
        emit({0x0f, kBits[pick(4)]});
        if (chance(6)) {
          memory(reg());
        } else {
          emit({0xc0 | reg() << 3 | reg()});
        }
        break;
      case 1:
        emit({0x0f, 0xba});
        operand(4 + pick(4));
        emit({byte()});
        break;
      case 2:
        emit({0x0f, chance(2) ? 0xa4u : 0xacu});
        operand(reg());
        emit({byte()});
        break;
      case 3:
      case 4:
        emit({0x0f, kBinary[pick(7)]});
        operand(reg());
        break;
      case 5:
        emit({0x0f, kExtend[pick(4)]});
        operand(reg());
        break;
      case 6:
        emit({0x0f, chance(2) ? 0xbcu | pick(2) : 0x40 | pick(16)});
        operand(reg());
        break;
      case 7:
        emit({0x0f, chance(2) ? 0xa5u : 0xadu});
        operand(reg());
        break;
      default:
        if (chance(2)) {
          emit({0x0f, 0x90 | pick(16)});
          operand(0);
        } else {
          emit({0x0f, 0xc8 | reg()});
        }
        break;
    }
  }

  /// SSE and SSE2, any encoding but arithmetic, fences among them.
  void vector() {
    constexpr std::array<std::uint32_t, 3> kFirst{0x10, 0x28, 0x54}, kMany{8, 2, 4};
    if (!chance(4)) emit({chance(3) ? 0xf2 | pick(2) : 0x66u});
    if (chance(2)) emit({0x40 | pick(16)});
    const std::uint32_t kind = pick(7);
    if (chance(8)) {
      emit({0x0f, 0xae, 0xe8 | pick(3) << 3});  // LFENCE, MFENCE, SFENCE
      return;
    }
    if (kind < 3) {
      emit({0x0f, kFirst[kind] + pick(kMany[kind])});
    } else {
      emit({0x0f, kind < 5 ? 0x60 | pick(32) : kind == 5 ? 0xc4 | pick(3) : 0xd0 | pick(48)});
    }
    operand(pick(8));
    if (ram_[at_ - 1] % 2 == 0) emit({0x0f, 0x77});
  }

  void rare() {
    switch (pick(9)) {
      case 0:
        emit({0x0f, 0x0b});
        break;
      case 1:
        emit({0xcc});
        break;
      case 2:
        emit({0xcd, 3});
        break;
      case 3:
        emit({0xf0, 0x48, 0xff});
        memory(0);
        break;
      case 4:
        emit({0xfa, 0xfb});
        break;
      case 5:
        emit({0x0f, 0x10 | pick(2)});
        memory(pick(8));
        break;
      case 6:  // flags from the stack, with a chance of single steps and of backward strings
        emit({0x9c, 0x58, 0x0d});
        imm(chance(2) ? 0x400 : chance(2) ? 0x100 : 0, 4);
        emit({0x50, 0x9d});
        break;
      case 7:  // with a base, or without
        if (!user_) {
          emit({0x0f, 0x01, 0xf8});
        } else {
          emit({0xb8, 0x23, 0, 0, 0, 0x8e, 0xe0 | pick(2) << 3});
        }
        break;
      default:  // an address that is none
        load(3, 0x800000000000);
        emit({0x48, 0x8b, 0x03});
        break;
    }
  }

  /// MOV AL, imm: its second byte is patched by stores elsewhere, and from outside.
  void patch_place() {
    emit({0xb0, byte()});
    patchable.push_back(at_ - 1);
  }
  void patch() {
    const bool own = chance(2) || patchable.empty();  // the very next instruction
    const std::uint32_t where =
        own ? at_ + 8 : patchable[pick(static_cast<std::uint32_t>(patchable.size()))];
    emit({0xc6, 0x05});
    imm(where - (at_ + 5), 4);
    emit({byte()});
    if (own) patch_place();
  }

  std::uint64_t base_;
  bool user_, patches_;
  std::uint32_t rex_ = 0;
  bool operand_prefix_ = false;
};

class WideGuest : private RandomDraws {
 public:
  WideGuest(GuestMode mode, bool patches, std::mt19937_64& random)
      : RandomDraws(random),
        user_(mode != GuestMode::kernel64),
        compatibility_(mode == GuestMode::compatibility),
        base_(compatibility_ ? 0
              : user_        ? 0x00007f5540000000
                             : 0xffffffff80000000),
        patches_(patches),
        random_(random),
        ram_(kWideMemory) {}

  Recording make(std::uint64_t instructions, bool events) {
    for (std::uint32_t a = kDataAt; a < kDataAt + kDataPages * kPageSize; ++a) ram_[a] = byte();
    tables();
    handlers();
    const std::vector<std::uint32_t> patchable = put_code();
    Recording r;
    r.initial = state();
    for (std::uint32_t a = 0; a < kWideMemory; a += kPageSize) {
      r.image.set(PhysAddr{a}, std::span(ram_).subspan(a, kPageSize));
    }
    r.instructions = instructions;
    if (events) add_random_events(r, instructions, patchable, random_);
    return r;
  }

 private:
  std::vector<std::uint32_t> put_code() {
    if (compatibility_) return put_random_code(GuestMode::user, patches_, random_, ram_);
    WideCode code(base_, user_, patches_, random_, ram_);
    code.make();
    return std::move(code.patchable);
  }
  void put(std::uint32_t at, std::initializer_list<int> bytes) {
    for (const int b : bytes) ram_[at++] = static_cast<std::uint8_t>(b);
  }
  void put_quad(std::uint32_t at, std::uint64_t v) {
    for (unsigned i = 0; i < 8; ++i) ram_[at + i] = static_cast<std::uint8_t>(v >> 8 * i);
  }

  void tables() {
    constexpr std::array<std::uint64_t, 8> kDescriptors{0,
                                                        0x00af9b000000ffff,
                                                        0x00cf93000000ffff,
                                                        0x00affb000000ffff,
                                                        0x00cff3000000ffff,
                                                        0x00008b0000000067 | kWideTss << 16,
                                                        0,
                                                        0x00cffb000000ffff};
    for (std::uint32_t i = 0; i < 8; ++i) put_quad(kWideGdt + 8 * i, kDescriptors[i]);
    put_quad(kWideTss + 4, kWideKernelStack);
    put(kWideTss + 0x66, {0x68});  // no port is allowed
    for (std::uint32_t v = 0; v < 256; ++v) {
      const std::uint32_t stub = kWideStubs + (v < 32 ? 16 * v : 16 * 31);
      put_quad(kWideIdt + 16 * v, 0xee0000080000 | stub);
    }
    for (std::uint32_t i = 0; i < 512; ++i) {
      put_quad(kPointers4 + 8 * i, kPointers3 | 7);
      put_quad(kPointers3 + 8 * i, kWideDirectory | 7);
      put_quad(kWideDirectory + 8 * i, kWideTable | 7);
    }
    for (std::uint32_t p = 0; p < kWideMemory / kPageSize; ++p)
      put_quad(kWideTable + 8 * p, p << 12 | 7);
    // Data pages: absent, read-only, never used, dirty.
    for (std::uint32_t p = 0; p < kDataPages; ++p) {
      constexpr std::array<std::uint32_t, 4> kRights{6, 5, 7, 0x67};
      put_quad(kWideTable + 8 * (kDataAt / kPageSize + p),
               (kDataAt + p * kPageSize) | kRights[pick(4)]);
    }
    put_quad(kWideState + 8, base_ + kCodeAt);
  }

  void handlers() {
    for (std::uint32_t v = 0; v < 32; ++v) {
      const bool has_code = v == 8 || (v >= 10 && v <= 14) || v == 17;
      const std::uint32_t at = kWideStubs + 16 * v;
      const std::uint32_t target = v == 14 ? kWideRepair : v == 2 ? kWideNmi : kWideSkip;
      const std::uint32_t jump = !has_code && v != 2 ? at + 2 : at;
      if (jump != at) put(at, {0x6a, 0});
      put(jump, {0xe9});
      jump_from(jump + 1, target);
    }
    // To the next chunk, without single steps: its number times the bytes of one.
    const int chunk_bytes = compatibility_ ? 128 : kWideChunkBytes;
    put(kWideSkip,
        {0x50, 0xff, 0x04, 0x25, 0x00, 0x50, 0,    0,           0x8b, 0x04, 0x25, 0x00, 0x50,
         0,    0,    0x83, 0xe0, 0x3f, 0x69, 0xc0, chunk_bytes, 0,    0,    0,    0x48, 0x03,
         0x04, 0x25, 0x08, 0x50, 0,    0,    0x48, 0x89,        0x44, 0x24, 0x10, 0x80, 0x64,
         0x24, 0x21, 0xfe, 0x58, 0x48, 0x83, 0xc4, 0x08,        0x48, 0xcf});
    // A data page is made present and writable; other page faults are skipped.
    put(kWideRepair,
        {0x50, 0x51, 0x0f, 0x20, 0xd0, 0x48, 0x89, 0xc1, 0x48, 0xc1, 0xe9, 0x0c, 0x81, 0xe1, 0xff,
         0x01, 0,    0,    0x83, 0xe9, 0x20, 0x83, 0xf9, 0x08, 0x72, 0x07, 0x59, 0x58, 0xe9});
    jump_from(kWideRepair + 29, kWideSkip);
    put(kWideRepair + 33, {0x80, 0x0c, 0xcd, 0x00, 0xa1, 0, 0, 0x07, 0x0f, 0x01, 0x38, 0x59, 0x58,
                           0x48, 0x83, 0xc4, 0x08, 0x48, 0xcf});
    // One data page goes, one loses its marks, a code page moves, and the TLB is dropped.
    put(kWideNmi, {0x50, 0x80, 0x24, 0x25, 0x08, 0xa1, 0,    0,    0xf8, 0x80, 0x24, 0x25,
                   0x18, 0xa1, 0,    0,    0x9f, 0x80, 0x34, 0x25, 0x89, 0xa0, 0,    0,
                   0x20, 0x0f, 0x20, 0xd8, 0x0f, 0x22, 0xd8, 0x58, 0x48, 0xcf});
  }
  /// The four bytes at `at`, which end a branch.
  void jump_from(std::uint32_t at, std::uint32_t target) {
    const std::uint32_t distance = target - (at + 4);
    for (unsigned i = 0; i < 4; ++i) ram_[at + i] = static_cast<std::uint8_t>(distance >> 8 * i);
  }

  CpuState state() const {
    CpuState s;
    s.model = CpuModel::x86_64;
    s.ram_bytes = kWideMemory;
    s.long_mode.emplace();
    // What decides between two meanings, or what is not executed, has to be told. Leaf 1 has what
    // is executed: SSE3 to SSE4.2, PCLMULQDQ, CMPXCHG16B, MOVBE, POPCNT, AES and RDRAND.
    constexpr std::uint32_t kTold1 = 0x42d82203;
    constexpr std::uint32_t kTold7 = 0x019c0509, kTold80000001 = 0x21, kTold80000001Edx = 3u << 26;
    s.cpuid = {{1, 0, 0, kTold1, 0},
               {7, 0, kTold7, 1u << 22, 0},
               {0x80000001, 0, 0, kTold80000001, kTold80000001Edx}};
    const std::uint64_t rights = user_ ? 0x60 : 0;
    const std::vector<std::pair<const char*, std::uint64_t>> registers = {
        {"cr0", 0x80010011},
        {"cr3", kPointers4},
        {"cr4", 0x620},
        {"efer", 0xd01},
        {"rip", base_ + kCodeAt},
        {"rsp", base_ + kStackAt},
        {"rflags", 2},
        {"cs", compatibility_ ? 0x3b
               : user_        ? 0x1b
                              : 8},
        {"cs.limit", ~0u},
        {"cs.attributes", (compatibility_ ? 0xc09b : 0xa09b) | rights},
        {"ss", user_ ? 0x23 : 0x10},
        {"ss.limit", ~0u},
        {"ss.attributes", 0xc093 | rights},
        {"fs.base", base_ + kWideAgain},
        {"gs.base", base_ - kWideAgain + 24},
        {"tr", 0x28},
        {"tr.base", kWideTss},
        {"tr.limit", 0x67},
        {"tr.attributes", 0x8b},
        {"gdtr.base", kWideGdt},
        {"gdtr.limit", 63},
        {"idtr.base", kWideIdt},
        {"idtr.limit", 0xfff}};
    for (const auto& [name, value] : registers) {
      CITCAT_ASSERT(set_register(s, name, value));
    }
    if (!compatibility_) return s;
    for (const SegmentRegister i : {kDs, kEs, kFs, kGs}) {
      s.segment[i] = {0x23, 0, 0xffffffff, 0xc0f3, false};
    }
    s.long_mode->base_high = {};
    return s;
  }

  bool user_, compatibility_;
  std::uint64_t base_;
  bool patches_;
  std::mt19937_64& random_;
  std::vector<std::uint8_t> ram_;
};

}  // namespace

Recording random_wide_guest(GuestMode mode, bool patches, std::mt19937_64& random,
                            std::uint64_t instructions, bool events) {
  return WideGuest(mode, patches, random).make(instructions, events);
}

}  // namespace citcat
