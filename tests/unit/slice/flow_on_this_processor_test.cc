// What a flow says of an instruction is tried out on the processor that the test runs on: one bit
// of one input is changed, and every bit of a result that changes must be made of it; and each
// input byte that is named for a result changes it sooner or later.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "x86/disassembler.h"
#include "x86/flow/value_flow.h"
#include "x86/host_fpu.h"

namespace citcat::test {
namespace {

constexpr unsigned kMemory = place::kCount, kMemoryBytes = 16, kUnits = kMemory + kMemoryBytes;
constexpr std::array<unsigned, 6> kFlagBits{0, 2, 4, 6, 7, 11};

/// For each place its byte, or 0 or 1 if it is a flag; then an operand in memory.
using Values = std::array<std::uint8_t, kUnits>;

bool is_flag(unsigned unit) { return unit >= place::kFlags && unit < place::kFlags + 32; }

std::uint64_t flags_in(const Values& values) {
  std::uint64_t flags = 2;
  for (const unsigned bit : kFlagBits) flags |= std::uint64_t{values[place::kFlags + bit]} << bit;
  return flags;
}
void put_flags(std::uint64_t flags, Values& values) {
  for (const unsigned bit : kFlagBits) values[place::kFlags + bit] = flags >> bit & 1;
}

/// An instruction that can be run.
class TriedInstruction {
 public:
  virtual ~TriedInstruction() = default;
  virtual void run(Values& values) = 0;
  /// Bytes that are changed, one at a time, and compared.
  std::vector<unsigned> units;

 protected:
  void add(PlaceRange range) {
    for (unsigned i = 0; i < range.count; ++i) units.push_back(range.first + i);
  }
  void add_common() {
    for (const unsigned bit : kFlagBits) add(place::flag(bit));
    for (unsigned i = 0; i < kMemoryBytes; ++i) units.push_back(kMemory + i);
  }
};

/// MMX and SSE instructions, with the registers 0 to 2.
class TriedVector final : public TriedInstruction {
 public:
  TriedVector(HostFpu& host, const FpuForm& form) : host_(host), form_(form) {
    for (unsigned r = 0; r < 3; ++r) {
      add(place::vector(r));
      add(place::stack(r, 8));
    }
    if (form.gpr >= 0) add(place::gpr(static_cast<unsigned>(form.gpr), 0, 8));
    add_common();
  }
  void run(Values& values) override {
    constexpr std::uint32_t kMasked = 0x1f80;
    FxImage& image = host_.image();
    image = {};
    fx_image::store16(&image[fx_image::kControl], 0x37f);
    fx_image::store32(&image[fx_image::kMxcsr], kMasked);
    image[fx_image::kTags] = 0xff;
    FpuOperands io;
    exchange(image, io, values, true);
    ASSERT_EQ(host_.execute(form_, io).fault, FpuResult::Fault::none);
    exchange(image, io, values, false);
  }

