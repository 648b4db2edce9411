#include "cli/complete/address_completion.h"

#include <utility>

#include "capture/complete/completed_capture.h"
#include "cli/complete/replayed_processor.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

/// The state at the start, if one is given.
std::optional<CpuState> given_state(const ImportOptions& options) {
  if (options.initial_state) return options.initial_state;
  if (!options.initial_state_path.empty()) return load_state_json(options.initial_state_path);
  return std::nullopt;
}

/// Whether addresses are to be completed. `missing`: lines, of `all` that the processor has.
bool is_asked_for(Completion how, const CpuTraits& traits, bool has_state, std::uint32_t missing,
                  std::uint32_t all) {
  if (how == Completion::never || missing == 0) return false;
  if (how == Completion::always) {
    if (traits.has_a20())
      throw UsageError(
          "--complete-addresses: only processors with 20 address pins show all that they do on the "
          "bus");
    if (!has_state)
      throw UsageError(
          "--complete-addresses needs the state that the processor starts with: --initial-state");
    return true;
  }
  // Without its highest line a capture says enough: memory is mirrored over the two halves.
  return !traits.has_a20() && has_state && (missing & all >> 1) != 0;
}

}  // namespace

Completion parse_completion(const std::string& text) {
  if (text == "auto") return Completion::automatic;
  if (text == "always") return Completion::always;
  if (text == "never") return Completion::never;
  throw UsageError("--complete-addresses: expected auto, always or never, found " + text);
}

CpuState state_after_reset(CpuModel model) {
  if (!is_known(model)) throw UsageError("--initial-state reset: name the processor with --cpu");
  if (cpu_traits(model).has_a20())
    throw UsageError("--initial-state reset: expected a processor of 20 address pins, found " +
                     std::string(cpu_model_name(model)));
  CpuState state;
  state.model = model;
  state.unknown = register_names(model);
  // Table 2-4, "CPU State Following RESET". Bits 12 to 15 of FLAGS are always set.
  for (const auto& [name, value] : {std::pair{"cs", 0xffff}, {"ds", 0}, {"es", 0}, {"ss", 0}}) {
    for (const char* part : {"", ".base", ".limit", ".attributes"})
      std::erase(state.unknown, std::string(name) + part);
    set_register(state, name, static_cast<std::uint64_t>(value));
  }
  state.eip = 0;
  state.eflags = cpu_traits(model).sets_flags;
  std::erase(state.unknown, "eip");
  std::erase(state.unknown, "eflags");
  return state;
}

std::unique_ptr<CaptureReader> with_whole_addresses(std::unique_ptr<CaptureReader> capture,
                                                    const ImportOptions& options, Completion how) {
  const CaptureInfo& info = capture->info();
  const CpuModel model = is_known(options.capture.cpu) ? options.capture.cpu : info.cpu;
  const CpuTraits& traits = cpu_traits(model);
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << traits.address_pins) - 1);
  std::optional<CpuState> state = given_state(options);
  if (!is_asked_for(how, traits, state.has_value(), all & ~info.address_mask, all)) return capture;
  state->model = model;
  BusModel bus = info.bus;
  bus.address_mask = all;
  CompletionOptions completion;
  completion.make_processor = [state = *state, bus] { return make_replayed_processor(state, bus); };
  completion.start = options.start;
  completion.address_mask = all;
  completion.queue_bytes = info.bus.bus_bytes == 1 ? 4 : 6;  // 8086 Family User's Manual, 2.2
  return complete_addresses(std::move(capture), std::move(completion));
}

}  // namespace citcat
