#pragma once
// The fast tier: plain code runs in an interpreter of our own.
//
// It takes the processor's state from the engine, runs as many instructions as it can, and gives it
// back exactly as it is before the next one. What it does not make - rare instructions, whatever
// faults, changes modes or touches devices - is left to the engine and the units of the machine,
// and so is any access whose page walk has more effect than a TLB entry.

#include <array>
#include <cstdint>
#include <memory>

#include "replay/machine/cpu_context.h"
#include "replay/machine/expectation.h"
#include "replay/machine/fast/block_store.h"
#include "replay/machine/fast/fast_state.h"
#include "replay/machine/fast/string_loop.h"
#include "replay/machine/in_flight.h"

namespace citcat {

class DebugUnit;

/// Between runs of the engine. Owned by the machine.
class FastTier final : public StoreWatcher, private fast::MissResolver {
 public:
  /// All must outlive the object.
  FastTier(CpuContext& cpu, InFlight& flight, Expectation& expectation, DebugUnit& debug);

  /// Runs from where the processor is, up to CpuContext::until, as far as it can.
  void run();

  /// Memory has changed otherwise than by what runs here.
  void stored(PhysAddr at, std::uint32_t size) override { store_.stored(at, size); }
  /// The Mmu lost a translation, or may answer otherwise from now on.
  void forget_translations() { stale_ = true; }

 private:
  bool applies() const;
  void begin();
  void end();
  void take_segments();
  void forget_pages(fast::State& s);
  fast::Policy policy() const;
  const fast::Block* find_block(std::uint32_t eip);
  bool find_code_page(std::uint32_t linear, PhysAddr& frame);
  void run_block(const fast::Block& block);
  /// False where the run ends.
  bool after_block();
  bool run_string(const fast::Block& block);
  fast::StringPage find_string_page(std::uint32_t linear, bool write);
  void note_string_store(PhysAddr at, std::uint32_t size);
  void settle_position();

  Answer resolve(fast::State& s, const fast::Op* op) override;
  bool store_made(fast::State& s) override;
  bool fill(fast::State& s, std::uint32_t linear, bool write);

  CpuContext& cpu_;
  InFlight& flight_;
  Expectation& expectation_;
  DebugUnit& debug_;
  fast::BlockStore store_;
  fast::StringLoop strings_;
  std::array<std::unique_ptr<fast::State>, 2> states_;  ///< of the supervisor, of the user
  fast::State* s_ = nullptr;                            ///< the one in use
  fast::CodeShape shape_;
  std::array<fast::CodeShape, 2> shapes_;  ///< of the blocks in State::jumps
  std::uint32_t epoch_ = 0;
  bool stale_ = true;
  std::uint32_t eip_ = 0;
  std::uint32_t iteration_ = 0;  ///< of the string instruction there
  std::uint64_t limit_ = 0;  ///< of this run: first instruction not made
  struct {
    std::uint32_t tag = 0;
    PhysAddr at;
    std::uint32_t size = 0;
    std::size_t index = 0;
    bool active = false;
  } alone_;  ///< a page that one store may go to
};

}  // namespace citcat
