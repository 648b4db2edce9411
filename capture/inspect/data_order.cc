#include "capture/inspect/data_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <set>
#include <utility>

namespace citcat {
namespace {

constexpr std::size_t kLines = DataOrder::kLines;
constexpr unsigned kByteBits = 8, kFarBytes = 4;
// So many are looked at while the order is looked for; so many more decide.
constexpr std::size_t kTransfersTried = 48, kTransfersCounted = 400;
// A transfer that fits by chance: some two hundred jumps are tried for each.
constexpr double kChanceBits = 8;
// An order fits by chance if what fits says less than this more than it takes to tell the order.
constexpr double kMarginBits = 24;
// Fewer bits that agree are no evidence.
constexpr unsigned kFewestBits = 10;
// More pairs of lines that no jump tells apart: the rest is not to be believed, either.
constexpr std::size_t kMostAlike = 4;

using Order = std::array<std::size_t, kLines>;

/// How well a jump fits: so many bits would have to be as they are, and so many are not.
struct Fit {
  unsigned bits = 0, wrong = 0;
  // A bit that is wrong weighs more than twice what one that is right does: of any sixteen bits,
  // half are right by chance.
  double weight() const { return std::max(0.0, bits - 2.6 * wrong); }
};

/// A jump that a transfer may have been, by where it leads and not by its bytes.
struct Candidate {
  enum class Kind : std::uint8_t { near_by, near, far, read };
  Kind kind;
  std::size_t at = 0;    ///< of the opcode, or of the pointer that was read
  std::uint32_t to = 0;  ///< distance or address
};

/// The bytes and candidates of a transfer.
struct Tried {
  const RawTransfer* transfer;
  std::vector<Candidate> candidates;
};

class TransferFits {
 public:
  TransferFits(const std::vector<RawTransfer>& transfers, unsigned known_bits, std::size_t most)
      : bits_(known_bits), mask_((1U << known_bits) - 1) {
    const std::size_t step = std::max<std::size_t>(1, transfers.size() / most);
    for (std::size_t i = 0; i < transfers.size() && tried_.size() < most; i += step)
      tried_.push_back({&transfers[i], candidates_of(transfers[i])});
  }

  void set_order(const Order& order) {
    for (unsigned half = 0; half < 2; ++half) {
      table_[half][0] = 0;
      std::array<std::uint16_t, kByteBits> masks{};
      for (unsigned bit = 0; bit < kLines; ++bit)
        if (order[bit] / kByteBits == half)
          masks[order[bit] % kByteBits] = static_cast<std::uint16_t>(1U << bit);
      for (unsigned levels = 1; levels < 256; ++levels)
        table_[half][levels] =
            static_cast<std::uint16_t>(table_[half][levels & (levels - 1)] |
                                       masks[static_cast<unsigned>(std::countr_zero(levels))]);
    }
  }

  double weight() {
    double sum = 0;
    for (const Tried& tried : tried_) sum += best_fit(tried).weight();
    return sum;
  }
  struct Explained {
    std::size_t count = 0, of = 0;
    double bits = 0;  ///< more than chance has
  };
  Explained explained() {
    Explained out;
    out.of = tried_.size();
    // A jump of a loop counts once, however far the fetches behind it went.
    std::set<std::pair<std::uint32_t, std::uint32_t>> jumps;
    for (const Tried& tried : tried_) {
      best_fit(tried);
      if (exact_ == nullptr) continue;
      const RawTransfer& transfer = *tried.transfer;
      const std::uint32_t from = exact_->kind == Candidate::Kind::read
                                     ? ~std::uint32_t{0}
                                     : transfer.code[exact_->at].place;
      if (!jumps.emplace(from, transfer.target).second) continue;
      ++out.count;
      out.bits += exact_bits_ - kChanceBits;
    }
    return out;
  }

