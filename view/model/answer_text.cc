#include "view/model/answer_text.h"

#include <fmt/format.h>

#include "debugger/server/run_events.h"
#include "events/machine/cpu_traits.h"
#include "events/position_text.h"
#include "formats/text/printable_text.h"
#include "replay/machine/code_place.h"
#include "x86/disassembler.h"

namespace citcat::view {

std::string linear_text(const RunView& view, LinearAddr at) {
  const CpuTraits& traits = cpu_traits(view.file().recording().initial.model);
  const int digits = traits.has_long_mode ? 16 : traits.address_pins <= 20 ? 5 : 8;
  return fmt::format("{:0{}x}", at.value, digits);
}

std::string physical_text(const RunView& view, PhysAddr at) {
  const CpuTraits& traits = cpu_traits(view.file().recording().initial.model);
  return fmt::format("{:0{}x}", at.value, traits.address_pins <= 20 ? 5 : 8);
}

std::string bytes_text(std::span<const std::uint8_t> bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::string value_text(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > 8) return bytes_text(bytes);
  std::string text;
  for (auto byte = bytes.rbegin(); byte != bytes.rend(); ++byte) {
    text += fmt::format("{:02x}", *byte);
  }
  return text;
}

CodeHere code_at(const Machine& machine, LinearAddr at) {
  const int bits = code_bits(machine.engine());
  CodeHere code;
  for (unsigned i = 0; i < kMaxInstructionBytes; ++i) {
    const LinearAddr place = bits == 64 ? LinearAddr{at.value + i} : at.plus32(i);
    const auto found = machine.find(place);
    const auto byte = found ? machine.memory().defined_byte(*found) : std::nullopt;
    if (!byte) break;
    code.bytes.push_back(*byte);
  }
  const CpuState cpu = machine.save();
  constexpr std::uint32_t kVirtual8086 = 1u << 17;
  CodeMode mode;
  mode.bits32 = bits == 32;
  mode.bits64 = bits == 64;
  mode.real_or_v86 = (cpu.cr0 & 1) == 0 || (cpu.eflags & kVirtual8086) != 0;
  code.info = decode_instruction(code.bytes, mode, machine.model());
  code.text = "not known";
  // UD2 and its like have names, although decode_instruction() refuses them.
  const std::size_t least = code.info.length != 0 ? code.info.length : 1;
  for (std::size_t n = least; n <= code.bytes.size(); ++n) {
    code.text = Disassembler(bits).text(std::span(code.bytes).first(n), at.value);
    if (code.info.length == 0 && code.text == kBadCode) continue;
    code.bytes.resize(n);
    break;
  }
  return code;
}

std::string event_text(const StepEvent& event) {
  switch (event.kind) {
    case StepEvent::Kind::halted:
      return "halted";
    case StepEvent::Kind::shutdown:
      return "shutdown";
    case StepEvent::Kind::delivered:
      break;
  }
  return event_name(event.delivery);
}

std::vector<std::string> step_events(RunView& view) {
  struct Events final : StepSink {
    explicit Events(Moment wanted) : at(wanted) {}
    void step(const RecordedStep& step) override {
      if (step.before != at) return;
      for (const StepEvent& event : step.events) texts.push_back(event_text(event));
    }
    Moment at;
    std::vector<std::string> texts;
  };
  const Moment at = view.timeline().moment();
  Events events(at);
  view.timeline().step();
  const Moment to = view.timeline().moment();
  view.go_to_last(at);
  view.record(WantedMoment{at.position, at.deliveries}, to, events, view.limit());
  return events.texts;
}

bool is_fault(const RecordedStep& step) {
  if (step.completed) return false;
  return step.events.empty() || step.events.front().kind != StepEvent::Kind::delivered ||
         step.events.front().delivery.kind == DeliveredEvent::Kind::exception;
}

std::string ending_text(RunView& view) {
  const auto end = view.run_end();
  if (!end || view.timeline().position() < *end) return {};
  if (const auto& divergence = view.timeline().divergence()) {
    std::string text = "here the replay diverges from its evidence: " + divergence->reason;
    if (!divergence->expected.empty()) text += "; expected " + divergence->expected;
    if (!divergence->found.empty()) text += ", found " + divergence->found;
    return text;
  }
  return view.machine().shut_down() ? "the processor has shut down" : "the run ends here";
}

Json here(RunView& view) {
  const Moment moment = view.timeline().moment();
  const LinearAddr next = view.machine().next_linear();
  Json json = {{"moment", moment_text(moment)},
               {"position", position_text(moment.position)},
               {"instruction", moment.position.instruction},
               {"address", linear_text(view, next)}};
  const std::string place = view.place(next);
  if (!place.empty()) json["place"] = place;
  return json;
}

void make_printable(Json& json, std::string_view kept) {
  if (json.is_string()) {
    json = printable_text(json.get_ref<const std::string&>(), kept);
  } else if (json.is_structured()) {
    for (Json& part : json) make_printable(part, kept);
  }
}

}  // namespace citcat::view
