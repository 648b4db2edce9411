#include "replay/machine/audience.h"

#include <algorithm>

#include "formats/io/error.h"

namespace citcat {

Audience::Audience(const Listeners& listeners, Memory& memory)
    : listeners_(listeners), memory_(memory), judge_(listeners.judge()) {
  bool each_access = false;
  for (Observer* const observer : listeners.observers()) {
    Wants wants = observer->wants();
    if (wants.instructions) {
      instructions_.push_back(observer);
      wants_.push_back(wants);
      batchers_.push_back(dynamic_cast<BatchListener*>(observer));
      storers_.push_back(dynamic_cast<StoreListener*>(observer));
      attention_.push_back(Attention::blocks);
      told_.push_back(told_.size());
    }
    each_access |= wants.each_access();
    wants_references_ |= wants.references;
    const bool only_stores = wants.references && wants.only_stores;
    wants_more_than_stores_ |= !only_stores && (wants.instructions || wants.references);
    if (wants.references) wants.stores = true;
    if (wants.references && !only_stores) wants.reads = true;
    wants_reads_ |= wants.reads;
    (wants.unjudged ? early_ : late_).push_back({observer, wants});
  }
  if (judge_ != nullptr) {
    each_access |= !judge_->judges_blocks();
    judges_reads_ = each_access || judge_->wants().reads;
    wants_reads_ |= judge_->wants().reads;
  }
  detail_ = each_access              ? Detail::accesses
            : judge_ != nullptr      ? Detail::comparison
            : !instructions_.empty() ? Detail::instructions
                                     : Detail::nothing;
}

/// Observer of instructions number `listener` is told of blocks.
void Audience::attend_blocks(std::size_t listener) {
  attention_[listener] = Attention::blocks;
  told_.push_back(listener);
  attending_.blocks = true;
  attending_.references |= wants_[listener].references;
}

const Audience::Attending& Audience::attend(std::uint64_t instruction, bool keeps_stores) {
  attending_ = {};
  told_.clear();
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    const Attended asked = instructions_[i]->attended(instruction);
    attention_[i] = asked.how;
    attending_.until = std::min(attending_.until, asked.until);
    if (asked.how == Attention::blocks) {
      attend_blocks(i);
      continue;
    }
    if (asked.how == Attention::stores) {
      CITCAT_ASSERT(storers_[i] != nullptr);
      attending_.stores = true;
      continue;
    }
    attending_.passes = true;
    attending_.counts |= asked.how >= Attention::counts;
    if (asked.how == Attention::trail) attending_.trail = std::max(attending_.trail, asked.trail);
  }
  if (attending_.stores && (attending_.blocks || !keeps_stores)) {
    attending_.stores = false;
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      if (attention_[i] == Attention::stores) attend_blocks(i);
    }
  }
  attending_.passes |= attending_.stores;
  attending_.until = std::max(attending_.until, instruction + 1);
  batches_ = told_.size() == 1 ? batchers_[told_[0]] : nullptr;
  return attending_;
}

void Audience::stores(std::span<const PlainStore> stores, Position from) {
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (attention_[i] == Attention::stores) storers_[i]->stores(stores, from);
  }
}

void Audience::passed(std::uint64_t from, std::uint64_t to) {
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (attention_[i] != Attention::blocks) instructions_[i]->passed(from, to);
  }
}

void Audience::trailed(const BlockCode& block, const std::uint32_t* addresses, Position first) {
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (attention_[i] != Attention::trail) continue;
    instructions_[i]->trailed({block, addresses, note_of(block, i)}, first);
  }
}

void Audience::introduce(Machine& machine) {
  for (Observer* const observer : listeners_.observers()) observer->watch(machine);
  if (judge_ != nullptr) judge_->judges(machine);
}

std::uint64_t Audience::block_limit() const {
  const Corrector* const corrector = listeners_.corrector();
  const std::uint64_t end = control_.at().instruction;
  return corrector != nullptr ? std::min(end, corrector->due().instruction) : end;
}

/// Tells those who want `what`.
template <class F>
inline void Audience::tell(Position now, bool Wants::*what, bool judged, F&& call) {
  for (const Listener& l : early_) {
    if (l.wants.*what) call(*l.observer);
  }
  end_if_asked(now);
  if (judged && judge_ != nullptr) call(*judge_);
  end_if_asked(now);
  for (const Listener& l : late_) {
    if (l.wants.*what) call(*l.observer);
  }
}

