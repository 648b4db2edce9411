#pragma once
// The replays of a machine's processors together, in the order of their bus: one moment for all.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "events/archive/machine_file.h"
#include "events/machine/address.h"
#include "events/position.h"
#include "events/processors/apic_receivers.h"
#include "replay/machine/observer.h"
#include "replay/run/replay_session.h"

namespace citcat {

/// An access to memory by one of several processors.
struct ProcessorAccess {
  std::uint8_t processor = 0;
  AccessKind kind = AccessKind::data;
  bool write = false;
  bool locked = false;  ///< by an instruction that locks the bus, or its line
  std::uint16_t size = 0;
  PhysAddr address;
  /// Address of its first byte; for an interrupt's delivery, of the handler's first instruction.
  LinearAddr instruction;
  Position position;
};

/// An interrupt that one processor sends to others through its APIC.
struct ProcessorMessage {
  std::uint8_t from = 0;
  std::uint16_t signal = 0;  ///< its vector, or one of those below
  ApicReceivers::Set to;     ///< processors that it may go to
  bool to_one = false;       ///< one of them takes it
};
/// An NMI is reported as its interrupt. INIT and SIPI start a processor again.
inline constexpr std::uint16_t kNmiSignal = 2, kStartSignal = 256;

class MachineListener {
 public:
  virtual ~MachineListener() = default;
  virtual void access(const ProcessorAccess& access) = 0;
  /// A near call or return, completed.
  virtual void called(std::uint8_t /*processor*/, LinearAddr /*from*/) {}
  virtual void returned(std::uint8_t /*processor*/) {}
  /// A processor takes an interrupt, or starts.
  virtual void interrupted(std::uint8_t /*processor*/, std::uint16_t /*signal*/) {}
  /// Comes before the receiver is interrupted.
  virtual void message(const ProcessorMessage& /*message*/) {}
  /// The bus shows a transaction of a processor. Comes before what the processor then accesses.
  virtual void shown(std::uint8_t /*processor*/, const BusTransaction& /*transaction*/) {}
  /// Another bus master than a processor writes to memory.
  virtual void device_write(PhysAddr /*address*/, std::uint32_t /*size*/) {}
};

/// Reports conflicting accesses in the order of the bus. Accesses within a processor's cache are
/// reported right after its last transaction before them: a processor that writes to a line first
/// takes away all other copies, so reads of such a copy come before the write. A store to a shared
/// line is reported, with all that follows it, when the bus shows that its processor takes the
/// line.
class MachineSession {
 public:
  /// `policy`: how each is compared with the evidence; nullopt: not at all. `machine` and
  /// `listener` must outlive the session.
  MachineSession(const MachineFile& machine, MachineListener& listener,
                 const std::optional<ComparisonPolicy>& policy);
  ~MachineSession();

  /// To the end, or until `enough`, which is asked between the events of the bus and may be empty.
  /// Returns the processors whose replay did not come to its end, or diverged before `enough`.
  std::vector<std::size_t> run(const std::function<bool()>& enough = {});
  /// The clock of the transaction that is shown.
  std::uint64_t clock() const { return clock_; }

 private:
  class Teller;
  class Run;

  void pass(const SharedEvent& event, std::vector<Run>& runs);

  const MachineFile& machine_;
  MachineListener& listener_;
  std::vector<RecordingFile> files_;
  ApicReceivers receivers_;
  std::vector<std::unique_ptr<Teller>> tellers_;
  std::vector<std::unique_ptr<ReplaySession>> sessions_;
  std::uint64_t clock_ = 0;
};

}  // namespace citcat
