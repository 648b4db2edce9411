#include "replay/machine/audience.h"

namespace citcat {

Audience::Audience(const Listeners& listeners, Memory& memory)
    : listeners_(listeners), memory_(memory), judge_(listeners.judge()) {
  for (Observer* const observer : listeners.observers()) {
    Interest interest = observer->interest();
    each_access_ |= interest.each_access();
    const bool stores = interest.code == Detail::stores;
    const bool accesses = interest.code == Detail::accesses;
    const bool references = accesses || interest.code == Detail::references;
    if (interest.code != Detail::nothing) {
      followers_.push_back({observer});
      wants_walks_ |= !stores && !accesses;
    }
    wants_references_ |= stores || references;
    interest.stores |= stores || references;
    interest.reads |= references;
    wants_reads_ |= interest.reads;
    (interest.unjudged ? early_ : late_).push_back({observer, interest});
  }
  if (judge_ != nullptr) {
    each_access_ |= !judge_->judges_blocks();
    const bool reads = judge_->interest().reads;
    judges_reads_ = each_access_ || reads;
    wants_reads_ |= reads;
  }
}

const JointInterest& Audience::ask(std::uint64_t instruction, bool keeps_stores) {
  joint_ = {};
  asked_at_ = instruction;
  for (Follower& f : followers_) {
    Interest interest = f.observer->interest_from(instruction);
    // Nobody else can receive what is written as records.
    const bool alone = followers_.size() == 1;
    if (interest.code == Detail::records && !alone) interest.code = Detail::blocks;
    joint_.add(interest);
    f.now = interest.code;
  }
  const bool keeps = keeps_stores && !joint_.blocks();
  if (!keeps) joint_.take_blocks_for_stores();
  told_.clear();
  for (std::size_t i = 0; i < followers_.size(); ++i) {
    Detail& now = followers_[i].now;
    if (!keeps && now == Detail::stores) now = Detail::references;
    if (now >= Detail::records) told_.push_back(i);
  }
  joint_.until = std::max(joint_.until, instruction + 1);
  return joint_;
}

bool Audience::counts_for_others() const {
  return joint_.counts() &&
         std::any_of(followers_.begin(), followers_.end(),
                     [](const Follower& f) { return f.counts != f.wants_counts(); });
}

void Audience::begin_counts() {
  for (Follower& f : followers_) f.counts = f.wants_counts();
}

void Audience::stored(std::span<const PlainStore> stores, Position from) {
  for (const Follower& f : followers_) {
    if (f.now == Detail::stores) f.observer->stored(stores, from);
  }
}

void Audience::passed(std::uint64_t from, std::uint64_t to, std::uint64_t trail) {
  for (const Follower& f : followers_) {
    if (f.now >= Detail::records) continue;
    const std::uint64_t end = f.now == Detail::trail ? trail : to;
    if (from != end) f.observer->passed(from, end);
  }
}

void Audience::trailed(ExecutedBlock block, Position first) {
  for (std::size_t i = 0; i < followers_.size(); ++i) {
    if (followers_[i].now != Detail::trail) continue;
    block.use_notes_of(i);
    followers_[i].observer->ran({&block, 1}, first, block.count());
  }
}

void Audience::counted(const BlockCode& code, std::uint64_t executions) {
  ExecutedBlock block(code, nullptr);
  for (std::size_t i = 0; i < followers_.size(); ++i) {
    if (!followers_[i].counts) continue;
    block.use_notes_of(i);
    followers_[i].observer->counted(block, executions);
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
inline void Audience::tell(Position now, bool Interest::*what, bool judged, F&& call) {
  for (const Listener& l : early_) {
    if (l.interest.*what) call(*l.observer);
  }
  end_if_asked(now);
  if (judged && judge_ != nullptr) call(*judge_);
  end_if_asked(now);
  for (const Listener& l : late_) {
    if (l.interest.*what) call(*l.observer);
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
    if (l.interest.code != Detail::nothing) l.observer->instruction(e, now);
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
    if (l.interest.code != Detail::nothing) l.observer->instruction(e, now);
  }
}

void Audience::iterations(const ExecutedInstruction& first, std::uint32_t count, std::uint32_t step,
                          Position now) {
  for (const Follower& f : followers_) f.observer->iterations(first, count, step, now);
}

void Audience::iteration(const ExecutedInstruction& e, Position now) {
  for (const Follower& f : followers_) f.observer->instruction(e, now);
}

void Audience::fetch(PhysAddr a, std::uint32_t size, Position now, bool judged) {
  tell(now, &Interest::reads, judged && judges_reads_, [&](Observer& o) { o.fetch(a, size, now); });
}

void Audience::read(PhysAddr a, std::uint32_t size, AccessKind kind, Position now, bool judged) {
  tell(now, &Interest::reads, judged && judges_reads_,
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
    if (l.interest.stores) l.observer->write(a, bytes, kind, now);
  }
  end_if_asked(now);
  if (judged && judge_ != nullptr) judge_->write(a, bytes, kind, now);
  end_if_asked(now);
  if (listeners_.corrector() != nullptr) correct_store(a, bytes.size(), now);
  for (const Listener& l : late_) {
    if (l.interest.stores) l.observer->write(a, bytes, kind, now);
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
  tell(now, &Interest::mappings, true, [&](Observer& o) { o.mapping(page, frame, now); });
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

void Audience::translation_dropped(LinearAddr page, Position now) {
  tell_all(now, [&](Observer& o) { o.translation_dropped(page, now); });
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

void Audience::address_space(AddressSpaceId cr3, Position now) {
  tell_all(now, [&](Observer& o) { o.address_space(cr3, now); });
}

}  // namespace citcat
