#include "unit/replay/machine/random_code.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "unit/replay/machine/random_emitter.h"

namespace citcat {
namespace {

using namespace random_layout;

constexpr std::uint32_t kChunkBytes = 128;
// With paging, all memory is there again that far above: code goes on there, and pages that share
// an entry of the TLB drop each other.
constexpr std::uint32_t kAgain = 0x400000;
// Two of the chunks cross pages. The second page of the first of them, and the chunks in it, are
// there twice and differ; which of the frames is mapped changes now and then.
constexpr std::uint32_t kTwicePage = 0x11000, kOtherFrame = 0x13000, kCrossing = 31;

class RandomCode : private RandomEmitter {
 public:
  RandomCode(GuestMode mode, bool patches, std::mt19937_64& random, std::vector<std::uint8_t>& ram)
      : RandomEmitter(random, ram), mode_(mode), patches_(patches) {
    wide_ = is_wide(mode);
  }

  void make() {
    for (std::uint32_t c = 0; c < kChunks; ++c) chunk(c);
    other_frame();
  }
  std::vector<std::uint32_t> patchable;

 private:
  std::uint32_t word() const { return wide_ ? 4 : 2; }
  std::uint32_t byte_reg() { return pick(8); }

  /// ModRM (and what follows) of a memory operand.
  void memory(std::uint32_t field) {
    const std::uint32_t f = field << 3;
    if (wide_) {
      // Without paging, what lies elsewhere is not there.
      switch (mode_ == GuestMode::flat ? 0 : pick(5)) {
        case 0:
          emit({f | 5});
          imm(kDataAt + pick(kDataPages * kPageSize), 4);
          break;
        case 1:
          emit({0x40 | f | 4, pick(4) << 6 | 1u << 3 | 3u, byte()});  // [ebx+ecx*n+d]
          break;
        case 2:
          emit({0x80 | f | 6});
          imm(pick(0x2000), 4);
          break;
        default:
          emit({0x40 | f | (chance(2) ? 3u : chance(2) ? 6u : 7u), byte()});
          break;
      }
    } else if (chance(3)) {
      emit({f | 6});
      imm(pick(0xfff0), 2);
    } else {
      emit({0x40 | f | pick(8), byte()});
    }
  }
  void operand(std::uint32_t field) {
    if (chance(2)) {
      memory(field);
    } else {
      emit({0xc0 | field << 3 | reg()});
    }
  }

  void set_registers() {
    const std::uint32_t data = wide_ ? kDataAt : 0;
    const auto load = [&](std::uint32_t r, std::uint32_t value) {
      emit({0xb8 | r});
      imm(value, word());
    };
    const auto near_page_end = [&] {
      const std::uint32_t room = wide_ ? kDataPages : 8;
      return data + pick(room) * kPageSize + (chance(2) ? kPageSize - pick(24) : pick(kPageSize));
    };
    for (const std::uint32_t r : {3u, 5u, 6u, 7u}) {
      if (chance(2)) load(r, near_page_end() & (wide_ ? 0xffffffffu : 0xffffu));
    }
    if (chance(2)) load(1, chance(2) ? pick(9) : pick(90));
    if (chance(3)) load(0, any());
    if (chance(40)) load(3, any());
  }

  void chunk(std::uint32_t number) {
    const std::uint32_t begin = kCodeAt + number * kChunkBytes;
    at_ = begin;
    emit({0xbc});  // the stack
    imm(wide_ ? kStackAt : 0x8f00, word());
    set_registers();
    fill_chunk(number);
  }

  /// Instructions from here to the end of the chunk.
  void fill_chunk(std::uint32_t number) {
    const std::uint32_t begin = kCodeAt + number * kChunkBytes;
    // Room for the longest thing below and the jump.
    while (at_ < begin + kChunkBytes - 34) {
      instruction();
      if (number == kCrossing && beyond_ == 0 && at_ >= kTwicePage) beyond_ = at_;
    }
    const std::uint32_t next = kCodeAt + (number + 1) % kChunks * kChunkBytes;
    const std::uint32_t size = 1 + word();
    const bool same = mode_ == GuestMode::flat || !chance(4);
    emit({0xe9});
    imm(next - (at_ - 1 + size) + (same ? 0 : kAgain), word());
  }

  /// Makes all that begins in one page anew, for a frame that takes its place.
  void other_frame() {
    const auto first = ram_.begin() + kTwicePage, other = ram_.begin() + kOtherFrame;
    const std::vector<std::uint8_t> made(first, first + kPageSize);
    at_ = beyond_;
    fill_chunk(kCrossing);
    for (std::uint32_t c = kCrossing + 1; c + 1 < kChunks; ++c) chunk(c);
    std::copy_n(first, kPageSize, other);
    std::copy(made.begin(), made.end(), first);
  }