 private:
  void exchange(FxImage& image, FpuOperands& io, Values& values, bool in) const {
    const auto copy = [&](std::uint8_t* outside, unsigned unit, std::size_t count) {
      std::uint8_t* const inside = &values[unit];
      std::memcpy(in ? outside : inside, in ? inside : outside, count);
    };
    for (unsigned r = 0; r < 3; ++r) {
      copy(&image[fx_image::kXmm + 16 * r], place::vector(r).first, 16);
      copy(&image[fx_image::kRegisters + 16 * r], place::stack(r).first, 8);
    }
    if (form_.gpr >= 0) {
      copy(reinterpret_cast<std::uint8_t*>(&io.gpr),
           place::gpr(static_cast<unsigned>(form_.gpr), 0, 8).first, 8);
    }
    copy(io.memory.data(), kMemory, kMemoryBytes);
    if (in) {
      io.eflags = static_cast<std::uint32_t>(flags_in(values));
    } else if (form_.writes_eflags) {
      put_flags(io.eflags, values);
    }
  }
  HostFpu& host_;
  const FpuForm form_;
};

/// Integer instructions, with RAX, RCX, RDX, RBX, and memory at RSI.
class TriedInteger final : public TriedInstruction {
 public:
  TriedInteger(std::span<const std::uint8_t> code, std::uint8_t* room) : room_(room) {
    for (unsigned r = 0; r < 4; ++r) add(place::gpr(r, 0, 8));
    add_common();
    std::vector<std::uint8_t> all{
        0x53,                                            // push rbx
        0x49, 0x89, 0xfb,                                // mov r11,rdi
        0x48, 0x8d, 0x77, 0x40,                          // lea rsi,[rdi+40h]
        0x41, 0xff, 0x73, 0x20, 0x9d,                    // push [r11+20h]; popfq
        0x49, 0x8b, 0x03, 0x49, 0x8b, 0x4b, 0x08,        // mov rax,[r11]; mov rcx,[r11+8]
        0x49, 0x8b, 0x53, 0x10, 0x49, 0x8b, 0x5b, 0x18,  // mov rdx,[r11+10h]; mov rbx,[r11+18h]
    };
    all.insert(all.end(), code.begin(), code.end());
    const std::vector<std::uint8_t> rest{
        0x49, 0x89, 0x03, 0x49, 0x89, 0x4b, 0x08,        // mov [r11],rax; mov [r11+8],rcx
        0x49, 0x89, 0x53, 0x10, 0x49, 0x89, 0x5b, 0x18,  // mov [r11+10h],rdx; mov [r11+18h],rbx
        0x9c, 0x41, 0x8f, 0x43, 0x20,                    // pushfq; pop [r11+20h]
        0x5b, 0xc3,                                      // pop rbx; ret
    };
    all.insert(all.end(), rest.begin(), rest.end());
    std::memcpy(room_, all.data(), all.size());
  }
  void run(Values& values) override {
    alignas(16) std::array<std::uint64_t, 10> block{};
    const std::uint64_t flags = flags_in(values) | 0x200;
    std::memcpy(block.data(), values.data(), 32);
    std::memcpy(&block[4], &flags, 8);
    std::memcpy(&block[8], &values[kMemory], kMemoryBytes);
    void (*function)(void*) = nullptr;
    std::memcpy(&function, &room_, sizeof function);
    function(block.data());
    std::memcpy(values.data(), block.data(), 32);
    put_flags(block[4], values);
    std::memcpy(&values[kMemory], &block[8], kMemoryBytes);
  }

 private:
  std::uint8_t* room_;
};

// ---- what a flow says

/// Whether byte or place `unit` is byte `i` of a span; its number in the span.
std::optional<unsigned> number_in(const DecodedInstruction& info, const ValueSpan& span,
                                  unsigned unit, bool stores) {
  const bool memory = unit >= kMemory;
  if (memory && (info.operand_count == 0 || unit - kMemory >= info.operands[0].size)) return {};
  if (memory != (span.of == (stores ? ValueSpan::Of::stores : ValueSpan::Of::loads))) return {};
  if (!memory && span.of != ValueSpan::Of::places) return std::nullopt;
  const unsigned at = memory ? unit - kMemory : unit;
  if (at < span.first || at - span.first >= span.count) return std::nullopt;
  return at - span.first;
}

/// The bits of `from` that bit `bit` of `to` is made of; nullopt where nothing writes that bit.
std::optional<unsigned> named_bits(const DecodedInstruction& info, const ValueFlow& flow,
                                   unsigned to, unsigned bit, unsigned from) {
  std::optional<unsigned> named;
  for (const ValueEffect& effect : flow.effects) {
    unsigned base = 0;
    for (const ValueSpan& span : effect.to) {
      const auto i = number_in(info, span, to, true);
      if (i && (effect.to_bits >> bit & 1) != 0) {
        unsigned bits = named.value_or(0);
        for (const ValueSpan& source : effect.whole) {
          if (number_in(info, source, from, false))
            bits |= effect.from_bits ? effect.from_bits : 0xff;
        }
        for (const ValueSpan& lane : effect.lanes) {
          const bool here = number_in(info, lane, from, false) == base + *i;
          if (here) bits |= effect.from_bits ? effect.from_bits : is_flag(to) ? 0xff : 1u << bit;
        }
        named = bits;
      }
      base += span.count;
    }
  }
  return named;
}

// ---- values to try

/// Numbers of all sorts that are near one another, so that small changes count.
class DrawnValues {
 public:
  explicit DrawnValues(std::mt19937_64& random)
      : random_(random),
        sort_(random() % 10),
        exponent_(random() % 24),
        common_(quad(random() % 5)) {
    fill(place::kGprs, 32);
    for (unsigned r = 0; r < 3; ++r) {
      fill(place::vector(r).first, 16);
      fill(place::stack(r).first, 8);
    }
    fill(kMemory, kMemoryBytes);
    put_flags(random(), values_);
  }
  const Values& values() const { return values_; }

