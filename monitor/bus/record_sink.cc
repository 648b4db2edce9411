#include "monitor/bus/record_sink.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

namespace citcat::monitor {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{8192} * 40;
template <typename T>
void store(std::uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof value);  // x86 hosts only, as is QEMU's TCG plugin we ship
}

bool is_in_memory(RecordType type) {
  return type <= RecordType::data_write || type == RecordType::invalidate;
}

}  // namespace

RecordSink::RecordSink(int data, int control, bool packs)
    : data_(data), control_(control), buffer_(packs ? 0 : kBufferBytes) {
  if (packs) packer_.emplace();
  // A reader that went away must not take the emulator down.
  std::signal(SIGPIPE, SIG_IGN);
}

void RecordSink::pass_time() {
  Position& its = positions_[driver_];
  // Iterations of a REP that has ended are one instruction: the sum falls then.
  const std::uint64_t done = its.instructions + its.iterations;
  if (done > its.told) passed_ += done - its.told;
  its.told = done;
}

std::uint64_t RecordSink::clock() {
  if (several_) {
    pass_time();
    return passed_ + bus_clocks_;
  }
  return positions_[0].instructions + positions_[0].iterations + bus_clocks_;
}

/// A record of five words of eight bytes each, as it lies in a file.
void RecordSink::store_record(const Record& record) {
  if (used_ + sizeof record > buffer_.size()) flush();
  std::memcpy(buffer_.data() + used_, record.data(), sizeof record);
  used_ += sizeof record;
  ++records_;
}

/// A record has the lower half of an address alone.
void RecordSink::say_upper_half(std::uint32_t upper) {
  constexpr std::uint64_t kNoPosition = ~std::uint64_t{0};
  constexpr auto kType = static_cast<std::uint8_t>(RecordType::high);
  upper_ = upper;
  if (packer_) return pack({.instructions = kNoPosition, .address = upper, .what = kType}, {});
  store_record({kNoPosition, std::uint64_t{upper} << 32, std::uint64_t{kType} << 32, 0, 0});
}

void RecordSink::put(RecordType type, std::uint64_t address, std::span<const std::uint8_t> bytes,
                     unsigned flags, unsigned burst, unsigned clocks) {
  const auto upper = static_cast<std::uint32_t>(address >> 32);
  if (upper != upper_ && is_in_memory(type)) say_upper_half(upper);
  if (packer_) {
    const Position& its = positions_[driver_];
    const std::uint32_t what = static_cast<std::uint8_t>(type) | (flags & 0xff) << 16 |
                               ((burst | driver_ << 4) & 0xff) << 24;
    pack({its.instructions, its.iterations, static_cast<std::uint32_t>(clock()),
          static_cast<std::uint32_t>(address), what, static_cast<std::uint8_t>(clocks)},
         bytes);
  } else {
    put_whole(type, address, bytes, flags, burst);
  }
  bus_clocks_ += clocks;
}

void RecordSink::put_whole(RecordType type, std::uint64_t address,
                           std::span<const std::uint8_t> bytes, unsigned flags, unsigned burst) {
  const Position& its = positions_[driver_];
  const std::uint64_t what = static_cast<std::uint8_t>(type) | std::uint64_t{bytes.size()} << 8 |
                             std::uint64_t{flags & 0xff} << 16 |
                             std::uint64_t{(burst | driver_ << 4) & 0xff} << 24;
  Record record{its.instructions, static_cast<std::uint32_t>(clock()) | address << 32,
                its.iterations | what << 32, 0, 0};
  std::memcpy(&record[3], bytes.data(), bytes.size());
  store_record(record);
}

void RecordSink::split(RecordType type, std::uint64_t address, std::span<const std::uint8_t> bytes,
                       unsigned flags) {
  while (!bytes.empty()) {
    const std::size_t room = 4 - (address & 3);
    const std::size_t n = bytes.size() < room ? bytes.size() : room;
    put(type, address, bytes.first(n), flags, 0, kClocksSingle);
    address += n;
    bytes = bytes.subspan(n);
  }
}

void RecordSink::port(RecordType type, std::uint32_t port, std::uint32_t value, unsigned size) {
  std::uint8_t bytes[4];
  store(bytes, value);
  const unsigned below = 4 - (port & 3);
  if (below < size) {
    put(type, port + below, {bytes + below, size - below}, 0, 0, kClocksSingle);
    size = below;
  }
  put(type, port, {bytes, size}, 0, 0, kClocksSingle);
}

void RecordSink::line_part(RecordType type, std::uint64_t address,
                           std::span<const std::uint8_t> bytes, unsigned flags, unsigned burst) {
  put(type, address, bytes, flags | kLineBurst, burst,
      burst == 0 ? kClocksHalfLine : kClocksHalfLine - 1);
}

void RecordSink::event(RecordType type, std::uint8_t value, unsigned size, unsigned flags) {
  put(type, 0, {&value, size}, flags, 0, kClocksSingle);
}

void RecordSink::local_interrupt(std::uint8_t vector, std::uint8_t mode) {
  const std::uint8_t bytes[2] = {vector, mode};
  put(RecordType::local_interrupt, 0, bytes, 0, 0, kClocksSingle);
}

void RecordSink::message(std::uint32_t message) {
  std::uint8_t bytes[4];
  store(bytes, message);
  put(RecordType::message, 0, bytes, 0, 0, kClocksSingle);
}

void RecordSink::flush() {
  if (packer_) {
    send(data_, packer_->chunk());
    return packer_->clear();
  }
  send(data_, {buffer_.data(), used_});
  used_ = 0;
}

void RecordSink::say_left(std::uint64_t machine, std::uint8_t value) {
  char text[96];
  const int size =
      std::snprintf(text, sizeof text, "value %llu,STORED,0,%08x,00000001,%08llx,00000000",
                    static_cast<unsigned long long>(positions_[driver_].instructions), value,
                    static_cast<unsigned long long>(machine));
  say({text, static_cast<std::size_t>(size)});
}

void RecordSink::say_dropped(std::uint64_t page) {
  const Position& its = positions_[driver_];
  char name[16] = "value", text[128];
  if (several_) std::snprintf(name, sizeof name, "value-of %u", driver_);
  const int size =
      std::snprintf(text, sizeof text, "%s %llu,DROPPED,0,00000000,%08x,%08llx,00000000", name,
                    static_cast<unsigned long long>(its.instructions), its.iterations,
                    static_cast<unsigned long long>(page));
  say({text, static_cast<std::size_t>(size)});
}

void RecordSink::say(std::string_view line) {
  flush();
  std::string text(line);
  text += '\n';
  send(control_, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
}

void RecordSink::send(int descriptor, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty() && !failed_) {
    const ssize_t n = ::write(descriptor, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      failed_ = true;
      return;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

}  // namespace citcat::monitor
