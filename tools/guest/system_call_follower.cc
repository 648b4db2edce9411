#include "tools/guest/system_call_follower.h"

#include <algorithm>
#include <array>

#include "events/machine/cpu_state.h"

namespace citcat::tools {

namespace {

constexpr std::uint32_t kCallBytes = 2;  ///< of INT 80h, SYSENTER and SYSCALL
/// More words on the stack of a program that begins than any list of arguments and variables has:
/// Linux takes a quarter of the stack's 8 MiB (execve(2)), each word with a text of its own.
constexpr std::uint32_t kMostStackWords = 1u << 20;
constexpr std::uint32_t kAuxEnd = 0, kAuxPath = 31;  ///< AT_NULL, AT_EXECFN of <elf.h>
/// Bytes of a name that a process gives itself (TASK_COMM_LEN without the zero, prctl(2)).
constexpr std::size_t kLongestName = 15;
/// Interrupted programs that never went on were killed; the oldest of very many go.
constexpr std::size_t kMostInterrupted = 4096;
/// Children that never run in an address space of their own: threads, and those of calls that
/// failed.
constexpr std::size_t kMostForks = 1024;

using Meaning = SystemCallMeaning;

bool makes_process(const SystemCall& call) {
  const Meaning m = meaning_of(call);
  return m == Meaning::fork || m == Meaning::vfork || m == Meaning::clone || m == Meaning::clone3;
}
bool makes_program(const SystemCall& call) {
  return meaning_of(call) == Meaning::execve || meaning_of(call) == Meaning::execveat;
}
bool never_returns(const SystemCall& call) {
  const Meaning m = meaning_of(call);
  return m == Meaning::exit || m == Meaning::exit_group || m == Meaning::sigreturn ||
         m == Meaning::rt_sigreturn;
}

std::uint64_t page_of(std::uint64_t address) { return address / kPageSize; }

}  // namespace

SystemCallFollower::Place SystemCallFollower::here() const {
  return {guest_->address_space(), guest_->gpr(kEsp), guest_->ip()};
}

void SystemCallFollower::delivered(const DeliveredEvent& event, Position now) {
  if (!guest_->runs_program()) return;
  if (event.kind == DeliveredEvent::Kind::software && event.vector == kSystemCallVector) {
    return begin(Way::interrupt, now);
  }
  // INT n pushes the address after it; every other one where it came.
  if (event.kind == DeliveredEvent::Kind::software) return;
  if (interrupted_.size() == kMostInterrupted) interrupted_.erase(interrupted_.begin());
  interrupted_.push_back(here());
}

/// The program has left its level where the call is told of, or is about to.
void SystemCallFollower::fast_call(Position now, bool wide) {
  if (!guest_->runs_program()) return;
  // A 32-bit program on AMD's processors; Linux sends it through a page of its own (vdso32).
  if (wide && !guest_->in_64_bit_mode()) return;
  begin(wide ? Way::syscall : Way::sysenter, now);
}

/// syscall(2), "Architecture calling conventions".
void SystemCallFollower::read_arguments(SystemCall& call, const Guest& guest) {
  constexpr std::array kOrder{kEbx, kEcx, kEdx, kEsi, kEdi, kEbp};
  constexpr std::array<int, kSystemCallArguments> kWideOrder{kEdi, kEsi, kEdx, 10, 8, 9};
  const bool wide = call.of == SystemCallInterface::amd64;
  for (unsigned i = 0; i < kSystemCallArguments; ++i) {
    call.arguments[i] =
        wide ? guest.gpr(kWideOrder[i]) : static_cast<std::uint32_t>(guest.gpr(kOrder[i]));
  }
}

void SystemCallFollower::begin(Way way, Position now) {
  const bool fast = way == Way::sysenter;
  Pending pending;
  pending.place = here();
  pending.fast = fast;
  if (!fast) pending.place.eip += kCallBytes;
  // The kernel goes back to the stack pointer that EBP holds (vdso32/system_call.S).
  if (fast) pending.place.esp = guest_->gpr(kEbp);
  SystemCall& call = pending.call;
  call.ordinal = begun_++;
  call.number = static_cast<std::uint32_t>(guest_->gpr(kEax));
  if (way == Way::syscall) call.of = SystemCallInterface::amd64;
  call.address_space = pending.place.address_space;
  call.begin = now;
  read_arguments(call, *guest_);
  if (fast) {
    constexpr unsigned kOnStack = kSystemCallArguments - 1;
    const auto last = guest_->word(LinearAddr{pending.place.esp});
    call.arguments[kOnStack] = last.value_or(0);
    if (!last) call.known_arguments = kOnStack;
  }
  read_texts(call, *guest_, false);
  // Whoever called from here before does not come back.
  for (auto it = pending_.begin(); it != pending_.end();) {
    const auto same = it++;
    if (same->place.address_space == pending.place.address_space &&
        same->place.esp == pending.place.esp) {
      finish(same, SystemCall::End::never, now);
    }
  }
  if (makes_process(call)) {
    const bool own_stack = meaning_of(call) == Meaning::clone;
    if (forks_.size() == kMostForks) forks_.erase(forks_.begin());
    forks_.push_back({pending.place, fast, own_stack ? call.arguments[1] : 0});
  }
  listener_.began(call);
  pending_.push_back(std::move(pending));
  if (never_returns(call)) finish(--pending_.end(), SystemCall::End::never, now);
}

void SystemCallFollower::fast_returned(Position now, bool wide) {
  // SDM vol. 2, SYSEXIT and SYSRET.
  if (wide) {
    return come_back({guest_->address_space(), guest_->gpr(kEsp), guest_->gpr(kEcx)}, now);
  }
  come_back({guest_->address_space(), guest_->gpr(kEcx), guest_->gpr(kEdx)}, now);
}

void SystemCallFollower::returned(Position now) {
  if (guest_->runs_program()) {
    const Place place = here();
    const auto same = std::find(interrupted_.rbegin(), interrupted_.rend(), place);
    if (same == interrupted_.rend()) return come_back(place, now);
    interrupted_.erase(std::next(same).base());
    return;
  }
  // A fault may have brought the page in that a call's argument lies in.
  const AddressSpaceId address_space = guest_->address_space();
  for (Pending& pending : pending_) {
    if (pending.call.address_space != address_space || !wants_texts(pending.call)) continue;
    read_texts(pending.call, *guest_, false);
  }
}

/// `place` may be where the call of that place ends. The kernel knows where SYSENTER was executed,
/// in the page that it gave the program for it, and goes on somewhere else in it.
bool SystemCallFollower::is_behind(const Place& place, const Place& call, bool fast) const {
  if (fast) return page_of(place.eip) == page_of(call.eip);
  return place.eip == call.eip || place.eip == call.eip - kCallBytes;
}

/// The kernel has the call made anew: it goes back to the INT 80h that made it, or that is
/// after SYSENTER for this.
bool SystemCallFollower::goes_back_to_call(const Place& place, const Pending& pending) const {
  if (!pending.fast) return place.eip != pending.place.eip;
  const auto code = guest_->bytes(LinearAddr{place.eip}, kCallBytes);
  return code && (*code)[0] == 0xcd && (*code)[1] == kSystemCallVector;
}

void SystemCallFollower::come_back(const Place& place, Position now) {
  const std::uint64_t eax = guest_->gpr(kEax);
  const auto found = std::find_if(pending_.rbegin(), pending_.rend(), [&](const Pending& p) {
    return p.place.address_space == place.address_space && p.place.esp == place.esp &&
           is_behind(place, p.place, p.fast);
  });
  if (found == pending_.rend()) {
    if (!begin_child(place, now)) begin_program(place, now);
    return;
  }
  // The child of vfork() comes back first, and its parent from the same place later.
  if (makes_process(found->call) && eax == 0) return;
  const bool again = goes_back_to_call(place, *found);
  finish(std::next(found).base(), again ? SystemCall::End::restarted : SystemCall::End::returned,
         now);
}

void SystemCallFollower::finish(std::list<Pending>::iterator pending, SystemCall::End how,
                                Position now) {
  SystemCall& call = pending->call;
  call.state = how;
  call.end = now;
  if (how == SystemCall::End::returned) {
    call.result = guest_->gpr(kEax);
    if (call.of == SystemCallInterface::i386) call.result &= 0xffffffff;
    read_texts(call, *guest_, true);
  }
  const SystemCall told = std::move(call);
  pending_.erase(pending);
  listener_.ended(told);
  const bool named = meaning_of(told) == Meaning::prctl && told.arguments[0] == kSetName &&
                     told.state == SystemCall::End::returned && told.result == 0;
  if (!named) return;
  const auto name = guest_->text(LinearAddr{told.arguments[1]}, kLongestName);
  if (name) listener_.renamed(told.address_space, *name, now);
}

bool SystemCallFollower::begin_child(const Place& place, Position now) {
  if (guest_->gpr(kEax) != 0) return false;
  const auto found = std::find_if(forks_.rbegin(), forks_.rend(), [&](const Fork& fork) {
    const std::uint64_t esp = fork.child_stack != 0 ? fork.child_stack : fork.place.esp;
    return fork.place.address_space != place.address_space && esp == place.esp &&
           is_behind(place, fork.place, fork.fast);
  });
  if (found == forks_.rend()) return false;
  const AddressSpaceId parent = found->place.address_space;
  forks_.erase(std::next(found).base());
  forget(place.address_space, now);
  listener_.forked(parent, place.address_space, now);
  return true;
}

bool SystemCallFollower::begin_program(const Place& place, Position now) {
  for (const int r : {kEax, kEbx, kEcx, kEdx, kEsi, kEdi, kEbp}) {
    if (guest_->gpr(r) != 0) return false;
  }
  const std::optional<std::string> path = executed_path(place.esp);
  if (!path) return false;
  const auto caller = caller_of(place, *path);
  if (caller != pending_.end()) finish(caller, SystemCall::End::returned, now);
  forget(place.address_space, now);
  listener_.executed(place.address_space, *path, now);
  return true;
}

/// The call that began the program: the newest that named this path, or else the newest.
std::list<SystemCallFollower::Pending>::iterator SystemCallFollower::caller_of(
    const Place& place, const std::string& path) {
  const std::string text = quoted_text(path);
  auto named = pending_.end(), newest = named;
  for (auto it = pending_.begin(); it != pending_.end(); ++it) {
    const SystemCall& call = it->call;
    if (!makes_program(call) || call.address_space == place.address_space) continue;
    if (call.texts[meaning_of(call) == Meaning::execveat ? 1 : 0] == text) named = it;
    newest = it;
  }
  return named != pending_.end() ? named : newest;
}

/// What lies on the stack of a program that begins: the number of its arguments, their addresses,
/// 0, those of the environment, 0, and pairs that describe the system (System V ABI, Intel386
/// supplement, "Process Initialization"; the same in words of 8 bytes on amd64).
std::optional<std::string> SystemCallFollower::executed_path(std::uint64_t esp) const {
  const std::uint64_t bytes = guest_->word_bytes();
  const auto word = [&](std::uint64_t n) {
    return guest_->word(guest_->onward(LinearAddr{esp}, bytes * n));
  };
  const auto count = word(0);
  if (!count || *count >= kMostStackWords || word(1 + *count) != 0u) return std::nullopt;
  std::uint64_t at = 2 + *count;
  for (std::optional<std::uint64_t> w; (w = word(at)) != 0u; ++at) {
    if (!w || at > kMostStackWords) return std::nullopt;
  }
  for (++at; at < kMostStackWords; at += 2) {
    const auto key = word(at), value = word(at + 1);
    if (!key || !value || *key == kAuxEnd) return std::nullopt;
    if (*key == kAuxPath) return guest_->text(LinearAddr{*value}, kPathMax);
  }
  return std::nullopt;
}

/// What was known of another process that had these page tables.
void SystemCallFollower::forget(AddressSpaceId address_space, Position now) {
  const auto is_old = [=](const Place& place) { return place.address_space == address_space; };
  std::erase_if(interrupted_, is_old);
  std::erase_if(forks_, [&](const Fork& fork) { return is_old(fork.place); });
  for (auto it = pending_.begin(); it != pending_.end();) {
    const auto old = it++;
    if (is_old(old->place)) finish(old, SystemCall::End::never, now);
  }
}

std::vector<SystemCall> SystemCallFollower::pending() const {
  std::vector<SystemCall> calls;
  for (const Pending& pending : pending_) calls.push_back(pending.call);
  return calls;
}

bool SystemCallFollower::lends_memory(AddressSpaceId address_space) const {
  return std::any_of(pending_.begin(), pending_.end(), [=](const Pending& p) {
    return meaning_of(p.call) == Meaning::vfork && p.place.address_space == address_space;
  });
}

}  // namespace citcat::tools
