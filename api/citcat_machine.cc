// The C functions of citcat_machine.h on a ReplayTimeline.
#include "api/citcat_machine.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/current_error.h"
#include "events/archive/recording_file.h"
#include "formats/io/error.h"
#include "replay/infer/places/event_placer.h"
#include "replay/run/replay_timeline.h"
#include "replay/session/known_registers.h"

using citcat::PhysAddr;

struct citcat_machine {
  citcat_machine(const char* path, const citcat::TimelineOptions& options)
      : file(citcat::RecordingFile::open(path)) {
    citcat::place_events(file, {});
    timeline = std::make_unique<citcat::ReplayTimeline>(file, nullptr, options);
  }

  /// Registers where it is; those that nothing has loaded so far are unknown.
  citcat::CpuState registers() {
    citcat::CpuState state = timeline->registers();
    if (state.unknown.empty()) return state;
    if (!known) known.emplace(file.recording());
    known->settle(state, timeline->moment());
    return state;
  }

  citcat::RecordingFile file;
  std::unique_ptr<citcat::ReplayTimeline> timeline;
  std::optional<citcat::KnownRegisters> known;
  std::string error;
};

namespace {

using citcat::current_error;

thread_local std::string machine_open_error;

constexpr const char* kNoMachine = "no machine was given";

/// Does what `act` says and returns its answer; what it throws becomes the machine's error, and -1.
template <class Act>
auto guarded(citcat_machine* machine, Act&& act) -> decltype(act()) {
  if (machine == nullptr) {
    machine_open_error = kNoMachine;
    return -1;
  }
  machine->error.clear();
  try {
    return act();
  } catch (...) {
    machine->error = current_error();
    return -1;
  }
}

/// -1 with the reason where the last move diverged from the evidence.
int after_move(citcat_machine& machine, int answer) {
  const auto& divergence = machine.timeline->report().divergence;
  if (!divergence) return answer;
  machine.error = "the replay diverges from the evidence at " + place_text(*divergence) + ": " +
                  divergence->reason + ": expected " + divergence->expected + ", found " +
                  divergence->found;
  return -1;
}

/// True for an address of 32 bits; with long mode, for one whose bits 47 to 63 are equal.
bool is_address(const citcat_machine& machine, std::uint64_t linear) {
  const citcat::Engine& engine = machine.timeline->machine().engine();
  if ((engine.hflags() & citcat::kHfLma) == 0) return linear >> 32 == 0;
  const std::uint64_t upper = linear >> 47;
  return upper == 0 || upper == (std::uint64_t{1} << 17) - 1;
}

/// The name under which the state lists a register that is not known.
std::string listed_name(std::string_view name) {
  static constexpr std::string_view kHalves[] = {"ax", "cx", "dx", "bx", "sp",
                                                 "bp", "si", "di", "ip", "flags"};
  for (const std::string_view half : kHalves) {
    if (name == half) return "e" + std::string(name);
  }
  return std::string(name);
}

}  // namespace

citcat_machine* citcat_machine_open(const char* path, unsigned flags) {
  machine_open_error.clear();
  try {
    if (path == nullptr) throw citcat::UsageError("no file was named");
    if ((flags & ~unsigned{CITCAT_MACHINE_CHECKED}) != 0) {
      throw citcat::UsageError("flags are asked for that this version does not have");
    }
    citcat::TimelineOptions options;
    options.check = (flags & CITCAT_MACHINE_CHECKED) != 0;
    return std::make_unique<citcat_machine>(path, options).release();
  } catch (...) {
    machine_open_error = current_error();
    return nullptr;
  }
}

void citcat_machine_close(citcat_machine* machine) { delete machine; }

int citcat_machine_seek(citcat_machine* machine, uint64_t instruction, uint32_t iteration) {
  return guarded(machine, [&] {
    const citcat::Position to{instruction, iteration};
    machine->timeline->seek(to);
    return after_move(*machine, machine->timeline->position() == to ? 0 : 1);
  });
}

int citcat_machine_step(citcat_machine* machine) {
  return guarded(machine, [&] { return after_move(*machine, machine->timeline->step() ? 1 : 0); });
}

int citcat_machine_step_back(citcat_machine* machine) {
  return guarded(machine, [&] { return machine->timeline->step_back() ? 1 : 0; });
}

uint64_t citcat_machine_instruction(const citcat_machine* machine) {
  return machine == nullptr ? 0 : machine->timeline->position().instruction;
}

uint32_t citcat_machine_iteration(const citcat_machine* machine) {
  return machine == nullptr ? 0 : machine->timeline->position().iteration;
}

int citcat_machine_register(citcat_machine* machine, const char* name, uint64_t* value) {
  return guarded(machine, [&] {
    if (name == nullptr || value == nullptr)
      throw citcat::UsageError("no name or no place was given");
    const citcat::CpuState state = machine->registers();
    const auto found = citcat::get_register(state, name);
    if (!found)
      throw citcat::UsageError(std::string("expected the name of a register, found ") + name);
    *value = *found;
    return citcat::is_unknown(state, listed_name(name)) ? 0 : 1;
  });
}

int64_t citcat_machine_memory(citcat_machine* machine, uint64_t physical, uint8_t* bytes,
                              uint8_t* known, size_t count) {
  return guarded(machine, [&]() -> std::int64_t {
    constexpr std::uint64_t kEnd = std::uint64_t{1} << citcat::kAddressBits;
    if (bytes == nullptr && count != 0) throw citcat::UsageError("no place was given");
    if (physical > kEnd || count > kEnd - physical) {
      throw citcat::UsageError("expected addresses below 4 PiB");
    }
    const citcat::Memory& memory = machine->timeline->memory();
    std::int64_t found = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const auto byte = memory.defined_byte(citcat::PhysAddr{physical + i});
      bytes[i] = byte.value_or(0);
      if (known != nullptr) known[i] = byte.has_value();
      found += byte.has_value();
    }
    return found;
  });
}

int citcat_machine_translate(citcat_machine* machine, uint64_t linear, uint64_t* physical) {
  return guarded(machine, [&] {
    if (physical == nullptr) throw citcat::UsageError("no place was given");
    if (!is_address(*machine, linear)) return 0;
    const citcat::LinearAddr address{linear};
    // look_up() is no const function for the sake of its callers in the machine; it changes
    // nothing.
    auto& mmu = const_cast<citcat::Mmu&>(machine->timeline->machine().mmu());
    const auto found =
        mmu.look_up(address, citcat::Access::read, citcat::Who::supervisor, citcat::Lookup::free);
    if (!found) return 0;
    *physical = found->frame.value + address.offset_in_page();
    return 1;
  });
}

const char* citcat_machine_error(const citcat_machine* machine) {
  const std::string& error = machine == nullptr ? machine_open_error : machine->error;
  return error.empty() ? nullptr : error.c_str();
}
