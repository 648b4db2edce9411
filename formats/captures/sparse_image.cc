#include "formats/captures/sparse_image.h"

#include <algorithm>
#include <array>

#include "formats/io/byte_reader.h"
#include "formats/io/byte_writer.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr std::array<std::uint8_t, 8> kSparseMagic{'C', 'I', 'T', 'C', 'A', 'T', 'M', 'I'};
// History: 1 is the first; 2 has ranges with addresses of 64 bits, for memory beyond 4 GiB.
constexpr std::uint32_t kVersion = 1, kLongVersion = 2;
constexpr std::size_t kHeaderBytes = kSparseMagic.size() + 4 + 4;  // magic, version, reserved
constexpr std::size_t kRangeBytes = 4 + 4;                         // address, length
constexpr std::size_t kWideRangeBytes = 8 + 4;                     // the same
constexpr std::size_t kPage = 4096;
constexpr std::size_t kPageRecordBytes = 4 + kPage;
constexpr std::uint64_t kMemoryEnd = std::uint64_t{1} << 52;
constexpr std::size_t kPartBytes = std::size_t{1} << 16;

/// Whole page records as far as `prefix` reaches: addresses of pages, each above the last.
bool looks_like_pages(std::span<const std::uint8_t> prefix) {
  if (prefix.size() < kPageRecordBytes) return false;
  std::int64_t last = -1;
  for (std::size_t at = 0; at + 4 <= prefix.size(); at += kPageRecordBytes) {
    const std::uint32_t address = ByteReader(prefix.subspan(at), {}).u32("page address");
    if (address % kPage != 0 || std::int64_t{address} <= last) return false;
    last = address;
  }
  return true;
}

}  // namespace

std::string_view memory_file_form_name(MemoryFileForm form) {
  switch (form) {
    case MemoryFileForm::raw:
      return "raw";
    case MemoryFileForm::pages:
      return "pages";
    case MemoryFileForm::ranges:
      return "ranges";
  }
  return "?";
}

MemoryFileForm memory_file_form_of(std::span<const std::uint8_t> prefix) {
  if (prefix.size() >= kSparseMagic.size() &&
      std::equal(kSparseMagic.begin(), kSparseMagic.end(), prefix.begin())) {
    return MemoryFileForm::ranges;
  }
  return looks_like_pages(prefix) ? MemoryFileForm::pages : MemoryFileForm::raw;
}

MemoryFileReader::MemoryFileReader(std::unique_ptr<InputStream> input)
    : input_(std::move(input)),
      form_(memory_file_form_of(input_->peek(InputStream::kMaxPeek))),
      buffer_(kPartBytes) {
  if (form_ == MemoryFileForm::ranges) read_header();
}

bool MemoryFileReader::next(Part& out) {
  if (ended_) return false;
  switch (form_) {
    case MemoryFileForm::raw:
      return next_raw(out);
    case MemoryFileForm::pages:
      return next_page(out);
    case MemoryFileForm::ranges:
      return next_range(out);
  }
  return false;
}

void MemoryFileReader::check_place(std::uint64_t address, std::uint64_t size) {
  if (address < next_address_) {
    throw FormatError(input_->name(), input_->offset(),
                      "memory image: expected an address of at least " +
                          std::to_string(next_address_) + ", found " + std::to_string(address));
  }
  if (address + size > kMemoryEnd) {
    throw FormatError(input_->name(), input_->offset(),
                      "memory image: expected memory below 4 PiB, found " + std::to_string(size) +
                          " bytes at " + std::to_string(address));
  }
  next_address_ = address + size;
}

bool MemoryFileReader::next_raw(Part& out) {
  const std::size_t size = input_->read(buffer_);
  ended_ = size == 0;
  if (ended_) return false;
  out.address = next_address_;
  out.bytes = std::span(buffer_).first(size);
  check_place(next_address_, size);
  return true;
}

bool MemoryFileReader::next_page(Part& out) {
  ended_ = input_->at_end();
  if (ended_) return false;
  const auto record = std::span(buffer_).first(kPageRecordBytes);
  input_->read_exact(record, "page record of a memory image");
  out.address = ByteReader(record, input_->name()).u32("page address");
  out.bytes = record.subspan(4);
  check_place(out.address, kPage);
  if (out.address % kPage != 0) {
    throw FormatError(
        input_->name(), input_->offset() - kPageRecordBytes,
        "memory image: expected the address of a page, found " + std::to_string(out.address));
  }
  return true;
}

