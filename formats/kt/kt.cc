#include "formats/kt/kt.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string>

#include "formats/io/byte_reader.h"
#include "formats/kt/kt_store.h"

namespace citcat {

// The writer stores words with memcpy; Unicorn hosts of the other order do not exist in practice.
static_assert(std::endian::native == std::endian::little, "KT is written in the host's byte order");

namespace {

constexpr std::uint32_t kPageBits = 12;

std::string hex_byte(unsigned value) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%02xh", value);
  return text.data();
}

/// Input streams read stored traces in every program that reads KT: it is part of this file.
[[maybe_unused]] const bool registered = [] {
  decode_segments_by([](std::vector<std::uint8_t> content,
                                     const std::string& name) -> std::unique_ptr<SegmentDecoder> {
    return std::make_unique<KtSegmentDecoder>(std::move(content), name);
  });
  return true;
}();

}  // namespace

KtTemplate::KtTemplate(std::uint32_t eip, std::span<const std::uint8_t> code,
                       unsigned address_count)
    : fixed_(static_cast<std::uint8_t>(kt_fixed_bytes(code.size()))),
      address_count_(static_cast<std::uint8_t>(address_count)) {
  if (code.empty() || code.size() > kKtMaxInstructionBytes || address_count > kKtMaxAddresses) {
    throw UsageError("KT holds instructions of 1 to 15 bytes with at most 2 addresses, not " +
                     std::to_string(code.size()) + " bytes with " + std::to_string(address_count));
  }
  std::memcpy(record_.data(), &eip, 4);
  record_[4] = static_cast<std::uint8_t>(address_count << 4 | code.size());
  std::copy(code.begin(), code.end(), record_.begin() + 5);
}

std::uint32_t KtTemplate::eip() const {
  std::uint32_t value = 0;
  std::memcpy(&value, record_.data(), 4);
  return value;
}

void KtWriter::instruction(const KtInstruction& instruction) {
  this->instruction(KtTemplate(instruction.eip, instruction.bytes(), instruction.address_count),
                    instruction.address[0], instruction.address[1]);
}

void KtWriter::process(std::uint32_t pid) {
  const std::array<std::uint32_t, 2> record{pid, kKtProcess};
  std::memcpy(room(), record.data(), sizeof record);
  used_ += sizeof record;
}

void KtWriter::translation(std::uint32_t frame, std::uint32_t page) {
  const std::array<std::uint32_t, 2> record{frame, page >> kPageBits << kPageBits | kKtTranslation};
  std::memcpy(room(), record.data(), sizeof record);
  used_ += sizeof record;
}

void KtWriter::raw(std::span<const std::uint8_t> records, std::uint64_t instructions) {
  flush();
  if (!records.empty()) sink_.write(records);
  flushed_ += records.size();
  instructions_ += instructions;
  instructions_flushed_ = instructions_;
}

void KtWriter::flush() {
  if (used_ == 0) return;
  const auto records = std::span<const std::uint8_t>(buffer_).first(used_);
  if (trace_ != nullptr) {
    trace_->write_records(records, instructions_ - instructions_flushed_);
  } else {
    sink_.write(records);
  }
  instructions_flushed_ = instructions_;
  flushed_ += used_;
  used_ = 0;
}

bool KtReader::next(KtRecord& out) {
  if (input_.at_end()) return false;
  const auto head = need(8, "a record");
  ByteReader in(head, {});
  const std::uint32_t first = in.u32("first word");
  const std::uint32_t second = in.u32("second word");
  const unsigned type = second & 0xff;
  if (type < 0x40) {
    read_instruction(head, out);
    return true;
  }
  if (type == kKtProcess) {
    out = KtRecord{};
    out.kind = KtRecord::Kind::process;
    out.pid = first;
  } else if (type == kKtTranslation) {
    if ((second & 0xf00) != 0) fail("translation record: expected a page address, found bits 8-11");
    out = KtRecord{};
    out.kind = KtRecord::Kind::translation;
    out.frame = first;
    out.page = second >> kPageBits << kPageBits;
  } else {
    fail("record type: expected 00h-2fh, 80h or 81h, found " + hex_byte(type));
  }
  input_.consume(8);
  return true;
}

// The lengths are checked by need(), so the ByteReaders here carry no name: they cannot fail.
void KtReader::read_instruction(std::span<const std::uint8_t> head, KtRecord& out) {
  const std::size_t size = head[4] & 15U;
  const std::size_t addresses = head[4] >> 4;
  if (size == 0) fail("instruction record: expected 1 to 15 instruction bytes, found none");
  if (addresses > kKtMaxAddresses)
    fail("instruction record: expected at most 2 addresses, found 3");
  const std::size_t fixed = kt_fixed_bytes(size);
  const std::size_t total = fixed + 4 * addresses;
  ByteReader in(need(total, "an instruction record"), {});
  out = KtRecord{};
  out.instruction.eip = in.u32("eip");
  in.skip(1, "type");
  out.instruction.size = static_cast<std::uint8_t>(size);
  out.instruction.address_count = static_cast<std::uint8_t>(addresses);
  const auto code = in.bytes(size, "instruction bytes");
  std::copy(code.begin(), code.end(), out.instruction.code.begin());
  in.skip(fixed - 5 - size, "padding");
  for (std::size_t i = 0; i < addresses; ++i) out.instruction.address[i] = in.u32("address");
  input_.consume(total);
}

std::span<const std::uint8_t> KtReader::need(std::size_t n, const char* what) {
  const auto bytes = input_.peek(n);
  if (bytes.size() < n) {
    fail(std::string(what) + ": expected " + std::to_string(n) + " bytes, found " +
         std::to_string(bytes.size()) + " before the end");
  }
  return bytes;
}

void KtReader::fail(const std::string& message) const {
  throw FormatError(input_.name(), input_.offset(), message);
}

}  // namespace citcat
