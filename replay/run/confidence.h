#pragma once
// Finds the inputs of a verified replay on which nothing that was compared depends.

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "events/recording.h"
#include "replay/machine/observer.h"
#include "replay/run/origin_sets.h"
#include "x86/instruction_flow.h"

namespace citcat {

/// An input that the trace depends on and no later evidence constrains: with another value the
/// replay might agree with the evidence just as well, and its trace be another.
struct UnconstrainedInput {
  enum class Kind : std::uint8_t {
    memory,    ///< a byte of the initial image
    reg,       ///< a register at the start
    port_read  ///< `number` of the port read
  };
  Kind kind = Kind::memory;
  PhysAddr address;          ///< of the byte, as captured
  std::string name;          ///< of the register
  std::uint64_t number = 0;  ///< of the port read, from 0
  Position first;            ///< the first instruction whose line of the trace depends on it
  LinearAddr linear;         ///< where that lies
  std::uint64_t lines = 0;   ///< lines that do
};

/// What the bus shows that depends on an input, and so confirms it.
struct Confirmation {
  enum class Kind : std::uint8_t {
    none,
    seen_again,    ///< the byte was read once more, unchanged
    written_back,  ///< a line that holds something made from it
    stored,        ///< something made from it
    addressed,     ///< memory that was accessed on the bus
    port,          ///< a value, or a number of a port
    ran_next       ///< what it decided or led to
  };
  Kind kind = Kind::none;
  Position at;  ///< the instruction that did; of none and of seen_again without meaning
};

/// An input that a line of the trace is made from.
struct LineInput {
  UnconstrainedInput input;  ///< its kind and name alone
  Confirmation confirmed;
};

/// What the line of one instruction in the trace is made from: its bytes and its addresses.
struct LineOrigins {
  Position at;
  LinearAddr linear;
  bool complete = true;  ///< else there are more than OriginSets::kMostMembers inputs
  std::vector<LineInput> inputs;
};

/// Follows the inputs through a replay, byte by byte of memory and register by register. An input
/// is constrained when
///
/// - the bus showed the byte again, unchanged: a second read or fill, or the write-back of its
/// line;
/// - something made from it was stored and the bus shows that (with a write-back cache: the line
/// was
///   written back before the byte was stored over), went to a port, addressed a store (without a
///   cache: any access), or decided or led to what runs next.
///
/// That is dependence, not proof: an AND with 0 depends on its operand and says nothing of it. What
/// is listed is surely not constrained, but for sets that grew too large (OriginSets); of what is
/// not listed single bits may be free.
class Confidence final : public Observer {
 public:
  /// `evidence` is read to its end. `line`: the instruction that line() is asked of.
  Confidence(const Recording& recording, EvidenceReader& evidence,
             std::optional<std::uint64_t> line = std::nullopt);
  ~Confidence() override;

  /// After the replay: by kind, then by address, number or name.
  std::vector<UnconstrainedInput> unconstrained();
  /// After unconstrained(), which knows no more than this line then: its inputs in the same order.
  /// Nothing where the instruction did not run.
  std::optional<LineOrigins> line() const;

  Interest interest() const override { return Interest::everything(); }
  void watch(const Machine& machine) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;

 private:
  using Set = OriginSets::Set;
  struct Page;
  struct Evidence;
  /// Where the lines depend on an origin, as long as it is not constrained.
  struct Use {
    Position first;
    LinearAddr linear;
    std::uint64_t lines = 0;
  };
  struct Store {
    PhysAddr address;
    std::uint32_t size = 0;
  };

  Page& page(PhysAddr a);
  Set byte(PhysAddr a);
  void store(PhysAddr a, Set set, std::uint64_t instruction);
  Set registers(std::uint32_t which) const;
  const InstructionFlow& flow(const ExecutedInstruction& e);
  void begin(Position now);
  void constrain(Set set, Confirmation::Kind why, Position at);
  void note_line(Set set, const ExecutedInstruction& e, Position now);
  void finish_stores(Set set, std::uint64_t instruction);
  void constrain_decision(const ExecutedInstruction& e, Set values, Position now);
  void note_use(Set set, const ExecutedInstruction& e, Position now);
  OriginSets::Origin add_input(UnconstrainedInput input);

  const Recording& recording_;
  const Machine* machine_ = nullptr;
  std::unique_ptr<Evidence> evidence_;
  OriginSets sets_;
  std::vector<UnconstrainedInput> inputs_;  ///< by origin
  std::vector<Use> uses_;                   ///< by origin
  std::vector<Confirmation> confirmed_;     ///< by origin
  const std::optional<std::uint64_t> asked_;
  std::optional<LineOrigins> line_;
  std::vector<OriginSets::Origin> line_origins_;
  std::array<Set, 32> register_{};  ///< by number of InstructionFlow::Register
  std::unordered_map<FrameNumber, std::unique_ptr<Page>> pages_;
  std::unordered_map<std::uint64_t, std::pair<std::uint64_t, InstructionFlow>> flows_;
  std::uint64_t port_reads_ = 0;
  // The instruction in progress.
  int bits_ = 32;  ///< default size of its code segment
  Position open_at_;
  Set code_ = OriginSets::kNone, values_ = OriginSets::kNone;
  std::vector<Store> stores_;
  bool to_port_ = false;
};

}  // namespace citcat
