#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "events/bus_transaction.h"
#include "events/recording.h"
#include "replay/machine/machine.h"
#include "replay/machine/observer.h"
#include "replay/verify/cache_log.h"
#include "replay/verify/cache_model.h"
#include "replay/verify/code_lines.h"

namespace citcat {

/// Feeds the accesses of a replay to a model of the cache.
class CacheAccesses : public Observer {
 public:
  CacheAccesses(const Recording& recording, const CacheDescriptor& descriptor);
  /// The machine whose accesses are passed on; call before the replay starts.
  void watch(const Machine& machine) override;

  Interest interest() const override { return Interest::everything(); }
  // Blocks that come with references.
  void ran(std::span<const ExecutedBlock> blocks, Position first, std::uint32_t count) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  void iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                  Position now) override;
  void fetch(PhysAddr a, std::uint32_t size, Position now) override;
  void read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) override;
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
             Position now) override;
  void external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) override;
  void delivered(const DeliveredEvent& event, Position now) override;
  void cache_flushed(bool write_back, Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;

  const CacheDescriptor& descriptor() const { return model_.descriptor(); }

  /// The cache and what was learned about it, to return to.
  struct State {
    CacheModel model;
    bool ignores_cd = false;
    bool restarts = true;
  };

 protected:
  /// Called before the model receives an access. Nothing is due before the instruction that it
  /// returns: until there it need not be called, and moved() is where an access moves lines.
  virtual std::uint64_t before_access(Position now) = 0;
  /// True where the accesses of `count` instructions may come without before_access(), because
  /// nothing is due before their end.
  virtual bool hears_whole(Position /*first*/, std::uint32_t /*count*/) { return false; }
  /// Where before_access() was not called: an access of the instruction at `now` moved lines.
  virtual void moved(Position /*now*/) {}
  /// Learns from what the bus shows besides lines: pages that are not cached, and machines that
  /// fill lines although CR0.CD is set.
  void learn_from(const BusTransaction& t);
  /// Lines are filled although CR0.CD is set.
  void ignore_cd();
  State save_state() const { return {model_, ignores_cd_, restarts_}; }
  void restore_state(const State& state);

  CacheModel model_;
  /// Where what the model hears is kept too; null for nowhere.
  CacheLog* log_ = nullptr;

 private:
  void hear(const ExecutedBlock& block, Position first);
  void hear_whole(const ExecutedBlock& block, std::uint64_t first);
  void hear_each(const ExecutedBlock& block, std::uint64_t first);
  /// Some may have moved at `now`.
  void look_for_moved(Position now) {
    if (!model_.traffic().empty()) moved(now);
  }
  /// What is kept with a block.
  struct LinesNote final : BlockNote {
    CodeLines lines;
  };
  const CodeLines& lines_of(const ExecutedBlock& block) {
    const std::unique_ptr<BlockNote>* const note = block.note();
    if (note != nullptr && *note != nullptr) [[likely]]
      return static_cast<const LinesNote&>(**note).lines;
    return find_lines(block);
  }
  const CodeLines& find_lines(const ExecutedBlock& block);
  void tell(const CacheOp& op);
  void refer(PhysAddr a, const DataReference& r, Position now);
  PhysAddr captured(PhysAddr a) const { return a.masked32(address_mask_); }
  bool cache_disabled() const;

  const Machine* machine_ = nullptr;
  std::uint32_t address_mask_;
  bool ignores_cd_ = false;  ///< lines are filled although CR0.CD is set
  bool restarts_ = true;     ///< the next fetch is one, even within a REP
  CodeLines lines_;          ///< of a block that keeps no notes
};

}  // namespace citcat
