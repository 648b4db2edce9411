#include "monitor/delivery/system_management.h"

#include <cstring>
#include <span>

namespace citcat::monitor {
namespace {

constexpr std::uint64_t kHandler = 0x8000;
/// Low byte of the saved revision identifier: the emulator of 64-bit processors has AMD64's map,
/// the other one that of the P6 family (QEMU, target/i386/tcg/system/smm_helper.c).
constexpr std::uint8_t kRevisionOfAmd64 = 0x64;

/// Place of a dword at this offset from SMBASE + 8000h.
constexpr unsigned word_at(std::uint32_t offset) { return (0x7ffc - offset) / 4; }
constexpr unsigned kRevision = word_at(0x7efc);

/// Where the map of the P6 family has the attributes of a segment, and its selector.
struct SegmentWords {
  unsigned attributes, selector;
};
constexpr SegmentWords kSegments[] = {
    {word_at(0x7f84), word_at(0x7fa8)}, {word_at(0x7f90), word_at(0x7fac)},
    {word_at(0x7f9c), word_at(0x7fb0)}, {word_at(0x7f2c), word_at(0x7fb4)},
    {word_at(0x7f38), word_at(0x7fb8)}, {word_at(0x7f44), word_at(0x7fbc)},
    {word_at(0x7f78), word_at(0x7fc0)}, {word_at(0x7f5c), word_at(0x7fc4)}};

}  // namespace

void SystemManagement::enter(const LoggedState& before) {
  Recording& recording = seen_.recording;
  if (cpu_.several)
    return recording.give_up(
        "system management mode was entered, which is recorded of one processor alone; leave it "
        "out of the machine with -machine smm=off");
  if (!before.a20)
    return recording.give_up(
        "system management mode was entered with the A20 gate closed, which the emulator ignores "
        "there");
  const unsigned passed_bytes = end_before(before);
  if (!recording.active()) return;
  const LoggedState handler = cpu_.registers.state();
  smbase_ = static_cast<std::uint32_t>(handler.segment[1].base);
  if (!handler.smm || handler.ip != kHandler)
    return recording.give_up(
        "the emulator went on elsewhere than at the handler of a system management interrupt");
  cpu_.in_system_management = true;
  if (!find_saved())
    return recording.give_up(
        "a system management interrupt saved the processor's state in memory that is not RAM");
  if (passed_bytes != 0 && !correct_ip(before.ip + passed_bytes))
    return recording.give_up(
        "a system management interrupt came when the count of a REP was used up, and this emulator "
        "returns to the REP once more");
  recording.count(Recording::Delivered::interrupt);
  cpu_.sink.event(RecordType::smi, 0, 0);
  // No manual says what is in a good part of what is saved: the bus is to show all of it.
  stop_caching();
  seen_.control.take();
  units_.far_transfer.clear();
  show_saves();
  seen_.code.jump();
}

void SystemManagement::leave(const LoggedState& after) {
  const Insn* const insn = seen_.flight.insn;
  if (!cpu_.in_system_management || insn == nullptr || insn->what.kind != InsnKind::resume)
    return seen_.recording.give_up(
        "system management mode was left otherwise than by an instruction that was seen");
  seen_.recording.set_position();
  show_loads();
  execution_.finish();
  cpu_.in_system_management = false;
  cpu_.memory.show_smram(false);
  seen_.recording.set_position();
  seen_.control.take(after);
  units_.task_register.note(after);
  seen_.code.jump();
}

/// The instruction in flight has ended, unless it is one that goes on when the handler has ended.
/// An SMI that finds the count of a REP used up returns behind it, where the emulator returns to it
/// once more: so many bytes are to be passed.
unsigned SystemManagement::end_before(const LoggedState& before) {
  Flight& flight = seen_.flight;
  const std::uint64_t base = before.code64 ? 0 : before.segment[1].base;
  const bool passes = flight.insn != nullptr && flight.repeat_used_up(before) &&
                      flight.insn->narrowed(before.ip + base) == flight.linear;
  const unsigned passed_bytes = passes ? flight.insn->size : 0;
  execution_.end_before(before, "an SMI");
  flight.insn = nullptr;
  seen_.recording.set_position();
  flight.iterations = 0;
  return passed_bytes;
}

/// Has RSM go on there. False in a repeated run, which must not be changed.
bool SystemManagement::correct_ip(std::uint64_t ip) {
  if (cpu_.memory.observes()) return false;
  const bool wide = (saved()[kRevision] & 0xff) == kRevisionOfAmd64;
  const std::uint32_t at = wide ? 0x7f78 : 0x7ff0;
  const auto bytes = bytes_of(ip);
  cpu_.memory.put(smbase_ + 0x8000 + at, std::span(bytes).first(wide ? 8 : 4));
  return true;
}

/// Finds out where the emulator has the RAM that the state is saved in.
bool SystemManagement::find_saved() {
  std::array<std::uint8_t, kSavedBytes> bytes{};
  cpu_.memory.show_smram(true);
  const bool may =
      cpu_.memory.is_ram(saved_at(), kSavedBytes) || cpu_.memory.is_smram(saved_at(), kSavedBytes);
  // Without paging its linear address is the physical one.
  const bool is = may && cpu_.registers.read_memory(saved_at(), bytes) &&
                  std::memcmp(bytes.data(), cpu_.memory.live(saved_at()), bytes.size()) == 0;
  // What lies elsewhere tells nothing of the screen's place.
  cpu_.memory.show_smram(is && cpu_.memory.is_smram(saved_at(), kSavedBytes));
  return is;
}

/// The page that the state is saved in leaves the caches for good.
void SystemManagement::stop_caching() {
  constexpr PhysicalAddress kPage = 0x1000, kShortestLine = 16;
  const PhysicalAddress page = saved_at() - saved_at() % kPage;
  if (!cpu_.memory.is_ram(page, kPage) || !cpu_.memory.may_be_cached(page)) return;
  for (PhysicalAddress at = page; at < page + kPage; at += kShortestLine) cpu_.bus.flush_line(at);
  cpu_.memory.note_use(page, GuestMemory::kSavedState);
}

/// In the map of the P6 family the emulator has attributes in the lower halves of their dwords, in
/// place of the upper ones.
SystemManagement::Words SystemManagement::saved() const {
  Words words{};
  for (unsigned n = 0; n < kSavedWords; ++n)
    std::memcpy(&words[n], cpu_.memory.live(saved_at() + kSavedBytes - 4 * (n + 1)), 4);
  if ((words[kRevision] & 0xff) == kRevisionOfAmd64) return words;
  for (const SegmentWords& at : kSegments)
    words[at.attributes] = words[at.attributes] << 16 | (words[at.selector] & 0xffff);
  return words;
}

/// RAM has them already. Processors of the P6 family begin at the highest address.
void SystemManagement::show_saves() {
  const Words words = saved();
  cpu_.bus.expect_writes({saved_at(), kSavedBytes}, {});
  for (unsigned n = 0; n < kSavedWords; ++n) {
    const PhysicalAddress at = saved_at() + kSavedBytes - 4 * (n + 1);
    const auto bytes = bytes_of(words[n]);
    cpu_.bus.write(at, bytes);
    if (cpu_.memory.is_ram(at, 4)) cpu_.memory.keep(at, bytes);
  }
  cpu_.bus.expect_writes({}, {});
}

void SystemManagement::show_loads() {
  const Words words = saved();
  for (unsigned n = 0; n < kSavedWords; ++n)
    cpu_.bus.read(saved_at() + kSavedBytes - 4 * (n + 1), bytes_of(words[n]));
}

}  // namespace citcat::monitor
