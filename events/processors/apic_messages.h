#pragma once
// Checks messages of the APIC bus against the command registers that ask for them, and the
// interrupts that processors take against messages (Intel SDM vol. 3, 10.6 and 10.8).

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "events/bus_transaction.h"
#include "events/processors/apic_receivers.h"
#include "events/processors/bus_note.h"

namespace citcat {

class ApicMessages {
 public:
  /// `ids`: the IDs of the processors' local APICs.
  explicit ApicMessages(const std::vector<std::uint8_t>& ids)
      : processors_(ids.size()), receivers_(ids) {}

  // Each returns what is wrong, or "".
  /// A message is on the bus.
  std::string sent(const BusNote& note);
  /// A processor takes an interrupt from its local APIC. Those of an 8259 are not among these.
  std::string taken(std::uint8_t processor, std::uint8_t vector);
  /// A write of a command register.
  struct Asked {
    std::uint8_t processor = 0;
    BusTransaction write;
    std::string message;  ///< text of the message that it asks for
  };
  /// At the end: the first write for which the bus shows no message, although it is long before its
  /// processor's last transaction.
  std::optional<Asked> unsent() const;

  /// At the end: a message of a processor that has used the registers of its APIC as memory, and
  /// asked for that message in no way that is seen.
  std::optional<BusNote> unasked(std::size_t processor) const;

  /// A processor writes a register of its local APIC. Returns a message that it showed before that,
  /// and did not ask for.
  std::optional<BusNote> wrote(std::uint8_t processor, const BusTransaction& t);
  /// A processor reads such a register. Returns what is wrong with the value, or "": registers that
  /// only their processor changes keep what was last written to them or read from them.
  std::string read(std::uint8_t processor, const BusTransaction& t);
  /// A processor drives another transaction.
  void passed(std::uint8_t processor) { ++processors_[processor].transactions; }
  /// INIT: nothing is pending, and the APIC takes nothing but INIT, NMI and SIPI.
  void reset(std::uint8_t processor);

  /// Whether a transaction accesses a register of the local APIC.
  static bool is_register(const BusTransaction& t);

 private:
  /// The message that a command register (ICR) requests.
  struct Command {
    std::uint32_t low = 0;
    std::optional<std::uint8_t> destination;
    std::uint64_t transactions = 0;  ///< of its processor until then
    BusTransaction write;
  };
  struct Processor {
    std::deque<Command> commands;    ///< of which the bus has shown no message yet
    std::optional<BusNote> unasked;  ///< the first message without a command, if it had any
    std::optional<std::uint8_t> destination;
    std::optional<bool> enabled;
    std::optional<std::uint8_t> timer;  ///< the vector of its timer
    std::bitset<256> local;             ///< vectors that its own interrupts have had
    std::bitset<256> pending;           ///< sent to it for sure, and not taken yet
    std::bitset<256> sent;              ///< that may have been sent to it and not taken yet
    std::uint64_t transactions = 0;
    std::map<std::uint32_t, std::uint32_t> registers;  ///< values that are kept, by offset
  };

  std::string check_command(Processor& sender, const BusNote& note);
  void deliver(const BusNote& note);
  void send(Processor& to, std::uint8_t vector, bool sure);

  std::vector<Processor> processors_;
  ApicReceivers receivers_;
  std::bitset<256> vectors_;  ///< of messages
  bool is_hidden_ = false;    ///< some registers are written in ways that are not seen
};

}  // namespace citcat
