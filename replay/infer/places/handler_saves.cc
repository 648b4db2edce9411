#include "replay/infer/places/handler_saves.h"

#include <algorithm>

namespace citcat {

namespace {

/// The one place where the handler goes on is known without looking at any register.
bool goes_straight_on(const DecodedInstruction& info) {
  if (info.is_repeated()) return false;
  if (!info.control_flow) return true;
  const bool direct = info.kind == InstructionClass::jump || info.kind == InstructionClass::call;
  return direct && !info.indirect;
}

}  // namespace

void HandlerSaves::begin() {
  state_ = State::waiting;
  saves_.clear();
  stores_.clear();
}

void HandlerSaves::delivered(const DeliveredEvent& event, Position) {
  if (state_ == State::following) {
    stores_.clear();
    if (!follows_branches_) state_ = State::idle;  // a fault within the handler
    return;
  }
  if (state_ != State::waiting || event.kind != DeliveredEvent::Kind::external) return;
  state_ = State::following;
  stores_.clear();
  untouched_ = static_cast<std::uint16_t>(~(1u << kEsp));
  // CS is the handler's; SS too, where the delivery changed the stack.
  untouched_segments_ = 1u << kEs | 1u << kDs | 1u << kFs | 1u << kGs;
  if (keeps_stack_) untouched_segments_ |= 1u << kSs;
}

void HandlerSaves::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind,
                         Position) {
  if (state_ != State::following || kind != AccessKind::data) return;
  stores_.push_back({machine_->memory().captured(a),
                     static_cast<std::uint8_t>(std::min<std::size_t>(bytes.size(), 255))});
}

void HandlerSaves::add(bool is_segment, unsigned number, const Store& store) {
  if (store.size != 2 && store.size != 4 && store.size != 8) return;
  const std::uint8_t size = is_segment ? 2 : store.size;
  saves_.push_back({is_segment, static_cast<std::uint8_t>(number), size, store.address});
}

/// Which registers the instruction has stored as they are.
void HandlerSaves::note_saves(const DecodedInstruction& info) {
  if (stores_.empty()) return;
  const auto& store = stores_.front();
  if (info.kind == InstructionClass::push_segment) {
    if ((untouched_segments_ >> info.reg_field & 1) != 0) add(true, info.reg_field, store);
    return;
  }
  if (info.row == nullptr) return;
  const auto& operands = info.row->operands;
  const bool moves_out = info.is(Operation::mov) && info.has_modrm && !info.register_form;
  const bool store_segment = moves_out && operands[1] == OperandForm::Sw;
  if (store_segment && (untouched_segments_ >> info.reg_field & 1) != 0) {
    add(true, info.reg_field, store);
    return;
  }
  const bool push = info.is(Operation::push) && operands[0] == OperandForm::Zv;
  const bool store_register =
      moves_out && operands[0] == OperandForm::Ev && operands[1] == OperandForm::Gv;
  const bool push_all = info.is(Operation::pusha) && info.operand_count == 1 &&
                        info.operands[0].count == 8 && stores_.size() == 8;
  if ((push || store_register) && stores_.size() == 1) {
    const unsigned g = push ? info.rm_field : info.reg_field;
    if (is_untouched(g)) add(false, g, store);
  } else if (push_all) {
    for (unsigned g = 0; g < 8; ++g) {
      if (is_untouched(g)) add(false, g, stores_[g]);
    }
  }
}

void HandlerSaves::note_changes(const DecodedInstruction& info) {
  untouched_ = static_cast<std::uint16_t>(untouched_ & ~info.registers.others);
  const RegisterEffect& effect = info.registers;
  // LEA with no effect, as compilers fill gaps with it.
  const bool same = effect.kind == RegisterEffect::Kind::copy && effect.source == effect.target &&
                    effect.constant == 0;
  if (effect.kind != RegisterEffect::Kind::none && effect.target >= 0 && !same) {
    untouched_ = static_cast<std::uint16_t>(untouched_ & ~(1u << effect.target));
  }
  switch (info.kind) {
    case InstructionClass::pop_segment:
    case InstructionClass::mov_to_segment:
    case InstructionClass::load_far_pointer:
      untouched_segments_ =
          static_cast<std::uint8_t>(untouched_segments_ & ~(1u << info.reg_field));
      break;
    default:
      break;
  }
}

void HandlerSaves::instruction(const ExecutedInstruction& e, Position) {
  if (state_ != State::following) return;
  note_saves(*e.info);
  note_changes(*e.info);
  stores_.clear();
  if (!follows_branches_ && !goes_straight_on(*e.info)) state_ = State::idle;
}

}  // namespace citcat
