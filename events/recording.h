#pragma once
// A recording: initial machine state (IMS), asynchronous event schedule (AES) and evidence. The
// replay recomputes the run from the first two; the third shows that it is the right run.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "events/adoption.h"
#include "events/bus_anchor.h"
#include "events/bus_transaction.h"
#include "events/dropped_translation.h"
#include "events/event_count.h"
#include "events/external_write.h"
#include "events/internal_read.h"
#include "events/io_reads.h"
#include "events/machine/cpu_state.h"
#include "events/machine/memory_image.h"
#include "events/position.h"

namespace citcat {

struct AccessRun;

/// The unit of BusAnchor::io. A count of bytes does not depend on how an access was split on its
/// way to the monitor.
enum class PortUnit : std::uint8_t {
  transactions = 0,  ///< in archives of earlier versions
  bytes = 1,
};

/// An interrupt from outside: INTR with its vector, NMI (vector 2) or SMI. Archives contain the
/// numbers of kinds.
struct Interrupt {
  enum class Kind : std::uint8_t {
    external = 0,
    nmi = 1,
    smi = 2,
    /// The interrupt of an on-chip device: no acknowledge shows it, but its handler's marker does
    /// (events/on_chip_marker.h), which comes after it. `anchor` and `transaction` are the
    /// marker's.
    on_chip = 3,
    none = 4,  ///< a marker that turned out to follow no interrupt; its position has no meaning
  };
  Kind kind = Kind::external;
  /// For an SMI, the low byte of the saved SMM revision identifier, which gives the layout of the
  /// saved state (SDM vol. 3, 34.4.2); 0 where the bus did not show it.
  std::uint8_t vector = 0;
  bool position_known = false;
  Position position;
  /// For an acknowledge in a capture that does not count instructions: which boundaries between
  /// instructions fit. A search chooses (replay/infer/places/event_placer.h).
  std::optional<EventCount> count;
  BusAnchor anchor;
  std::uint64_t transaction = 0;  ///< index of the acknowledge in the capture

  bool is_nmi() const {
    constexpr std::uint8_t kNmiVector = 2;  // Intel SDM vol. 3, table 6-1
    return kind == Kind::nmi || (kind == Kind::on_chip && vector == kNmiVector);
  }
  /// True if a clear EFLAGS.IF delays it.
  bool is_maskable() const {
    return kind == Kind::external || (kind == Kind::on_chip && !is_nmi());
  }
};

/// Which part of the processor's traffic reaches the monitor.
enum class CacheForm : std::uint8_t {
  none,           ///< every access is on the bus
  write_through,  ///< all writes, and reads that miss
  write_back,     ///< line fills and write-backs; writes only where uncacheable
};

/// The declared cache of the captured machine, as far as the capture gives it.
struct BusModel {
  CacheForm form = CacheForm::none;
  std::uint32_t line_bytes = 0;
  /// Width of the data bus. Transfers are split at multiples of it, and port accesses also at
  /// multiples of four bytes. A monitor that does not see transfers may show port accesses whole.
  std::uint32_t bus_bytes = 4;
  /// The lower 32 physical address bits, as far as they were captured; an 8088 without its A19
  /// probe has 0x7ffff. The replay compares addresses under this mask and mirrors memory over the
  /// missing bits.
  std::uint32_t address_mask = 0xffffffff;
};

struct Provenance {
  struct File {
    std::string name;  ///< as given, without folders
    std::uint64_t bytes = 0;
    std::string xxh3;  ///< XXH3-128 of the file as read, hexadecimal
  };
  std::vector<File> files;
  std::string format;   ///< capture format identifier, e.g. "sigrok"
  std::string options;  ///< import options that shaped the result, as JSON text
};

/// Reads the evidence in bus order: everything that the replay must reproduce. Reads and fetches
/// have no data, which is in the image or the schedule; everything else is complete.
class EvidenceReader {
 public:
  virtual ~EvidenceReader() = default;
  /// False at the clean end. Throws FormatError when the archive is damaged.
  virtual bool next(BusTransaction& out) = 0;
  /// An alternative to next(), not to be mixed with it. If one instruction moved a line over the
  /// bus in consecutive parts, they may come as one transaction of at most kMaxTransactionBytes,
  /// with the index of the last part and without data of reads. Returns the number of transactions
  /// that `out` stands for, 0 at the clean end.
  virtual std::uint8_t next_line(BusTransaction& out) { return next(out) ? 1 : 0; }
  /// The next transactions, as far as they are known already; may be empty. Valid until the reader
  /// is used again.
  virtual std::span<const BusTransaction> upcoming() const { return {}; }
};

/// Opens the evidence of one recording at its beginning, any number of times: searches and trials
/// each read it from the beginning.
using EvidenceSource = std::function<std::unique_ptr<EvidenceReader>()>;

/// Number of transactions in one chunk of evidence; after each chunk, events are handed over to its
/// writer.
inline constexpr std::size_t kEvidenceChunkTransactions = std::size_t{1} << 16;

/// Receives transactions while a capture is read.
class EvidenceWriter {
 public:
  virtual ~EvidenceWriter() = default;
  virtual void write(const BusTransaction& transaction) = 0;
  /// The same for several at once.
  virtual void write_all(std::span<const BusTransaction> transactions) {
    for (const BusTransaction& transaction : transactions) write(transaction);
  }
  /// The same for a run of accesses, without data of reads.
  virtual void write_run(const AccessRun& run);

