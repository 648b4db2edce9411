#include "monitor/log/interrupt_log.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "monitor/log/hexadecimal.h"

namespace citcat::monitor {

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
  announced_ = servicing_ = inside_ = false;
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

/// A dump follows that belongs to something other than a delivery. One of real mode may have come
/// before it.
LogItem InterruptLog::begin_state(LogItem what, LoggedEvent& event) {
  current_ = LoggedEvent{};
  inside_ = true;
  dump_of_ = what;
  return take_announced(event) ? LogItem::event : LogItem::nothing;
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
    return dump_of_;
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
  if (line.starts_with("SMM: enter")) return begin_state(LogItem::smi, event);
  if (line.starts_with("SMM: after RSM")) return begin_state(LogItem::resumed, event);
  if (line.starts_with("Triple fault")) {
    event = LoggedEvent{};
    event.vector = vector_;
    announced_ = servicing_ = false;
    return LogItem::shutdown;
  }
  if (line.starts_with("CPU Reset")) {
    const LogItem item = begin_state(LogItem::reset, event);
    (void)std::sscanf(std::string(line).c_str(), "CPU Reset (CPU %u)", &current_.processor);
    return item;
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
  dump_of_ = LogItem::event;
  return LogItem::nothing;
}

}  // namespace citcat::monitor