/// An event.
template <class F>
inline void Audience::tell_all(Position now, F&& call) {
  for (const Listener& l : early_) call(*l.observer);
  end_if_asked(now);
  if (judge_ != nullptr) call(*judge_);
  end_if_asked(now);
  for (const Listener& l : late_) call(*l.observer);
}

void Audience::instruction(const ExecutedInstruction& e, Position now, bool judged) {
  for (const Listener& l : early_) {
    if (l.wants.instructions) l.observer->instruction(e, now);
  }
  end_if_asked(now);
  if (judged && judge_ != nullptr) judge_->instruction(e, now);
  end_if_asked(now);
  if (Corrector* const corrector = listeners_.corrector()) {
    while (const Adoption* const a = corrector->after_instruction(now)) {
      correct(a->address, {&a->value, 1});
    }
  }
  if (control_.is_due(now)) throw RunEnded{};
  for (const Listener& l : late_) {
    if (l.wants.instructions) l.observer->instruction(e, now);
  }
}

void Audience::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
  for (Observer* const observer : instructions_) observer->iterations(first, count, step, now);
}

void Audience::iteration(const ExecutedInstruction& e, Position now) {
  for (Observer* const observer : instructions_) observer->instruction(e, now);
}

void Audience::block_to_all(const BlockCode& block, const std::uint32_t* addresses, Position first,
                            std::span<const DataReference> references) {
  for (const std::size_t i : told_) {
    instructions_[i]->block({block, addresses, note_of(block, i), references}, first);
  }
}

void Audience::counted(const BlockCode& block, std::uint64_t executions) {
  for (std::size_t i = 0; i < instructions_.size(); ++i) {
    if (wants_[i].counts)
      instructions_[i]->counted({block, nullptr, note_of(block, i)}, executions);
  }
}

void Audience::fetch(PhysAddr a, std::uint32_t size, Position now, bool judged) {
  tell(now, &Wants::reads, judged && judges_reads_, [&](Observer& o) { o.fetch(a, size, now); });
}

void Audience::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now, bool judged) {
  tell(now, &Wants::reads, judged && judges_reads_,
       [&](Observer& o) { o.read(a, size, kind, now); });
}

void Audience::read_to_judge(PhysAddr a, std::uint32_t size, AccessKind kind, Position now) {
  end_if_asked(now);
  if (judge_ != nullptr) judge_->read(a, size, kind, now);
  end_if_asked(now);
}

void Audience::write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind kind, Position now,
                     bool judged) {
  for (const Listener& l : early_) {
    if (l.wants.stores) l.observer->write(a, bytes, kind, now);
  }
  end_if_asked(now);
  if (judged && judge_ != nullptr) judge_->write(a, bytes, kind, now);
  end_if_asked(now);
  if (listeners_.corrector() != nullptr) correct_store(a, bytes.size(), now);
  for (const Listener& l : late_) {
    if (l.wants.stores) l.observer->write(a, bytes, kind, now);
  }
}

/// Bytes of one store are corrected in the order in which they were compared, one after the other.
void Audience::correct_store(PhysAddr a, std::size_t size, Position now) {
  const PhysAddr captured = memory_.captured(a);
  while (const Adoption* const c = listeners_.corrector()->after_store(captured, size, now)) {
    correct(c->address, {&c->value, 1});
  }
}

void Audience::mapping(LinearAddr page, PhysAddr frame, Position now) {
  tell(now, &Wants::mappings, true, [&](Observer& o) { o.mapping(page, frame, now); });
}

void Audience::io_read(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  tell_all(now, [&](Observer& o) { o.io_read(port, size, value, now); });
}

void Audience::io_write(std::uint16_t port, std::uint32_t size, std::uint32_t value, Position now) {
  tell_all(now, [&](Observer& o) { o.io_write(port, size, value, now); });
}

void Audience::delivered(const DeliveredEvent& event, Position now) {
  tell_all(now, [&](Observer& o) { o.delivered(event, now); });
}

void Audience::external_write(PhysAddr a, std::span<const std::uint8_t> bytes, Position now) {
  tell_all(now, [&](Observer& o) { o.external_write(a, bytes, now); });
}

void Audience::halted(Position now) {
  tell_all(now, [&](Observer& o) { o.halted(now); });
}

void Audience::cache_flushed(bool write_back, Position now) {
  tell_all(now, [&](Observer& o) { o.cache_flushed(write_back, now); });
}

void Audience::shutdown(Position now) {
  tell_all(now, [&](Observer& o) { o.shutdown(now); });
}

void Audience::address_space(std::uint32_t cr3, Position now) {
  tell_all(now, [&](Observer& o) { o.address_space(cr3, now); });
}

}  // namespace citcat
