#include "formats/kt/kt.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <string>
#include <utility>

#include "formats/io/byte_reader.h"
#include "formats/kt/kt_store.h"

namespace citcat {

// The writer stores words with memcpy; Unicorn hosts of the other order do not exist in practice.
static_assert(std::endian::native == std::endian::little, "KT is written in the host's byte order");

namespace {

constexpr std::uint32_t kPageBits = 12;

// Types of the wide form: N and E as in the other, above them the mode of the code.
constexpr unsigned kMode64 = 0x00, kMode32 = 0x40, kMode16 = 0xc0, kModeMask = 0xc0, kOther = 0x80;
constexpr std::size_t kWideHead = 16;

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

KtWriter::KtWriter(ByteSink& sink, KtForm form, bool begins) : KtWriter(sink) {
  form_ = form;
  if (!is_wide()) return;
  if (trace_ != nullptr && !trace_->takes_wide()) {
    throw UsageError("traces of 64 bits cannot be written to a file that holds addresses of 32");
  }
  if (!begins) return;
  std::memcpy(room(), kKtWideMark.data(), kKtWideMark.size());
  used_ += kKtWideMark.size();
}

void KtWriter::wide_instruction(const KtInstruction& instruction) {
  const std::size_t size = instruction.size, addresses = instruction.address_count;
  if (size == 0 || size > kKtMaxInstructionBytes || addresses > kKtMaxAddresses) {
    throw UsageError("KT holds instructions of 1 to 15 bytes with at most 2 addresses");
  }
  const unsigned mode = instruction.bits == 64   ? kMode64
                        : instruction.bits == 32 ? kMode32
                                                 : kMode16;
  std::array<std::uint8_t, kKtMaxWideRecordBytes> record{};
  const std::uint64_t ip = instruction.wide_eip();
  std::memcpy(record.data(), &ip, 8);
  record[8] = static_cast<std::uint8_t>(mode | addresses << 4 | size);
  std::copy_n(instruction.code.begin(), size, record.begin() + 9);
  std::size_t at = kt_wide_fixed_bytes(size);
  for (std::size_t i = 0; i < addresses; ++i, at += 8) {
    const std::uint64_t address = instruction.wide_address(i);
    std::memcpy(&record[at], &address, 8);
  }
  std::memcpy(room(), record.data(), at);
  used_ += at;
  ++instructions_;
}

void KtWriter::wide_words(std::initializer_list<std::uint64_t> words) {
  std::uint8_t* out = room();
  for (const std::uint64_t word : words) {
    std::memcpy(out, &word, sizeof word);
    out += sizeof word;
  }
  used_ += words.size() * sizeof(std::uint64_t);
}

void KtWriter::instruction(const KtInstruction& instruction) {
  if (is_wide()) return wide_instruction(instruction);
  this->instruction(KtTemplate(instruction.eip, instruction.bytes(), instruction.address_count),
                    instruction.address[0], instruction.address[1]);
}

void KtWriter::process(std::uint32_t pid) {
  if (is_wide()) return wide_words({pid, kKtProcess});
  const std::array<std::uint32_t, 2> record{pid, kKtProcess};
  std::memcpy(room(), record.data(), sizeof record);
  used_ += sizeof record;
}

void KtWriter::translation(std::uint32_t frame, std::uint64_t wide_page) {
  if (is_wide()) {
    return wide_words({frame, kKtTranslation, wide_page >> kPageBits << kPageBits});
  }
  const auto page = static_cast<std::uint32_t>(wide_page);
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

/// At the beginning of a trace: passes over the mark of the wide form, where it has it.
void KtReader::take_mark() {
  if (std::exchange(begun_, true) || input_.offset() != 0) return;
  const auto head = input_.peek(kKtWideMark.size());
  if (head.size() < kKtWideMark.size() ||
      !std::equal(head.begin(), head.begin() + 5, kKtWideMark.begin())) {
    return;
  }
  if (!std::equal(head.begin(), head.end(), kKtWideMark.begin())) {
    fail("a trace of 64 bits: expected version 1, found " + std::to_string(head[5]));
  }
  form_ = KtForm::wide;
  input_.consume(kKtWideMark.size());
}

bool KtReader::next_wide(KtRecord& out) {
  if (input_.at_end()) return false;
  ByteReader in(need(kWideHead, "a record"), {});
  const std::uint64_t first = in.u64("first word");
  const std::uint64_t second = in.u64("second word");
  const auto type = static_cast<unsigned>(second & 0xff);
  if ((type & kModeMask) != kOther) {
    read_wide_instruction(first, type, out);
    return true;
  }
  out = KtRecord{};
  if (type != kKtProcess && type != kKtTranslation) {
    fail("record type: expected an instruction, 80h or 81h, found " + hex_byte(type));
  }
  if (second >> 8 != 0 || first > 0xffffffff) fail("record: expected zeros in its upper bytes");
  if (type == kKtProcess) {
    out.kind = KtRecord::Kind::process;
    out.pid = static_cast<std::uint32_t>(first);
    input_.consume(kWideHead);
    return true;
  }
  ByteReader whole(need(kWideHead + 8, "a translation record"), {});
  whole.skip(kWideHead, "frame");
  const std::uint64_t page = whole.u64("page");
  if ((page & ((1u << kPageBits) - 1)) != 0) {
    fail("translation record: expected a page address, found other bits");
  }
  out.kind = KtRecord::Kind::translation;
  out.frame = static_cast<std::uint32_t>(first);
  out.page = static_cast<std::uint32_t>(page);
  out.page_high = static_cast<std::uint32_t>(page >> 32);
  input_.consume(kWideHead + 8);
  return true;
}

void KtReader::read_wide_instruction(std::uint64_t ip, unsigned type, KtRecord& out) {
  const std::size_t size = type & 15, addresses = type >> 4 & 3;
  if (size == 0) fail("instruction record: expected 1 to 15 instruction bytes, found none");
  if (addresses > kKtMaxAddresses)
    fail("instruction record: expected at most 2 addresses, found 3");
  const std::size_t fixed = kt_wide_fixed_bytes(size), total = fixed + 8 * addresses;
  ByteReader in(need(total, "an instruction record"), {});
  out = KtRecord{};
  KtInstruction& i = out.instruction;
  i.set_wide_eip(ip);
  in.skip(9, "ip and type");
  i.size = static_cast<std::uint8_t>(size);
  i.address_count = static_cast<std::uint8_t>(addresses);
  const unsigned mode = type & kModeMask;
  i.bits = mode == kMode64 ? 64 : mode == kMode32 ? 32 : 16;
  const auto code = in.bytes(size, "instruction bytes");
  std::copy(code.begin(), code.end(), i.code.begin());
  in.skip(fixed - 9 - size, "padding");
  for (std::size_t a = 0; a < addresses; ++a) i.set_wide_address(a, in.u64("address"));
  input_.consume(total);
}

bool KtReader::next(KtRecord& out) {
  take_mark();
  if (is_wide()) return next_wide(out);
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
