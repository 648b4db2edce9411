#pragma once
// An interrupt or exception as a step of a slice: which parts of its frame, and of the registers
// that it changes, matter afterwards. A part of SliceWalk.

#include <span>

#include "replay/slice/pushed_frame.h"
#include "replay/slice/slice_walk.h"

namespace citcat {

class SliceDelivery {
 public:
  SliceDelivery(SliceWalk& walk, const LoggedDelivery& delivery,
                std::span<const LoggedAccess> accesses);

  void go_back(Position position);

 private:
  bool meet_place(unsigned number);
  bool meet_memory(PhysAddr a);
  void meet_frame();
  void meet_byte(FrameSlot slot, std::uint32_t byte);
  void meet_whole();
  void meet_task(const ValueFlow& flow);
  void meet_registers();
  void meet_reset_registers();
  void want_loads();
  void want_place(PlaceRange place, std::uint8_t bits = 0xff);
  void says();
  bool comes_from_outside() const;
  void add_step(Position position);
  void add_input(Position position);

  SliceWalk& walk_;
  const LoggedDelivery& delivery_;
  std::span<const LoggedAccess> accesses_;
  std::vector<PushedWord> frame_;
  std::vector<FrameSlot> slots_;
  SliceWay way_ = SliceWay::value;  ///< of what was met last
  std::uint8_t bits_ = 0;           ///< bits that matter of what was met last
  bool by_event_ = false;           ///< what the processor says of the event matters
};

}  // namespace citcat
