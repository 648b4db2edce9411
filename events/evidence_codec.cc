#include "events/evidence_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "formats/column.h"
#include "formats/error.h"

namespace citcat {
namespace {

// A step is the transaction's operation | size << 8 | flags << 16, and above that how the rest is
// told. Every field of `how` is zero where the transaction has no such thing.
constexpr unsigned kHowShift = 32;
constexpr unsigned kAddressShift = 0;      ///< two bits: 0, 1, 2 or 4 bytes of difference
constexpr unsigned kClockShift = 2;        ///< five bits: the difference, or kInColumn
constexpr unsigned kInstructionShift = 7;  ///< five bits: the difference, or kInColumn
constexpr unsigned kIterationShift = 12;   ///< two bits: Iteration
constexpr unsigned kIndexShift = 14;       ///< 1: index in the column, 0: follows the one before
constexpr unsigned kHowBits = 15;
constexpr std::uint64_t kInColumn = 16;

enum Iteration : std::uint8_t { kZero, kSame, kOneMore, kOther };

constexpr std::array<std::uint8_t, 4> kAddressBytes{0, 1, 2, 4};

/// Transactions that are packed at a time.
constexpr std::size_t kBlock = 256;
constexpr std::size_t kFirstLookupSize = 1024;
constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
constexpr unsigned kNumberBits = 16;
/// More distinct steps than transactions of a chunk cannot be.
constexpr std::uint64_t kMaxSteps = kEvidenceChunkTransactions;
static_assert(kMaxSteps <= std::uint64_t{1} << kNumberBits);

bool keeps_data(BusOp op) { return op != BusOp::code_read && op != BusOp::data_read; }

/// Its highest bits are the best.
std::uint32_t hash_of(std::uint64_t step) {
  return static_cast<std::uint32_t>(step * 0x9e3779b97f4a7c15 >> 32);
}

std::uint32_t zigzag(std::uint32_t difference) {
  return difference << 1 ^ (0 - (difference >> 31));
}
std::uint32_t unzigzag(std::uint32_t folded) { return folded >> 1 ^ (~(folded & 1) + 1); }
std::uint64_t zigzag(std::uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}
std::uint64_t unzigzag(std::uint64_t folded) { return folded >> 1 ^ (~(folded & 1) + 1); }

/// Index of the shortest of kAddressBytes that hold a folded difference.
unsigned address_length(std::uint32_t folded) {
  // A sum, because lengths change from transaction to transaction.
  return (folded != 0 ? 1U : 0U) + (folded > 0xff ? 1U : 0U) + (folded > 0xffff ? 1U : 0U);
}

Iteration iteration_of(std::uint32_t iteration, std::uint32_t previous) {
  if (iteration == 0) return kZero;
  if (iteration == previous) return kSame;
  return iteration == previous + 1 ? kOneMore : kOther;
}

/// A column of numbers that are rare, whatever they are.
void write_rest(ByteWriter& out, std::span<const std::uint64_t> values) {
  const bool constant =
      std::all_of(values.begin(), values.end(), [&](auto value) { return value == values[0]; });
  write_column(out, values, constant ? ColumnForm::constant : ColumnForm::plain);
}

}  // namespace

EvidenceEncoder::EvidenceEncoder()
    : lookup_(kFirstLookupSize),
      clock_(kEvidenceChunkTransactions + 1),
      instruction_(kEvidenceChunkTransactions + 1),
      address_(kEvidenceChunkTransactions * sizeof(std::uint32_t)) {
  recent_.fill(kNoStep);
}

std::uint16_t EvidenceEncoder::look_up(std::uint64_t step) {
  // Open addressing; the table is at least twice as large as the steps are many.
  if (2 * steps_.size() >= lookup_.size()) grow_lookup();
  const std::size_t mask = lookup_.size() - 1;
  for (std::size_t slot = hash_of(step) >> 8 & mask;; slot = (slot + 1) & mask) {
    const std::uint32_t found = lookup_[slot];
    if (found != 0 && steps_[found - 1U] == step) return static_cast<std::uint16_t>(found - 1);
    if (found != 0) continue;
    steps_.push_back(step);
    lookup_[slot] = static_cast<std::uint32_t>(steps_.size());
    return static_cast<std::uint16_t>(steps_.size() - 1);
  }
}

void EvidenceEncoder::grow_lookup() {
  const std::vector<std::uint64_t> steps = std::exchange(steps_, {});
  lookup_.assign(4 * lookup_.size(), 0);
  for (const std::uint64_t step : steps) look_up(step);
}

void EvidenceEncoder::add(std::span<const BusTransaction> transactions) {
  CITCAT_ASSERT(transactions.size() <= kEvidenceChunkTransactions - size());
  while (!transactions.empty()) {
    const auto block = transactions.first(std::min(transactions.size(), kBlock));
    add_block(block);
    transactions = transactions.subspan(block.size());
  }
}

/// Everything is written that may be needed, and counted where it is: few of the conditions can be
/// foretold.
void EvidenceEncoder::add_block(std::span<const BusTransaction> block) {
  const std::size_t most = data_bytes_ + block.size() * kMaxTransactionBytes;
  if (data_.size() < most) data_.resize(2 * most);
  EvidencePrevious previous = previous_;
  std::size_t clocks = clocks_, instructions = instructions_;
  std::size_t address_bytes = address_bytes_, data_bytes = data_bytes_;
  for (const BusTransaction& t : block) {
    CITCAT_ASSERT(t.size <= kMaxTransactionBytes && static_cast<int>(t.op) < kBusOpCount);
    std::uint64_t how = 0;
    if (t.index != previous.index) [[unlikely]] {
      index_.push_back(t.index - previous.index);
      how |= 1U << kIndexShift;
    }
    previous.index = t.index + 1;

    std::uint32_t& behind = previous.address[static_cast<std::size_t>(t.op)];
    const std::uint32_t folded = zigzag(t.address.value - behind);
    behind = t.address.value + t.size;
    const unsigned length = address_length(folded);
    how |= length << kAddressShift;
    std::memcpy(&address_[address_bytes], &folded, sizeof folded);
    address_bytes += kAddressBytes[length];

    if (t.has(kClockKnown)) {
      const std::uint64_t more = t.clock - previous.clock;
      previous.clock = t.clock;
      how |= std::min(more, kInColumn) << kClockShift;
      clock_[clocks] = more;
      clocks += more >= kInColumn ? 1 : 0;
    }
    if (t.has(kPositionKnown)) {
      const std::uint64_t more = t.position.instruction - previous.instruction;
      previous.instruction = t.position.instruction;
      how |= std::min(more, kInColumn) << kInstructionShift;
      instruction_[instructions] = more;
      instructions += more >= kInColumn ? 1 : 0;
      if ((t.position.iteration | previous.iteration) != 0) [[unlikely]] {
        const Iteration iteration = iteration_of(t.position.iteration, previous.iteration);
        how |= unsigned{iteration} << kIterationShift;
        if (iteration == kOther) iteration_.push_back(t.position.iteration);
        previous.iteration = t.position.iteration;
      }
    }

    std::memcpy(&data_[data_bytes], t.data.data(), kMaxTransactionBytes);
    data_bytes += keeps_data(t.op) ? t.size : 0;

    const std::uint64_t step = static_cast<std::uint64_t>(t.op) | std::uint64_t{t.size} << 8 |
                               std::uint64_t{t.flags} << 16 | how << kHowShift;
    std::uint64_t& recent = recent_[hash_of(step) >> 20];
    if (recent >> kNumberBits != step) [[unlikely]]
      recent = step << kNumberBits | look_up(step);
    number_[size_++] = static_cast<std::uint16_t>(recent);
  }
  previous_ = previous;
  clocks_ = clocks;
  instructions_ = instructions;
  address_bytes_ = address_bytes;
  data_bytes_ = data_bytes;
}

void EvidenceEncoder::clear() {
  steps_.clear();
  std::fill(lookup_.begin(), lookup_.end(), std::uint32_t{0});
  recent_.fill(kNoStep);
  size_ = clocks_ = instructions_ = address_bytes_ = data_bytes_ = 0;
  index_.clear();
  iteration_.clear();
  previous_ = {};
}

/// Their lowest bytes, then their highest where some number needs one.
void EvidenceEncoder::write_numbers(ByteWriter& out) const {
  const auto numbers = std::span(number_).first(size_);
  std::vector<std::uint8_t> plane(size_);
  for (unsigned shift = 0; shift == 0 || (shift == 8 && steps_.size() > 256); shift += 8) {
    std::transform(numbers.begin(), numbers.end(), plane.begin(),
                   [shift](auto number) { return static_cast<std::uint8_t>(number >> shift); });
    out.bytes(plane);
  }
}

std::vector<std::uint8_t> EvidenceEncoder::encode() const {
  ByteWriter out;
  out.reserve(size_ * 2 + steps_.size() * 8 + address_bytes_ + data_bytes_ +
              (clocks_ + instructions_) * 3);
  out.varint(size_);
  out.varint(steps_.size());
  for (const std::uint64_t step : steps_) {
    out.varint(step & 0xffffffff);
    out.varint(step >> kHowShift);
  }
  write_numbers(out);
  out.bytes(std::span(address_).first(address_bytes_));
  write_rest(out, index_);
  std::vector<std::uint64_t> folded;
  for (const auto column :
       {std::span(clock_).first(clocks_), std::span(instruction_).first(instructions_)}) {
    folded.resize(column.size());
    std::transform(column.begin(), column.end(), folded.begin(),
                   [](std::uint64_t difference) { return zigzag(difference); });
    write_rest(out, folded);
  }
  write_rest(out, iteration_);
  out.bytes(std::span(data_).first(data_bytes_));
  return out.take();
}

EvidenceChunk::EvidenceChunk(ByteReader& in) {
  const std::size_t count = in.count("transactions", kEvidenceChunkTransactions);
  const std::size_t steps = in.count("steps", kMaxSteps);
  steps_.reserve(std::min(steps, in.remaining()));
  for (std::size_t i = 0; i < steps; ++i) steps_.push_back(read_step(in));
  read_numbers(in, count);
  const Needed need = needed();
  // What stands behind the bytes of the last is read with them.
  const auto read_bytes = [&in](std::size_t bytes, std::size_t behind, const char* field) {
    const auto found = in.bytes(bytes, field);
    std::vector<std::uint8_t> all(bytes + behind);
    std::copy(found.begin(), found.end(), all.begin());
    return all;
  };
  address_ = read_bytes(need.address_bytes, sizeof(std::uint32_t), "transaction addresses");
  index_ = read_column(in, need.index, "transaction index");
  clock_ = read_column(in, need.clock, "transaction clock");
  instruction_ = read_column(in, need.instruction, "transaction position");
  iteration_ = read_column(in, need.iteration, "transaction iteration");
  data_ = read_bytes(need.data_bytes, kMaxTransactionBytes, "transaction data");
  in.expect_end("the evidence chunk");
}

EvidenceChunk::Step EvidenceChunk::read_step(ByteReader& in) {
  const std::uint64_t shape = in.count("step", 0xffffffff);
  const std::uint64_t how = in.count("step", (1U << kHowBits) - 1);
  Step step;
  if ((shape & 0xff) >= kBusOpCount) in.fail("step: expected a transaction kind below 13");
  step.op = static_cast<BusOp>(shape & 0xff);
  step.size = static_cast<std::uint8_t>(shape >> 8 & 0xff);
  if (step.size > kMaxTransactionBytes) in.fail("step: expected at most 32 bytes of data");
  step.flags = static_cast<std::uint16_t>(shape >> 16);
  step.data_bytes = keeps_data(step.op) ? step.size : std::uint8_t{0};
  step.address_bytes = kAddressBytes[how >> kAddressShift & 3];
  step.address_mask =
      static_cast<std::uint32_t>((std::uint64_t{1} << (8 * step.address_bytes)) - 1);
  step.clock = static_cast<std::uint8_t>(how >> kClockShift & 31);
  step.instruction = static_cast<std::uint8_t>(how >> kInstructionShift & 31);
  step.iteration = static_cast<std::uint8_t>(how >> kIterationShift & 3);
  step.index_known = (how >> kIndexShift & 1) == 0;
  if (step.clock > kInColumn || step.instruction > kInColumn) {
    in.fail("step: expected differences of at most 16");
  }
  const bool clock = (step.flags & kClockKnown) != 0 || step.clock == 0;
  const bool position =
      (step.flags & kPositionKnown) != 0 || (step.instruction == 0 && step.iteration == 0);
  if (!clock || !position) in.fail("step: expected no clock or position of what has none");
  return step;
}

void EvidenceChunk::read_numbers(ByteReader& in, std::size_t count) {
  const auto low = in.bytes(count, "transaction steps");
  number_.assign(low.begin(), low.end());
  if (steps_.size() > 256) {
    const auto high = in.bytes(count, "transaction steps");
    for (std::size_t i = 0; i < count; ++i)
      number_[i] = static_cast<std::uint16_t>(number_[i] | high[i] << 8);
  }
  for (const std::uint16_t number : number_) {
    if (number >= steps_.size()) in.fail("transaction steps: expected the number of a step");
  }
}

EvidenceChunk::Needed EvidenceChunk::needed() const {
  std::vector<std::size_t> times(steps_.size());
  for (const std::uint16_t number : number_) ++times[number];
  Needed need;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    need.index += step.index_known ? 0 : times[i];
    need.clock += step.clock == kInColumn ? times[i] : 0;
    need.instruction += step.instruction == kInColumn ? times[i] : 0;
    need.iteration += step.iteration == kOther ? times[i] : 0;
    need.address_bytes += times[i] * step.address_bytes;
    need.data_bytes += times[i] * step.data_bytes;
  }
  return need;
}

