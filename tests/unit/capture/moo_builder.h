#pragma once
// Writes MOO files, chunk by chunk as the format's own page describes them (dbalsom/moo,
// doc/moo_format_v1.md), for tests of who reads them.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace citcat::test {

using MooBytes = std::string;

inline MooBytes moo_number(std::uint64_t value, std::size_t bytes) {
  MooBytes out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
  return out;
}

inline MooBytes moo_chunk(const std::string& id, const MooBytes& payload) {
  return id + moo_number(payload.size(), 4) + payload;
}

/// A row of CYCL.
struct MooRow {
  std::uint8_t pins = 0;
  std::uint32_t address = 0;
  std::uint8_t pins1 = 1;  ///< BHE# inactive
  std::uint16_t data = 0;
  std::uint8_t bus = 7;      ///< passive
  std::uint8_t t_state = 0;  ///< Ti
  std::uint8_t queue = 0, queue_byte = 0;
};

/// A test of an 8086 or a relative; all fourteen registers, those not named are 0.
struct MooTestOf8086 {
  std::uint16_t ax = 0, dx = 0, cx = 0, cs = 0, ss = 0, ds = 0, sp = 0, ip = 0, flags = 0xf002;
  std::vector<std::pair<std::uint32_t, std::uint8_t>> ram;
  MooBytes queue, last_queue;
  bool has_queue = true, has_last_queue = true;
  std::vector<MooRow> rows;

  MooBytes bytes() const {
    const std::array<std::uint16_t, 14> registers = {ax, 0,  cx, dx, cs, ss, ds,
                                                     0,  sp, 0,  0,  0,  ip, flags};
    MooBytes regs = moo_number(0x3fff, 2);
    for (const std::uint16_t value : registers) regs += moo_number(value, 2);
    MooBytes memory = moo_number(ram.size(), 4);
    for (const auto& [address, value] : ram)
      memory += moo_number(address, 4) + moo_number(value, 1);
    MooBytes cycles = moo_number(rows.size(), 4);
    for (const MooRow& row : rows) {
      cycles += moo_number(row.pins, 1) + moo_number(row.address, 4) + moo_number(0, 3) +
                moo_number(row.pins1, 1) + moo_number(row.data, 2) + moo_number(row.bus, 1) +
                moo_number(row.t_state, 1) + moo_number(row.queue, 1) +
                moo_number(row.queue_byte, 1);
    }
    MooBytes initial = moo_chunk("REGS", regs) + moo_chunk("RAM ", memory);
    if (has_queue) initial += moo_chunk("QUEU", moo_number(queue.size(), 4) + queue);
    MooBytes last = moo_chunk("REGS", moo_number(0, 2)) + moo_chunk("RAM ", moo_number(0, 4));
    if (has_last_queue) last += moo_chunk("QUEU", moo_number(last_queue.size(), 4) + last_queue);
    return moo_chunk("TEST", moo_number(0, 4) + moo_chunk("INIT", initial) +
                                 moo_chunk("FINA", last) + moo_chunk("CYCL", cycles));
  }
};

/// A file of version 1.0 for a processor of this name, of four characters.
inline MooBytes moo_file(const std::string& processor, const std::vector<MooBytes>& tests) {
  MooBytes file = moo_chunk(
      "MOO ", moo_number(1, 1) + moo_number(0, 3) + moo_number(tests.size(), 4) + processor);
  for (const MooBytes& test : tests) file += test;
  return file;
}

}  // namespace citcat::test
