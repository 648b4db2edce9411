#include "formats/idtrace/trace_entry.h"

#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr unsigned kBranch = 1, kCache = 2, kExecution = 4;

struct TagFacts {
  IdtraceTag tag;
  std::string_view name;
  unsigned kinds;  ///< of files that have it
};

constexpr std::array<TagFacts, 12> kTags{{
    {IdtraceTag::read_write, "read-write", kExecution},
    {IdtraceTag::read, "read", kCache | kExecution},
    {IdtraceTag::write, "write", kCache | kExecution},
    {IdtraceTag::repeat_read, "repeat-read", kCache | kExecution},
    {IdtraceTag::repeat_write, "repeat-write", kCache | kExecution},
    {IdtraceTag::repeat_end, "repeat-end", kCache | kExecution},
    {IdtraceTag::line, "line", kCache},
    {IdtraceTag::block_start, "block-start", kBranch},
    {IdtraceTag::block, "block", kExecution},
    {IdtraceTag::target, "target", kExecution},
    {IdtraceTag::control, "control", kBranch},
    {IdtraceTag::control_two, "control", kBranch},
}};

constexpr std::array<std::uint8_t, kIdtraceMaxSizeCode + 1> kSizes{0, 1, 2, 4, 8, 10};

const TagFacts& facts_of(IdtraceTag tag) {
  const auto row = static_cast<std::size_t>(tag) >> 4;
  CITCAT_ASSERT(row < kTags.size());
  return kTags[row];
}

}  // namespace

std::string_view idtrace_kind_name(IdtraceKind kind) {
  switch (kind) {
    case IdtraceKind::branch:
      return "branch";
    case IdtraceKind::cache:
      return "cache";
    case IdtraceKind::execution:
      return "execution";
  }
  return "";
}

std::string_view idtrace_tag_name(IdtraceTag tag) { return facts_of(tag).name; }

bool idtrace_has(IdtraceKind kind, IdtraceTag tag) {
  return (facts_of(tag).kinds & 1U << static_cast<unsigned>(kind)) != 0;
}

std::uint8_t idtrace_size_bytes(std::uint8_t code) {
  CITCAT_ASSERT(code <= kIdtraceMaxSizeCode);
  return kSizes[code];
}

std::uint8_t idtrace_size_code(unsigned bytes) {
  std::uint8_t code = 1;
  while (code < kIdtraceMaxSizeCode && kSizes[code] < bytes) ++code;
  return code;
}

std::optional<IdtraceKind> idtrace_kind_of(std::uint8_t first_byte) {
  switch (static_cast<IdtraceTag>(first_byte & 0xf0)) {
    case IdtraceTag::block_start:
      return IdtraceKind::branch;
    case IdtraceTag::block:
      return IdtraceKind::execution;
    case IdtraceTag::line:
    case IdtraceTag::read:
    case IdtraceTag::write:
    case IdtraceTag::repeat_read:
    case IdtraceTag::repeat_write:
      return IdtraceKind::cache;
    default:
      return std::nullopt;
  }
}

}  // namespace citcat
