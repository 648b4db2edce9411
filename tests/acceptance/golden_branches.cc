#include "acceptance/golden_branches.h"

#include <array>
#include <cstring>
#include <utility>

#include "formats/io/input.h"

namespace citcat::test {
namespace {

enum class Kind : std::uint8_t { plain, conditional, transfer };

bool is_prefix_byte(std::uint8_t byte) {
  switch (byte) {
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

/// Intel SDM vol. 2, appendix A.
Kind kind_of(const std::uint8_t* code, std::size_t length) {
  std::size_t at = 0;
  while (at < length && is_prefix_byte(code[at])) ++at;
  const std::uint8_t op = code[at];
  const std::uint8_t second = at + 1 < length ? code[at + 1] : std::uint8_t{0};
  if ((op & 0xf0) == 0x70 || (op >= 0xe0 && op <= 0xe3) || op == 0xce) return Kind::conditional;
  if (op == 0x0f) {
    if ((second & 0xf0) == 0x80) return Kind::conditional;
    return second == 0x34 || second == 0x35 || second == 0xaa ? Kind::transfer : Kind::plain;
  }
  if (op == 0xff) {
    const unsigned form = second >> 3 & 7;
    return form >= 2 && form <= 5 ? Kind::transfer : Kind::plain;
  }
  constexpr std::array<std::uint8_t, 13> kTransfers = {0xe8, 0xe9, 0xeb, 0xc2, 0xc3, 0xca, 0xcb,
                                                       0xcf, 0xcc, 0xcd, 0xf1, 0x9a, 0xea};
  for (const std::uint8_t transfer : kTransfers)
    if (op == transfer) return Kind::transfer;
  return Kind::plain;
}

struct StartedBranch {
  std::uint64_t icount = 0;
  std::uint32_t eip = 0, length = 0;
  Kind kind = Kind::plain;
};

template <class T>
T field(const std::array<std::uint8_t, 40>& record, std::size_t at) {
  T value;
  std::memcpy(&value, record.data() + at, sizeof value);
  return value;
}

/// Where the processor went behind each instruction settles whether a conditional one jumped.
class Counter {
 public:
  void started(const StartedBranch& next) {
    gone_on_at(next.eip);
    // One that starts again had not completed.
    if (any_ && last_.icount != next.icount) complete();
    last_ = next;
    any_ = true;
    gone_on_ = false;
  }
  void gone_on_at(std::uint32_t eip) {
    if (!gone_on_) next_eip_ = eip;
    gone_on_ = true;
  }
  GoldenCountsOfBranches take() { return std::move(counts_); }

 private:
  void complete() {
    const bool ends = last_.kind != Kind::plain;
    const bool jumped =
        last_.kind == Kind::transfer || (ends && next_eip_ != last_.eip + last_.length);
    counts_.branches.push_back(counts_.branches.back() + (jumped ? 1 : 0));
    counts_.blocks.push_back(counts_.blocks.back() + (ends ? 1 : 0));
  }

  GoldenCountsOfBranches counts_{{0}, {0}};
  StartedBranch last_;
  std::uint32_t next_eip_ = 0;
  bool any_ = false, gone_on_ = false;
};

}  // namespace

// Records as data/machine/FORMAT.md, section 5, lays them out.
GoldenCountsOfBranches golden_branches(const std::string& golden_path) {
  constexpr std::uint8_t kInstruction = 1, kEvent = 3;
  constexpr std::uint8_t kException = 1, kHardware = 2;
  InputStream input(golden_path);
  std::array<std::uint8_t, 40> record{};
  Counter counter;
  while (input.read(record) == record.size()) {
    if (record[0] == kInstruction) {
      StartedBranch s;
      s.length = record[1];
      s.eip = field<std::uint32_t>(record, 4);
      s.icount = field<std::uint64_t>(record, 32);
      s.kind = kind_of(record.data() + 16, s.length);
      counter.started(s);
    } else if (record[0] == kEvent && (record[1] == kException || record[1] == kHardware)) {
      counter.gone_on_at(field<std::uint32_t>(record, 8));
    }
  }
  return counter.take();
}

}  // namespace citcat::test