 private:
  void fill(unsigned first, unsigned count) {
    for (unsigned at = first; at < first + count; at += 8) {
      const std::uint64_t drawn = sort_ == 9 ? common_ : quad(sort_);
      std::memcpy(&values_[at], &drawn, 8);
    }
  }
  std::uint64_t quad(std::uint64_t sort) {
    const std::uint64_t random = random_(), sign = random_() & 1;
    switch (sort) {
      case 1:  // two numbers of 32 bits
        return (random & 0x007fffff007fffff) | (120 + exponent_) << 23 | (120 + exponent_) << 55 |
               sign << 31;
      case 2:  // one of 64
        return (random & kMantissa) | sign << 63 | (1016 + exponent_ * 2) << 52;
      case 3:  // small ones
        return random % 4 == 0 ? random >> 32 & 15
                               : random & 0x00ff00ff00ff00ff >> random_() % 8 * 8;
      case 4:
        return 0x0102010201020102 & (random % 4 == 0 ? random_() : ~std::uint64_t{0});
      case 5:
        return 0 - sign;
      case 6: {  // between two integers, or one of them
        const double half = static_cast<double>(random % 64) / 2;
        const std::array<float, 2> halves{static_cast<float>(half), static_cast<float>(half + 7)};
        std::uint64_t bits = 0;
        std::memcpy(&bits, &half, 8);
        if (sign != 0) std::memcpy(&bits, halves.data(), 8);
        return bits;
      }
      case 7:  // between two numbers of 32 bits
        return (random & 0x000fffffe0000000) | 0x10000000 | (1016 + exponent_ * 2) << 52;
      case 8:  // counts of shifts, and what is shifted
        return random % 2 == 0 ? random >> 32 & 15 : random;
      default:
        return random;
    }
  }
  static constexpr std::uint64_t kMantissa = 0x000fffffffffffff;
  std::mt19937_64& random_;
  const std::uint64_t sort_, exponent_, common_;
  Values values_{};
};

/// The trials of an instruction: changes that its flow misses, and sources that no trial shows.
class FlowTrial {
 public:
  FlowTrial(const DecodedInstruction& info, TriedInstruction& instruction, std::mt19937_64& random)
      : info_(info), flow_(value_flow(info)), instruction_(instruction), random_(random) {}

  /// The first result that changed although the flow does not say so; empty: none.
  std::string missed() const { return missed_; }
  void run() {
    for (const unsigned to : instruction_.units) named_.merge(named_for(to));
    for (unsigned trial = 0; trial < kTrials; ++trial) {
      const Values before = DrawnValues(random_).values();
      Values after = before;
      instruction_.run(after);
      for (const unsigned from : instruction_.units) {
        // What is not named is tried less often.
        if (!named_.contains(from) && random_() % 4 != 0) continue;
        const unsigned bit = is_flag(from) ? 0 : static_cast<unsigned>(random_() % 8);
        Values other = before;
        other[from] ^= static_cast<std::uint8_t>(1u << bit);
        instruction_.run(other);
        compare(after, other, from, bit);
      }
    }
  }
  /// Each byte that is named for a result changes that, or one that is made of the same bytes;
  /// `anywhere`: or any other result, because in a sum a change seldom goes far.
  bool all_shown(bool anywhere) const {
    std::map<std::set<unsigned>, std::set<unsigned>> shown;  // by what is named
    std::set<unsigned> everywhere;
    for (const auto& [to, from] : seen_) everywhere.insert(from.begin(), from.end());
    for (const unsigned to : instruction_.units) {
      const bool undefined =
          is_flag(to) && (flow_.undefined_flags >> (to - place::kFlags) & 1) != 0;
      if (undefined) continue;
      std::set<unsigned>& all = shown[named_for(to)];
      if (anywhere) {
        all = everywhere;
      } else if (const auto found = seen_.find(to); found != seen_.end()) {
        all.insert(found->second.begin(), found->second.end());
      }
    }
    return std::all_of(shown.begin(), shown.end(), [](const auto& entry) {
      return std::includes(entry.second.begin(), entry.second.end(), entry.first.begin(),
                           entry.first.end());
    });
  }

