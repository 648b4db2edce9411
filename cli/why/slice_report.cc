#include "cli/why/slice_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "events/machine/cpu_traits.h"
#include "events/position_text.h"
#include "replay/machine/delivery_name.h"
#include "x86/disassembler.h"

namespace citcat {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string bytes_text(std::uint64_t count) {
  return fmt::format("{} byte{}", count, count == 1 ? "" : "s");
}

}  // namespace

SliceReport::SliceReport(const SliceQuery& query, const Slice& slice, const Recording& recording,
                         const Symbols& symbols)
    : query_(query), slice_(slice), recording_(recording), symbols_(symbols) {
  if (recording.initial.long_mode.has_value()) {
    address_digits_ = 16;
    width_ = NameWidth::bits64;
  } else if (cpu_traits(recording.initial.model).sixteen_bit) {
    width_ = NameWidth::bits16;
  }
}

std::string SliceReport::digits(std::uint64_t number) const {
  return fmt::format("{:0{}x}", number, address_digits_);
}

std::string SliceReport::symbol_text(LinearAddr at) const {
  const auto found = symbols_.find(at);
  return found ? place_name(*found) : "";
}

std::string SliceReport::memory_text(const SliceMemory& memory) const {
  const std::uint64_t shown =
      memory.linear == LinearAddr{} ? shown_number(memory.physical) : memory.linear.value;
  return fmt::format("{}[{}]:{}", memory.linear == LinearAddr{} ? "physical" : "", digits(shown),
                     memory.size);
}

std::vector<std::string> SliceReport::names(const PlaceSet& places,
                                            const std::vector<SliceMemory>& memory) const {
  std::vector<std::string> all = place_names(places, width_);
  for (const SliceMemory& m : memory) all.push_back(memory_text(m));
  return all;
}

std::string SliceReport::step_text(const SliceStep& step) const {
  if (step.kind == SliceStep::Kind::delivery) {
    return fmt::format("{} {:02x}h", delivery_name(step.event.kind), step.event.vector);
  }
  return Disassembler(step.bits).text(step.code, step.linear.value);
}

Json SliceReport::step_json(const SliceStep& step) const {
  Json json{{"position", position_text(step.position)},
            {"address", fmt::format("0x{}", digits(step.linear.value))},
            {"text", step_text(step)},
            {"reads", names(step.reads, step.loads)},
            {"writes", names(step.writes, step.stores)},
            {"way", slice_way_name(step.way)}};
  const std::string symbol = symbol_text(step.linear);
  if (!symbol.empty()) json["symbol"] = symbol;
  Json used = Json::array();
  bool result = false;
  for (const std::size_t n : step.used_by) {
    if (n == SliceStep::kResult) {
      result = true;
    } else {
      used.push_back(n);
    }
  }
  json["used_by"] = std::move(used);
  if (result) json["result"] = true;
  if (step.undefined.any()) json["undefined"] = place_names(step.undefined, width_);
  if (step.approximate) json["approximate"] = true;
  return json;
}

Json SliceReport::input_json(const SliceInput& input) const {
  const bool memory =
      input.kind != SliceInput::Kind::port && input.kind != SliceInput::Kind::interrupt &&
      input.kind != SliceInput::Kind::exception && input.kind != SliceInput::Kind::reg;
  Json json{{"kind", slice_input_name(input.kind)}};
  if (input.kind == SliceInput::Kind::reg) {
    json["address"] = nullptr;
  } else if (memory) {
    json["address"] = fmt::format("0x{}", digits(shown_number(input.address)));
  } else {
    json["address"] = fmt::format("{:#x}", input.address.value);
  }
  json["transaction"] = input.transaction ? Json(*input.transaction) : Json(nullptr);
  if (input.size != 0) json["size"] = input.size;
  json["way"] = slice_way_name(input.way);
  if (!input.name.empty()) json["name"] = input.name;
  if (input.value) json["value"] = fmt::format("{:#x}", *input.value);
  if (input.position) json["position"] = position_text(*input.position);
  if (input.writer) {
    const auto& at = input.writer->position;
    const auto& transaction = input.writer->transaction;
    json["writer"] = {{"processor", input.writer->processor},
                      {"position", at ? Json(position_text(*at)) : Json(nullptr)},
                      {"transaction", transaction ? Json(*transaction) : Json(nullptr)}};
  }
  return json;
}

Json SliceReport::json() const {
  Json json{{"position", position_text(query_.at)}, {"complete", slice_.complete}};
  Json steps = Json::array(), inputs = Json::array();
  for (const SliceStep& step : slice_.steps) steps.push_back(step_json(step));
  for (const SliceInput& input : slice_.inputs) inputs.push_back(input_json(input));
  json["steps"] = std::move(steps);
  json["inputs"] = std::move(inputs);
  if (!slice_.complete) {
    json["reached"] = position_text(slice_.reached);
    json["open"] = names(slice_.open_places, slice_.open_memory);
  }
  json["remarks"] = remarks();
  return json;
}

