#include "events/internal_read.h"

namespace citcat {

namespace {

// A value is a byte of these, then what they leave open: differences to the one before.
constexpr std::uint8_t kOpMask = 0x07;
static_assert(static_cast<std::uint8_t>(InternalRead::Op::rdseed) <= kOpMask);
constexpr std::uint8_t kInternalKnown = 0x08;      ///< InternalRead::position_known
constexpr std::uint8_t kSameIp = 0x10;             ///< as before
constexpr std::uint8_t kSameEbx = 0x20;            ///< as before
constexpr std::uint8_t kSameEcx = 0x40;            ///< as before
constexpr std::uint8_t kInternalIteration = 0x80;  ///< is not 0, and follows

}  // namespace

const char* internal_read_name(InternalRead::Op op) {
  switch (op) {
    case InternalRead::Op::rdtsc:
      return "RDTSC";
    case InternalRead::Op::rdmsr:
      return "RDMSR";
    case InternalRead::Op::wrmsr:
      return "WRMSR";
    case InternalRead::Op::cpuid:
      return "CPUID";
    case InternalRead::Op::rdpmc:
      return "RDPMC";
    case InternalRead::Op::rdtscp:
      return "RDTSCP";
    case InternalRead::Op::rdrand:
      return "RDRAND";
    case InternalRead::Op::rdseed:
      return "RDSEED";
  }
  return "?";
}

void InternalReadCodec::pack(const InternalRead& read, const InternalRead& before,
                             PackedWriter& out) {
  auto head = static_cast<std::uint8_t>(read.op);
  if (read.position_known) head |= kInternalKnown;
  if (read.ip == before.ip) head |= kSameIp;
  if (read.ebx == before.ebx) head |= kSameEbx;
  if (read.ecx == before.ecx) head |= kSameEcx;
  if (read.position.iteration != 0) head |= kInternalIteration;
  out.byte(head);
  out.difference(read.position.instruction, before.position.instruction);
  if ((head & kInternalIteration) != 0) out.varint(read.position.iteration);
  if ((head & kSameIp) == 0) out.difference(read.ip, before.ip);
  out.difference(read.value(), before.value());
  if ((head & kSameEbx) == 0) out.difference(read.ebx, before.ebx);
  if ((head & kSameEcx) == 0) out.difference(read.ecx, before.ecx);
}

void InternalReadCodec::unpack(PackedReader& in, InternalRead& read) {
  const std::uint8_t head = in.byte();
  read.op = static_cast<InternalRead::Op>(head & kOpMask);
  read.position_known = (head & kInternalKnown) != 0;
  read.position.instruction = in.difference(read.position.instruction);
  read.position.iteration =
      (head & kInternalIteration) != 0 ? static_cast<std::uint32_t>(in.varint()) : 0;
  if ((head & kSameIp) == 0) read.ip = in.difference(read.ip);
  const std::uint64_t value = in.difference(read.value());
  read.eax = static_cast<std::uint32_t>(value);
  read.edx = static_cast<std::uint32_t>(value >> 32);
  if ((head & kSameEbx) == 0) read.ebx = static_cast<std::uint32_t>(in.difference(read.ebx));
  if ((head & kSameEcx) == 0) read.ecx = static_cast<std::uint32_t>(in.difference(read.ecx));
}

}  // namespace citcat
