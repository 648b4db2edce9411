#include "events/archive/evidence_codec.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/io/column.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

// A step is the transaction's operation | size << 8 | flags << 16, and above that how the rest is
// told. Every field of `how` is zero where the transaction has no such thing.
constexpr unsigned kHowShift = 32;
using Layout = StepLayout;
using Iteration = Layout::Iteration;
constexpr unsigned kAddressShift = Layout::kAddressShift, kClockShift = Layout::kClockShift;
constexpr unsigned kInstructionShift = Layout::kInstructionShift;
constexpr unsigned kIterationShift = Layout::kIterationShift, kIndexShift = Layout::kIndexShift;
constexpr unsigned kHowBits = Layout::kBits;
constexpr std::uint64_t kInColumn = Layout::kInColumn;
/// Above the step, in what is told of it: the number of the window that the address lies in.
constexpr unsigned kWindowShift = kHowBits;
constexpr std::uint64_t kMaxWindows = std::uint64_t{1} << (64 - kHowShift - kWindowShift);
static_assert(kMaxWindows > kEvidenceChunkTransactions);

constexpr std::array<std::uint8_t, 4> kAddressBytes{0, 1, 2, 4};

/// Transactions that are packed at a time.
constexpr std::size_t kBlock = 256;
constexpr std::size_t kFirstLookupSize = 1024;
constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
constexpr unsigned kNumberBits = 16;
/// Leaves as many bits of a hash as number the steps met lately.
constexpr unsigned kRecentShift = 22;
constexpr unsigned kRecentKeysShift = 21;
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
  // By borrows, because lengths change from transaction to transaction: comparisons may become
  // branches.
  const auto above = [folded](std::uint64_t most) {
    return static_cast<unsigned>((most - folded) >> 63);
  };
  return above(0) + above(0xff) + above(0xffff);
}

