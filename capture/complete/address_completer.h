#pragma once
// Completes the addresses of a capture that lacks address lines: a processor runs the bytes that
// the bus shows, and each access that it makes gives its whole address to the next bus cycle of
// that kind. The captured part of the address, the order and the data written check it. See
// docs/completion.md.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "capture/complete/fetch_runs.h"
#include "capture/complete/guided_processor.h"
#include "capture/complete/pending_transactions.h"

namespace citcat {

class AddressCompleter final : private GuidingBus {
 public:
  /// `next` gives the transactions from the place on where the processor is. All must outlive
  /// the completer.
  AddressCompleter(std::function<bool(BusTransaction&)> next, const FetchSetup& setup,
                   GuidedProcessor& processor);

  /// The next transaction, with its whole address. False at the end of the capture, and after the
  /// last one before what the processor denies.
  bool next(BusTransaction& out);

  /// Why there are no more, where it is not the end of the capture.
  const std::optional<Contradiction>& contradiction() const { return contradiction_; }
  std::uint64_t instructions() const { return instructions_; }

 private:
  /// The next transaction of each order that the processor has not used.
  struct Cursors {
    FetchRuns::State fetches;
    std::uint64_t data = 0, starts = 0;
    bool starts_known = false;  ///< those of the capture belong to the instructions that run
    std::uint64_t instructions = 0;
    GuidedProcessor::Jump jump = GuidedProcessor::Jump::no;
  };
  /// A place where the bus fits more than one way to go on.
  struct Choice {
    enum class Kind : std::uint8_t { fetches, interrupt } kind = Kind::fetches;
    std::unique_ptr<GuidedProcessor::Mark> processor;
    Cursors cursors;
    std::uint64_t number = 0;         ///< of the first transaction that it decides about
    std::vector<std::uint64_t> ways;  ///< not tried yet, the likeliest last
  };
  struct Used {
    std::uint64_t number = 0;
    PhysAddr address;
  };
  /// As far as a way went that a contradiction ended.
  struct Attempt {
    PendingTransactions pending;
    Contradiction why;
    std::uint64_t reached = 0;
  };

  std::uint8_t code(std::uint32_t offset) override { return fetches_.byte(offset); }
  void read(PhysAddr address, std::span<std::uint8_t> into) override;
  void write(PhysAddr address, std::span<const std::uint8_t> bytes, std::uint16_t free) override;
  std::uint32_t port_read(std::uint16_t port, std::uint32_t size) override;
  void port_write(std::uint16_t port, std::uint32_t size, std::uint32_t value) override;

  void advance();
  void find_fetches();
  bool is_interrupted();
  std::vector<std::uint64_t> ways_to_enter(std::uint64_t acknowledge);
  bool shows_more_instructions(std::uint64_t acknowledge);
  bool was_pushed(std::uint64_t acknowledge);
  void enter_interrupt();
  void leave_queue_of(CodePlace back);
  void execute();
  void use_accesses();
  void use_starts(CodePlace place, const GuidedProcessor::Step& step, std::uint64_t fetched);
  void use_halt();
  const BusTransaction& next_access(BusOp op, PhysAddr address, std::size_t most);
  std::optional<std::uint64_t> next_data() { return pending_.find(CycleOrder::data, data_); }
  std::uint64_t choose(Choice::Kind kind, std::vector<std::uint64_t> ways);
  void remember(const Contradiction& why);
  bool go_back();
  Cursors cursors() const;
  std::uint64_t settled() const;
  void give_up(const Contradiction& why);

  PendingTransactions pending_;
  FetchSetup setup_;
  GuidedProcessor& processor_;
  FetchRuns fetches_;
  std::uint64_t data_ = 0, starts_ = 0;
  bool starts_known_ = false;
  std::uint64_t instructions_ = 0;
  GuidedProcessor::Jump jump_ = GuidedProcessor::Jump::no;  ///< of the last instruction

  std::vector<Used> used_;  ///< by the step in progress, in the order of its calls
  std::vector<std::pair<BusOp, std::uint64_t>> used_up_to_;        ///< of each kind
  std::vector<Choice> choices_;                                    ///< the latest last
  std::optional<std::pair<Choice::Kind, std::uint64_t>> decided_;  ///< by go_back()
  std::optional<Attempt> furthest_;                                ///< while other ways are tried
  bool ended_ = false;
  std::optional<Contradiction> contradiction_;
};

}  // namespace citcat
