#include "capture/bus/side_values.h"

#include <algorithm>
#include <array>
#include <optional>

#include "capture/bus/text_fields.h"
#include "formats/io/error.h"
#include "formats/io/line_reader.h"

namespace citcat {
namespace {

constexpr std::string_view kHeader = "icount,op,eip,eax,ebx,ecx,edx";

std::optional<InternalRead::Op> parse_op(std::string_view name) {
  using Op = InternalRead::Op;
  constexpr std::array kOps{Op::rdtsc, Op::rdmsr,  Op::wrmsr,  Op::cpuid,
                            Op::rdpmc, Op::rdtscp, Op::rdrand, Op::rdseed};
  const auto* const op = std::find_if(kOps.begin(), kOps.end(),
                                      [&](Op its) { return internal_read_name(its) == name; });
  return op == kOps.end() ? std::nullopt : std::optional(*op);
}

std::uint64_t hex_field(const LineReader& lines, std::string_view name, std::string_view field,
                        unsigned bits) {
  const auto value = parse_number(field, 16, ~std::uint64_t{0} >> (64 - bits));
  if (!value) {
    lines.fail(std::string(name) + ": expected a " + std::to_string(bits) +
               "-bit hexadecimal number, found \"" + std::string(field) + "\"");
  }
  return *value;
}

std::uint32_t register_field(const LineReader& lines, std::string_view name,
                             std::string_view field) {
  return static_cast<std::uint32_t>(hex_field(lines, name, field, 32));
}

void require_fields(const LineReader& lines, const std::vector<std::string_view>& fields) {
  constexpr std::size_t kFields = 7;
  if (fields.size() == kFields) return;
  lines.fail("expected the 7 fields " + std::string(kHeader) + ", found " +
             std::to_string(fields.size()));
}

constexpr std::string_view kRegisterRead = "APICRD", kRegisterWrite = "APICWR";

constexpr std::string_view kEmulatorStore = "STORED", kDropped = "DROPPED";

bool is_register_access(const std::vector<std::string_view>& fields) {
  return fields[1] == kRegisterRead || fields[1] == kRegisterWrite;
}

/// The instruction's number, which rows of these kinds always have.
std::uint64_t access_count(const LineReader& lines, std::string_view field) {
  const auto count = parse_number(field, 10);
  if (!count)
    lines.fail(
        "icount: expected a decimal number, for an access to a register or a byte, or a dropped "
        "translation, found \"" +
        std::string(field) + "\"");
  return *count;
}

EmulatorStore parse_emulator_store(const LineReader& lines,
                                   const std::vector<std::string_view>& fields) {
  EmulatorStore store;
  store.instruction = access_count(lines, fields[0]);
  store.value = static_cast<std::uint8_t>(hex_field(lines, "eax", fields[3], 8));
  store.address = PhysAddr{hex_field(lines, "ecx", fields[5], 64)};
  return store;
}

DroppedTranslation parse_dropped(const LineReader& lines,
                                 const std::vector<std::string_view>& fields) {
  DroppedTranslation dropped;
  dropped.position.instruction = access_count(lines, fields[0]);
  dropped.position.iteration = register_field(lines, "ebx", fields[4]);
  dropped.page = LinearAddr{hex_field(lines, "ecx", fields[5], 64)}.page_begin();
  return dropped;
}

RegisterAccess parse_register_access(const LineReader& lines,
                                     const std::vector<std::string_view>& fields) {
  RegisterAccess access;
  access.instruction = access_count(lines, fields[0]);
  access.writes = fields[1] == kRegisterWrite;
  access.value = register_field(lines, "eax", fields[3]);
  const std::uint32_t size = register_field(lines, "ebx", fields[4]);
  if (size != 1 && size != 2 && size != 4) {
    lines.fail("ebx: expected the size of an access, 1, 2 or 4, found \"" + std::string(fields[4]) +
               "\"");
  }
  access.size = static_cast<std::uint8_t>(size);
  access.address = PhysAddr{register_field(lines, "ecx", fields[5])};
  return access;
}

InternalRead parse_line(const LineReader& lines, const std::vector<std::string_view>& fields) {
  InternalRead read;
  if (!fields[0].empty()) {
    const auto count = parse_number(fields[0], 10);
    if (!count)
      lines.fail("icount: expected a decimal number, found \"" + std::string(fields[0]) + "\"");
    read.position_known = true;
    read.position.instruction = *count;
  }
  const auto op = parse_op(fields[1]);
  if (!op)
    lines.fail(
        "op: expected RDTSC, RDMSR, WRMSR, CPUID, RDPMC, RDTSCP, RDRAND, RDSEED, APICRD, APICWR, "
        "STORED or DROPPED, found \"" +
        std::string(fields[1]) + "\"");
  read.op = *op;
  read.ip = hex_field(lines, "eip", fields[2], 64);
  read.eax = register_field(lines, "eax", fields[3]);
  read.ebx = register_field(lines, "ebx", fields[4]);
  read.ecx = register_field(lines, "ecx", fields[5]);
  read.edx = register_field(lines, "edx", fields[6]);
  return read;
}

/// Calls `take(lines, fields)` for each row of the file.
template <typename Take>
void for_rows(std::unique_ptr<InputStream> input, Take take) {
  LineReader lines(std::move(input));
  std::string_view line;
  if (!lines.next(line) || line != kHeader) {
    throw FormatError(lines.name(), 1, "expected the header " + std::string(kHeader));
  }
  std::vector<std::string_view> fields;
  while (lines.next(line)) {
    if (line.empty()) continue;
    split_fields(line, fields);
    require_fields(lines, fields);
    take(lines, fields);
  }
}

}  // namespace

InternalReads load_side_values(const std::string& path) {
  return read_side_values(std::make_unique<InputStream>(path));
}

InternalReads read_side_values(std::unique_ptr<InputStream> input) {
  InternalReads reads;
  for_rows(std::move(input), [&](const LineReader& lines, const auto& fields) {
    if (is_register_access(fields) || fields[1] == kEmulatorStore || fields[1] == kDropped) return;
    const InternalRead read = parse_line(lines, fields);
    if (!reads.empty() && read.position < reads.back().position) {
      lines.fail("icount: counts must not decrease");
    }
    reads.push_back(read);
  });
  return reads;
}

std::vector<RegisterAccess> load_register_accesses(const std::string& path) {
  std::vector<RegisterAccess> accesses;
  for_rows(std::make_unique<InputStream>(path), [&](const LineReader& lines, const auto& fields) {
    if (!is_register_access(fields)) return;
    const RegisterAccess access = parse_register_access(lines, fields);
    if (!accesses.empty() && access.instruction < accesses.back().instruction) {
      lines.fail("icount: counts must not decrease");
    }
    accesses.push_back(access);
  });
  return accesses;
}

std::vector<EmulatorStore> load_emulator_stores(const std::string& path) {
  std::vector<EmulatorStore> stores;
  for_rows(std::make_unique<InputStream>(path), [&](const LineReader& lines, const auto& fields) {
    if (fields[1] == kEmulatorStore) stores.push_back(parse_emulator_store(lines, fields));
  });
  return stores;
}

std::vector<DroppedTranslation> load_dropped_translations(const std::string& path) {
  return read_dropped_translations(std::make_unique<InputStream>(path));
}

std::vector<DroppedTranslation> read_dropped_translations(std::unique_ptr<InputStream> input) {
  std::vector<DroppedTranslation> all;
  for_rows(std::move(input), [&](const LineReader& lines, const auto& fields) {
    if (fields[1] != kDropped) return;
    const DroppedTranslation dropped = parse_dropped(lines, fields);
    if (!all.empty() && dropped.position.instruction < all.back().position.instruction) {
      lines.fail("icount: counts must not decrease");
    }
    all.push_back(dropped);
  });
  return all;
}

}  // namespace citcat