std::string SliceReport::input_text(const SliceInput& input) const {
  std::string text = fmt::format("{:<10}", slice_input_name(input.kind));
  switch (input.kind) {
    case SliceInput::Kind::reg:
      text += input.name + " at the start";
      break;
    case SliceInput::Kind::port:
      text += fmt::format("{:04x}h read {:0{}x}", input.address.value, input.value.value_or(0),
                          2 * input.size);
      break;
    case SliceInput::Kind::interrupt:
    case SliceInput::Kind::exception:
      text += fmt::format("{:02x}h", input.address.value);
      break;
    case SliceInput::Kind::clock:
      text += input.name;
      break;
    default:
      text += fmt::format("physical {}, {}", digits(shown_number(input.address)),
                          bytes_text(input.size));
  }
  if (input.position) text += " at " + position_text(*input.position);
  if (input.transaction) text += fmt::format(", transaction {}", *input.transaction);
  if (const auto& writer = input.writer) {
    text += fmt::format(", written by processor {}", writer->processor);
    if (writer->position) {
      text += fmt::format(" {} {}:{}", writer->is_store ? "at" : "up to", writer->processor,
                          position_text(*writer->position));
    }
    if (writer->transaction) text += fmt::format(", its transaction {}", *writer->transaction);
  }
  if (input.way != SliceWay::value) text += fmt::format(" ({})", slice_way_name(input.way));
  return text;
}

/// The first of them, each with the step that leaves it.
std::string SliceReport::undefined_flags() const {
  constexpr std::size_t kMost = 8;
  std::size_t count = 0;
  std::string text;
  for (const SliceStep& step : slice_.steps) {
    if (step.undefined.none() || count++ >= kMost) continue;
    text += fmt::format("{}{} at {}", text.empty() ? "" : ", ",
                        joined(place_names(step.undefined, width_)), position_text(step.position));
  }
  if (count > kMost) text += fmt::format(" and {} more", count - kMost);
  return text;
}

/// Says in words what is not known about the stores of other processors.
std::string SliceReport::unknown_writers() const {
  switch (slice_.writers) {
    case Slice::Writers::known:
      return "";
    case Slice::Writers::no_evidence:
      return "which processor wrote what came from outside is not known: the archive holds digests "
             "in place of the evidence; where another processor stored the value that was there "
             "before, an older origin is named";
    case Slice::Writers::no_order:
      return "the evidence does not show in which order the processors stored: where another "
             "processor stored the value that was there before, an older origin is named";
    case Slice::Writers::cut_short:
      return "the replay of all processors together ended early: what another processor stored "
             "after that is not known (citcat verify)";
  }
  return "";
}

/// What was left out, in words.
std::vector<std::string> SliceReport::remarks() const {
  std::vector<std::string> all;
  if (!slice_.complete) {
    std::uint64_t bytes = 0;
    for (const SliceMemory& m : slice_.open_memory) bytes += m.size;
    const std::vector<std::string> open = place_names(slice_.open_places, width_);
    all.push_back(
        fmt::format("ended after {} steps (--limit), at {}; not followed any further: {}{}{}",
                    slice_.steps.size(), position_text(slice_.reached), joined(open),
                    open.empty() || bytes == 0 ? "" : " and ",
                    bytes == 0 ? std::string() : bytes_text(bytes) + " of memory"));
  }
  if (!query_.addresses)
    all.emplace_back("what addresses were made of was not followed (--values)");
  if (query_.addresses && slice_.stack_pointer_given != 0) {
    all.emplace_back(
        "the stack pointer was taken as given where it is an address (--stack-pointer follows it)");
  }
  if (!query_.control) all.emplace_back("branches were taken as given (--control follows them)");
  if (std::any_of(slice_.steps.begin(), slice_.steps.end(),
                  [](const SliceStep& s) { return s.approximate; })) {
    all.emplace_back(
        "steps marked ~ are of instructions that are not known in detail: everything they read "
        "may count");
  }
  const std::string undefined = undefined_flags();
  if (!undefined.empty()) {
    all.push_back("flags that the manuals leave undefined have the values that the replay gives: " +
                  undefined);
  }
  if (slice_.exceptions_given != 0) {
    all.push_back(
        fmt::format("it was taken as given that {} {} raised: the cause of a fault is not followed",
                    slice_.exceptions_given,
                    slice_.exceptions_given == 1 ? "exception was" : "exceptions were"));
  }
  const std::string writers = unknown_writers();
  if (!writers.empty()) all.push_back(writers);
  all.emplace_back("page tables, and descriptors of protected mode, are taken as given");
  return all;
}

std::vector<std::string> SliceReport::lines() const {
  std::vector<std::string> all;
  for (const SliceStep& step : slice_.steps) {
    const std::string symbol = symbol_text(step.linear);
    const char mark = step.approximate                ? '~'
                      : step.way == SliceWay::address ? 'a'
                      : step.way == SliceWay::control ? 'c'
                                                      : ' ';
    all.push_back(fmt::format(
        "{:>12} {} {} {:<40} {} <- {}{}", position_text(step.position), mark,
        digits(step.linear.value), step_text(step), joined(names(step.writes, step.stores)),
        joined(names(step.reads, step.loads)), symbol.empty() ? "" : "  ; " + symbol));
  }
  std::size_t code = 0;
  for (const SliceInput& input : slice_.inputs) {
    if (input.kind == SliceInput::Kind::code) {
      ++code;
    } else {
      all.push_back("input: " + input_text(input));
    }
  }
  if (code != 0) {
    all.push_back(fmt::format("input: code      {} instructions, those of the steps", code));
  }
  for (const std::string& remark : remarks()) all.push_back("note: " + remark);
  return all;
}

}  // namespace citcat
