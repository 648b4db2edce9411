#pragma once
// When a recording starts and stops.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace citcat::monitor {

struct Trigger {
  enum class Kind : std::uint8_t {
    none,
    reset,    ///< the processor's first instruction
    driver,   ///< the citcat driver's marker
    address,  ///< an instruction at this linear address is about to run
    port,     ///< a write to this port, of `value` if there is one
    count,    ///< this many instructions have been started (to stop: have been recorded)
    console,  ///< the first serial port has sent this text
    process,  ///< a program of this name begins
    exit,     ///< a program of this name ends
  };
  Kind kind = Kind::none;
  std::uint64_t number = 0;  ///< address, port or count
  std::optional<std::uint32_t> value;
  std::string text;
};

/// Parses "reset", "driver", "address:c1000000", "port:80", "port:80=5a" (hexadecimal),
/// "count:1000000", "console:TEXT", "process:NAME", "exit:NAME". Nullopt for anything else.
std::optional<Trigger> parse_trigger(std::string_view text);

/// Watches what goes out of ports for a port or console trigger.
class PortWatch {
 public:
  explicit PortWatch(const Trigger& trigger) : trigger_(trigger) {}
  /// A write to a port; true when it completes the trigger.
  bool write(std::uint32_t port, std::uint32_t value, unsigned size);

 private:
  static constexpr std::uint32_t kSerialData = 0x3f8;  // COM1, transmit holding register

  const Trigger trigger_;
  std::string seen_;  ///< as much of the console's end as the text is long
};

}  // namespace citcat::monitor