Iteration iteration_of(std::uint32_t iteration, std::uint32_t previous) {
  if (iteration == 0) return Layout::kZero;
  if (iteration == previous) return Layout::kSame;
  return iteration == previous + 1 ? Layout::kOneMore : Layout::kOther;
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
      clock_(kEvidenceChunkTransactions + SimdEvidence::kBehind),
      instruction_(kEvidenceChunkTransactions + SimdEvidence::kBehind),
      address_(kEvidenceChunkTransactions * sizeof(std::uint32_t) + SimdEvidence::kBehind) {
  recent_.fill(kNoStep);
  recent_keys_.fill(kNoStep);
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

std::uint64_t EvidenceEncoder::number_window(std::uint32_t upper) {
  const auto known = std::find(windows_.begin(), windows_.end(), upper);
  const auto before = static_cast<std::uint64_t>(known - windows_.begin());
  if (known == windows_.end()) windows_.push_back(upper);
  return before + 1;
}

void EvidenceEncoder::grow_lookup() {
  const std::vector<std::uint64_t> steps = std::exchange(steps_, {});
  lookup_.assign(4 * lookup_.size(), 0);
  for (const std::uint64_t step : steps) look_up(step);
}

namespace {

std::uint64_t shape_of(BusOp op, std::uint8_t size, unsigned flags) {
  return static_cast<std::uint64_t>(op) | std::uint64_t{size} << 8 | std::uint64_t{flags} << 16;
}

// The fields of transactions, and of records, in the order in which they are packed.

class TransactionFields {
 public:
  static constexpr std::size_t kDataBytes = kMaxTransactionBytes;
  explicit TransactionFields(std::span<const BusTransaction> block) : block_(block) {
    for (const BusTransaction& t : block)
      CITCAT_ASSERT(t.size <= kMaxTransactionBytes && static_cast<int>(t.op) < kBusOpCount);
  }
  std::size_t size() const { return block_.size(); }
  std::uint64_t index(std::size_t i) const { return block_[i].index; }
  BusOp op(std::size_t i) const { return block_[i].op; }
  std::uint32_t bytes(std::size_t i) const { return block_[i].size; }
  std::uint64_t shape(std::size_t i) const {
    return shape_of(block_[i].op, block_[i].size, block_[i].flags);
  }
  /// Its lower half, and the upper one.
  std::uint32_t address(std::size_t i) const { return block_[i].address.low32(); }
  std::uint32_t upper(std::size_t i) const {
    return static_cast<std::uint32_t>(block_[i].address.value >> 32);
  }
  bool clock_known(std::size_t i) const { return block_[i].has(kClockKnown); }
  std::uint64_t clock(std::size_t i) const { return block_[i].clock; }
  bool position_known(std::size_t i) const { return block_[i].has(kPositionKnown); }
  std::uint64_t instruction(std::size_t i) const { return block_[i].position.instruction; }
  std::uint32_t iteration(std::size_t i) const { return block_[i].position.iteration; }
  std::span<const std::uint8_t, kDataBytes> data(std::size_t i) const { return block_[i].data; }
  std::size_t kept_data(std::size_t i) const { return keeps_data(op(i)) ? bytes(i) : 0; }

 private:
  std::span<const BusTransaction> block_;
};

class RunFields {
 public:
  static constexpr std::size_t kDataBytes = kBusRecordData;
  explicit RunFields(const AccessRun& run)
      : run_(run),
        counted_(run.counted ? unsigned{kPositionKnown} : 0U),
        clock_known_((run.flags & kClockKnown) != 0) {}
  std::size_t size() const { return run_.size(); }
  /// Only the first may go on from another one.
  std::uint64_t index(std::size_t i) const { return run_.index + i; }
  BusOp op(std::size_t i) const { return run_.kind(i).op; }
  std::uint32_t bytes(std::size_t i) const { return run_.kind(i).size; }
  std::uint64_t shape(std::size_t i) const {
    const RunKind& kind = run_.kind(i);
    return shape_of(kind.op, kind.size, kind.flags | counted_);
  }
  std::uint32_t address(std::size_t i) const { return run_.record(i).address; }
  std::uint32_t upper(std::size_t) const { return 0; }
  bool clock_known(std::size_t /*i*/) const { return clock_known_; }
  std::uint64_t clock(std::size_t i) const { return run_.high_clock + run_.record(i).clock; }
  bool position_known(std::size_t /*i*/) const { return counted_ != 0; }
  std::uint64_t instruction(std::size_t i) const { return run_.record(i).instructions - run_.base; }
  std::uint32_t iteration(std::size_t i) const { return run_.record(i).iterations; }
  std::span<const std::uint8_t, kDataBytes> data(std::size_t i) const {
    return run_.records.subspan((i + 1) * kBusRecordBytes - kDataBytes).first<kDataBytes>();
  }
  std::size_t kept_data(std::size_t i) const { return run_.kind(i).kept_data; }

 private:
  const AccessRun run_;
  const unsigned counted_;
  const bool clock_known_;
};

}  // namespace

void EvidenceEncoder::add(std::span<const BusTransaction> transactions) {
  CITCAT_ASSERT(transactions.size() <= kEvidenceChunkTransactions - size());
  while (!transactions.empty()) {
    const auto block = transactions.first(std::min(transactions.size(), kBlock));
    add_block(TransactionFields(block));
    transactions = transactions.subspan(block.size());
  }
}

void EvidenceEncoder::add(const AccessRun& run) {
  CITCAT_ASSERT(run.size() <= kBlock && run.size() <= kEvidenceChunkTransactions - size());
  if (!add_wide(run)) add_block(RunFields(run));
}

/// Sixteen at a time, where the run has columns. False, and nothing done, for others.
bool EvidenceEncoder::add_wide(const AccessRun& run) {
  constexpr unsigned kKnown = kPositionKnown | kClockKnown;
  const unsigned known = run.flags | (run.counted ? unsigned{kPositionKnown} : 0U);
  if (run.columns == nullptr || run.empty() || (known & kKnown) != kKnown) return false;
  const AccessColumns& columns = *run.columns;
  const std::size_t last = run.column + run.size() - 1;
  const std::uint64_t first_clock = run.high_clock + columns.clock[run.column];
  if (first_clock - previous_.clock > ~std::uint32_t{0}) return false;

  std::copy_n(previous_.address.begin(), wide_.address.size(), wide_.address.begin());
  wide_.clock = static_cast<std::uint32_t>(previous_.clock);
  wide_.iteration = previous_.iteration;
  wide_.instruction = previous_.instruction + run.base;
  wide_.address_bytes = address_.data() + address_bytes_;
  wide_.clocks = clock_.data() + clocks_;
  wide_.instructions = instruction_.data() + instructions_;
  wide_.pack(run, unsigned{kPositionKnown} << kShapeFlagsShift);
  std::copy(wide_.address.begin(), wide_.address.end(), previous_.address.begin());
  previous_.clock = run.high_clock + columns.clock[last];
  previous_.iteration = columns.iterations[last];
  previous_.instruction = columns.instructions[last] - run.base;
  address_bytes_ += wide_.address_count;
  clocks_ += wide_.clock_count;
  instructions_ += wide_.instruction_count;
  if (run.index != previous_.index) {
    index_.push_back(run.index - previous_.index);
    wide_.key[0] |= 1U << (kShapeBits + kIndexShift);
  }
  previous_.index = run.index + run.size();
  for (const std::uint32_t i : std::span(wide_.others).first(wide_.other_count))
    iteration_.push_back(columns.iterations[run.column + i]);
  add_data(run);
  add_keys(std::span(wide_.key).first(run.size()));
  size_ += run.size();
  return true;
}

/// Adds the data of a run's writes.
void EvidenceEncoder::add_data(const AccessRun& run) {
  const std::size_t most = data_bytes_ + wide_.write_count * kBusRecordData;
  if (data_.size() < most) data_.resize(2 * most);
  const std::span<std::uint8_t> data = data_;
  std::size_t data_bytes = data_bytes_;
  for (const std::uint32_t i : std::span(wide_.writes).first(wide_.write_count)) {
    const auto bytes = run.records.subspan((i + 1) * kBusRecordBytes - kBusRecordData);
    std::memcpy(&data[data_bytes], bytes.data(), kBusRecordData);
    data_bytes += wide_.key[i] >> kShapeSizeShift & 31;
  }
  data_bytes_ = data_bytes;
}

/// Steps as shape, and `how` above it.
void EvidenceEncoder::add_keys(std::span<const std::uint32_t> keys) {
  const auto numbers = std::span(number_).subspan(size_, keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::uint32_t key = keys[i];
    std::uint64_t& recent = recent_keys_[key * 0x9e3779b1U >> kRecentKeysShift];
    if (recent >> kNumberBits != key) [[unlikely]] {
      const std::uint64_t shape = shape_of(static_cast<BusOp>(key & 3),
                                           static_cast<std::uint8_t>(key >> kShapeSizeShift & 31),
                                           key >> kShapeFlagsShift & 0xff);
      const std::uint64_t how = key >> kShapeBits;
      recent = std::uint64_t{key} << kNumberBits | look_up(shape | how << kHowShift);
    }
    numbers[i] = static_cast<std::uint16_t>(recent);
  }
}

// Everything is written that may be needed, and counted where it is: few of the conditions can be
// foretold. In two passes, so that what each goes on from stays in registers.

template <typename Fields>
void EvidenceEncoder::add_block(const Fields& block) {
  std::array<std::uint32_t, kBlock> how;
  add_addresses(block, how);
  add_indexes(block, how);
  add_steps(block, how);
  size_ += block.size();
}

/// Addresses and data.
template <typename Fields>
void EvidenceEncoder::add_addresses(const Fields& block, std::span<std::uint32_t> how) {
  const std::size_t most = data_bytes_ + block.size() * Fields::kDataBytes;
  if (data_.size() < most) data_.resize(2 * most);
  const std::span<std::uint8_t> addresses = address_, data = data_;
  auto behind = previous_.address;
  std::size_t address_bytes = address_bytes_, data_bytes = data_bytes_;
  for (std::size_t i = 0; i < block.size(); ++i) {
    std::uint32_t& expected = behind[static_cast<std::size_t>(block.op(i))];
    const std::uint32_t folded = zigzag(block.address(i) - expected);
    expected = block.address(i) + block.bytes(i);
    const unsigned length = address_length(folded);
    how[i] = length << kAddressShift;
    std::memcpy(&addresses[address_bytes], &folded, sizeof folded);
    address_bytes += kAddressBytes[length];
    std::memcpy(&data[data_bytes], block.data(i).data(), Fields::kDataBytes);
    data_bytes += block.kept_data(i);
  }
  previous_.address = behind;
  address_bytes_ = address_bytes;
  data_bytes_ = data_bytes;
}

template <typename Fields>
void EvidenceEncoder::add_indexes(const Fields& block, std::span<std::uint32_t> how) {
  std::uint64_t expected = previous_.index;
  for (std::size_t i = 0; i < block.size(); ++i, ++expected) {
    if (block.index(i) == expected) [[likely]]
      continue;
    index_.push_back(block.index(i) - expected);
    how[i] |= 1U << kIndexShift;
    expected = block.index(i);
  }
  previous_.index = expected;
}

/// Clocks and positions, and the steps that they complete.
template <typename Fields>
void EvidenceEncoder::add_steps(const Fields& block, std::span<const std::uint32_t> how) {
  const auto numbers = std::span(number_).subspan(size_, block.size());
  const std::span<std::uint64_t> clock = clock_, instruction = instruction_;
  EvidencePrevious previous = previous_;
  std::size_t clocks = clocks_, instructions = instructions_;
  for (std::size_t i = 0; i < block.size(); ++i) {
    std::uint64_t its = how[i] | window_of(block.upper(i)) << kWindowShift;
    if (block.clock_known(i)) {
      const std::uint64_t more = block.clock(i) - previous.clock;
      previous.clock = block.clock(i);
      its |= std::min(more, kInColumn) << kClockShift;
      clock[clocks] = more;
      clocks += more >= kInColumn ? 1 : 0;
    }
    if (block.position_known(i)) {
      const std::uint64_t more = block.instruction(i) - previous.instruction;
      previous.instruction = block.instruction(i);
      its |= std::min(more, kInColumn) << kInstructionShift;
      instruction[instructions] = more;
      instructions += more >= kInColumn ? 1 : 0;
      const std::uint32_t now = block.iteration(i);
      if ((now | previous.iteration) != 0) [[unlikely]] {
        const Iteration iteration = iteration_of(now, previous.iteration);
        its |= unsigned{iteration} << kIterationShift;
        if (iteration == Layout::kOther) iteration_.push_back(now);
        previous.iteration = now;
      }
    }
    const std::uint64_t step = block.shape(i) | its << kHowShift;
    std::uint64_t& recent = recent_[hash_of(step) >> kRecentShift];
    if (recent >> kNumberBits != step) [[unlikely]]
      recent = step << kNumberBits | look_up(step);
    numbers[i] = static_cast<std::uint16_t>(recent);
  }
  previous_.clock = previous.clock;
  previous_.instruction = previous.instruction;
  previous_.iteration = previous.iteration;
  clocks_ = clocks;
  instructions_ = instructions;
}

void EvidenceEncoder::clear() {
  steps_.clear();
  windows_.clear();
  std::fill(lookup_.begin(), lookup_.end(), std::uint32_t{0});
  recent_.fill(kNoStep);
  recent_keys_.fill(kNoStep);
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
  if (!windows_.empty()) {
    out.varint(windows_.size());
    for (const std::uint32_t upper : windows_) out.varint(upper);
  }
  return out.take();
}

EvidenceChunk::EvidenceChunk(ByteReader& in) {
  const std::size_t count = in.count("transactions", kEvidenceChunkTransactions);
  const std::size_t steps = in.count("steps", kMaxSteps);
  steps_.reserve(std::min(steps, in.remaining()));
  for (std::size_t i = 0; i < steps; ++i) steps_.push_back(read_step(in));
  read_numbers(in, count);
  const Needed need = needed();
  // The bytes after those of the last field are read together with them.
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
  read_windows(in);
  in.expect_end("the evidence chunk");
}

/// What the windows of steps are.
void EvidenceChunk::read_windows(ByteReader& in) {
  constexpr std::uint64_t kLast = (std::uint64_t{1} << (kAddressBits - 32)) - 1;
  std::vector<std::uint64_t> upper(1);
  if (in.remaining() != 0) {
    upper.resize(1 + in.count("windows", in.remaining()));
    if (upper.size() == 1) in.fail("windows: expected some, or nothing about them");
  }
  for (std::size_t i = 1; i < upper.size(); ++i) upper[i] = in.count("window", kLast) << 32;
  for (Step& step : steps_) {
    if (step.upper >= upper.size()) in.fail("step: expected the number of a window of addresses");
    step.upper = upper[step.upper];
  }
}

EvidenceChunk::Step EvidenceChunk::read_step(ByteReader& in) {
  const std::uint64_t shape = in.count("step", 0xffffffff);
  const std::uint64_t how = in.count("step", 0xffffffff);
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
  step.upper = how >> kWindowShift;
  if (step.clock > kInColumn || step.instruction > kInColumn) {
    in.fail("step: expected differences of at most 16");
  }
  step.may_continue = step.address_bytes == 0 && step.index_known && step.instruction == 0 &&
                      step.iteration != Layout::kOneMore && step.iteration != Layout::kOther;
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
    need.iteration += step.iteration == Layout::kOther ? times[i] : 0;
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

inline void EvidenceChunk::take_clock(const Step& step) {
  previous_.clock += step.clock == kInColumn ? unzigzag(clock_[clock_at_++]) : step.clock;
}

inline void EvidenceChunk::take_data(const Step& step, std::uint8_t* to) {
  if (step.data_bytes == 0) return;
  std::memcpy(to, &data_[data_at_], step.data_bytes);
  data_at_ += step.data_bytes;
}

std::size_t EvidenceChunk::next_lines(std::span<BusTransaction> out,
                                      std::span<std::uint8_t> parts) {
  constexpr unsigned kJoined = kLine | kPositionKnown;
  std::size_t done = 0;
  for (; done < out.size() && at_ < size(); ++done) {
    BusTransaction& t = out[done];
    decode(steps_[number_[at_++]], t);
    parts[done] = (t.flags & kJoined) == kJoined ? join(t) : std::uint8_t{1};
  }
  return done;
}

/// Takes what follows into `line`, as long as it belongs to it. Returns how many transactions it
/// is.
inline std::uint8_t EvidenceChunk::join(BusTransaction& line) {
  const std::uint32_t part = line.size;
  std::uint8_t parts = 1;
  for (; at_ < size(); ++at_, ++parts) {
    const Step& step = steps_[number_[at_]];
    if (!continues(step, line, part)) break;
    extend(line, step);
  }
  return parts;
}

inline bool EvidenceChunk::continues(const Step& step, const BusTransaction& line,
                                     std::uint32_t part) const {
  const bool alike = step.op == line.op && step.flags == line.flags && step.size == part &&
                     step.upper >> 32 == line.address.value >> 32;
  const bool same_place = step.iteration == Layout::kSame || previous_.iteration == 0;
  // None crosses a boundary of so many bytes, or is empty.
  const std::uint32_t begin = line.address.offset_in(kMaxTransactionBytes);
  return step.may_continue && alike && same_place && part != 0 &&
         begin + line.size + part <= kMaxTransactionBytes;
}

/// As decode(), of what continues `line`.
inline void EvidenceChunk::extend(BusTransaction& line, const Step& step) {
  line.index = previous_.index++;
  previous_.address[static_cast<std::size_t>(step.op)] += step.size;
  take_clock(step);
  take_data(step, &line.data[line.size]);
  line.size = static_cast<std::uint8_t>(line.size + step.size);
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
  const std::uint32_t low = behind + unzigzag(folded & step.address_mask);
  out.address.value = step.upper | low;
  behind = low + step.size;

  take_clock(step);
  out.clock = (step.flags & kClockKnown) != 0 ? previous_.clock : 0;
  out.position = {};
  if ((step.flags & kPositionKnown) != 0) {
    previous_.instruction += step.instruction == kInColumn
                                 ? unzigzag(instruction_[instruction_at_++])
                                 : step.instruction;
    if (step.iteration == Layout::kZero) {
      previous_.iteration = 0;
    } else if (step.iteration == Layout::kOther) {
      previous_.iteration = static_cast<std::uint32_t>(iteration_[iteration_at_++]);
    } else {
      previous_.iteration += step.iteration == Layout::kOneMore ? 1 : 0;
    }
    out.position = {previous_.instruction, previous_.iteration};
  }
  out.data = {};
  take_data(step, out.data.data());
}

}  // namespace citcat
