#include "x86/newer_integers.h"

#include <bit>

#include "formats/io/error.h"
#include "x86/decode/flag_facts.h"

namespace citcat {

namespace {

std::uint64_t mask_of(unsigned bits) { return ~std::uint64_t{0} >> (64 - bits); }

/// Bit i of the result is the bit of `value` where the i-th one of `mask` is.
std::uint64_t extracted(std::uint64_t value, std::uint64_t mask) {
  std::uint64_t result = 0;
  for (unsigned to = 0; mask != 0; mask &= mask - 1, ++to) {
    result |= (value >> std::countr_zero(mask) & 1) << to;
  }
  return result;
}

/// The reverse.
std::uint64_t deposited(std::uint64_t value, std::uint64_t mask) {
  std::uint64_t result = 0;
  for (; mask != 0; mask &= mask - 1, value >>= 1) {
    result |= (value & 1) << std::countr_zero(mask);
  }
  return result;
}

std::uint64_t swapped(std::uint64_t value, unsigned bits) {
  std::uint64_t result = 0;
  for (unsigned i = 0; i < bits; i += 8) result = result << 8 | (value >> i & 0xff);
  return result;
}

class Computation {
 public:
  explicit Computation(const NewerIntegerInput& in)
      : in_(in), mask_(mask_of(in.bits)), a_(in.first & mask_), b_(in.second & mask_) {}

  NewerIntegerResult make(Operation operation) {
    result_.flags = in_.flags;
    switch (operation) {
      case Operation::andn:
        return with_flags(~a_ & b_, false);
      case Operation::blsi:
        return with_flags(a_ & (0 - a_), a_ != 0);
      case Operation::blsmsk:
        return with_flags(a_ ^ (a_ - 1), a_ == 0);
      case Operation::blsr:
        return with_flags(a_ & (a_ - 1), a_ == 0);
      case Operation::bextr:
        return with_flags(field(), false);
      case Operation::bzhi:
        return zero_high();
      case Operation::tzcnt:
        return count(static_cast<unsigned>(std::countr_zero(a_)));
      case Operation::lzcnt:
        return count(static_cast<unsigned>(std::countl_zero(a_)) - (64 - in_.bits));
      case Operation::adcx:
        return add_with(kCf);
      case Operation::adox:
        return add_with(kOf);
      case Operation::mulx:
        return multiply();
      default:
        return keep_flags(moved(operation));
    }
  }

 private:
  NewerIntegerResult keep_flags(std::uint64_t value) {
    result_.value = value & mask_;
    return result_;
  }
  void set_flags(std::uint32_t which, std::uint32_t values) {
    result_.flags = (in_.flags & ~which) | values;
  }
  NewerIntegerResult with_flags(std::uint64_t value, bool carry) {
    value &= mask_;
    const bool sign = (value >> (in_.bits - 1) & 1) != 0;
    set_flags(kArithmeticFlags, (carry ? kCf : 0u) | (value == 0 ? kZf : 0u) | (sign ? kSf : 0u));
    return keep_flags(value);
  }
  /// BEXTR: length and start are the two lower bytes of operand 3.
  std::uint64_t field() const {
    const unsigned start = b_ & 0xff, length = b_ >> 8 & 0xff;
    if (start >= in_.bits || length == 0) return 0;
    const std::uint64_t from = a_ >> start;
    return length >= 64 ? from : from & mask_of(length);
  }
  NewerIntegerResult zero_high() {
    const unsigned from = b_ & 0xff;
    const bool beyond = from > in_.bits - 1;
    return with_flags(beyond ? a_ : from == 0 ? 0 : a_ & mask_of(from), beyond);
  }
  NewerIntegerResult count(unsigned zeros) {
    const bool none = a_ == 0;
    return with_flags(none ? in_.bits : zeros, none);
  }
  NewerIntegerResult add_with(std::uint32_t flag) {
    const std::uint64_t sum = a_ + b_;
    const std::uint64_t value = (sum + ((in_.flags & flag) != 0 ? 1 : 0)) & mask_;
    const bool carry = (sum & mask_) < a_ || value < (sum & mask_);
    set_flags(flag, carry ? flag : 0);
    return keep_flags(value);
  }
  NewerIntegerResult multiply() {
    const unsigned __int128 product = static_cast<unsigned __int128>(a_) * b_;
    result_.low = static_cast<std::uint64_t>(product) & mask_;
    return keep_flags(static_cast<std::uint64_t>(product >> in_.bits));
  }
  std::uint64_t moved(Operation operation) const {
    const unsigned count = static_cast<unsigned>(b_) & (in_.bits - 1);
    switch (operation) {
      case Operation::movbe:
        return swapped(a_, in_.bits);
      case Operation::pext:
        return extracted(a_, b_);
      case Operation::pdep:
        return deposited(a_, b_);
      case Operation::shlx:
        return a_ << count;
      case Operation::shrx:
        return a_ >> count;
      case Operation::sarx: {
        const unsigned unused = 64 - in_.bits;
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(a_ << unused) >> unused >>
                                          count);
      }
      case Operation::rorx:
        return count == 0 ? a_ : a_ >> count | a_ << (in_.bits - count);
      default:
        throw InternalError("an instruction is not one of the newer integer ones");
    }
  }

  const NewerIntegerInput& in_;
  std::uint64_t mask_, a_, b_;
  NewerIntegerResult result_;
};

}  // namespace

NewerIntegerResult newer_integer(Operation operation, const NewerIntegerInput& in) {
  return Computation(in).make(operation);
}

}  // namespace citcat