 private:
  static constexpr unsigned kTrials = 60;

  std::set<unsigned> named_for(unsigned to) const {
    std::set<unsigned> named;
    for (const unsigned from : instruction_.units) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (named_bits(info_, flow_, to, bit, from).value_or(0) != 0) named.insert(from);
      }
    }
    return named;
  }
  void compare(const Values& after, const Values& other, unsigned from, unsigned from_bit) {
    for (const unsigned to : instruction_.units) {
      const unsigned difference = after[to] ^ other[to];
      if (difference == 0) continue;
      seen_[to].insert(from);
      for (unsigned bit = 0; bit < 8; ++bit) {
        if ((difference >> bit & 1) == 0) continue;
        const auto named = named_bits(info_, flow_, to, bit, from);
        const bool kept = !named && to == from && bit == from_bit;
        if (kept || (named.value_or(0) >> from_bit & 1) != 0) continue;
        missed_ = std::to_string(to) + " bit " + std::to_string(bit) + " is made of " +
                  std::to_string(from) + " bit " + std::to_string(from_bit);
      }
    }
  }

  const DecodedInstruction& info_;
  const ValueFlow flow_;
  TriedInstruction& instruction_;
  std::mt19937_64& random_;
  std::set<unsigned> named_;                     ///< for any result
  std::map<unsigned, std::set<unsigned>> seen_;  ///< what changed what
  std::string missed_;
};

/// The trials of many instructions.
struct FlowTrials {
  unsigned tried = 0;
  std::string missed;                     ///< the last one that misses something
  std::set<std::string> precise, coarse;  ///< mnemonics: once all was shown, or not yet
  std::mt19937_64 random{1};

  void add(const DecodedInstruction& info, TriedInstruction& instruction, bool anywhere) {
    FlowTrial trial(info, instruction, random);
    trial.run();
    ++tried;
    const std::string text = Disassembler(64).text({info.bytes.data(), info.length}, 0);
    if (!trial.missed().empty()) missed = text + ": " + trial.missed();
    const std::string mnemonic = text.substr(0, text.find(' '));
    if (trial.all_shown(anywhere)) {
      precise.insert(mnemonic);
      coarse.erase(mnemonic);
    } else if (!precise.contains(mnemonic)) {
      coarse.insert(mnemonic);
    }
  }
};

DecodedInstruction decoded(std::vector<std::uint8_t> bytes) {
  bytes.resize(15);
  return decode_instruction(bytes, {true, false, true}, CpuModel::x86_64);
}

bool is_vector_kind(InstructionClass kind) {
  return kind == InstructionClass::mmx || kind == InstructionClass::sse ||
         kind == InstructionClass::sse_fp;
}

