#include "cli/record/monitor_receiver.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "capture/import/bus_record.h"
#include "capture/import/native.h"
#include "cli/record/side_file.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

namespace fs = std::filesystem;

/// "stop instructions=5 records=9 … reason=marker" as a map.
std::map<std::string, std::string> parse_totals(std::string_view text) {
  std::map<std::string, std::string> out;
  while (!text.empty()) {
    const std::size_t equal = text.find('=');
    if (equal == std::string_view::npos) break;
    const std::string key(text.substr(0, equal));
    const std::size_t end = key == "reason" ? text.size() : text.find(' ', equal);
    out[key] = text.substr(equal + 1, end == std::string_view::npos ? end : end - equal - 1);
    text.remove_prefix(end == std::string_view::npos ? text.size()
                                                     : std::min(end + 1, text.size()));
  }
  return out;
}

/// The header for the monitor's records of several processors with the cache of this name.
NativeHeader header_of_several(const std::string& cache) {
  NativeHeader header;
  header.version = kNativeProcessorsVersion;
  header.flags = kNativePositions | kNativeClock;
  // Who shares what is shown of lines of 32 bytes.
  if (cache == "pentium") header.flags |= kNativeSharing;
  header.cache = cache == "none" ? 1 : cache == "i486" ? 2 : 3;
  header.bus_bytes = 4;
  header.line_bytes = cache == "none" ? 0 : cache == "pentium" ? 32 : 16;
  header.address_mask = ~std::uint32_t{0};
  header.monitor = "citcat-monitor";
  return header;
}

}  // namespace

std::uint64_t free_space(const std::string& path) {
  struct statvfs status {};
  const fs::path folder = fs::path(path).parent_path();
  if (statvfs(folder.empty() ? "." : folder.c_str(), &status) != 0) return ~std::uint64_t{0};
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

bool is_nearly_full(const std::string& path) {
  struct stat status {};
  // Pipes and devices have no disk to fill.
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return false;
  return free_space(path) < kDiskReserve;
}

std::optional<std::string> nearly_full(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths)
    if (is_nearly_full(path)) return path;
  return std::nullopt;
}

MonitorReceiver::MonitorReceiver(const RecordArguments& capture, const Console& console)
    : console_(console),
      output_(capture.output),
      internal_(capture.internal),
      cache_(capture.cache),
      values_(capture.processors) {}

std::uint64_t MonitorReceiver::records() const { return count_; }

std::uint64_t MonitorReceiver::instructions() const {
  return first_count_ ? last_count_ - *first_count_ : 0;
}

bool MonitorReceiver::take_data(int fd) {
  const ssize_t n = ::read(fd, buffer_.data() + held_, buffer_.size() - held_);
  if (n < 0 && errno == EINTR) return true;
  if (n < 0) throw IoError(std::string("the monitor's pipe: ") + std::strerror(errno));
  if (n == 0) return false;
  const std::span<const std::uint8_t> all(buffer_.data(), held_ + static_cast<std::size_t>(n));
  // An emulator that is killed may leave part of a record behind.
  std::size_t whole = takes_chunks() ? 0 : all.size() - all.size() % kBusRecordBytes;
  if (!takes_chunks() && !full_) keep(all.first(whole));
  while (takes_chunks() && all.size() - whole >= kRecordChunkHeaderBytes) {
    const auto rest = all.subspan(whole);
    const std::size_t size = RecordChunkHeader::of(rest.first<kRecordChunkHeaderBytes>()).bytes +
                             kRecordChunkHeaderBytes;
    if (size > buffer_.size()) throw IoError("the monitor's pipe: found an impossible chunk");
    if (size > rest.size()) break;
    if (!full_) take_chunk(rest.first(size));
    whole += size;
  }
  held_ = all.size() - whole;
  std::copy(all.begin() + static_cast<std::ptrdiff_t>(whole), all.end(), buffer_.begin());
  return true;
}

void MonitorReceiver::take_chunk(std::span<const std::uint8_t> chunk) {
  const auto header = RecordChunkHeader::of(chunk.first<kRecordChunkHeaderBytes>());
  if (!is_record_store(output_)) {
    unpacked_.clear();
    const auto taken = unpacker_.unpack(header, chunk.subspan(kRecordChunkHeaderBytes), unpacked_);
    if (taken.records != header.records) {
      throw IoError(fmt::format("the monitor's pipe: expected a chunk of {} records, found {}",
                                header.records, taken.records));
    }
    return keep(unpacked_);
  }
  if (!store_) store_.emplace(output_);
  store_->put(chunk);
  count(header.records, header.instructions, header.last);
  check_room();
}

