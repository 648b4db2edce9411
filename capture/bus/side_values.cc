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

InternalRead parse_line(const LineReader& lines, const std::vector<std::string_view>& fields) {
  constexpr std::size_t kFields = 7;
  if (fields.size() != kFields) {
    lines.fail("expected the 7 fields " + std::string(kHeader) + ", found " +
               std::to_string(fields.size()));
  }
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
        "op: expected RDTSC, RDMSR, WRMSR, CPUID, RDPMC, RDTSCP, RDRAND or RDSEED, found \"" +
        std::string(fields[1]) + "\"");
  read.op = *op;
  read.ip = hex_field(lines, "eip", fields[2], 64);
  read.eax = register_field(lines, "eax", fields[3]);
  read.ebx = register_field(lines, "ebx", fields[4]);
  read.ecx = register_field(lines, "ecx", fields[5]);
  read.edx = register_field(lines, "edx", fields[6]);
  return read;
}

}  // namespace

InternalReads load_side_values(const std::string& path) {
  return read_side_values(std::make_unique<InputStream>(path));
}

InternalReads read_side_values(std::unique_ptr<InputStream> input) {
  LineReader lines(std::move(input));
  std::string_view line;
  if (!lines.next(line) || line != kHeader) {
    throw FormatError(lines.name(), 1, "expected the header " + std::string(kHeader));
  }
  InternalReads reads;
  std::vector<std::string_view> fields;
  while (lines.next(line)) {
    if (line.empty()) continue;
    split_fields(line, fields);
    const InternalRead read = parse_line(lines, fields);
    if (!reads.empty() && read.position < reads.back().position) {
      lines.fail("icount: counts must not decrease");
    }
    reads.push_back(read);
  }
  return reads;
}

}  // namespace citcat