/// Calls f with the bytes of each encoding: registers 1 and 2, and memory.
template <class F>
void each_vector_encoding(std::mt19937_64& random, F&& f) {
  const std::vector<std::vector<std::uint8_t>> maps{{0x0f}, {0x0f, 0x38}, {0x0f, 0x3a}};
  for (const auto& map : maps) {
    for (unsigned opcode = 0x10; opcode < 0x100; ++opcode) {
      for (const unsigned prefix : {0u, 0x66u, 0xf3u, 0xf2u}) {
        for (unsigned draw = 0; draw < 12; ++draw) {
          std::vector<std::uint8_t> bytes;
          if (prefix != 0) bytes.push_back(static_cast<std::uint8_t>(prefix));
          if (draw % 4 == 3) bytes.push_back(0x48);
          bytes.insert(bytes.end(), map.begin(), map.end());
          const bool group = map.size() == 1 && opcode >= 0x71 && opcode <= 0x73;
          const unsigned reg = group ? draw % 8 : 1;
          const unsigned modrm = draw % 2 == 0 || group ? 0xc2 | reg << 3 : 0x02 | reg << 3;
          bytes.push_back(static_cast<std::uint8_t>(opcode));
          bytes.push_back(static_cast<std::uint8_t>(modrm));
          // Shift by counts that are not too large, and compare so that numbers decide.
          const bool compares = map.size() == 1 && opcode == 0xc2;
          bytes.push_back(static_cast<std::uint8_t>(group      ? 1 + random() % 7
                                                    : compares ? random() % 3
                                                               : random()));
          f(bytes);
        }
      }
    }
  }
}

/// MASKMOVQ, which stores through a register; and PEXTR and PINSR of SSE4, PCMPISTR and PTEST,
/// which HostFpu does not run.
bool is_left_out(const DecodedInstruction& info) {
  switch (info.opcode_map) {
    case 1:
      return info.opcode == 0xf7;
    case 2:
      return info.opcode == 0x17;
    default:
      return (info.opcode >= 0x14 && info.opcode <= 0x17) || info.opcode == 0x20 ||
             info.opcode == 0x22 || (info.opcode >= 0x60 && info.opcode <= 0x63);
  }
}

TEST(FlowOnThisProcessor, ElementsOfVectorsAreMadeOfWhatIsNamed) {
  std::mt19937_64 random(3);
  HostFpu host;
  FlowTrials trials;
  std::set<std::vector<std::uint8_t>> known;
  each_vector_encoding(random, [&](const std::vector<std::uint8_t>& bytes) {
    const DecodedInstruction info = decoded(bytes);
    if (info.state != DecodeState::ok || !is_vector_kind(info.kind)) return;
    if (!known.emplace(info.bytes.begin(), info.bytes.begin() + info.length).second) return;
    const FpuForm form = host.prepare(info);
    if (form.action != FpuForm::Action::host || form.model_specific || is_left_out(info)) return;
    TriedVector tried(host, form);
    trials.add(info, tried, false);
  });
  EXPECT_EQ(trials.missed, "");
  EXPECT_GT(trials.tried, 1000u);
  // Their flows name all operands for every byte of the result; and the lowest bits of numbers that
  // are truncated to integers hardly ever count.
  const std::set<std::string> coarse{"aeskeygenassist", "mpsadbw",   "cvttpd2dq",
                                     "cvttpd2pi",       "cvttps2dq", "cvttps2pi"};
  EXPECT_EQ(trials.coarse, coarse);
}