 private:
  std::vector<Candidate> candidates_of(const RawTransfer& transfer) const {
    std::vector<Candidate> out;
    const auto& code = transfer.code;
    for (std::size_t i = 0; i + 1 < code.size(); ++i) {
      for (const std::uint32_t target : {transfer.target, transfer.target + 1}) {
        // A fetch may begin a byte before its target.
        if (target != transfer.target && transfer.target % 2 != 0) continue;
        const std::uint32_t distance = (target - code[i].place) & mask_;
        if (is_near_by((distance - 2) & mask_))
          out.push_back({Candidate::Kind::near_by, i, (distance - 2) & mask_});
        if (i + 2 < code.size()) out.push_back({Candidate::Kind::near, i, (distance - 3) & mask_});
        if (i + 4 < code.size()) out.push_back({Candidate::Kind::far, i, target & mask_});
      }
    }
    add_reads(transfer, out);
    return out;
  }
  /// The bits above are those of a number with a sign.
  bool is_near_by(std::uint32_t distance) const {
    const unsigned low = std::min(bits_, kByteBits) - 1;
    return distance >> low == 0 || distance >> low == mask_ >> low;
  }
  /// A vector, or what RETF and IRET read: IP and CS are the last four bytes, the last but FLAGS,
  /// or behind FLAGS.
  void add_reads(const RawTransfer& transfer, std::vector<Candidate>& out) const {
    const auto& read = transfer.read;
    for (std::size_t end = read.size(); end >= kFarBytes && end + 2 >= read.size(); end -= 2) {
      const std::size_t begin = end - kFarBytes;
      bool contiguous = true;
      for (std::size_t i = begin + 1; i < end; ++i)
        contiguous = contiguous && read[i].place == ((read[i - 1].place + 1) & mask_);
      if (contiguous) out.push_back({Candidate::Kind::read, begin, transfer.target & mask_});
    }
  }

  unsigned value(const RawByte& raw) const {
    const unsigned word = table_[0][raw.lines & 0xff] | table_[1][raw.lines >> 8];
    return (raw.upper ? word >> kByteBits : word) & 0xff;
  }
  static unsigned differ(unsigned a, unsigned b) {
    return static_cast<unsigned>(std::popcount(a ^ b));
  }

  Fit best_fit(const Tried& tried) {
    Fit best;
    exact_bits_ = 0;
    exact_ = nullptr;
    std::array<unsigned, kMostBytes> code{};
    const auto& raw = tried.transfer->code;
    for (std::size_t i = 0; i < std::min(raw.size(), kMostBytes); ++i) code[i] = value(raw[i]);
    for (const Candidate& c : tried.candidates) {
      const Fit fit = c.kind == Candidate::Kind::read
                          ? fit_pointer(value_of_read(*tried.transfer, c.at), c.to, 0, 0)
                          : fit_code(&code[c.at], c);
      if (fit.wrong == 0 && fit.bits >= kFewestBits && fit.bits > exact_bits_) {
        exact_bits_ = fit.bits;
        exact_ = &c;
      }
      if (fit.weight() > best.weight()) best = fit;
    }
    return best;
  }

  Fit fit_code(const unsigned* code, const Candidate& c) const {
    constexpr unsigned kWordBits = 16;
    if (c.kind == Candidate::Kind::near_by) {
      const unsigned compared = std::min(bits_, kByteBits);
      const unsigned wrong =
          differ(code[1] & ((1U << compared) - 1), c.to & ((1U << compared) - 1));
      // Jcc; LOOP and JCXZ; JMP.
      Fit best{compared + 4, wrong + differ(code[0] & 0xf0, 0x70)};
      for (const Fit& other : {Fit{compared + 6, wrong + differ(code[0] & 0xfc, 0xe0)},
                               Fit{compared + 8, wrong + differ(code[0], 0xeb)}})
        if (other.weight() > best.weight()) best = other;
      return best;
    }
    const unsigned word = code[1] | code[2] << kByteBits;
    if (c.kind == Candidate::Kind::near)
      return {std::min(bits_, kWordBits) + 7,
              differ(code[0] & 0xfe, 0xe8) + differ(word & mask_, c.to & 0xffff)};
    const unsigned pointer = word | (code[3] | code[4] << kByteBits) << kWordBits;
    return fit_pointer(pointer, c.to, 7, std::min(differ(code[0], 0xea), differ(code[0], 0x9a)));
  }
  unsigned value_of_read(const RawTransfer& transfer, std::size_t at) const {
    unsigned pointer = 0;
    for (std::size_t i = kFarBytes; i-- != 0;)
      pointer = pointer << kByteBits | value(transfer.read[at + i]);
    return pointer;
  }
  Fit fit_pointer(unsigned pointer, std::uint32_t target, unsigned more_bits,
                  unsigned more_wrong) const {
    const unsigned address = (pointer >> 16) * 16 + (pointer & 0xffff);
    return {bits_ + more_bits, more_wrong + differ(address & mask_, target)};
  }

  static constexpr std::size_t kMostBytes = 32;  // of code before a transfer

