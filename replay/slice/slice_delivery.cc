#include "replay/slice/slice_delivery.h"

#include <algorithm>
#include <utility>

#include "replay/slice/far_flow.h"

namespace citcat {

SliceDelivery::SliceDelivery(SliceWalk& walk, const LoggedDelivery& delivery,
                             std::span<const LoggedAccess> accesses)
    : walk_(walk),
      delivery_(delivery),
      accesses_(accesses),
      frame_(frame_among(accesses)),
      slots_(frame_of(frame_.size())) {}

bool SliceDelivery::meet_place(unsigned number) {
  bits_ = walk_.live_.bits_of_place(number);
  if (bits_ == 0) return false;
  way_ = static_cast<SliceWay>(walk_.live_.place(number));
  walk_.met_.add_place(number, way_, bits_);
  return true;
}

bool SliceDelivery::meet_memory(PhysAddr a) {
  bits_ = walk_.live_.bits_of_memory(a);
  if (bits_ == 0) return false;
  way_ = static_cast<SliceWay>(walk_.live_.memory(a));
  walk_.met_.add_memory({a, {}, 1}, way_, bits_);
  return true;
}

void SliceDelivery::want_place(PlaceRange place, std::uint8_t bits) {
  walk_.demand_.places.push_back({place.first, way_, bits});
}

void SliceDelivery::says() { by_event_ = true; }

void SliceDelivery::want_loads() {
  walk_.demand_span({ValueSpan::Of::loads, 0, ValueSpan::kAll}, way_);
}

void SliceDelivery::meet_byte(FrameSlot slot, std::uint32_t byte) {
  const auto segment = [&](unsigned number) {
    if (byte < 2) want_place(place::segment(number));
  };
  switch (slot) {
    case FrameSlot::gs:
      return segment(kGs);
    case FrameSlot::fs:
      return segment(kFs);
    case FrameSlot::ds:
      return segment(kDs);
    case FrameSlot::es:
      return segment(kEs);
    case FrameSlot::ss:
      return segment(kSs);
    case FrameSlot::cs:
      return segment(kCs);
    case FrameSlot::sp:
      return want_place(place::gpr(kEsp, byte, 1), bits_);
    case FrameSlot::flags:
      for (unsigned bit = 8 * byte; bit < std::min(32u, 8 * byte + 8); ++bit) {
        if ((bits_ >> bit % 8 & 1) != 0) want_place(place::flag(bit));
      }
      return;
    case FrameSlot::ip:
    case FrameSlot::error:
      return says();
  }
}

void SliceDelivery::meet_frame() {
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    for (std::uint32_t i = 0; i < frame_[s].size; ++i) {
      if (meet_memory(frame_[s].bytes[i])) meet_byte(slots_[s], i);
    }
  }
}

/// System management mode: which byte is of which register is not distinguished.
void SliceDelivery::meet_whole() {
  for (const LoggedAccess& a : accesses_) {
    for (std::uint32_t i = 0; a.write && i < a.size; ++i) {
      if (!meet_memory(a.physical.plus32(i))) continue;
      walk_.demand_span({ValueSpan::Of::places, 0, place::kVectors}, way_);
      walk_.demand_span({ValueSpan::Of::places, place::kFlags, place::kFpuStatus - place::kFlags},
                        way_);
    }
  }
}

void SliceDelivery::meet_task(const ValueFlow& flow) {
  for (const ValueEffect& each : flow.effects) walk_.effect(each);
}