/// Calls f with the bytes of encodings of CX and DX, or of memory and DX, in every size.
template <class F>
void each_integer_encoding(std::mt19937_64& random, F&& f) {
  using Bytes = std::vector<std::uint8_t>;
  struct Row {
    Bytes opcodes;
    bool memory = true;  ///< its r/m may be memory
    unsigned first = 2;  ///< first register field of ModRM to try: 2 is DX
    unsigned last = 2;
    unsigned immediate = 0;  ///< bytes; 4: two where operands have 16 bits
    bool counts = false;     ///< its immediate is a count
    Bytes before = {};
    bool modrm = true;
  };
  std::vector<Row> rows{
      {{0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x63}},
      {{0xc0, 0xc1}, true, 0, 7, 1, true},
      {{0xd0, 0xd1, 0xd2, 0xd3}, true, 0, 7},
      {{0x80, 0x83}, true, 0, 7, 1},
      {{0x81}, true, 0, 7, 4},
      {{0xf6}, true, 0, 0, 1},
      {{0xf7}, true, 0, 0, 4},
      {{0xf6, 0xf7}, true, 2, 5},
      {{0xfe, 0xff}, true, 0, 1},
      {{0x6b}, true, 2, 2, 1},
      {{0x69}, true, 2, 2, 4},
      {{0xa8}, false, 0, 0, 1, false, {}, false},
      {{0xa9}, false, 0, 0, 4, false, {}, false},
      {{0x91, 0x98, 0x99, 0x9e, 0x9f, 0xf5, 0xf8, 0xf9}, false, 0, 0, 0, false, {}, false},
      {{0xaf, 0xb0, 0xb1, 0xb6, 0xb7, 0xbe, 0xbf, 0xc0, 0xc1, 0xa5, 0xad, 0xbc, 0xbd},
       true,
       2,
       2,
       0,
       false,
       {0x0f}},
      {{0xa3, 0xab, 0xb3, 0xbb}, false, 2, 2, 0, false, {0x0f}},
      {{0xba}, true, 4, 7, 1, true, {0x0f}},
      {{0xa4, 0xac}, true, 2, 2, 1, true, {0x0f}},
      {{0xc9}, false, 0, 0, 0, false, {0x0f}, false},
  };
  for (unsigned op = 0; op < 0x40; op += 8) {
    const auto at = [&](unsigned n) { return static_cast<std::uint8_t>(op + n); };
    rows.push_back({{at(0), at(1), at(2), at(3)}});
    rows.push_back({{at(4)}, false, 0, 0, 1, false, {}, false});
    rows.push_back({{at(5)}, false, 0, 0, 4, false, {}, false});
  }
  for (unsigned condition = 0; condition < 16; ++condition) {
    rows.push_back(
        {{static_cast<std::uint8_t>(0x40 + condition), static_cast<std::uint8_t>(0x90 + condition)},
         true,
         2,
         2,
         0,
         false,
         {0x0f}});
  }
  for (const Row& row : rows) {
    for (const std::uint8_t opcode : row.opcodes) {
      // Try each size of registers and of memory, and several constants.
      for (unsigned draw = 0; draw < (row.immediate == 0 ? 6u : 9u); ++draw) {
        const unsigned size = draw % 3;
        for (unsigned digit = row.first; digit <= row.last; ++digit) {
          Bytes bytes;
          if (size == 1) bytes.push_back(0x66);
          if (size == 2) bytes.push_back(0x48);
          bytes.insert(bytes.end(), row.before.begin(), row.before.end());
          bytes.push_back(opcode);
          const bool memory = row.memory && draw % 2 != 0;
          if (row.modrm)
            bytes.push_back(static_cast<std::uint8_t>((memory ? 6 : 0xc1) | digit << 3));
          const unsigned count = row.immediate == 4 && size == 1 ? 2 : row.immediate;
          // Bytes that a mask clears or sets as a whole, too.
          for (unsigned i = 0; i < count; ++i) {
            const std::uint64_t byte = random() % 3 == 0 ? 0 - (random() & 1) : random();
            bytes.push_back(static_cast<std::uint8_t>(row.counts ? 1 + byte % 7 : byte));
          }
          f(bytes);
        }
      }
    }
  }
}

TEST(FlowOnThisProcessor, BytesAndFlagsOfIntegersAreMadeOfWhatIsNamed) {
  void* const room =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  std::mt19937_64 random(5);
  FlowTrials trials;
  each_integer_encoding(random, [&](const std::vector<std::uint8_t>& bytes) {
    const DecodedInstruction info = decoded(bytes);
    if (info.state != DecodeState::ok || info.length != bytes.size()) return;
    TriedInteger tried(bytes, static_cast<std::uint8_t*>(room));
    trials.add(info, tried, true);
  });
  munmap(room, 4096);
  EXPECT_EQ(trials.missed, "");
  EXPECT_GT(trials.tried, 1000u);
  EXPECT_EQ(trials.coarse, std::set<std::string>{});
}

}  // namespace
}  // namespace citcat::test