  unsigned bits_;
  std::uint32_t mask_;
  std::vector<Tried> tried_;
  std::array<std::array<std::uint16_t, 256>, 2> table_{};
  const Candidate* exact_ = nullptr;  ///< what fits the transfer that was looked at last
  unsigned exact_bits_ = 0;
};

/// The order is looked for by exchanging two lines again and again (simulated annealing).
class OrderSearch {
 public:
  OrderSearch(const std::vector<RawTransfer>& transfers, unsigned known_bits,
              const std::array<std::optional<std::size_t>, kLines>& fixed)
      : fits_(transfers, known_bits, kTransfersTried),
        counted_(transfers, known_bits, kTransfersCounted) {
    std::vector<bool> taken(kLines);
    for (const auto& line : fixed)
      if (line) taken[*line] = true;
    for (std::size_t line = 0; line < kLines; ++line)
      if (!taken[line]) lines_.push_back(line);
    for (unsigned bit = 0; bit < kLines; ++bit) {
      if (fixed[bit]) {
        best_[bit] = *fixed[bit];
      } else {
        free_.push_back(bit);
      }
    }
  }

  std::optional<DataOrder> run() {
    constexpr int kRuns = 6;
    TransferFits::Explained most;
    for (int run = 0; run < (free_.size() > 1 ? kRuns : 1); ++run) {
      const Order order = anneal();
      counted_.set_order(order);
      const TransferFits::Explained explained = counted_.explained();
      if (run == 0 || explained.count > most.count) {
        most = explained;
        best_ = order;
      }
      if (most.bits >= 2 * bits_needed() && most.count * 3 >= most.of) break;
    }
    most = polish(most);
    if (most.bits < bits_needed()) return std::nullopt;
    DataOrder out{best_, most.count, most.of, {}};
    for (std::size_t a = 0; a < free_.size(); ++a)
      for (std::size_t b = a + 1; b < free_.size(); ++b)
        if (exchanged(free_[a], free_[b]).count + 1 >= most.count)
          out.alike.emplace_back(free_[a], free_[b]);
    if (out.alike.size() > kMostAlike) return std::nullopt;
    return out;
  }

 private:
  TransferFits::Explained exchanged(unsigned a, unsigned b) {
    Order order = best_;
    std::swap(order[a], order[b]);
    counted_.set_order(order);
    return counted_.explained();
  }

  /// Exchanges lines of the best order while more transfers fit.
  TransferFits::Explained polish(TransferFits::Explained most) {
    for (bool better = true; better;) {
      better = false;
      for (std::size_t a = 0; a < free_.size(); ++a) {
        for (std::size_t b = a + 1; b < free_.size(); ++b) {
          const auto found = exchanged(free_[a], free_[b]);
          if (found.count <= most.count) continue;
          std::swap(best_[free_[a]], best_[free_[b]]);
          most = found;
          better = true;
        }
      }
    }
    return most;
  }

  /// As many as tell one order of the free lines from all others.
  double bits_needed() const {
    return std::lgamma(static_cast<double>(free_.size()) + 1) / std::log(2.0) + kMarginBits;
  }

  Order anneal() {
    constexpr int kSteps = 6000;
    constexpr double kHot = 12, kCold = 0.3;
    Order order = best_;
    std::shuffle(lines_.begin(), lines_.end(), random_);
    for (std::size_t i = 0; i < free_.size(); ++i) order[free_[i]] = lines_[i];
    if (free_.size() < 2) return order;
    const auto weight_of = [&] {
      fits_.set_order(order);
      return fits_.weight();
    };
    double now = weight_of(), highest = now;
    Order best = order;
    for (int step = 0; step < kSteps; ++step) {
      const unsigned a = free_[random_() % free_.size()], b = free_[random_() % free_.size()];
      if (a == b) continue;
      std::swap(order[a], order[b]);
      const double then = weight_of();
      const double heat = kHot * std::pow(kCold / kHot, static_cast<double>(step) / kSteps);
      const double chance = static_cast<double>(random_() % 65536) / 65536;
      if (then < now && chance >= std::exp((then - now) / heat)) {
        std::swap(order[a], order[b]);
        continue;
      }
      now = then;
      if (now > highest) {
        highest = now;
        best = order;
      }
    }
    return best;
  }

  TransferFits fits_, counted_;
  std::mt19937_64 random_{1};
  std::vector<std::size_t> lines_;  ///< that are not fixed
  std::vector<unsigned> free_;      ///< bits
  Order best_{};
};

}  // namespace

std::optional<DataOrder> order_data_lines(
    const std::vector<RawTransfer>& transfers, unsigned known_bits,
    const std::array<std::optional<std::size_t>, DataOrder::kLines>& fixed) {
  return OrderSearch(transfers, known_bits, fixed).run();
}

}  // namespace citcat
