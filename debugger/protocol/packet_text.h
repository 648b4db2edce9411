#pragma once
// Packets of gdb's remote serial protocol as text (Debugging with GDB, appendix E.1): "$DATA#SS",
// and the hexadecimal and binary forms of what is in them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace citcat::gdb {

/// The longest packet that is accepted; gdb receives it as PacketSize.
inline constexpr std::size_t kMaxPacketBytes = 0x4000;

/// The sum that ends a packet, of what is in it.
std::uint8_t packet_sum(std::string_view body);
/// The packet of `data`, in which what has a meaning of its own is escaped.
std::string packet_of(std::string_view data);
/// Data of a packet's body: escapes and repetitions undone. nullopt where one is cut.
std::optional<std::string> data_of(std::string_view body);

/// Why a line that begins with these bytes is not gdb's, which begins with an acknowledgement, a
/// packet or Ctrl-C; empty where it may be. A browser that was led to the port begins with "POST".
std::string why_not_gdb(std::string_view first_bytes);
/// How many bytes of a line that is not gdb's are shown.
inline constexpr std::size_t kShownBytes = 16;

std::string hex_of(std::span<const std::uint8_t> bytes);
std::string hex_of(std::string_view text);
/// The least digits of a number, in hexadecimal.
std::string hex_number(std::uint64_t value);
/// nullopt for anything but pairs of hexadecimal digits.
std::optional<std::vector<std::uint8_t>> bytes_of(std::string_view hex);
/// nullopt for anything but 1 to 16 hexadecimal digits.
std::optional<std::uint64_t> number_of(std::string_view hex);

}  // namespace citcat::gdb
