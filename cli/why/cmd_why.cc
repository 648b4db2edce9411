// citcat why: where a value comes from.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/machine/processor_argument.h"
#include "cli/parsing/replay_options.h"
#include "cli/placed_recording.h"
#include "cli/why/other_writers.h"
#include "cli/why/slice_report.h"
#include "events/machine/cpu_traits.h"
#include "events/position_text.h"
#include "formats/io/error.h"
#include "replay/slice/slicer.h"
#include "tools/guest/recording_symbols.h"
#include "x86/flow/value_places.h"

namespace citcat {
namespace {

struct WhyArguments {
  ProcessorArgument processor;
  std::string recording, at = "end", hints;
  std::vector<std::string> registers, flags, memory, symbols;
  bool control = false, values = false, stack_pointer = false, physical = false, json = false;
  std::uint64_t limit = 1000;
};

void add_register(const std::string& name, const char* option, bool flag, SliceQuery& query) {
  const auto range = places_named(name);
  const bool is_flag = range && range->first >= place::kFlags && range->count <= 2 &&
                       range->first < place::kSegments;
  if (!range || (flag && !is_flag)) {
    throw UsageError(fmt::format(
        "{} {}: expected the name of a {}, found '{}'", option, name,
        flag ? "flag such as cf or zf" : "register such as eax, al, r8, xmm0, st0 or eflags",
        name));
  }
  const bool mmx = name.starts_with("mm");
  for (unsigned i = 0; i < range->count; ++i) {
    (mmx ? query.mmx : query.places).set(range->first + i);
  }
}

/// Whether the processor has the register of this name, which places_named() knows.
bool has_register(const CpuTraits& traits, const std::string& name) {
  const auto range = places_named(name);
  const bool is_general = range && range->first < place::kGprs + 8 * 16;
  if (is_general && name.front() == 'r') return traits.has_long_mode;
  if (is_general && name.front() == 'e') return !traits.sixteen_bit;
  if (name == "fs" || name == "gs") return !traits.sixteen_bit;
  if (name.starts_with("mm")) return traits.instructions >= InstructionSet::pentium;
  if (name.starts_with("xmm")) return traits.instructions >= InstructionSet::p6;
  return true;
}

/// Throws UsageError for a register that the recorded processor does not have: what is explained
/// under its name would be another's value.
void require_registers(const std::vector<std::string>& names, CpuModel model) {
  if (!is_known(model)) return;
  const CpuTraits& traits = cpu_traits(model);
  for (const std::string& name : names) {
    if (!has_register(traits, name)) {
      throw UsageError(fmt::format("--register {}: the recorded {} has no such register", name,
                                   cpu_model_name(model)));
    }
  }
}

/// A[:LEN], A hexadecimal.
void add_memory(const std::string& text, bool physical, SliceQuery& query) {
  constexpr std::uint32_t kMost = 1u << 20;
  const auto fail = [&] {
    throw UsageError(
        "--memory " + text +
        ": expected A or A:LEN, an address in hexadecimal and bytes from 1 to 1048576");
  };
  const std::size_t colon = text.find(':');
  const std::string address = text.substr(0, colon);
  SliceQuery::Bytes bytes;
  try {
    std::size_t end = 0;
    bytes.linear = LinearAddr{std::stoull(address, &end, 16)};
    if (physical) bytes.physical = PhysAddr{bytes.linear.value};
    if (end != address.size()) fail();
    if (colon != std::string::npos) {
      const std::string size = text.substr(colon + 1);
      const unsigned long long value = std::stoull(size, &end, 10);
      if (end != size.size() || value == 0 || value > kMost) fail();
      bytes.size = static_cast<std::uint32_t>(value);
    }
  } catch (const std::logic_error&) {
    fail();
  }
  query.memory.push_back(bytes);
}

SliceQuery query_of(const WhyArguments& arguments) {
  SliceQuery query;
  for (const std::string& name : arguments.registers) {
    add_register(name, "--register", false, query);
  }
  for (const std::string& name : arguments.flags) add_register(name, "--flag", true, query);
  for (const std::string& text : arguments.memory) add_memory(text, arguments.physical, query);
  if (query.places.none() && query.mmx.none() && query.memory.empty()) {
    throw UsageError("name the value to explain: --register, --flag or --memory");
  }
  if (arguments.values && arguments.stack_pointer) {
    throw UsageError("--values and --stack-pointer exclude each other");
  }
  query.addresses = !arguments.values;
  query.stack_pointer = arguments.stack_pointer;
  query.control = arguments.control;
  query.limit = arguments.limit;
  return query;
}

/// The end of a run is known once one has been there.
Position end_of(Slicer& slicer) {
  slicer.timeline().seek({~std::uint64_t{0}, 0});
  return slicer.timeline().position();
}

/// Within a REP there is a moment after each iteration, and elsewhere none.
void require_iteration(Slicer& slicer, Position at) {
  if (at.iteration == 0) return;
  slicer.timeline().seek(at);
  if (slicer.timeline().position() == at) return;
  throw UsageError(fmt::format("--at {}+{}: instruction {} does not come to this iteration",
                               at.instruction, at.iteration, at.instruction));
}

ExitCode run_why(WhyArguments arguments, const Console& console) {
  arguments.processor.take_from(arguments.at);
  arguments.recording = arguments.processor.name(arguments.recording);
  SliceQuery query = query_of(arguments);
  const auto at = parse_position(arguments.at);
  if (arguments.at != "end" && !at) {
    throw UsageError("--at: expected a position N or N+K, or end, found '" + arguments.at + "'");
  }
  const PlacedRecording placed = open_placed(arguments.recording, console, arguments.hints);
  require_registers(arguments.registers, placed.file.recording().initial.model);
  const Symbols symbols = tools::known_symbols(placed.file, arguments.symbols);
  TimelineOptions options;
  options.progress = [](Position) { check_interrupt(); };
  OtherWriters others(arguments.recording);
  Slicer slicer(placed.file, std::move(options), others.reads());
  query.at = at ? *at : end_of(slicer);
  require_iteration(slicer, query.at);
  Slice slice = slicer.slice(query);
  others.name(slice);
  const SliceReport report(query, slice, placed.file.recording(), symbols);
  if (arguments.json) {
    console.print_json(report.json());
  } else {
    for (const std::string& line : report.lines()) console.print_line(line);
  }
  return ExitCode::ok;
}

CommandRun define_why(const CommandParser& parser) {
  auto arguments = std::make_shared<WhyArguments>();
  parser.add_option("RECORDING", arguments->recording, "Recording to look into").required();
  parser
      .add_option("--at", arguments->at,
                  "The moment: N, when N instructions have completed; N+K within a REP; or end")
      .show_default();
  arguments->processor.define(parser);
  parser
      .add_option("--register", arguments->registers,
                  "A register or a part of one: eax, al, r8d, xmm0, st0, ds, eflags ...; may be "
                  "repeated")
      .repeated();
  parser
      .add_option("--flag", arguments->flags,
                  "A flag: cf, pf, af, zf, sf, df, of ...; may be repeated")
      .repeated();
  parser
      .add_option("--memory", arguments->memory,
                  "Memory at A, or A:LEN: a hexadecimal address, and a number of bytes; may be "
                  "repeated")
      .repeated();
  parser.add_flag("--physical", arguments->physical, "Addresses given with --memory are physical");
  parser.add_flag(
      "--control", arguments->control,
      "Follow the branches that led to each step, too, in its procedure and its callers");
  parser.add_flag(
      "--values", arguments->values,
      "Follow only what the value was made of, not the addresses that it was read from");
  parser.add_flag("--stack-pointer", arguments->stack_pointer,
                  "Follow the stack pointer, too, even where it is only an address");
  parser
      .add_option(
          "--limit", arguments->limit,
          "Largest number of steps to print; the output names what it leaves out. 0: no limit")
      .show_default();
  define_symbols(parser, arguments->symbols);
  define_hints(parser, arguments->hints);
  parser.add_flag("--json", arguments->json, "Print one line of JSON");
  return [arguments](const Console& console) { return run_why(*arguments, console); };
}

}  // namespace

extern const Command kWhyCommand{
    "why", "Find where the value of a register, flag or memory comes from",
    "citcat why boot.citcat --at 120000 --register eax\n"
    "citcat why boot.citcat --at 120000 --memory c0100010:4 --control\n"
    "citcat why boot.citcat --at end --flag zf --values --json",
    define_why};

}  // namespace citcat
