#include "events/evidence_v1.h"

#include <algorithm>
#include <string>

#include "events/evidence_codec.h"
#include "formats/column.h"

namespace citcat {
namespace {

/// More distinct shapes than transactions of a chunk cannot be.
constexpr std::uint64_t kMaxShapes = kEvidenceChunkTransactions;

bool keeps_data(BusOp op) { return op != BusOp::code_read && op != BusOp::data_read; }

std::uint32_t unzigzag(std::uint32_t folded) { return folded >> 1 ^ (~(folded & 1) + 1); }

}  // namespace

EvidenceChunkV1::EvidenceChunkV1(ByteReader& in) {
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

void EvidenceChunkV1::read_shapes(ByteReader& in, std::size_t count) {
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

std::size_t EvidenceChunkV1::next_block(std::span<BusTransaction> out) {
  const std::size_t count = std::min(out.size(), shape_.size() - at_);
  for (BusTransaction& t : out.first(count)) t = next();
  return count;
}

std::size_t EvidenceChunkV1::next_lines(std::span<BusTransaction> out,
                                        std::span<std::uint8_t> parts) {
  std::ranges::fill(parts, std::uint8_t{1});
  return next_block(out);
}

BusTransaction EvidenceChunkV1::next() {
  const Shape& shape = shapes_[static_cast<std::size_t>(shape_[at_])];
  BusTransaction t;
  t.op = shape.op;
  t.size = shape.size;
  t.flags = shape.flags;
  t.index = next_index_ + index_[at_];
  next_index_ = t.index + 1;
  std::uint32_t& last = last_address_[static_cast<std::size_t>(shape.op)];
  last += unzigzag(static_cast<std::uint32_t>(address_[at_]));
  t.address.value = last;
  if (t.has(kClockKnown)) t.clock = clock_[clock_at_++];
  if (t.has(kPositionKnown)) {
    t.position.instruction = instruction_[position_at_];
    t.position.iteration = static_cast<std::uint32_t>(iteration_[position_at_++]);
  }
  if (keeps_data(shape.op)) {
    const auto bytes = std::span<const std::uint8_t>(data_).subspan(data_at_, shape.size);
    std::copy(bytes.begin(), bytes.end(), t.data.begin());
    data_at_ += shape.size;
  }
  ++at_;
  return t;
}

}  // namespace citcat
