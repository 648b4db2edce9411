#pragma once
// A run at a glance: what happened in each part of it, kept in memory that does not grow with its
// length. Made by listening to the run once, from its beginning or from any place on.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replay/machine/machine.h"
#include "replay/machine/observer.h"
#include "tools/guest/guest_observer.h"

namespace citcat::view {

/// What happened within so many instructions.
struct RunBucket {
  std::array<std::uint32_t, 4> levels{};             ///< instructions at each privilege level
  std::uint32_t interrupts = 0, nmis = 0, smis = 0;  ///< the first: all of them
  std::uint32_t exceptions = 0, software = 0, calls = 0;
  std::uint32_t port_reads = 0, port_writes = 0, external_writes = 0, halts = 0;
  std::uint32_t process = 0;     ///< the number of the one that executed most of it
  std::uint32_t of_process = 0;  ///< instructions of that
  void add(const RunBucket& other);
};

struct RunEvent {
  enum class Kind : std::uint8_t {
    interrupt,
    nmi,
    smi,
    exception,
    software,
    port_read,
    port_write,
    external_write,
    halt,
    shutdown,
    process,  ///< which is running now
    translation_dropped,
  } kind = Kind::interrupt;
  std::uint8_t vector = 0, size = 0;
  std::uint16_t port = 0;
  /// What a port passes, an address (CR2, where a device writes, or a page), or the number of a
  /// process.
  std::uint64_t value = 0;
  std::uint64_t instruction = 0;
};

struct RunProcess {
  AddressSpaceId space = 0;  ///< CR3
  std::string name;          ///< empty where it is not known
  std::uint64_t first = 0, last = 0, instructions = 0, switches = 0, calls = 0;
};

struct RunCall {
  std::uint64_t begin = 0, end = 0;
  bool ended = false, failed = false;
  std::uint32_t process = 0;
  std::string text, result;
};

struct ConsoleCharacter {
  std::uint64_t instruction = 0;
  std::uint16_t port = 0;
  char character = 0;
};

/// Deliveries of one vector that followed one another with hardly an instruction between.
struct EventStreak {
  std::uint64_t count = 0, first = 0, last = 0;
  std::uint8_t vector = 0;
  RunEvent::Kind kind = RunEvent::Kind::interrupt;
};

class RunIndex final : public Observer, private tools::SystemCallListener {
 public:
  /// `from`: what comes before is not counted; `most`: buckets, of `width` instructions at first.
  RunIndex(std::uint64_t from, std::uint64_t width, std::size_t most);
  /// An index of a whole run, however long.
  static std::unique_ptr<RunIndex> from_beginning();
  RunIndex(const RunIndex&) = delete;
  RunIndex& operator=(const RunIndex&) = delete;

  /// The machine that is observed; it is where the index begins.
  void listen_to(const Machine& machine);
  /// Told up to here: an instruction that has begun there has not completed.
  void end(std::uint64_t instruction);

  std::uint64_t from() const { return from_; }
  std::uint64_t told_to() const { return told_to_; }
  std::uint64_t width() const { return width_; }
  const std::vector<RunBucket>& buckets() const { return buckets_; }
  const std::vector<RunProcess>& processes() const { return processes_; }
  /// In the order of the run; of a long one only up to events_to().
  const std::vector<RunEvent>& events() const { return events_; }
  std::uint64_t events_to() const { return events_to_; }
  const std::vector<RunCall>& calls() const { return calls_; }
  bool has_all_calls() const { return !calls_dropped_; }
  /// What went to serial ports, and to the ports to which emulators take texts.
  const std::vector<ConsoleCharacter>& console() const { return console_; }
  const EventStreak& longest_streak() const { return longest_; }
  std::optional<std::uint64_t> shutdown_at() const { return shutdown_at_; }
  RunBucket totals() const;
  /// What the process with these page tables is called: a name, or CR3.
  std::string process_name(AddressSpaceId space) const;
  std::string process_label(std::size_t number) const;

  citcat::Interest interest() const override { return {.code = Detail::blocks}; }
  void watch(const Machine& machine) override { listen_to(machine); }
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void passed(std::uint64_t from, std::uint64_t to) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void translation_dropped(LinearAddr page, Position now) override;
  void halted(Position now) override;
  void shutdown(Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;

 private:
  void began(const tools::SystemCall& call) override;
  void ended(const tools::SystemCall& call) override;
  void executed(AddressSpaceId space, const std::string& path, Position now) override;
  void renamed(AddressSpaceId space, const std::string& name, Position now) override;
  RunBucket& bucket(std::uint64_t instruction);
  void completed(std::uint64_t from, std::uint64_t to, bool has_left = false);
  void take_back(std::uint64_t instruction);
  void halve();
  void happened(const RunEvent& event, std::uint32_t RunBucket::*counter);
  void follow_streak(const RunEvent& event);
  std::uint32_t process_number(AddressSpaceId space, std::uint64_t at);
  void settle_process(std::uint64_t at);

  std::uint64_t from_, told_to_, width_;
  std::size_t most_;
  const Machine* machine_ = nullptr;
  tools::GuestObserver guest_{this};
  std::vector<RunBucket> buckets_;
  std::map<std::uint32_t, std::uint32_t> shares_;  ///< of the last bucket, by process
  std::vector<RunProcess> processes_;
  std::map<AddressSpaceId, std::uint32_t> numbers_;  ///< of processes, by CR3
  std::uint32_t running_ = 0;
  std::size_t level_ = 0;  ///< level of the instruction that was counted last
  std::size_t here_ = 0;   ///< level at which the processor was seen last
  std::vector<RunEvent> events_;
  std::uint64_t events_to_ = ~std::uint64_t{0};
  std::vector<RunCall> calls_;
  std::map<std::uint64_t, std::size_t> open_calls_;  ///< by ordinal
  bool calls_dropped_ = false;
  std::vector<ConsoleCharacter> console_;
  std::array<bool, 4> divisor_latch_{};  ///< of the serial ports
  EventStreak streak_, longest_;
  std::optional<std::uint64_t> shutdown_at_;
};

}  // namespace citcat::view
