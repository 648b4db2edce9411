#include "formats/captures/emulator_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/io/error.h"

namespace citcat {

namespace {

using LoggedAddress = std::optional<std::uint64_t>;

LoggedAddress hexadecimal_number(std::string_view text) {
  std::uint64_t value = 0;
  if (text.empty() || !parse_hexadecimal(text, value)) return std::nullopt;
  return value;
}

/// "Trace 0: 0x7f10c0000100 [00000000/000f0000/00000040/ff000200]": between the first two slashes
/// is the linear address (QEMU, accel/tcg/cpu-exec.c, log_cpu_exec()).
LoggedAddress qemu_exec_address(std::string_view line) {
  if (!line.starts_with("Trace ")) return std::nullopt;
  const std::size_t bracket = line.find('[');
  if (bracket == std::string_view::npos) return std::nullopt;
  const std::size_t first = line.find('/', bracket);
  if (first == std::string_view::npos) return std::nullopt;
  const std::size_t second = line.find('/', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  return hexadecimal_number(line.substr(first + 1, second - first - 1));
}

std::optional<std::uint64_t> decimal_number(std::string_view text) {
  std::uint64_t value = 0;
  if (!parse_decimal(trimmed(text), value)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> qemu_exec_processor(std::string_view line) {
  constexpr std::size_t kWord = std::string_view("Trace ").size();
  return decimal_number(line.substr(kWord, line.find(':') - kWord));
}

/// The greatest number of instructions in the block, or 0: the lowest 9 bits of the number after
/// the third slash (QEMU, include/exec/translation-block.h, CF_COUNT_MASK).
std::uint32_t qemu_exec_most(std::string_view line) {
  constexpr std::uint64_t kCountMask = 0x1ff;
  const std::size_t last = line.rfind('/');
  const std::size_t end = line.find(']', last);
  if (end == std::string_view::npos) return 0;
  const LoggedAddress flags = hexadecimal_number(line.substr(last + 1, end - last - 1));
  return static_cast<std::uint32_t>(flags.value_or(0) & kCountMask);
}

std::optional<std::uint64_t> qemu_execlog_processor(std::string_view line) {
  return decimal_number(line.substr(0, line.find(',')));
}

/// "0, 0xfff0, 0xea, \"jmp ...\", load, 0x...": processor, address, opcode (QEMU,
/// contrib/plugins/execlog.c).
LoggedAddress qemu_execlog_address(std::string_view line) {
  const std::size_t comma = line.find(',');
  if (comma == std::string_view::npos || comma == 0) return std::nullopt;
  if (!qemu_execlog_processor(line)) return std::nullopt;
  const std::size_t second = line.find(',', comma + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const std::string_view text = trimmed(line.substr(comma + 1, second - comma - 1));
  return text.starts_with("0x") ? hexadecimal_number(text) : std::nullopt;
}

/// Third: its first four bytes, the first one lowest. The number has no leading zeros.
std::vector<std::uint8_t> qemu_execlog_bytes(std::string_view line) {
  constexpr int kBytes = 4;
  const std::size_t second = line.find(',', line.find(',') + 1);
  if (second == std::string_view::npos) return {};
  const std::size_t third = std::min(line.find(',', second + 1), line.size());
  const LoggedAddress opcode =
      hexadecimal_number(trimmed(line.substr(second + 1, third - second - 1)));
  std::vector<std::uint8_t> bytes;
  for (int i = 0; opcode && i < kBytes; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(*opcode >> 8 * i));
  }
  return bytes;
}

/// "(0).[16893] [0x0000fffffff0] f000:fff0 (unk. ctxt): jmpf 0xf000:e05b ; ea5be000f0": the offset
/// after CS (Bochs, bx_debug/dbg_main.cc, `trace on`).
LoggedAddress bochs_address(std::string_view line) {
  if (!line.starts_with("(")) return std::nullopt;
  const std::size_t second = line.find("] [");
  if (second == std::string_view::npos) return std::nullopt;
  const std::size_t bracket = line.find("] ", second + 1);
  const std::size_t colon = bracket == std::string_view::npos ? bracket : line.find(':', bracket);
  if (colon == std::string_view::npos) return std::nullopt;
  if (!hexadecimal_number(line.substr(bracket + 2, colon - bracket - 2))) return std::nullopt;
  const std::size_t end = std::min(line.find(' ', colon), line.size());
  return hexadecimal_number(line.substr(colon + 1, end - colon - 1));
}

std::optional<std::uint64_t> bochs_processor(std::string_view line) {
  return decimal_number(line.substr(1, line.find(')') - 1));
}

/// After the last semicolon: all of them, in the order of addresses.
std::vector<std::uint8_t> bochs_bytes(std::string_view line) {
  const std::size_t semicolon = line.rfind("; ");
  if (semicolon == std::string_view::npos) return {};
  const std::string_view digits = trimmed(line.substr(semicolon + 2));
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 2 <= digits.size(); i += 2) {
    const LoggedAddress byte = hexadecimal_number(digits.substr(i, 2));
    if (!byte) return {};
    bytes.push_back(static_cast<std::uint8_t>(*byte));
  }
  return bytes;
}

/// "FFFF0: jmp F000:E05B": the address before the first colon, of at least four digits (MAME,
/// debugger command `trace`).
LoggedAddress mame_address(std::string_view line) {
  constexpr std::size_t kDigits = 4, kMostDigits = 16;
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos || colon < kDigits || colon > kMostDigits)
    return std::nullopt;
  return hexadecimal_number(line.substr(0, colon));
}

const LogForm* form_named(const std::string& name) {
  std::string known;
  for (const LogForm& form : log_forms()) {
    if (name == form.name) return &form;
    known += (known.empty() ? "" : ", ") + std::string(form.name);
  }
  throw UsageError("--format: expected " + known + ", found " + name);
}

}  // namespace

const std::vector<LogForm>& log_forms() {
  static const std::vector<LogForm> forms{
      {"qemu-exec", "QEMU, -d exec", qemu_exec_address, nullptr, false, qemu_exec_most,
       "nochain: without it QEMU goes from block to block and logs no line", qemu_exec_processor},
      {"qemu-execlog", "QEMU, plugin execlog", qemu_execlog_address, qemu_execlog_bytes, false,
       nullptr, nullptr, qemu_execlog_processor},
      {"bochs", "Bochs, trace on", bochs_address, bochs_bytes, true, nullptr, nullptr,
       bochs_processor},
      {"mame", "MAME, trace", mame_address, nullptr, false, nullptr,
       "noloop: without it loops are left out"},
  };
  return forms;
}

EmulatorLog::EmulatorLog(std::unique_ptr<InputStream> input, const std::string& form,
                         std::optional<std::uint64_t> processor)
    : form_(form.empty() ? nullptr : form_named(form)),
      lines_(std::make_unique<LineReader>(std::move(input))),
      processor_(processor),
      chosen_(processor.has_value()) {
  if (form_ == nullptr) find_form();
  if (chosen_ && form_->processor == nullptr) {
    throw UsageError(
        fmt::format("--log-processor: logs of the format {} name no processors", form_->name));
  }
}

void EmulatorLog::find_form() {
  constexpr std::size_t kLookedAt = 1000;
  std::string_view line;
  while (form_ == nullptr && first_.size() < kLookedAt && lines_->next(line)) {
    first_.emplace_back(line);
    for (const LogForm& known : log_forms()) {
      if (form_ == nullptr && known.address(line)) form_ = &known;
    }
  }
  if (form_ == nullptr) {
    throw FormatError(lines_->name(), 1,
                      "expected lines of an emulator's log, found none (see --format)");
  }
}

bool EmulatorLog::next_line(std::string_view& line) {
  if (taken_ < first_.size()) {
    line = first_[taken_];
  } else if (!lines_->next(line)) {
    return false;
  }
  ++taken_;
  return true;
}

/// An entry that names no processor is taken for the one that is compared.
bool EmulatorLog::is_of_processor(std::string_view line) {
  if (form_->processor == nullptr) return true;
  const auto number = form_->processor(line);
  if (!processor_) processor_ = number;
  if (!number || number == processor_) return true;
  if (chosen_) return false;
  throw UsageError(fmt::format(
      "{}: line {} is of processor {}, earlier ones of processor {}: choose by --log-processor",
      lines_->name(), taken_, *number, *processor_));
}

bool EmulatorLog::next(EmulatorLogEntry& entry) {
  std::string_view line;
  while (next_line(line)) {
    const LoggedAddress address = form_->address(line);
    if (!address || !is_of_processor(line)) continue;
    entry = {taken_, *address, std::string(line),
             form_->bytes != nullptr ? form_->bytes(line) : std::vector<std::uint8_t>(),
             form_->most != nullptr ? form_->most(line) : 1};
    has_entries_ = true;
    return true;
  }
  if (!has_entries_) {
    const std::string whose = chosen_ ? fmt::format(" of processor {}", *processor_) : "";
    throw FormatError(
        lines_->name(), 1,
        fmt::format("expected lines of the format {}{}, found none", form_->name, whose));
  }
  return false;
}

}  // namespace citcat