  void instruction() {
    switch (pick(36)) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const std::uint32_t op = pick(8) << 3 | pick(4);
        emit({op});
        operand(pick(4) == 0 ? byte_reg() : op % 2 == 0 ? byte_reg() : reg());
        break;
      }
      case 4:
        emit({pick(8) << 3 | 5});
        imm(any(), word());
        break;
      case 5:
        emit({0x83});
        operand(pick(8));
        emit({byte()});
        break;
      case 6:
      case 7: {
        const std::uint32_t op = 0x88 + pick(4);
        emit({op});
        operand(op % 2 == 0 ? byte_reg() : reg());
        break;
      }
      case 8:
        emit({0x8d});
        memory(reg());
        break;
      case 9:
        emit({0x40 | pick(2) << 3 | reg()});
        break;
      case 10:
        emit({0x50 | pick(8)});
        break;
      case 11:
        emit({0x50 | reg(), 0x58 | reg()});
        break;
      case 12: {
        emit({0x70 | pick(16), 0});  // over the next instruction
        const std::uint32_t from = at_;
        plain();
        ram_[from - 1] = static_cast<std::uint8_t>(at_ - from);
        break;
      }
      case 13:
        emit({0x86 | pick(2)});
        operand(reg());
        break;
      case 14:
        emit({0x98 | pick(2)});
        break;
      case 15:
        emit({0x9c, 0x58 | reg()});
        break;
      case 16:
      case 17: {
        constexpr std::array<std::uint32_t, 10> kStrings{0xa4, 0xa5, 0xa6, 0xa7, 0xaa,
                                                         0xab, 0xac, 0xad, 0xae, 0xaf};
        if (mode_ == GuestMode::flat) {
          for (const std::uint32_t r : {6u, 7u}) {
            emit({0xb8 | r});
            imm(kDataAt + 64 + pick(kDataPages * kPageSize - 128), 4);
          }
        }
        if (chance(2) || mode_ == GuestMode::flat) {
          emit({0xb8 | 1});
          imm(chance(2) ? pick(7) : pick(128), word());
        }
        // At most 7 times, or as often as lets iterations be made together.
        if (!chance(3)) emit({0x83, 0xe1, chance(2) ? 7u : 0x7fu, 0xf2 | pick(2)});
        emit({kStrings[pick(10)]});
        break;
      }
      case 18:
        emit({0xd0 | pick(4)});
        operand(pick(8));
        break;
      case 19:
        emit({0xc1});
        operand(pick(8));
        emit({byte()});
        break;
      case 20: {
        constexpr std::array<std::uint32_t, 7> kOld{0x27, 0x2f, 0x37, 0x3f, 0xd7, 0x9e, 0x9f};
        emit({kOld[mode_ == GuestMode::flat ? pick(4) : pick(7)]});
        break;
      }
      case 21: {  // over a patchable place, by call
        emit({0xe8});
        imm(2, word());
        patch_place();
        emit({0x58 | reg()});
        break;
      }
      case 22:
        emit({0xf6 | pick(2)});
        operand(2 + pick(6));
        break;
      case 23:
        emit({0xff});
        memory(chance(3) ? 6u : pick(2));
        break;
      case 24:
      case 25:
        two_byte();
        break;
      case 26:
        rare();
        break;
      case 27:
        patch_place();
        break;
      case 28:
        if (patches_) patch();
        break;
      case 29:
        if (chance(2)) {
          emit({0xf0, 0xff});
          memory(0);
        } else {
          emit({0x0f, 0x10 | pick(2)});
          memory(pick(8));
        }
        break;
      case 30:
        emit({0x55, 0x89, 0xe5, 0x83, 0xec, 0x08, 0xc9});
        break;
      case 31:
        emit({0xc6});
        memory(0);
        emit({byte()});
        break;
      case 32:
      case 33:
        floating();
        break;
      default:
        plain();
        break;
    }
  }

  void plain() {
    if (chance(8)) emit({0xf2 | pick(2)});  // of no meaning
    emit({pick(8) << 3 | 3, 0xc0 | reg() << 3 | reg()});
  }

  void two_byte() {
    switch (pick(11)) {
      case 0: {
        constexpr std::array<std::uint32_t, 4> kBits{0xa3, 0xab, 0xb3, 0xbb};
        emit({0x0f, kBits[pick(4)], 0xc0 | reg() << 3 | reg()});
        break;
      }
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
        emit({0x0f, 0xaf});
        operand(reg());
        break;
      case 4:
        emit({0x0f, 0xb1});
        operand(reg());
        break;
      case 5:
        emit({0x0f, 0xc1});
        operand(reg());
        break;
      case 6: {
        constexpr std::array<std::uint32_t, 4> kExtend{0xb6, 0xb7, 0xbe, 0xbf};
        emit({0x0f, kExtend[pick(4)]});
        operand(reg());
        break;
      }
      case 7:
        if (chance(4)) emit({0xf3});
        emit({0x0f, 0xbc | pick(2)});
        operand(reg());
        break;
      case 8:
        emit({0x0f, 0x40 | pick(16)});
        operand(reg());
        break;
      case 9:
        emit({0x0f, 0x90 | pick(16)});
        operand(0);
        break;
      default:
        if (chance(2)) emit({0xf0});
        emit({0x0f, 0xc7});
        memory(1);
        break;
    }
  }

