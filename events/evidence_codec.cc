#include "events/evidence_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "formats/byte_writer.h"
#include "formats/column.h"
#include "formats/error.h"

namespace citcat {

namespace {

constexpr std::size_t kFirstLookupSize = 256;
/// Transactions whose columns are gathered at a time: few enough to stay in the first-level cache.
constexpr std::size_t kBlock = 128;
/// More distinct shapes than transactions of a chunk cannot be.
constexpr std::uint64_t kMaxShapes = kEvidenceChunkTransactions;

bool keeps_data(BusOp op) { return op != BusOp::code_read && op != BusOp::data_read; }

/// op, size and flags in one number: what varies little among neighbours.
std::uint32_t pack_shape(const BusTransaction& t) {
  return static_cast<std::uint32_t>(t.op) | std::uint32_t{t.size} << 8 |
         std::uint32_t{t.flags} << 16;
}

std::uint32_t zigzag32(std::uint32_t difference) {
  return difference << 1 ^ (0 - (difference >> 31));
}
std::uint32_t unzigzag32(std::uint32_t folded) { return folded >> 1 ^ (~(folded & 1) + 1); }
/// As formats/column.cc folds it.
std::uint64_t zigzag64(std::uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}

/// Room that put_varint() may write to, however few bytes it uses.
constexpr std::size_t kMaxVarint = 10;
/// Values that are packed at a time where all of them are small.
constexpr std::size_t kGroup = 8;

/// Writes ByteWriter::varint() of `value` to `out`; returns its length. Lengths change from value
/// to value, so that branching on them costs more than the work.
std::size_t put_varint(std::uint64_t value, std::uint8_t* out) {
  static_assert(std::endian::native == std::endian::little);
  constexpr unsigned kMostBits = 35;  // five bytes: an address, or any but an odd difference
  if (value >> kMostBits != 0) [[unlikely]] {
    std::size_t n = 0;
    for (; value >= 0x80; value >>= 7) out[n++] = static_cast<std::uint8_t>(value | 0x80);
    out[n++] = static_cast<std::uint8_t>(value);
    return n;
  }
  const std::uint64_t spread = (value & 0x7f) | (value & 0x3f80) << 1 | (value & 0x1fc000) << 2 |
                               (value & 0xfe00000) << 3 | (value & 0x7f0000000) << 4;
  // Sums, because searching for the highest bit is slow on some processors.
  const unsigned more = (value >= 1U << 7 ? 1U : 0U) + (value >= 1U << 14 ? 1U : 0U) +
                        (value >= 1U << 21 ? 1U : 0U) + (value >= 1U << 28 ? 1U : 0U);
  const std::uint64_t stored =
      spread | (0x8080808080808080 & ((std::uint64_t{1} << (8 * more)) - 1));
  std::memcpy(out, &stored, sizeof stored);
  return more + 1;
}

/// The same for several; returns the length of all.
std::size_t put_varints(std::span<const std::uint64_t> values, std::uint8_t* out) {
  std::size_t used = 0;
  for (; values.size() >= kGroup; values = values.subspan(kGroup)) {
    const auto group = values.first<kGroup>();
    std::uint64_t bits = 0, packed = 0;
    for (std::size_t i = 0; i < kGroup; ++i) {
      bits |= group[i];
      packed |= group[i] << (8 * i);
    }
    if (bits < 0x80) {
      std::memcpy(&out[used], &packed, sizeof packed);
      used += kGroup;
    } else {
      for (const std::uint64_t value : group) used += put_varint(value, &out[used]);
    }
  }
  for (const std::uint64_t value : values) used += put_varint(value, &out[used]);
  return used;
}

}  // namespace

void GrowingColumn::add(std::span<const std::uint64_t> values) {
  if (constant_ && !values.empty()) {
    if (count_ == 0) first_ = values.front();
    const auto same = std::find_if(values.begin(), values.end(),
                                   [this](std::uint64_t value) { return value != first_; });
    const auto repeated = static_cast<std::size_t>(same - values.begin());
    count_ += repeated;
    values = values.subspan(repeated);
    if (values.empty()) return;
    spill();
  }
  count_ += values.size();
  put(values);
}

void GrowingColumn::put(std::span<const std::uint64_t> values) {
  const std::size_t most = used_ + values.size() * kMaxVarint;
  if (bytes_.size() < most) bytes_.resize(2 * most);
  if (form_ == Form::plain) {
    used_ += put_varints(values, &bytes_[used_]);
    return;
  }
  std::array<std::uint64_t, kBlock> folded;
  while (!values.empty()) {
    const auto block = values.first(std::min(values.size(), kBlock));
    folded[0] = zigzag64(block[0] - previous_);
    for (std::size_t i = 1; i < block.size(); ++i) folded[i] = zigzag64(block[i] - block[i - 1]);
    previous_ = block.back();
    used_ += put_varints(std::span(folded).first(block.size()), &bytes_[used_]);
    values = values.subspan(block.size());
  }
}

void GrowingColumn::spill() {
  constant_ = false;
  put(std::vector(count_, first_));
}

void GrowingColumn::write_to(ByteWriter& out) const {
  if (count_ == 0) return;
  const ColumnForm form = constant_              ? ColumnForm::constant
                          : form_ == Form::plain ? ColumnForm::plain
                                                 : ColumnForm::delta;
  out.u8(static_cast<std::uint8_t>(form));
  if (constant_) {
    out.varint(first_);
  } else {
    out.bytes(std::span(bytes_).first(used_));
  }
}

void GrowingColumn::clear() {
  constant_ = true;
  count_ = used_ = 0;
  first_ = previous_ = 0;
}

EvidenceColumns::EvidenceColumns() : lookup_(kFirstLookupSize) {
  shape_.reserve(kEvidenceChunkTransactions);
}

std::uint16_t EvidenceColumns::shape_of(std::uint32_t packed) {
  Recent& recent = recent_[(packed * 0x9e3779b1U) >> 26];
  if (recent.packed != packed || recent.number == Recent::kNone) [[unlikely]]
    recent = {packed, look_up(packed)};
  return static_cast<std::uint16_t>(recent.number);
}

std::uint16_t EvidenceColumns::look_up(std::uint32_t packed) {
  // Open addressing; the table is at least twice as large as the shapes are many.
  if (2 * shapes_.size() >= lookup_.size()) grow_lookup();
  for (std::size_t slot = packed * 0x9e3779b1U % lookup_.size();;
       slot = (slot + 1) % lookup_.size()) {
    const std::uint32_t found = lookup_[slot];
    if (found != 0 && shapes_[found - 1U] == packed) return static_cast<std::uint16_t>(found - 1);
    if (found != 0) continue;
    shapes_.push_back(packed);
    lookup_[slot] = static_cast<std::uint32_t>(shapes_.size());
    return static_cast<std::uint16_t>(shapes_.size() - 1);
  }
}

void EvidenceColumns::grow_lookup() {
  const std::vector<std::uint32_t> shapes = std::exchange(shapes_, {});
  lookup_.assign(4 * lookup_.size(), 0);
  for (const std::uint32_t packed : shapes) look_up(packed);
}

void EvidenceColumns::add(std::span<const BusTransaction> transactions) {
  CITCAT_ASSERT(transactions.size() <= kEvidenceChunkTransactions - size());
  while (!transactions.empty()) {
    const auto block = transactions.first(std::min(transactions.size(), kBlock));
    add_block(block);
    add_data(block);
    transactions = transactions.subspan(block.size());
  }
}

void EvidenceColumns::add_block(std::span<const BusTransaction> block) {
  std::array<std::uint64_t, kBlock> values, iterations;
  std::size_t n = 0;
  for (const BusTransaction& t : block) {
    CITCAT_ASSERT(t.size <= kMaxTransactionBytes && static_cast<int>(t.op) < kBusOpCount);
    shape_.push_back(shape_of(pack_shape(t)));
    values[n++] = t.index - next_index_;
    next_index_ = t.index + 1;
  }
  index_.add(std::span(values).first(n));
  n = 0;
  for (const BusTransaction& t : block) {
    std::uint32_t& last = last_address_[static_cast<std::size_t>(t.op)];
    values[n++] = zigzag32(t.address.value - last);
    last = t.address.value;
  }
  address_.add(std::span(values).first(n));
  n = 0;
  for (const BusTransaction& t : block) {
    values[n] = t.clock;
    n += t.has(kClockKnown) ? 1 : 0;
  }
  clock_.add(std::span(values).first(n));
  n = 0;
  for (const BusTransaction& t : block) {
    values[n] = t.position.instruction;
    iterations[n] = t.position.iteration;
    n += t.has(kPositionKnown) ? 1 : 0;
  }
  instruction_.add(std::span(values).first(n));
  iteration_.add(std::span(iterations).first(n));
}

void EvidenceColumns::add_data(std::span<const BusTransaction> block) {
  const std::size_t most = data_bytes_ + block.size() * kMaxTransactionBytes;
  if (data_.size() < most) data_.resize(2 * most);
  std::uint8_t* const data = data_.data();
  for (const BusTransaction& t : block) {
    // Always all of it: what is not wanted is written over.
    std::memcpy(&data[data_bytes_], t.data.data(), kMaxTransactionBytes);
    data_bytes_ += keeps_data(t.op) ? t.size : 0;
  }
}

void EvidenceColumns::clear() {
  shapes_.clear();
  std::fill(lookup_.begin(), lookup_.end(), std::uint32_t{0});
  shape_.clear();
  recent_.fill({});
  for (GrowingColumn* column : {&index_, &address_, &clock_, &instruction_, &iteration_})
    column->clear();
  last_address_.fill(0);
  next_index_ = 0;
  data_bytes_ = 0;
}

/// The numbers of the shapes as byte planes (ColumnForm::byte_planes).
void EvidenceColumns::write_shapes(ByteWriter& out) const {
  if (shape_.empty()) return;
  if (std::all_of(shape_.begin(), shape_.end(),
                  [&](std::uint16_t number) { return number == shape_.front(); })) {
    out.u8(static_cast<std::uint8_t>(ColumnForm::constant));
    out.varint(shape_.front());
    return;
  }
  out.u8(static_cast<std::uint8_t>(ColumnForm::byte_planes));
  const unsigned planes = *std::max_element(shape_.begin(), shape_.end()) > 0xff ? 2 : 1;
  out.u8(static_cast<std::uint8_t>(planes));
  std::vector<std::uint8_t> plane(shape_.size());
  for (unsigned i = 0; i < planes; ++i) {
    std::transform(shape_.begin(), shape_.end(), plane.begin(), [i](std::uint16_t number) {
      return static_cast<std::uint8_t>(number >> (8 * i));
    });
    out.bytes(plane);
  }
}

std::vector<std::uint8_t> EvidenceColumns::encode() const {
  ByteWriter out;
  out.reserve(size() * 12);
  out.varint(size());
  out.varint(shapes_.size());
  for (const std::uint32_t shape : shapes_) out.varint(shape);
  write_shapes(out);
  for (const GrowingColumn* column : {&index_, &address_, &clock_, &instruction_, &iteration_})
    column->write_to(out);
  out.varint(data_bytes_);
  out.bytes(std::span(data_).first(data_bytes_));
  return out.take();
}

EvidenceChunk::EvidenceChunk(ByteReader& in) {
  const std::size_t count = in.count("transactions", kEvidenceChunkTransactions);
  read_shapes(in, count);
  std::size_t clocks = 0, positions = 0, bytes = 0;
  for (const std::uint64_t number : shape_) {
    const Shape& shape = shapes_[static_cast<std::size_t>(number)];
    clocks += (shape.flags & kClockKnown) != 0;
    positions += (shape.flags & kPositionKnown) != 0;
    bytes += keeps_data(shape.op) ? shape.size : 0U;
  }
  index_ = read_column(in, count, "transaction index");
  address_ = read_column(in, count, "transaction address");
  clock_ = read_column(in, clocks, "transaction clock");
  instruction_ = read_column(in, positions, "transaction position");
  iteration_ = read_column(in, positions, "transaction iteration");
  if (in.count("data bytes", bytes) != bytes) {
    in.fail("data bytes: expected " + std::to_string(bytes) + ", found fewer");
  }
  const auto data = in.bytes(bytes, "transaction data");
  data_.assign(data.begin(), data.end());
  in.expect_end("the evidence chunk");
}

void EvidenceChunk::read_shapes(ByteReader& in, std::size_t count) {
  const std::size_t shapes = in.count("transaction shapes", kMaxShapes);
  for (std::size_t i = 0; i < shapes; ++i) {
    const std::uint64_t packed = in.count("transaction shape", 0xffffffff);
    Shape shape;
    if ((packed & 0xff) >= kBusOpCount) in.fail("expected a transaction kind below 13");
    shape.op = static_cast<BusOp>(packed & 0xff);
    shape.size = static_cast<std::uint8_t>(packed >> 8 & 0xff);
    if (shape.size > kMaxTransactionBytes) in.fail("expected a transaction of at most 32 bytes");
    shape.flags = static_cast<std::uint16_t>(packed >> 16);
    shapes_.push_back(shape);
  }
  shape_ = read_column(in, count, "transaction shape numbers");
  for (const std::uint64_t number : shape_) {
    if (number >= shapes_.size()) in.fail("expected the number of a transaction shape");
  }
}

bool EvidenceChunk::next(BusTransaction& out) {
  if (at_ == shape_.size()) return false;
  const Shape& shape = shapes_[static_cast<std::size_t>(shape_[at_])];
  out = BusTransaction{};
  out.op = shape.op;
  out.size = shape.size;
  out.flags = shape.flags;
  out.index = next_index_ + index_[at_];
  next_index_ = out.index + 1;
  std::uint32_t& last = last_address_[static_cast<std::size_t>(shape.op)];
  last += unzigzag32(static_cast<std::uint32_t>(address_[at_]));
  out.address.value = last;
  if (out.has(kClockKnown)) out.clock = clock_[clock_at_++];
  if (out.has(kPositionKnown)) {
    out.position.instruction = instruction_[position_at_];
    out.position.iteration = static_cast<std::uint32_t>(iteration_[position_at_++]);
  }
  if (keeps_data(shape.op)) {
    const auto bytes = std::span<const std::uint8_t>(data_).subspan(data_at_, shape.size);
    std::copy(bytes.begin(), bytes.end(), out.data.begin());
    data_at_ += shape.size;
  }
  ++at_;
  return true;
}

}  // namespace citcat