  /// Events of the recording that is being derived, which nothing later can change. A writer that
  /// takes them keeps memory from growing with the length of the capture.
  struct Events {
    std::vector<Interrupt> interrupts;
    std::vector<ExternalWrite> external_writes;
    std::vector<IoRead> io_reads;
  };
  /// The number of events of one sort to hand over at a time; 0: they stay in the recording.
  virtual std::size_t events_at_a_time() const { return 0; }
  virtual void write_events(const Events& /*events*/) {}
};

/// Why a recording ends. Archives contain these numbers.
enum class Ending : std::uint8_t {
  unknown = 0,      ///< the archive does not say
  capture_end = 1,  ///< the capture ended, and nothing says that it was interrupted
  stop = 2,         ///< the place that `--stop` names
  marker = 3,       ///< the driver's stop marker
  // The capture itself says that it was interrupted.
  source_gone = 4,     ///< the recorded machine, or the emulator, went away
  storage_full = 5,    ///< there was no room for more
  by_hand = 6,         ///< somebody stopped the monitor
  monitor_failed = 7,  ///< the machine did something that the monitor cannot record
};
constexpr bool is_interrupted(Ending ending) { return ending >= Ending::source_gone; }
/// For people and JSON, e.g. "stop marker", "storage full".
std::string_view ending_name(Ending ending);

struct RecordingTotals {
  std::uint64_t transactions = 0;
  std::uint64_t reads = 0, writes = 0, write_backs = 0, line_fills = 0;
  std::uint64_t io_reads = 0, io_writes = 0, interrupts = 0, specials = 0;
  /// Instructions in the hardware's instruction stream, without prefixes and branch trace messages.
  std::uint64_t instruction_starts = 0;
};

/// How many events of each sort.
struct EventCounts {
  std::uint64_t interrupts = 0, external_writes = 0, io_reads = 0;
};

/// The events that a replay receives from outside, with their positions. Events without a count
/// have no position; a search, a correction or a trial makes another schedule in which they have
/// one. The recording itself does not change.
struct Schedule {
  std::vector<Interrupt> interrupts;  ///< in bus order
  ExternalWrites external_writes;     ///< in bus order of the read that showed them
  IoReads io_reads;
  InternalReads internal_reads;
  std::vector<DroppedTranslation> dropped_translations;  ///< in the order of time
};

/// What is known of a recorded machine and its capture, besides its memory and the schedule.
struct RecordingFacts {
  Provenance provenance;
  CpuState initial;
  BusModel bus;
  /// Other processors are on the bus. The archive says so for all recordings; they do not.
  bool shares_bus = false;
  PortUnit port_unit = PortUnit::bytes;
  /// For a recording without evidence: the results that the verified replay took from the bus, in
  /// the order of positions.
  std::vector<Adoption> adoptions;
  /// For such a recording, if it ends within a REP: where the verified replay ended.
  std::optional<Position> end;
  /// Events that went to EvidenceWriter::write_events() and are therefore in no vector here.
  EventCounts handed_over;
  RecordingTotals totals;
  /// The number of instructions that the evidence covers, if the monitor counted them: the replay
  /// stops there. Without it the replay stops when the evidence is used up.
  std::optional<std::uint64_t> instructions;
  Ending ending = Ending::unknown;
  std::vector<std::string> warnings;
};

/// A recording, which is const once it has been derived or read. It contains its own schedule, so
/// a replay of it needs no copy of the events.
struct Recording : Schedule, RecordingFacts {
  MemoryImage image;

  const Schedule& schedule() const { return *this; }
  /// Replaces the schedule by another one of the same events.
  void set_schedule(Schedule schedule) { static_cast<Schedule&>(*this) = std::move(schedule); }
  /// A copy to change, for example to another initial state.
  Recording clone() const;
};

}  // namespace citcat
