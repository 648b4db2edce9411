#pragma once
// Drives the machine along a recording's schedule: every external event at its exact place.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "events/port_transfers.h"
#include "events/recording.h"
#include "replay/machine/machine.h"
#include "replay/session/moment.h"
#include "replay/session/replay_report.h"

namespace citcat {

Divergence make_divergence(const ReplayStopped& stop);

struct ReplayOptions {
  /// Opens the evidence from its start; may be empty. Consulted for state that was inside the
  /// processor before the capture began and that only later bus traffic tells.
  EvidenceSource evidence;
  /// Stop before this instruction; all ones: at the end of the evidence.
  std::uint64_t to = ~std::uint64_t{0};
  /// Stop before that already, between two iterations of a REP.
  std::optional<Position> within = std::nullopt;
  /// Where the run ended, if it did so within an instruction: nothing from there on completes.
  std::optional<Position> end = std::nullopt;
  /// A HLT that nothing is known to wake completes. A comparison ends within it where the capture
  /// counts no instructions, and so does a replay without one that is to end where that does.
  bool last_halt_completes = true;
  /// Called now and then with the position; false interrupts the replay (End::stopped).
  std::function<bool(Position)> progress;
  std::uint64_t progress_interval = 1u << 20;  ///< instructions
  /// Asked before every instruction and iteration, with everything before it complete; true makes
  /// run() return there. Asked again for the same place when the run goes on. With it run() also
  /// returns where the processor halts and the next interrupt has no position.
  std::function<bool(Position)> watch;
  /// ExecutionPath::blocks is used where listeners and recording allow it; the results are the
  /// same.
  ExecutionPath path = ExecutionPath::blocks;
};

class Replayer final : private Environment {
 public:
  /// `recording`, `schedule` and what is listed must outlive the replayer. A schedule may change
  /// between two calls of run() where its owner takes the replay back to before what changed.
  Replayer(const Recording& recording, const Schedule& schedule, const Listeners& listeners,
           ReplayOptions options);
  /// With the recording's own schedule.
  Replayer(const Recording& recording, const Listeners& listeners, ReplayOptions options)
      : Replayer(recording, recording, listeners, std::move(options)) {}
  ~Replayer() override;

  /// Runs to the end, the stop or the first divergence.
  ReplayReport run();
  /// The same up to another instruction than the options say; may be called again and again.
  ReplayReport run_to(std::uint64_t to) { return run_to(Position{to, 0}); }
  /// The same, up to a boundary between two iterations.
  ReplayReport run_to(Position to);
  /// The same, up to the next place where the replay can be: after one instruction or
  /// iteration, or at the first instruction of the handler of a fault.
  ReplayReport step();
  /// Where the replay is between two calls of run(), with what is due there delivered.
  Moment moment() const;

  /// The replay between two calls of run(), to come back to: machine, memory and how far the
  /// schedule has been used. Listeners keep their own state.
  struct Checkpoint {
    Machine::Snapshot machine;
    ReplayReport report;
    std::size_t next_interrupt = 0, next_external = 0, next_io = 0, next_internal = 0,
                next_dropped = 0;
    std::uint64_t io_done = 0, written_bytes = 0, interrupts = 0, exceptions = 0;
  };
  Checkpoint checkpoint() const;
  void restore(const Checkpoint& checkpoint);

  /// One more instruction after run(), beyond what the evidence reaches. False when something that
  /// the recording does not say would be needed.
  bool step_beyond();
  Machine& machine() { return machine_; }
  /// The interrupt of the schedule that is to be delivered next; their number after the last.
  std::size_t next_interrupt() const { return next_interrupt_; }
  /// The same of reads of ports, each transfer one, and of other masters' writes.
  std::size_t next_port_read() const { return next_io_; }
  std::size_t next_external_write() const { return next_external_; }

 private:
  std::uint32_t port_read(std::uint16_t port, std::uint32_t size, Position now) override;
  void port_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                  Position now) override;
  std::optional<InternalRead> internal_read(InternalRead::Op op, Position now) override;
  bool reports_each(InternalRead::Op op) const override;
  std::optional<std::uint64_t> missing_pdpte(unsigned index, LinearAddr wanted,
                                             Position now) override;
  bool wants_stop(Position next) override;

  std::uint32_t port_part(PortAccess& access, const IoRead& part, std::uint16_t port,
                          std::uint32_t size, Position now) const;
  void end_port_reads(const PortAccess& access, std::uint16_t port, std::uint32_t size,
                      std::uint32_t value, Position now);
  bool evidence_ends_with(std::uint64_t transaction) const;

  /// Counts what anchors are made of, and events for the report.
  class Tally;
  /// Ends the run within a HLT that nothing is known to wake.
  class LastHalt;

  void begin_run();
  void loop();
  void apply_all_due();
  bool wakes() const;
  bool must_poll() const;
  Position next_stop() const;
  bool apply_due();
  bool interrupt_is_due() const;
  bool external_write_is_due() const;
  bool drop_is_due() const;
  bool reached(const BusAnchor& anchor) const;
  bool deliver_interrupt();
  bool finished() const;

  const Recording& recording_;
  const Schedule& schedule_;
  ReplayOptions options_;
  Position to_;  ///< where to stop
  std::unique_ptr<Tally> tally_;
  std::unique_ptr<LastHalt> last_halt_;
  Machine machine_;
  ReplayReport report_;
  // Cursors into the schedule, which may change between two runs.
  mutable PackedCursor<ExternalWrites> external_writes_;
  PackedCursor<IoReads> io_reads_;
  PackedCursor<InternalReads> internal_reads_;
  std::size_t next_interrupt_ = 0;
  std::size_t next_external_ = 0;
  std::size_t next_io_ = 0;
  std::size_t next_internal_ = 0;
  std::size_t next_dropped_ = 0;
  PortBus port_bus_;
  PortCount port_count_;
  std::uint64_t io_done_ = 0;            ///< as BusAnchor::io
  bool watch_stopped_ = false;           ///< options_.watch, or step(), asked for it
  std::optional<Moment> stepping_from_;  ///< within step()
  bool ended_ = false;                   ///< the run, within a delivery
};

}  // namespace citcat
