#include "events/evidence_codec.h"

#include <algorithm>

#include "formats/byte_writer.h"
#include "formats/column.h"
#include "formats/error.h"

namespace citcat {

namespace {

constexpr std::size_t kLookupSize = std::size_t{1} << 17;
/// More distinct shapes than transactions of a chunk cannot be.
constexpr std::uint64_t kMaxShapes = kEvidenceChunkTransactions;

bool keeps_data(BusOp op) { return op != BusOp::code_read && op != BusOp::data_read; }

/// op, size and flags in one number: what varies little among neighbours.
std::uint32_t pack_shape(const BusTransaction& t) {
  return static_cast<std::uint32_t>(t.op) | std::uint32_t{t.size} << 8 |
         std::uint32_t{t.flags} << 16;
}

std::uint32_t zigzag32(std::uint32_t difference) {
  return difference << 1 ^ (difference >> 31 != 0 ? ~std::uint32_t{0} : 0);
}
std::uint32_t unzigzag32(std::uint32_t folded) { return folded >> 1 ^ (~(folded & 1) + 1); }

}  // namespace

void GrowingColumn::spill() {
  constant_ = false;
  for (std::size_t i = 0; i < count_; ++i) put(first_);
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

EvidenceColumns::EvidenceColumns() : lookup_(kLookupSize) {
  shape_.reserve(kEvidenceChunkTransactions);
}

std::uint16_t EvidenceColumns::shape_of(const BusTransaction& transaction) {
  const std::uint32_t packed = pack_shape(transaction);
  Recent& recent = recent_[(packed * 0x9e3779b1U) >> 26];
  if (recent.packed != packed || recent.number == Recent::kNone) recent = {packed, look_up(packed)};
  return static_cast<std::uint16_t>(recent.number);
}

std::uint16_t EvidenceColumns::look_up(std::uint32_t packed) {
  // Open addressing; the table is twice as large as the shapes can become.
  for (std::size_t slot = (packed * 0x9e3779b1U) >> 15;; slot = (slot + 1) % kLookupSize) {
    const std::uint16_t found = lookup_[slot];
    if (found != 0 && shapes_[found - 1U] == packed) return static_cast<std::uint16_t>(found - 1);
    if (found != 0) continue;
    shapes_.push_back(packed);
    lookup_[slot] = static_cast<std::uint16_t>(shapes_.size());
    return static_cast<std::uint16_t>(shapes_.size() - 1);
  }
}

void EvidenceColumns::add(const BusTransaction& t) {
  CITCAT_ASSERT(t.size <= kMaxTransactionBytes && static_cast<int>(t.op) < kBusOpCount);
  shape_.push_back(shape_of(t));
  index_.add(t.index - next_index_);
  next_index_ = t.index + 1;
  std::uint32_t& last = last_address_[static_cast<std::size_t>(t.op)];
  address_.add(zigzag32(t.address.value - last));
  last = t.address.value;
  if (t.has(kClockKnown)) clock_.add(t.clock);
  if (t.has(kPositionKnown)) {
    instruction_.add(t.position.instruction);
    iteration_.add(t.position.iteration);
  }
  if (keeps_data(t.op)) data_.insert(data_.end(), t.data.begin(), t.data.begin() + t.size);
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
  out.varint(data_.size());
  out.bytes(data_);
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