/// Registers that a handler finds changed (SDM vol. 3, 6.12).
void SliceDelivery::meet_registers() {
  walk_.loads_.clear();
  for (const LoggedAccess& a : accesses_) {
    if (!a.write && a.kind == AccessKind::system) walk_.loads_.add(accessed_memory(a, 0));
  }
  for (const unsigned bit : {8u, 9u, 14u, 16u, 17u}) meet_place(place::kFlags + bit);
  const bool other_stack = slots_.size() >= 5;
  for (unsigned i = 0; i < 8; ++i) {
    if (!meet_place(place::kGprs + 8 * kEsp + i)) continue;
    if (other_stack) want_loads();
    if (slots_.size() < 9) want_place(place::gpr(kEsp, i, 1));
  }
  for (const unsigned number : {kCs, kSs}) {
    if (number == kSs && !other_stack) continue;
    if (meet_place(place::kSegments + number)) want_loads();
  }
  if (slots_.size() >= 9) {
    for (const unsigned number : {kEs, kDs, kFs, kGs}) meet_place(place::kSegments + number);
  }
}

/// System management mode begins with the same registers whatever was there (SDM vol. 3, table
/// 31-4).
void SliceDelivery::meet_reset_registers() {
  for (unsigned bit = 0; bit < 32; ++bit) meet_place(place::kFlags + bit);
  for (const unsigned number : {kEs, kCs, kSs, kDs, kFs, kGs}) {
    meet_place(place::kSegments + number);
  }
}

bool SliceDelivery::comes_from_outside() const {
  switch (delivery_.event.kind) {
    case DeliveredEvent::Kind::external:
    case DeliveredEvent::Kind::nmi:
    case DeliveredEvent::Kind::smi:
      return true;
    default:
      return false;
  }
}

void SliceDelivery::go_back(Position position) {
  if (walk_.query_.control) walk_.leave_to_caller();
  walk_.met_.clear();
  walk_.demand_.clear();
  if (const auto task = far_flow(nullptr, accesses_, walk_.loads_, walk_.stores_)) {
    meet_task(*task);
  } else {
    if (slots_.empty()) {
      meet_whole();
    } else {
      meet_frame();
    }
    meet_registers();
    if (delivery_.event.kind == DeliveredEvent::Kind::smi) meet_reset_registers();
  }
  constexpr std::uint8_t kPageFault = 14;
  const bool fault = delivery_.event.kind == DeliveredEvent::Kind::exception &&
                     delivery_.event.vector == kPageFault;
  if (fault && meet_place(place::kControl + 1)) says();
  walk_.forget_met();
  const bool controls = comes_from_outside() && walk_.wants_branch();
  const bool met = walk_.met_.any();
  if (met) add_step(position);
  if (by_event_ || controls || (comes_from_outside() && met)) add_input(position);
  if (walk_.query_.control && met) walk_.wants_branch_.back() = true;
  const bool exception = delivery_.event.kind == DeliveredEvent::Kind::exception;
  if (exception && (met || walk_.wants_branch())) ++walk_.slice_.exceptions_given;
}

void SliceDelivery::add_step(Position position) {
  SliceStep& step = walk_.add_step(walk_.met_.nearest, position);
  step.kind = SliceStep::Kind::delivery;
  step.event = delivery_.event;
  step.linear = delivery_.linear;
  for (const std::uint16_t p : walk_.met_.places) step.writes.set(p);
  step.stores = walk_.met_.memory;
  SliceWalk::merge(step.stores);
  walk_.apply_demand(step);
}

void SliceDelivery::add_input(Position position) {
  const bool outside = comes_from_outside();
  SliceInput input;
  input.kind = outside ? SliceInput::Kind::interrupt : SliceInput::Kind::exception;
  input.way = walk_.met_.any() ? walk_.met_.nearest : SliceWay::control;
  input.address = PhysAddr{delivery_.event.vector};
  input.size = 0;
  input.position = position;
  const auto& interrupts = walk_.recording_.interrupts;
  for (auto i = std::lower_bound(interrupts.begin(), interrupts.end(), position,
                                 [](const Interrupt&a, Position p) { return a.position < p; });
       outside && i != interrupts.end() && i->position == position; ++i) {
    input.transaction = i->transaction;
    if (i->vector == delivery_.event.vector) break;
  }
  walk_.slice_.inputs.push_back(std::move(input));
}

}  // namespace citcat
