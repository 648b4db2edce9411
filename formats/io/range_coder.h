#pragma once
// Adaptive binary arithmetic coding: each decision costs what its probability says, however little.
// The interval is kept as two 32-bit ends and shrinks towards the coded half; bytes on which both
// ends agree are final (the carry-less coder of G. N. N. Martin's range encoding, 1979).

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace citcat {

/// The probability of a decision, learnt from its outcomes: fast at first, slower with experience.
class AdaptiveBit {
 public:
  /// Probability of `true` in 1/65536, never 0 or 1.
  std::uint32_t probability() const { return probability_; }
  void learn(bool outcome) {
    const unsigned rate = kRates[age_];
    if (age_ + 1U < kRates.size()) ++age_;
    if (outcome) {
      probability_ = static_cast<std::uint16_t>(probability_ + ((kOne - probability_) >> rate));
    } else {
      probability_ = static_cast<std::uint16_t>(probability_ - ((probability_ - kZero) >> rate));
    }
  }

 private:
  static constexpr std::uint32_t kOne = 65520;
  static constexpr std::uint32_t kZero = 16;
  static constexpr std::array<std::uint8_t, 24> kRates{1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4, 4,
                                                       5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6};
  std::uint16_t probability_ = 32768;
  std::uint8_t age_ = 0;
};

/// Writes decisions. Encoder and decoder have the same members, so that a model written once as a
/// template serves both: each call takes the value to write and returns the value coded.
class RangeEncoder {
 public:
  static constexpr bool kDecodes = false;

  bool bit(AdaptiveBit& model, bool value) {
    const std::uint32_t middle =
        low_ +
        static_cast<std::uint32_t>((std::uint64_t{high_ - low_} * model.probability()) >> 16);
    if (value) {
      high_ = middle;
    } else {
      low_ = middle + 1;
    }
    model.learn(value);
    shift();
    return value;
  }
  /// A decision about which nothing is known: costs one bit.
  bool even_bit(bool value) {
    const std::uint32_t middle = low_ + (high_ - low_) / 2;
    if (value) {
      high_ = middle;
    } else {
      low_ = middle + 1;
    }
    shift();
    return value;
  }
  /// Makes what is coded so far complete and hands it over.
  std::vector<std::uint8_t> finish() {
    for (int i = 0; i < 4; ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(low_ >> 24));
      low_ <<= 8;
    }
    low_ = 0;
    high_ = 0xffffffff;
    return std::exchange(bytes_, {});
  }
  std::size_t size() const { return bytes_.size(); }

 private:
  void shift() {
    while (((low_ ^ high_) & 0xff000000) == 0) {
      bytes_.push_back(static_cast<std::uint8_t>(high_ >> 24));
      low_ <<= 8;
      high_ = high_ << 8 | 0xff;
    }
  }

  std::uint32_t low_ = 0;
  std::uint32_t high_ = 0xffffffff;
  std::vector<std::uint8_t> bytes_;
};

/// Reads decisions. After the last byte it reads zeros: the caller knows how many decisions there
/// are and checks what came out.
class RangeDecoder {
 public:
  static constexpr bool kDecodes = true;

  explicit RangeDecoder(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    for (int i = 0; i < 4; ++i) code_ = code_ << 8 | next();
  }
  bool bit(AdaptiveBit& model, bool) {
    const std::uint32_t middle =
        low_ +
        static_cast<std::uint32_t>((std::uint64_t{high_ - low_} * model.probability()) >> 16);
    const bool value = code_ <= middle;
    if (value) {
      high_ = middle;
    } else {
      low_ = middle + 1;
    }
    model.learn(value);
    shift();
    return value;
  }
  bool even_bit(bool) {
    const std::uint32_t middle = low_ + (high_ - low_) / 2;
    const bool value = code_ <= middle;
    if (value) {
      high_ = middle;
    } else {
      low_ = middle + 1;
    }
    shift();
    return value;
  }

 private:
  std::uint8_t next() { return at_ < bytes_.size() ? bytes_[at_++] : std::uint8_t{0}; }
  void shift() {
    while (((low_ ^ high_) & 0xff000000) == 0) {
      low_ <<= 8;
      high_ = high_ << 8 | 0xff;
      code_ = code_ << 8 | next();
    }
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::uint32_t low_ = 0;
  std::uint32_t high_ = 0xffffffff;
  std::uint32_t code_ = 0;
};

/// A number of `Bits` bits, most significant first, each bit in the context of those before it.
template <unsigned Bits>
class AdaptiveNumber {
 public:
  template <typename Coder>
  std::uint32_t code(Coder& coder, std::uint32_t value) {
    std::uint32_t node = 1;
    for (unsigned i = Bits; i-- > 0;) {
      node = node << 1 | static_cast<std::uint32_t>(coder.bit(nodes_[node], (value >> i & 1) != 0));
    }
    return node - (1U << Bits);
  }

 private:
  std::array<AdaptiveBit, std::size_t{1} << Bits> nodes_;
};

}  // namespace citcat
