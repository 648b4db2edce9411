#include "monitor/log/interrupt_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>

namespace citcat::monitor {
namespace {

/// Finds "key" in the line and parses the hexadecimal number after it.
template <typename T>
bool hex_after(std::string_view line, std::string_view key, T& value) {
  const std::size_t at = line.find(key);
  if (at == std::string_view::npos) return false;
  const char* begin = line.data() + at + key.size();
  const char* const end = line.data() + line.size();
  std::uint64_t wide = 0;
  const auto result = std::from_chars(begin, end, wide, 16);
  value = static_cast<T>(wide);
  return result.ec == std::errc{};
}

/// The hexadecimal numbers of a line from `at` on, separated by blanks.
template <std::size_t N>
std::size_t hex_list(std::string_view line, std::size_t at, std::array<std::uint64_t, N>& out) {
  std::size_t count = 0;
  while (count < N && at < line.size()) {
    while (at < line.size() && line[at] == ' ') ++at;
    std::uint64_t value = 0;
    const auto result = std::from_chars(line.data() + at, line.data() + line.size(), value, 16);
    if (result.ec != std::errc{}) break;
    out[count++] = value;
    at = static_cast<std::size_t>(result.ptr - line.data());
  }
  return count;
}

bool parse_segment(std::string_view line, LoggedState& state) {
  static constexpr std::string_view kNames[8] = {
      "ES =", "CS =", "SS =", "DS =", "FS =", "GS =", "LDT=", "TR ="};
  for (std::size_t n = 0; n < 8; ++n) {
    if (line.substr(0, 4) != kNames[n]) continue;
    std::array<std::uint64_t, 4> v{};
    if (hex_list(line, 4, v) != 4) return false;
    LoggedSegment& segment = n < 6 ? state.segment[n] : n == 6 ? state.ldtr : state.tr;
    segment = {static_cast<std::uint32_t>(v[0]), v[1], static_cast<std::uint32_t>(v[2]),
               static_cast<std::uint32_t>(v[3])};
    return true;
  }
  return false;
}

/// General registers as they are printed in 64-bit mode.
bool parse_wide_registers(std::string_view line, LoggedState& state) {
  static constexpr std::string_view kLines[4][4] = {{"RAX=", "RBX=", "RCX=", "RDX="},
                                                    {"RSI=", "RDI=", "RBP=", "RSP="},
                                                    {"R8 =", "R9 =", "R10=", "R11="},
                                                    {"R12=", "R13=", "R14=", "R15="}};
  static constexpr unsigned kNumbers[4][4] = {
      {0, 3, 1, 2}, {6, 7, 5, 4}, {8, 9, 10, 11}, {12, 13, 14, 15}};
  for (unsigned n = 0; n < 4; ++n) {
    if (!line.starts_with(kLines[n][0])) continue;
    state.code64 = true;
    for (unsigned k = 0; k < 4; ++k)
      if (!hex_after(line, kLines[n][k], state.gpr[kNumbers[n][k]])) return false;
    return true;
  }
  return false;
}

}  // namespace

bool parse_state_line(std::string_view line, LoggedState& state) {
  const std::string_view head = line.substr(0, 4);
  if (parse_wide_registers(line, state)) return true;
  if (head == "EAX=")
    return hex_after(line, "EAX=", state.gpr[0]) && hex_after(line, "ECX=", state.gpr[1]) &&
           hex_after(line, "EDX=", state.gpr[2]) && hex_after(line, "EBX=", state.gpr[3]);
  if (head == "ESI=")
    return hex_after(line, "ESP=", state.gpr[4]) && hex_after(line, "EBP=", state.gpr[5]) &&
           hex_after(line, "ESI=", state.gpr[6]) && hex_after(line, "EDI=", state.gpr[7]);
  if (head == "EFER") return hex_after(line, "EFER=", state.efer);
  if (head == "EIP=" || head == "RIP=") {
    std::uint32_t flag = 0;
    if (hex_after(line, "SMM=", flag)) state.smm = flag != 0;
    if (hex_after(line, "A20=", flag)) state.a20 = flag != 0;
    return hex_after(line, "IP=", state.ip) &&
           (hex_after(line, "EFL=", state.eflags) || hex_after(line, "RFL=", state.eflags));
  }
  if (head == "GDT=" || head == "IDT=") {
    std::array<std::uint64_t, 2> v{};
    if (hex_list(line, 4, v) != 2) return false;
    (head == "GDT=" ? state.gdt_base : state.idt_base) = v[0];
    (head == "GDT=" ? state.gdt_limit : state.idt_limit) = static_cast<std::uint32_t>(v[1]);
    return true;
  }
  if (head == "CR0=")
    return hex_after(line, "CR0=", state.cr0) && hex_after(line, "CR2=", state.cr2) &&
           hex_after(line, "CR3=", state.cr3) && hex_after(line, "CR4=", state.cr4);
  if (head == "DR0=")
    return hex_after(line, "DR0=", state.dr[0]) && hex_after(line, "DR1=", state.dr[1]) &&
           hex_after(line, "DR2=", state.dr[2]) && hex_after(line, "DR3=", state.dr[3]);
  if (head == "DR6=")
    return hex_after(line, "DR6=", state.dr[6]) && hex_after(line, "DR7=", state.dr[7]);
  return parse_segment(line, state);
}

InterruptLog::~InterruptLog() {
  if (text_ != nullptr) munmap(const_cast<char*>(text_), window_);
  if (file_ >= 0) ::close(file_);
}

bool InterruptLog::open(const std::string& path, std::size_t window) {
  window_ = window;
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  return file_ >= 0 && move_to(0);
}

/// Maps the window in which this offset of the file is, near its beginning.
bool InterruptLog::move_to(std::size_t offset) {
  if (text_ != nullptr) munmap(const_cast<char*>(text_), window_);
  text_ = nullptr;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  begin_ = offset / page * page;
  at_ = offset - begin_;
  struct stat status {};
  const auto end = static_cast<off_t>(begin_ + window_);
  // The emulator may be further on already.
  const bool long_enough =
      fstat(file_, &status) == 0 && (status.st_size >= end || ftruncate(file_, end) == 0);
  void* const map = long_enough ? mmap(nullptr, window_, PROT_READ, MAP_SHARED | MAP_NORESERVE,
                                       file_, static_cast<off_t>(begin_))
                                : MAP_FAILED;
  failed_ = map == MAP_FAILED;
  if (!failed_) text_ = static_cast<const char*>(map);
  return !failed_;
}

/// The last piece of the file that holds something: what lies before may have been taken away.
void InterruptLog::skip() {
  if (all_ != nullptr) return given_.clear();
  off_t data = static_cast<off_t>(begin_ + at_), hole = data;
  for (off_t next = data; (next = lseek(file_, next, SEEK_DATA)) >= 0;
       next = hole = lseek(file_, next, SEEK_HOLE))
    data = next;
  // Its last page may hold more than what was written.
  const void* end = nullptr;
  while (end == nullptr && data < hole && move_to(static_cast<std::size_t>(data))) {
    const auto bytes = std::min(static_cast<std::size_t>(hole - data), window_ - at_);
    end = std::memchr(text_ + at_, 0, bytes);
    data +=
        end == nullptr ? static_cast<off_t>(bytes) : static_cast<const char*>(end) - (text_ + at_);
  }
  if (!failed_) (void)move_to(static_cast<std::size_t>(data));
  announced_ = servicing_ = inside_ = of_reset_ = false;
}

/// The event that was announced and that no dump followed.
bool InterruptLog::take_announced(LoggedEvent& event) {
  if (!announced_) return false;
  event = LoggedEvent{};
  event.vector = vector_;
  event.hardware = servicing_;
  event.real_mode = true;
  announced_ = servicing_ = false;
  return true;
}

LogItem InterruptLog::next(LoggedEvent& event) {
  if (all_ != nullptr) {
    if (given_.empty()) return all_->next(event);
    const LogItem item = given_.front().first;
    event = given_.front().second;
    given_.pop_front();
    return item;
  }
  while (pending()) {
    const char* const begin = text_ + at_;
    const void* const end = std::memchr(begin, '\n', kLongestLine);
    if (end == nullptr) break;
    const auto length = static_cast<std::size_t>(static_cast<const char*>(end) - begin);
    at_ += length + 1;
    const LogItem item = take({begin, length}, event);
    if (window_ - at_ < kMargin && !move_to(begin_ + at_)) return LogItem::nothing;
    if (item != LogItem::nothing) return item;
  }
  return take_announced(event) ? LogItem::event : LogItem::nothing;
}

LogItem InterruptLog::take(std::string_view line, LoggedEvent& event) {
  if (inside_) {
    parse_state_line(line, current_.before);
    if (line.substr(0, 5) != "EFER=") return LogItem::nothing;
    inside_ = false;
    // Emulators of 64 bits print the sum of base and offset; outside 64-bit mode 32 of them count.
    if (!current_.before.code64) current_.pc = static_cast<std::uint32_t>(current_.pc);
    event = current_;
    return std::exchange(of_reset_, false) ? LogItem::reset : LogItem::event;
  }
  std::uint32_t vector = 0;
  const bool servicing = hex_after(line, "Servicing hardware INT=0x", vector);
  if (servicing || (line.starts_with("check_exception") && hex_after(line, " new 0x", vector))) {
    // An interrupt may follow an exception of real mode, before the handler's first instruction.
    const LogItem item = servicing && take_announced(event) ? LogItem::event : LogItem::nothing;
    announced_ = true;
    servicing_ = servicing;
    vector_ = vector;
    return item;
  }
  if (line.starts_with("SMM")) return LogItem::system_management;
  if (line.starts_with("Triple fault")) {
    event = LoggedEvent{};
    event.vector = vector_;
    announced_ = servicing_ = false;
    return LogItem::shutdown;
  }
  if (line.starts_with("CPU Reset")) {
    current_ = LoggedEvent{};
    (void)std::sscanf(std::string(line).c_str(), "CPU Reset (CPU %u)", &current_.processor);
    inside_ = of_reset_ = true;
    return take_announced(event) ? LogItem::event : LogItem::nothing;
  }

  // "  count: v=VV e=EEEE i=N cpl=N IP=SSSS:OOOOOOOO pc=PPPPPPPP SP=... CR2=..."
  std::uint32_t value = 0;
  if (!hex_after(line, ": v=", value)) return LogItem::nothing;
  current_ = LoggedEvent{};
  current_.vector = value;
  hex_after(line, " e=", current_.error_code);
  if (hex_after(line, " i=", value)) current_.software = value != 0;
  if (hex_after(line, " cpl=", value)) current_.cpl = value;
  hex_after(line, " pc=", current_.pc);
  hex_after(line, " CR2=", current_.cr2);
  current_.hardware = servicing_;
  announced_ = servicing_ = false;
  inside_ = true;
  return LogItem::nothing;
}

}  // namespace citcat::monitor
