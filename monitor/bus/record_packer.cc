#include "monitor/bus/record_packer.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace citcat::monitor {
namespace {

// What may follow the escape in place of the number of a kind.
constexpr std::uint8_t kWhole = 1, kDefinition = 2;

template <typename T>
void lay(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

std::uint8_t* map_image(std::size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  (void)madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::uint8_t*>(memory);
}

}  // namespace

void RecordPacker::Unmap::operator()(std::uint8_t* image) const {
  munmap(image, kImageBytes + kMostData);
}

RecordPacker::RecordPacker()
    : buffer_(new std::uint8_t[kChunkBytes]),
      at_(buffer_.get() + kHeaderBytes),
      end_(buffer_.get() + kChunkBytes),
      image_(map_image(kImageBytes + kMostData)) {}

void RecordPacker::begin(const RecordFields& first) {
  last_ = {first.instructions, first.iterations};
  clock_ = first.clock;
  std::uint8_t* const header = buffer_.get();
  lay(header + 8, first.instructions);
  lay(header + 16, first.iterations);
  lay(header + 20, first.clock);
  kinds_ = 0;
  slots_.fill({});
  expected_.fill(0);
}

unsigned RecordPacker::define(std::uint32_t key, std::uint8_t clocks) {
  if (kinds_ == kKinds) return kNoKind;
  append(kEscape);
  append(kDefinition);
  append(key);
  append(clocks);
  slots_[slot_of(key)] = {key | std::uint64_t{clocks} << 32, kinds_};
  return kinds_++;
}

void RecordPacker::put_whole(const RecordFields& record, std::span<const std::uint8_t> bytes,
                             std::uint32_t key) {
  append(kEscape);
  append(kWhole);
  append(record.clocks);
  append(record.instructions);
  append(record.clock);
  append(record.address);
  append(record.iterations);
  append(key);
  std::memset(at_, 0, kMostData);
  std::copy(bytes.begin(), bytes.end(), at_);
  at_ += kMostData;
  if (record.instructions == kNotCounted) return;
  last_ = {record.instructions, record.iterations};
  clock_ = record.clock + record.clocks;
}

std::span<const std::uint8_t> RecordPacker::chunk() {
  if (records_ == 0) return {};
  std::uint8_t* const header = buffer_.get();
  lay(header, static_cast<std::uint32_t>(at_ - header - kHeaderBytes));
  lay(header + 4, records_);
  lay(header + 24, last_done_);
  return {header, static_cast<std::size_t>(at_ - header)};
}

void RecordPacker::clear() {
  at_ = buffer_.get() + kHeaderBytes;
  records_ = 0;
}

}  // namespace citcat::monitor