std::size_t EvidenceChunk::next_block(std::span<BusTransaction> out) {
  const std::size_t count = std::min(out.size(), size() - at_);
  for (BusTransaction& t : out.first(count)) decode(steps_[number_[at_++]], t);
  return count;
}

inline void EvidenceChunk::decode(const Step& step, BusTransaction& out) {
  out.op = step.op;
  out.size = step.size;
  out.flags = step.flags;
  if (!step.index_known) [[unlikely]]
    previous_.index += index_[index_at_++];
  out.index = previous_.index++;

  std::uint32_t folded;
  std::memcpy(&folded, &address_[address_at_], sizeof folded);
  address_at_ += step.address_bytes;
  std::uint32_t& behind = previous_.address[static_cast<std::size_t>(step.op)];
  out.address.value = behind + unzigzag(folded & step.address_mask);
  behind = out.address.value + step.size;

  previous_.clock += step.clock == kInColumn ? unzigzag(clock_[clock_at_++]) : step.clock;
  out.clock = (step.flags & kClockKnown) != 0 ? previous_.clock : 0;
  out.position = {};
  if ((step.flags & kPositionKnown) != 0) {
    previous_.instruction += step.instruction == kInColumn
                                 ? unzigzag(instruction_[instruction_at_++])
                                 : step.instruction;
    if (step.iteration == kZero) {
      previous_.iteration = 0;
    } else if (step.iteration == kOther) {
      previous_.iteration = static_cast<std::uint32_t>(iteration_[iteration_at_++]);
    } else {
      previous_.iteration += step.iteration == kOneMore ? 1 : 0;
    }
    out.position = {previous_.instruction, previous_.iteration};
  }
  out.data = {};
  if (step.data_bytes != 0) {
    std::memcpy(out.data.data(), &data_[data_at_], step.data_bytes);
    data_at_ += step.data_bytes;
  }
}

}  // namespace citcat
