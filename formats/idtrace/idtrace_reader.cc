#include "formats/idtrace/idtrace_reader.h"

#include <cstdio>
#include <utility>

#include "formats/io/byte_reader.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

std::string byte_text(unsigned value) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%02xh", value);
  return text.data();
}

/// What makes a sequence of entries a trace of its kind, beyond each being one: enough to tell
/// files apart that have no header.
class Plausibility {
 public:
  explicit Plausibility(IdtraceKind kind) : kind_(kind) {}

  bool takes(const IdtraceEntry& entry) {
    switch (kind_) {
      case IdtraceKind::branch:
        return takes_branch(entry);
      case IdtraceKind::cache:
        return entry.tag != IdtraceTag::line || entry.value % kLeastLine == 0;
      case IdtraceKind::execution:
        return entry.tag != IdtraceTag::block ||
               (entry.value >= kBlockHeader && entry.value % 2 == 0);
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kLeastLine = 4, kBlockHeader = 16;
  static constexpr std::uint32_t kMaxBlock = 255 * 15;

  /// A control instruction ends the block that began before it.
  bool takes_branch(const IdtraceEntry& entry) {
    if (entry.tag == IdtraceTag::block_start) {
      start_ = entry.value;
      began_ = true;
      return true;
    }
    return std::exchange(began_, false) && entry.value - start_ < kMaxBlock;
  }

  IdtraceKind kind_;
  std::uint32_t start_ = 0;
  bool began_ = false;  ///< a block did, there
};

}  // namespace

IdtraceReader::IdtraceReader(std::unique_ptr<InputStream> input) : input_(std::move(input)) {
  const auto first = input_->peek(1);
  if (first.empty()) return;
  const auto kind = idtrace_kind_of(first[0]);
  if (!kind) {
    fail(
        "first entry: expected a tag of 10h to 4fh or 60h (cache), 70h (branch) or 80h (execution "
        "trace), found " +
        byte_text(first[0]));
  }
  kind_ = *kind;
}

void IdtraceReader::fail(const std::string& message) const {
  throw FormatError(input_->name(), last_, message);
}

bool IdtraceReader::next(IdtraceEntry& out) {
  last_ = input_->offset();
  const auto head = input_->peek(kIdtraceMaxEntryBytes);
  if (head.empty()) return false;
  const unsigned byte = head[0];
  const auto tag = static_cast<IdtraceTag>(byte & 0xf0);
  if (tag > IdtraceTag::control_two || !idtrace_has(kind_, tag)) {
    fail("tag: expected one of " + std::string(idtrace_kind_name(kind_)) + " traces, found " +
         byte_text(byte));
  }
  out = IdtraceEntry{};
  out.tag = tag;
  const unsigned low = byte & 0x0f;
  if (is_idtrace_reference(tag)) {
    if (low == 0 || low > kIdtraceMaxSizeCode) {
      fail("size of a reference: expected 1 to 5 in the tag, found " + byte_text(byte));
    }
    out.size_code = static_cast<std::uint8_t>(low);
  } else if (low != 0) {
    fail("tag: expected " + byte_text(byte & 0xf0) + ", found " + byte_text(byte));
  }
  const std::size_t bytes = out.bytes();
  if (head.size() < bytes) {
    fail("entry: expected " + std::to_string(bytes) + " bytes, found " +
         std::to_string(head.size()) + " before the end");
  }
  ByteReader in(head.first(bytes), {});
  in.skip(1, "tag");
  for (std::size_t i = 0; i + 5 < bytes; ++i) out.opcode[i] = in.u8("opcode");
  out.value = in.u32("address");
  if (tag == IdtraceTag::repeat_end && out.value != 0) {
    fail("repeat end: expected the address 0, found " + std::to_string(out.value));
  }
  input_->consume(bytes);
  return true;
}

std::optional<IdtraceKind> idtrace_kind_of(std::span<const std::uint8_t> prefix, bool whole_file) {
  if (prefix.empty() || !idtrace_kind_of(prefix[0])) return std::nullopt;
  IdtraceReader reader(std::make_unique<InputStream>(prefix, "prefix"));
  Plausibility plausibility(reader.kind());
  IdtraceEntry entry;
  std::uint64_t entries = 0;
  try {
    for (; reader.next(entry); ++entries) {
      if (!plausibility.takes(entry)) return std::nullopt;
    }
  } catch (const FormatError&) {
    const bool cut = prefix.size() - reader.offset() < kIdtraceMaxEntryBytes;
    if (whole_file || !cut) return std::nullopt;
  }
  return entries != 0 ? std::optional(reader.kind()) : std::nullopt;
}

}  // namespace citcat