/// An emulator that is killed may leave part of a chunk behind: what is whole in it is kept.
void MonitorReceiver::take_part_of_chunk() {
  if (held_ <= kRecordChunkHeaderBytes || full_) return;
  const std::span<const std::uint8_t> part(buffer_.data(), held_);
  auto header = RecordChunkHeader::of(part.first<kRecordChunkHeaderBytes>());
  unpacked_.clear();
  const auto taken =
      RecordUnpacker().unpack(header, part.subspan(kRecordChunkHeaderBytes), unpacked_);
  if (taken.records == 0) return;
  header.bytes = static_cast<std::uint32_t>(taken.bytes);
  header.records = static_cast<std::uint32_t>(taken.records);
  header.last = taken.last;
  const auto head = header.stored();
  std::copy(head.begin(), head.end(), buffer_.begin());
  take_chunk({buffer_.data(), kRecordChunkHeaderBytes + taken.bytes});
}

bool MonitorReceiver::take_control(int fd) {
  char text[65536];
  const ssize_t n = ::read(fd, text, sizeof text);
  if (n < 0 && errno == EINTR) return true;
  if (n <= 0) return false;
  line_.append(text, static_cast<std::size_t>(n));
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = line_.find('\n', begin)) != std::string::npos; begin = end + 1)
    take_line(std::string_view(line_).substr(begin, end - begin));
  line_.erase(0, begin);
  return true;
}

bool MonitorReceiver::finish(Ending ending) {
  if (takes_chunks()) take_part_of_chunk();
  if (!has_begun()) return false;
  if (is_interrupted(ending)) write_mark(ending);
  if (native_) native_->finish();
  if (store_)
    store_->finish();
  else
    records_->finish();
  for (unsigned p = 0; p < values_.size(); ++p) values(p).finish();
  return true;
}

void MonitorReceiver::keep(std::span<const std::uint8_t> records) {
  if (records.empty()) return;
  if (!records_) {
    records_ = open_sink(output_);
    if (several()) native_.emplace(*records_, header_of_several(cache_));
  }
  if (!native_) records_->write(records);
  for (std::size_t at = 0; native_ && at < records.size(); at += kBusRecordBytes)
    native_->put(unpack_bus_record(records.subspan(at).first<kBusRecordBytes>()));
  check_room();
  const BusRecord last = unpack_bus_record(records.last<kBusRecordBytes>());
  count(records.size() / kBusRecordBytes, last.instructions, last.instructions);
}

void MonitorReceiver::count(std::uint64_t records, std::uint64_t first, std::uint64_t last) {
  count_ += records;
  if (!first_count_ && first != kNoCount) first_count_ = first;
  if (last != kNoCount) last_count_ = last;
}

void MonitorReceiver::write_mark(Ending ending) {
  BusRecord mark;
  mark.instructions = kNoCount;
  mark.type = static_cast<std::uint8_t>(BusRecordType::cut);
  mark.size = 1;
  mark.data[0] = cut_code(ending);
  const auto bytes = std::bit_cast<std::array<std::uint8_t, kBusRecordBytes>>(mark);
  if (native_)
    native_->put(mark);
  else if (store_)
    store_->put_record(bytes);
  else
    records_->write(bytes);
}

void MonitorReceiver::take_line(std::string_view line) {
  const std::size_t blank = std::min(line.find(' '), line.size());
  const std::string_view kind = line.substr(0, blank);
  const std::string rest(line.substr(std::min(blank + 1, line.size())));
  if (kind == "value") {
    write_text(0, rest + "\n");
  } else if (kind == "value-of") {
    take_value_of_one(rest);
  } else if (kind == "start") {
    console_.note("recording begins, " + rest);
  } else if (kind == "stop") {
    totals_ = parse_totals(rest);
  } else if (kind == "error") {
    failed_ = true;
    console_.warn("the monitor: " + rest);
  }
}

/// "1 90,RDTSC,…": of processor 1.
void MonitorReceiver::take_value_of_one(const std::string& text) {
  unsigned processor = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, processor);
  if (parsed.ec != std::errc() || processor >= values_.size() || parsed.ptr == end) return;
  write_text(processor, std::string(parsed.ptr + 1, end) + "\n");
}

/// The file of one processor's values, which is made when it is first asked for.
ByteSink& MonitorReceiver::values(unsigned processor) {
  std::unique_ptr<ByteSink>& its = values_[processor];
  if (!its) {
    its = open_sink(several() ? side_file_of(internal_, processor) : internal_);
    constexpr std::string_view kHead = "icount,op,eip,eax,ebx,ecx,edx\n";
    its->write({reinterpret_cast<const std::uint8_t*>(kHead.data()), kHead.size()});
  }
  return *its;
}

void MonitorReceiver::write_text(unsigned processor, const std::string& text) {
  values(processor).write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

}  // namespace citcat