  /// x87, MMX and SSE, any encoding. What FLDCW, FLDENV and FRSTOR find in memory may unmask
  /// exceptions: then most of it faults until FNINIT.
  void floating() {
    const auto any_operand = [this] {
      if (chance(2)) {
        memory(pick(8));
      } else {
        emit({0xc0 | pick(64)});
      }
    };
    switch (pick(8)) {
      case 0:
        emit({0xdb, 0xe3});
        break;
      case 1:
        emit({0x0f, 0x60 | pick(32)});
        any_operand();
        if (ram_[at_ - 1] % 2 == 0) emit({0x0f, 0x77});
        break;
      case 2:
        emit({0x0f, 0xd0 | pick(48)});
        any_operand();
        break;
      case 3:
        if (chance(2)) emit({0xf3});
        emit({0x0f, chance(2) ? 0x50 | pick(16) : chance(2) ? 0x10 | pick(8) : 0x28 | pick(8)});
        any_operand();
        break;
      default:
        emit({0xd8 | pick(8)});
        any_operand();
        break;
    }
  }

  void rare() {
    switch (pick(11)) {
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
        emit({0xce});
        break;
      case 4:
        emit({0xfa, 0xfb});
        break;
      case 5:
        emit({0xd4, pick(3)});
        break;
      case 6:  // flags from the stack, with a chance of single steps and of backward strings
        emit({0x9c, 0x58});
        emit({0x0d});
        imm(chance(2) ? 0x400 : chance(2) ? 0x100 : 0, word());
        emit({0x50, 0x9d});
        break;
      case 7:
        emit({0xd9, 0xe8});
        emit({0xdd, 0xd8});
        break;
      case 8: {  // the directory anew, which level 3 may not
        const std::uint32_t r = reg();
        emit({0x0f, 0x20, 0xd8 | r, 0x0f, 0x22, 0xd8 | r});
        break;
      }
      case 9:  // a segment register's own selector
        emit({0x06, 0x07});
        break;
      default:
        if (wide_) {
          emit({0x66, 0xb8,
                mode_ == GuestMode::user ? 0x23u
                : chance(2)              ? 0x38u
                                         : 0x10u,
                0, 0x8e, 0xc0 | (chance(2) ? 4u : 0u) << 3});
        } else {
          emit({0x8c, 0xc0 | pick(4) << 3 | reg()});
        }
        break;
    }
  }

  /// MOV AL, imm: its second byte is patched by stores elsewhere, and from outside.
  void patch_place() {
    emit({0xb0, byte()});
    patchable.push_back(at_ - 1);
  }

  /// XOR of memory that begins before the block it is in, and reaches into it: what lies before
  /// is changed, the instruction itself stays as it is.
  void patch_across_the_beginning() {
    const std::uint32_t before = 1 + pick(wide_ ? 3 : 1);
    const bool by_register = wide_ && chance(2);
    const std::uint32_t begin = at_ + 6 + (by_register ? 5 : 0);
    if (by_register) {
      emit({0xbb});
      imm(begin - before, 4);
    }
    emit({0xeb, 4, byte(), byte(), byte(), byte()});
    if (by_register) {
      emit({0x81, 0x33});
    } else if (wide_) {
      emit({0x81, 0x35});
      imm(begin - before, 4);
    } else {
      emit({0x2e, 0x81, 0x36});
      imm(begin - before - kCodeAt, 2);
    }
    const std::uint32_t changed = (1u << 8 * before) - 1;
    imm(any() & changed, wide_ ? 4 : 2);
  }

  void patch() {
    if (chance(4)) return patch_across_the_beginning();
    std::uint32_t where = at_ + 8 + (wide_ ? 0 : 1);
    const bool own = chance(2) || patchable.empty();  // the very next instruction
    if (!own) where = patchable[pick(static_cast<std::uint32_t>(patchable.size()))];
    if (wide_) {
      emit({0xc6, 5});
      imm(where, 4);
      emit({byte()});
    } else {
      emit({0x2e, 0xc6, 6});  // faults in protected mode, where code is not writable
      if (own) where = at_ + 4;
      imm(where - kCodeAt, 2);
      emit({byte()});
    }
    if (own) patch_place();
  }

  GuestMode mode_;
  bool patches_;
  std::uint32_t beyond_ = 0;  ///< the first instruction that begins in the page that is there twice
  bool wide_ = false;
};

}  // namespace

std::vector<std::uint32_t> put_random_code(GuestMode mode, bool patches, std::mt19937_64& random,
                                           std::vector<std::uint8_t>& ram) {
  RandomCode code(mode, patches, random, ram);
  code.make();
  return std::move(code.patchable);
}

}  // namespace citcat
