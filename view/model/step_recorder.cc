#include "view/model/step_recorder.h"

#include <algorithm>
#include <utility>

#include "replay/machine/code_place.h"
#include "view/model/answer_text.h"

namespace citcat::view {

void StepRecorder::begin(Position now) {
  const Moment here{deliveries_, now};
  if (open_) close(here);
  open_ = true;
  delivering_ = false;
  step_ = {};
  step_.before = here;
  step_.linear = machine_.next_linear();
  step_.bits = code_bits(machine_.engine());
  accesses_ = std::exchange(pending_, {});
}

/// The machine is after the step.
void StepRecorder::close(Moment after) {
  const CpuState before = std::exchange(after_, machine_.save());
  if (faults_on_the_way_) {
    // The fault of the next instruction has loaded CR2 already.
    after_.cr2 = before.cr2;
    if (after_.long_mode) after_.long_mode->cr2_high = before.long_mode->cr2_high;
  }
  std::vector<std::uint8_t> bytes;
  std::vector<StepAccess> accesses;
  for (Access& access : accesses_) {
    access.bytes = bytes.size();
    bytes.insert(bytes.end(), access.data.begin(), access.data.end());
    accesses.push_back(access);
  }
  step_.after = after;
  step_.accesses = accesses;
  step_.bytes = bytes;
  step_.ports = ports_;
  step_.events = events_;
  step_.outside = outside_;
  step_.state_after = &after_;
  sink_.step(step_);
  open_ = false;
  accesses_.clear();
  ports_.clear();
  events_.clear();
  outside_.clear();
}

void StepRecorder::finish(Moment end) {
  // What was begun and led nowhere is no step.
  if (open_ && step_.before < end) close(end);
}

/// What is told now belongs to another instruction, or iteration, than the one that is open.
bool StepRecorder::begins_instruction(Position now) const {
  return !open_ || !events_.empty() || step_.completed || step_.before.position != now;
}

void StepRecorder::fetch(PhysAddr a, std::uint32_t, Position now) {
  // An instruction of two pages is fetched in two parts.
  if (!begins_instruction(now)) return;
  begin(now);
  step_.physical = a;
}

/// Notes the code to run, as far as it can be read: observers do not see what does not complete.
void StepRecorder::note_code() {
  const CodeHere code = code_at(machine_, machine_.next_linear());
  if (code.text == kBadCode) return;
  step_.length = static_cast<std::uint8_t>(code.bytes.size());
  std::copy(code.bytes.begin(), code.bytes.end(), step_.code.begin());
}

StepRecorder::Access StepRecorder::access_at(PhysAddr a, std::uint32_t size, AccessKind kind,
                                             bool write) const {
  Access access;
  access.physical = a;
  access.kind = kind;
  access.write = write;
  access.size = size;
  if (kind == AccessKind::data) access.linear = machine_.accessed();
  return access;
}

void StepRecorder::take(Access access, Position now) {
  if (access.kind == AccessKind::walk) {
    // A walk is for what is in progress, or for the code that comes next.
    const bool of_handler = delivering_ && machine_.next_linear() != interrupted_;
    if (of_handler || (!delivering_ && begins_instruction(now))) {
      pending_.push_back(std::move(access));
      return;
    }
  } else if (!delivering_ && begins_instruction(now)) {
    begin(now);  // an iteration that goes on
  }
  accesses_.push_back(std::move(access));
}

void StepRecorder::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  Access access = access_at(a, size, kind, false);
  const Memory& memory = machine_.memory();
  for (std::uint32_t i = 0; i < size; ++i) {
    const auto byte = memory.defined_byte(a.plus32(i));
    access.known = access.known && byte.has_value();
    access.data.push_back(byte.value_or(0));
  }
  take(std::move(access), now);
}

void StepRecorder::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                         Position now) {
  Access access = access_at(a, static_cast<std::uint32_t>(bytes.size()), kind, true);
  access.data.assign(bytes.begin(), bytes.end());
  take(std::move(access), now);
}

void StepRecorder::instruction(const ExecutedInstruction& e, Position now) {
  if (!open_ || step_.completed || step_.before.position != now) begin(now);
  step_.linear = e.linear;
  step_.physical = e.physical;
  step_.length = e.info->length;
  step_.code = e.info->bytes;
  step_.kind = e.info->kind;
  step_.repeated = e.info->is_repeated();
  step_.completed = true;
  if (beside_ != nullptr) beside_->instruction(e, now);
}

void StepRecorder::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                           Position now) {
  if (begins_instruction(now)) begin(now);
  ports_.push_back({port, false, size, value});
}

void StepRecorder::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value,
                            Position now) {
  if (begins_instruction(now)) begin(now);
  ports_.push_back({port, true, size, value});
}

void StepRecorder::delivered(const DeliveredEvent& event, Position now) {
  const bool faults = event.kind == DeliveredEvent::Kind::exception && !delivering_;
  if (!open_ || (faults && begins_instruction(now) && step_.before.position != now)) {
    // Its bytes could not be fetched.
    faults_on_the_way_ = faults && step_.kind != InstructionClass::mov_to_cr;
    begin(now);
    faults_on_the_way_ = false;
  }
  if (!delivering_ && !step_.completed && step_.length == 0) note_code();
  ++deliveries_;
  if (!delivering_) interrupted_ = machine_.next_linear();
  delivering_ = true;
  accesses_.insert(accesses_.end(), std::make_move_iterator(pending_.begin()),
                   std::make_move_iterator(pending_.end()));
  pending_.clear();
  events_.push_back({StepEvent::Kind::delivered, event, now});
  if (beside_ != nullptr) beside_->delivered(event, now);
}

/// A write before the first step belongs to the first step.
void StepRecorder::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  outside_.push_back({now, a, static_cast<std::uint32_t>(bytes.size())});
  // The address is as captured, and may mean several.
  machine_.memory().for_each_alias(a, [&](PhysAddr at) {
    if (!machine_.memory().is_mapped(at.page())) return;
    Access access =
        access_at(at, static_cast<std::uint32_t>(bytes.size()), AccessKind::system, true);
    access.outside = true;
    access.data.assign(bytes.begin(), bytes.end());
    (open_ ? accesses_ : pending_).push_back(std::move(access));
  });
}

void StepRecorder::halted(Position now) {
  if (open_) events_.push_back({StepEvent::Kind::halted, {}, now});
}

void StepRecorder::shutdown(Position now) {
  if (open_) events_.push_back({StepEvent::Kind::shutdown, {}, now});
}

}  // namespace citcat::view
