#pragma once
// Addresses, bytes and instructions as answers have them.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "view/model/run_view.h"

namespace citcat::view {

/// As many digits as the processor's linear addresses have, at least eight from the 386 on.
std::string linear_text(const RunView& view, LinearAddr at);
/// The machine's own physical address.
std::string physical_text(const RunView& view, PhysAddr at);
/// Up to eight bytes as one number; more bytes one by one, in the order of addresses.
std::string value_text(std::span<const std::uint8_t> bytes);
std::string bytes_text(std::span<const std::uint8_t> bytes);
/// The text of bytes that are no instruction.
inline constexpr const char* kBadCode = "(bad)";
/// The instruction that is at `at` at this moment.
struct CodeHere {
  std::vector<std::uint8_t> bytes;  ///< empty if it is not known what lies there
  std::string text;                 ///< "not known" then
  DecodedInstruction info;
};
CodeHere code_at(const Machine& machine, LinearAddr at);
inline CodeHere code_at(const RunView& view, LinearAddr at) { return code_at(view.machine(), at); }
/// Why an answer is missing, or a part of it.
inline constexpr const char* kSearchTookTooLong = "the search took too long";
/// "interrupt 30h", "halted": what a step ended with.
std::string event_text(const StepEvent& event);
/// What the step from where the run is ends with, as event_text() has it, one text for each.
std::vector<std::string> step_events(RunView& view);
/// The instruction of a step that did not complete faulted; an interrupt may have come before it.
bool is_fault(const RecordedStep& step);
/// Why nothing goes on where the run is; empty where something may.
std::string ending_text(RunView& view);
/// What is the same in the answers about any moment: {"moment", "position", "address", "place"}.
Json here(RunView& view);

/// Makes texts such as a page may show them: marks for the direction of writing work in a browser,
/// too. Characters in `kept` stay.
void make_printable(Json& json, std::string_view kept = "");

}  // namespace citcat::view
