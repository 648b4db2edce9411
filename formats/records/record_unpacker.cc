#include "formats/records/record_unpacker.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace citcat {
namespace {

constexpr std::uint8_t kEscape = 15, kWhole = 1, kDefinition = 2;
constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};

template <typename T>
T load(const std::uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void lay(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

std::uint64_t from_zigzag(std::uint64_t value) { return value >> 1 ^ (~(value & 1) + 1); }

}  // namespace

bool holds_stored_records(std::span<const std::uint8_t> head) {
  return head.size() >= kStoredRecordsMagic.size() &&
         std::equal(kStoredRecordsMagic.begin(), kStoredRecordsMagic.end(), head.begin());
}

RecordChunkHeader RecordChunkHeader::of(
    std::span<const std::uint8_t, kRecordChunkHeaderBytes> bytes) {
  const std::uint8_t* const at = bytes.data();
  return {load<std::uint32_t>(at),      load<std::uint32_t>(at + 4),  load<std::uint64_t>(at + 8),
          load<std::uint32_t>(at + 16), load<std::uint32_t>(at + 20), load<std::uint64_t>(at + 24)};
}

std::array<std::uint8_t, kRecordChunkHeaderBytes> RecordChunkHeader::stored() const {
  std::array<std::uint8_t, kRecordChunkHeaderBytes> out{};
  lay(out.data(), bytes);
  lay(out.data() + 4, records);
  lay(out.data() + 8, instructions);
  lay(out.data() + 16, iterations);
  lay(out.data() + 20, clock);
  lay(out.data() + 24, last);
  return out;
}

RecordChunk chunk_of_record(std::span<const std::uint8_t, RecordUnpacker::kRecordBytes> record) {
  const std::uint64_t count = load<std::uint64_t>(record.data());
  RecordChunk chunk{};
  constexpr std::uint32_t kPacked = chunk.size() - kRecordChunkHeaderBytes;
  const auto head = RecordChunkHeader{kPacked, 1, count, 0, 0, count}.stored();
  std::uint8_t* at = std::copy(head.begin(), head.end(), chunk.data());
  *at++ = kEscape;
  *at++ = kWhole;
  *at++ = 0;  // clocks
  std::copy(record.begin(), record.end(), at);
  return chunk;
}

RecordChunkHeader end_of_chunks(std::uint64_t records) { return {0, 0, records, 0, 0, 0}; }

RecordUnpacker::RecordUnpacker() {
  // Pages that no record needs stay unused.
  void* const memory = mmap(nullptr, kImageBytes + kMostData, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  image_ = static_cast<std::uint8_t*>(memory);
}

RecordUnpacker::~RecordUnpacker() { munmap(image_, kImageBytes + kMostData); }

/// One chunk while it is unpacked.
class RecordUnpacker::Chunk {
 public:
  Chunk(const RecordChunkHeader& header, std::span<const std::uint8_t> packed, std::uint8_t* image)
      : packed_(packed),
        image_(image),
        instructions_(header.instructions),
        last_(header.instructions),
        iterations_(header.iterations),
        clock_(header.clock) {}

  Taken take(std::vector<std::uint8_t>& out) {
    Taken taken;
    while (at_ < packed_.size()) {
      if (room_ == 0) {
        constexpr std::size_t kAtOnce = 4096;
        out.resize(out.size() + kAtOnce * kRecordBytes);
        room_ = kAtOnce;
      }
      std::uint8_t* const record = out.data() + out.size() - room_ * kRecordBytes;
      const bool defines =
          packed_.size() - at_ > 1 && packed_[at_] == kEscape && packed_[at_ + 1] == kDefinition;
      if (!(defines ? define() : one(record))) break;
      taken.bytes = at_;
      if (defines) continue;
      --room_;
      ++taken.records;
      taken.last = last_;
    }
    out.resize(out.size() - room_ * kRecordBytes);
    taken.problem = problem_;
    return taken;
  }

 private:
  struct Kind {
    std::uint8_t type = 0, size = 0, flags = 0, burst = 0, clocks = 0;
    std::uint32_t expected = 0;
  };

  bool has(std::size_t bytes) const { return packed_.size() - at_ >= bytes; }
  bool fail(std::string_view what) {
    problem_ = what;
    return false;
  }

  bool define() {
    constexpr std::size_t kBytes = 7, kMostKinds = 256;
    if (!has(kBytes)) return false;
    const std::uint8_t* const from = packed_.data() + at_;
    if (kinds_.size() == kMostKinds) return fail("more than 256 kinds of records");
    if (from[3] > kMostData) return fail("a kind of records with more than 16 bytes of data");
    kinds_.push_back({from[2], from[3], from[4], from[5], from[6], 0});
    at_ += kBytes;
    return true;
  }

  bool number(std::uint64_t& value) {
    if (!has(1)) return false;
    const std::uint8_t first = packed_[at_];
    const auto more = static_cast<unsigned>(__builtin_ctz(~unsigned{first}));
    if (!has(1 + more)) return false;
    std::uint64_t bytes = 0;
    if (more == 8) {
      std::memcpy(&value, packed_.data() + at_ + 1, sizeof value);
    } else {
      std::memcpy(&bytes, packed_.data() + at_, more + 1);
      value = bytes >> (more + 1);
    }
    at_ += more + 1;
    return true;
  }

  /// The next record. False, with `at_` anywhere, where it is not whole or not right.
  bool one(std::uint8_t* record) {
    std::uint8_t control = packed_[at_++];
    std::size_t kind = control & 0xf;
    if (kind == kEscape) {
      if (control != kEscape) return fail("an escape with more bits");
      if (!has(2)) return false;
      kind = packed_[at_++];
      if (kind == kWhole) return whole(record);
      if (kind < kEscape) return fail("an unknown escape");
      control = packed_[at_++];
      if ((control & 0xf) != 0) return fail("a long kind with a short one");
    }
    if (kind >= kinds_.size()) return fail("a kind of records that is not defined");
    Kind& its = kinds_[kind];
    std::uint64_t done = instructions_;
    std::uint32_t iterations = 0;
    std::uint64_t value = 0;
    switch (control >> 4 & 3) {
      case 0:
        iterations = iterations_;
        break;
      case 1:
        ++done;
        break;
      case 2:
        if (!number(value)) return false;
        done += value;
        break;
      default:
        if (!number(value)) return false;
        done += from_zigzag(value);
        if (!number(value)) return false;
        iterations = static_cast<std::uint32_t>(value);
        break;
    }
    std::uint32_t address = its.expected;
    if ((control & 0x40) != 0) {
      if (!number(value)) return false;
      address += static_cast<std::uint32_t>(from_zigzag(value));
    }
    std::uint8_t* const known = image_ + address % kImageBytes;
    if ((control & 0x80) != 0) {
      if (!has(its.size)) return false;
      std::memcpy(known, packed_.data() + at_, its.size);
      at_ += its.size;
    }
    const auto clock =
        static_cast<std::uint32_t>(clock_ + (done - instructions_) + iterations - iterations_);
    instructions_ = last_ = done;
    iterations_ = iterations;
    clock_ = clock + its.clocks;
    its.expected = address + its.size;
    lay(record, done);
    lay(record + 8, clock);
    lay(record + 12, address);
    lay(record + 16, iterations);
    lay(record + 20, its.type);
    lay(record + 21, its.size);
    lay(record + 22, its.flags);
    lay(record + 23, its.burst);
    std::memset(record + 24, 0, kMostData);
    std::memcpy(record + 24, known, its.size);
    return true;
  }

  bool whole(std::uint8_t* record) {
    if (!has(1 + kRecordBytes)) return false;
    const std::uint8_t clocks = packed_[at_];
    std::memcpy(record, packed_.data() + at_ + 1, kRecordBytes);
    at_ += 1 + kRecordBytes;
    const auto count = load<std::uint64_t>(record);
    if (count == kNotCounted) return true;
    instructions_ = last_ = count;
    clock_ = load<std::uint32_t>(record + 8) + clocks;
    iterations_ = load<std::uint32_t>(record + 16);
    return true;
  }

  std::span<const std::uint8_t> packed_;
  std::uint8_t* image_;
  std::size_t at_ = 0, room_ = 0;
  std::uint64_t instructions_, last_;
  std::uint32_t iterations_, clock_;
  std::vector<Kind> kinds_;
  std::string_view problem_;
};

RecordUnpacker::Taken RecordUnpacker::unpack(const RecordChunkHeader& header,
                                             std::span<const std::uint8_t> packed,
                                             std::vector<std::uint8_t>& out) {
  return Chunk(header, packed, image_).take(out);
}

std::size_t RecordChunkStream::read(const Pull& pull, std::span<std::uint8_t> out) {
  while (at_ == records_.size()) {
    if (ended_ || !next_chunk(pull)) return 0;
  }
  const std::size_t n = std::min(out.size(), records_.size() - at_);
  std::memcpy(out.data(), records_.data() + at_, n);
  at_ += n;
  return n;
}

bool RecordChunkStream::next_chunk(const Pull& pull) {
  at_ = 0;
  records_.clear();
  std::array<std::uint8_t, kRecordChunkHeaderBytes> head{};
  ended_ = read_most(pull, head) != head.size();
  if (ended_ && may_be_cut_) return false;
  if (ended_) fail_("expected more records, found the end");
  const RecordChunkHeader header = RecordChunkHeader::of(head);
  if (header.bytes == 0) {
    end(pull, header.instructions);
    return false;
  }
  if (header.bytes > RecordUnpacker::kMostBytes)
    fail_("expected a chunk of records, found an impossible length");
  packed_.resize(header.bytes);
  const std::size_t got = read_most(pull, packed_);
  ended_ = got != packed_.size();
  if (ended_ && !may_be_cut_) fail_("expected more records, found the end");
  const auto taken = unpacker_.unpack(header, std::span(packed_).first(got), records_);
  if (!taken.problem.empty()) fail_("found " + std::string(taken.problem));
  if (!ended_ && (taken.bytes != header.bytes || taken.records != header.records))
    fail_("expected a chunk of " + std::to_string(header.records) + " records, found " +
          std::to_string(taken.records));
  total_ += taken.records;
  return true;
}

void RecordChunkStream::end(const Pull& pull, std::uint64_t records) {
  ended_ = true;
  if (records != total_)
    fail_("expected " + std::to_string(records) + " records, found " + std::to_string(total_));
  std::uint8_t more = 0;
  if (pull(std::span(&more, 1)) != 0) fail_("expected the end, found more");
}

/// Fewer bytes only at the end.
std::size_t RecordChunkStream::read_most(const Pull& pull, std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const std::size_t got = pull(out.subspan(done));
    if (got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace citcat
