#pragma once
// System calls and processes of a replay, without the host of tools.

#include <memory>

#include "replay/machine/executed_block.h"
#include "replay/machine/observer.h"
#include "tools/guest/machine_guest.h"
#include "tools/guest/process_names.h"
#include "tools/guest/system_call_follower.h"

namespace citcat::tools {

/// Tells a listener the system calls of the machine that it is given to.
class GuestObserver final : public Observer, private SystemCallListener {
 public:
  /// `listener`, which may be null, must outlive the observer.
  explicit GuestObserver(SystemCallListener* listener = nullptr) : listener_(listener) {
    names_.set_follower(follower_);
  }

  const ProcessNames& names() const { return names_; }
  /// What has not ended by now.
  std::vector<SystemCall> pending() const { return follower_.pending(); }

  citcat::Interest interest() const override { return {.code = Detail::blocks}; }
  void watch(const Machine& machine) override;
  void instruction(const ExecutedInstruction& e, Position now) override;
  /// Instructions that leave or enter a level never are in blocks.
  void ran(std::span<const ExecutedBlock> /*blocks*/, Position /*first*/,
           std::uint32_t /*count*/) override {}
  void iterations(const ExecutedInstruction& /*first*/, std::uint32_t /*count*/,
                  std::uint32_t /*step*/, Position /*now*/) override {}
  void delivered(const DeliveredEvent& event, Position now) override;
  void address_space(AddressSpaceId cr3, Position now) override;

 private:
  void began(const SystemCall& call) override;
  void ended(const SystemCall& call) override;
  void forked(AddressSpaceId parent, AddressSpaceId child, Position now) override;
  void executed(AddressSpaceId address_space, const std::string& path, Position now) override;
  void renamed(AddressSpaceId address_space, const std::string& name, Position now) override;

  SystemCallListener* listener_;
  ProcessNames names_;
  SystemCallFollower follower_{*this};
  std::unique_ptr<MachineGuest> guest_;
};

}  // namespace citcat::tools