void MemoryFileReader::take_exact(std::span<std::uint8_t> out, std::string_view field) {
  input_->read_exact(out, field);
  hasher_.update(out);
}

void MemoryFileReader::read_header() {
  std::array<std::uint8_t, kHeaderBytes> header{};
  take_exact(header, "header of a memory image");
  ByteReader in(header, input_->name());
  in.skip(kSparseMagic.size(), "magic");
  const std::uint32_t version = in.u32("version");
  if (version != kVersion && version != kLongVersion) {
    in.fail_at(kSparseMagic.size(),
               "memory image: expected version 1 or 2, found " + std::to_string(version));
  }
  wide_ = version == kLongVersion;
}

bool MemoryFileReader::next_range(Part& out) {
  if (range_left_ == 0) {
    std::array<std::uint8_t, kWideRangeBytes> bytes{};
    const auto head = std::span(bytes).first(wide_ ? kWideRangeBytes : kRangeBytes);
    take_exact(head, "range of a memory image");
    ByteReader in(head, input_->name());
    const std::uint64_t address = wide_ ? in.u64("range address") : in.u32("range address");
    range_left_ = in.u32("range length");
    if (range_left_ == 0) {
      check_end();
      return false;
    }
    check_place(address, range_left_);
  }
  const auto part = std::span(buffer_).first(std::min<std::size_t>(range_left_, kPartBytes));
  take_exact(part, "bytes of a memory image");
  out.address = next_address_ - range_left_;
  out.bytes = part;
  range_left_ -= static_cast<std::uint32_t>(part.size());
  return true;
}

void MemoryFileReader::check_end() {
  const Hash128 expected = hasher_.value();
  std::array<std::uint8_t, 16> stored{};
  input_->read_exact(stored, "hash of a memory image");
  ByteReader in(stored, input_->name());
  const std::uint64_t low = in.u64("hash");
  const Hash128 found{low, in.u64("hash")};
  if (!(found == expected)) {
    throw FormatError(input_->name(), input_->offset() - stored.size(),
                      "memory image: expected hash " + expected.hex() + ", found " + found.hex());
  }
  if (!input_->at_end()) {
    throw FormatError(input_->name(), input_->offset(), "memory image: bytes follow its end");
  }
  ended_ = true;
}

MemoryFileWriter::MemoryFileWriter(std::unique_ptr<ByteSink> sink, bool wide)
    : sink_(std::move(sink)), wide_(wide) {
  ByteWriter header;
  header.bytes(kSparseMagic);
  header.u32(wide ? kLongVersion : kVersion);
  header.u32(0);
  put(header.view());
}

void MemoryFileWriter::put(std::span<const std::uint8_t> bytes) {
  hasher_.update(bytes);
  sink_->write(bytes);
}

void MemoryFileWriter::put_range(std::uint64_t address, std::size_t size) {
  ByteWriter head;
  if (wide_) {
    head.u64(address);
  } else {
    CITCAT_ASSERT(address + size <= std::uint64_t{1} << 32);
    head.u32(static_cast<std::uint32_t>(address));
  }
  head.u32(static_cast<std::uint32_t>(size));
  put(head.view());
}

void MemoryFileWriter::write(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return;
  CITCAT_ASSERT(address >= next_address_ && address + bytes.size() <= kMemoryEnd);
  next_address_ = address + bytes.size();
  // A length is 32 bits: all of memory at once needs two ranges.
  constexpr std::size_t kMaxAtOnce = std::size_t{1} << 31;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kMaxAtOnce));
    put_range(address, part.size());
    put(part);
    bytes = bytes.subspan(part.size());
    address += part.size();
  }
}

void MemoryFileWriter::finish() {
  put_range(0, 0);
  const Hash128 hash = hasher_.value();
  ByteWriter tail;
  tail.u64(hash.low);
  tail.u64(hash.high);
  sink_->write(tail.view());
  sink_->finish();
}

}  // namespace citcat
