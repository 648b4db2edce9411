#include "monitor/recorder/first_state.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "driver-kmod/uapi/citcat_dump.h"

namespace citcat::monitor {
namespace {

// Where captures without a driver keep their state block: far above any RAM.
constexpr std::uint32_t kStateWithoutDriver = 0xfef00000;

}  // namespace

void FirstState::send_dump(std::uint32_t window) {
  const GuestMemory& memory = seen_.cpu.memory;
  std::vector<std::uint32_t> words(CITCAT_STATE_MAX_BYTES / 4);
  std::memcpy(words.data(), memory.live(window), CITCAT_STATE_MAX_BYTES);
  const auto end = std::find(words.begin(), words.end(), CITCAT_STATE_END);
  if (words[0] != CITCAT_STATE_MAGIC || end == words.end())
    return seen_.recording.give_up("the driver's window holds no complete state");
  words.resize(static_cast<std::size_t>(end - words.begin()) + 1);
  send_block(words, window);
  units_.extended_state.check_dump(words);
  const std::uint8_t* const image = memory.live(window) + CITCAT_STATE_FXSAVE;
  units_.x87.begin(std::span<const std::uint8_t, kSlotBytes>(image, kSlotBytes), image);
  // A 64-bit kernel's driver has written a second block.
  std::uint32_t magic = 0;
  std::memcpy(&magic, memory.live(window + CITCAT_STATE64_MAGIC_OFFSET), sizeof magic);
  if (!seen_.cpu.has_long_mode() || magic != CITCAT_STATE64_MAGIC) return;
  words.resize((CITCAT_STATE64_END_OFFSET - CITCAT_STATE64_MAGIC_OFFSET) / 4 + 1);
  std::memcpy(words.data(), memory.live(window + CITCAT_STATE64_MAGIC_OFFSET), 4 * words.size());
  send_block(words, window + CITCAT_STATE64_MAGIC_OFFSET);
  units_.task_register.note(seen_.cpu.registers.state());
}

void FirstState::send(const LoggedState& state, std::uint64_t ip) {
  ObservedProcessor& cpu = seen_.cpu;
  const auto wide = cpu.registers.long_mode_registers();
  send_block(state_block(state, ip, wide, cpu.facts, cpu.memory.low_bytes()), kStateWithoutDriver);
  units_.task_register.note(state);
  std::array<std::uint8_t, kSlotBytes> head;
  std::memcpy(head.data(), state.fx, head.size());
  units_.x87.begin(head, nullptr);
}

void FirstState::send_block(std::span<const std::uint32_t> words, std::uint32_t base) {
  for (std::size_t n = 0; n < words.size(); ++n)
    seen_.cpu.sink.single(RecordType::data_write, base + static_cast<std::uint32_t>(4 * n),
                          bytes_of(words[n]), kDriver | kUncached);
}

}  // namespace citcat::monitor
