// moments: the run instruction by instruction where it is of interest: at its beginning, at its
// end, around events of every kind; and the events with their places (docs/tools/moments.md).

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "replay/trace/kt_sink.h"
#include "tools/analyses/instruction_table.h"
#include "tools/host/names.h"
#include "tools/report/kept_moments.h"

namespace citcat::tools {
namespace {

/// Events are chosen among those of their kind.
enum Kind : std::size_t {
  kInterrupt,
  kException,
  kSystemCallMoment,
  kPort,
  kExternalWrite,
  kSwitch,
  kHalt,
  kDroppedTranslation,
  kMomentKinds,
};
constexpr std::array<const char*, kMomentKinds> kKindNames{
    "interrupt",      "exception", "system call", "port",
    "external write", "switch",    "halt",        "dropped translation"};

struct MomentsOptions {
  std::size_t edge = 0, around = 0, events = 0, places = 0;
};

class MomentsTool final : public Tool {
 public:
  MomentsTool(const MomentsOptions& options, const Setup& setup)
      : options_(options), setup_(setup), kept_(options.edge, options.around) {
    for (std::size_t k = 0; k < kMomentKinds; ++k) {
      kinds_.push_back({EvenChoice(options.events), EvenChoice(options.places), {}});
    }
  }

  Wants wants() const override {
    const bool passes = options_.around <= Interest::kMostTrail;
    return {.executions = true,
            .events = true,
            .passes = passes,
            .trail = passes ? static_cast<std::uint32_t>(options_.around) : 0};
  }
  void passed(std::uint64_t first, std::uint64_t end, const Context&) override {
    kept_.skipped(end - first);
  }
  /// The beginning, what follows an event, and the end.
  std::uint64_t needs(std::uint64_t instruction) const override {
    if (kept_.goes_on()) return instruction;
    std::uint64_t end = setup_.to;
    if (setup_.recording != nullptr && setup_.recording->instructions) {
      end = std::min(end, *setup_.recording->instructions);
    }
    return end - std::min<std::uint64_t>(end, options_.edge);
  }
  void run(void*, const Execution& execution, const Context&) override { kept_.told(execution); }
  void event(const MachineEvent& event, const Context&) override;

  std::unique_ptr<Tool> part() const override {
    return std::make_unique<MomentsTool>(options_, setup_);
  }
  void follow(Tool&&) override {}
  void save(ByteWriter&) const override {}
  void load(ByteReader&) override {}
  void report(Report& out) const override;

 private:
  struct Listed {
    std::uint64_t ordinal = 0;
    Position position;
    std::string text;
  };
  struct KindState {
    EvenChoice listed, places;
    std::vector<Listed> events;
  };
  /// Different ones of which the first has its place kept.
  static constexpr std::size_t kMostFirsts = 64;

  void happened(Kind kind, std::uint32_t which, Position position, const std::string& text);
  void report_events(Report& out) const;
  static void report_stretches(const std::vector<KeptStretch>& stretches, Report& out);

  MomentsOptions options_;
  Setup setup_;
  KeptMoments kept_;
  std::vector<KindState> kinds_;
  std::set<std::pair<Kind, std::uint32_t>> firsts_;
};

KtNote note_at(KtNote::Kind kind, Position at) {
  KtNote note;
  note.kind = kind;
  note.place = {at.instruction, at.iteration, 0};
  return note;
}

Kind kind_of(DeliveredEvent::Kind kind) {
  switch (kind) {
    case DeliveredEvent::Kind::exception:
      return kException;
    case DeliveredEvent::Kind::software:
      return kSystemCallMoment;
    default:
      return kInterrupt;
  }
}

/// As a trace notes it (docs/formats/kt.md, "Notes"); nullopt: it does not.
std::optional<KtNote> note_of(const MachineEvent& event) {
  const auto at = [&](KtNote::Kind kind, std::uint64_t where, std::uint64_t value) {
    KtNote note = note_at(kind, event.position);
    note.where = where;
    note.size = event.size;
    note.value = static_cast<std::uint32_t>(value);
    return note;
  };
  switch (event.kind) {
    case MachineEvent::Kind::delivered:
      return at(note_kind(event.delivery.kind), event.delivery.vector, event.delivery.error_code);
    case MachineEvent::Kind::port_read:
      return at(KtNote::Kind::port_read, event.port, event.value);
    case MachineEvent::Kind::port_write:
      return at(KtNote::Kind::port_write, event.port, event.value);
    case MachineEvent::Kind::external_write:
      return at(KtNote::Kind::external_write, event.physical.value, 0);
    case MachineEvent::Kind::halted:
      return at(KtNote::Kind::halted, 0, 0);
    case MachineEvent::Kind::shutdown:
      return at(KtNote::Kind::shutdown, 0, 0);
    case MachineEvent::Kind::translation_dropped:
      return at(KtNote::Kind::translation_dropped, event.linear.page(), 0);
    default:
      return std::nullopt;
  }
}

void MomentsTool::happened(Kind kind, std::uint32_t which, Position position,
                           const std::string& text) {
  KindState& state = kinds_[kind];
  const std::uint64_t ordinal = state.listed.count();
  const std::uint64_t stride = state.listed.stride();
  const bool listed = state.listed.next();
  if (state.listed.stride() != stride) {
    std::erase_if(state.events,
                  [&](const Listed& e) { return e.ordinal % state.listed.stride() != 0; });
  }
  if (listed) state.events.push_back({ordinal, position, text});

  const std::uint64_t place_stride = state.places.stride();
  const bool chosen = state.places.next();
  const bool first = firsts_.size() < kMostFirsts && firsts_.insert({kind, which}).second;
  if (chosen || first) kept_.keep({text, kind, ordinal, first});
  if (state.places.stride() != place_stride) kept_.thin(kind, state.places.stride());
}

void MomentsTool::event(const MachineEvent& event, const Context&) {
  const std::optional<KtNote> note = note_of(event);
  if (note) kept_.told(*note);
  switch (event.kind) {
    case MachineEvent::Kind::delivered:
      return happened(kind_of(event.delivery.kind), event.delivery.vector, event.position,
                      kt_note_text(*note));
    case MachineEvent::Kind::fast_call:
      return happened(kSystemCallMoment, ~0u, event.position,
                      event.value == 1 ? "SYSCALL" : "SYSENTER");
    case MachineEvent::Kind::port_read:
    case MachineEvent::Kind::port_write:
      return happened(kPort, event.port, event.position, kt_note_text(*note));
    case MachineEvent::Kind::external_write:
      return happened(kExternalWrite, 0, event.position, kt_note_text(*note));
    case MachineEvent::Kind::address_space:
      if (event.before == event.value) return;
      return happened(
          kSwitch, 0, event.position,
          "switch to " + (setup_.names != nullptr ? setup_.names->process_of(event.value)
                                                  : hexadecimal(event.value)));
    case MachineEvent::Kind::halted:
    case MachineEvent::Kind::shutdown:
      return happened(kHalt, 0, event.position, kt_note_text(*note));
    case MachineEvent::Kind::translation_dropped:
      return happened(kDroppedTranslation, 0, event.position, kt_note_text(*note));
    default:
      return;
  }
}

void MomentsTool::report_events(Report& out) const {
  Table& kinds =
      out.table("kinds", "Events by kind, and how many of them one listed event stands for",
                {{"kind", "kind", ""}, {"count", "count", ""}, {"every", "every", ""}});
  for (std::size_t k = 0; k < kMomentKinds; ++k) {
    if (k == kDroppedTranslation && kinds_[k].listed.count() == 0) continue;
    kinds.row({std::string(kKindNames[k]), kinds_[k].listed.count(), kinds_[k].listed.stride()});
  }
  Table& table = out.table("events", "Events",
                           {{"kind", "kind", ""},
                            {"instruction", "instruction", ""},
                            {"iteration", "iteration", ""},
                            {"text", "event", ""}});
  for (std::size_t k = 0; k < kMomentKinds; ++k) {
    for (const Listed& e : kinds_[k].events) {
      table.row({std::string(kKindNames[k]), e.position.instruction,
                 std::uint64_t{e.position.iteration}, e.text});
    }
  }
}

std::string addresses_text(const ToldRecord& record) {
  std::string text;
  for (unsigned a = 0; a < record.address_count; ++a) {
    text += (text.empty() ? "" : " ") + hexadecimal(record.addresses[a].value);
  }
  return text;
}

void MomentsTool::report_stretches(const std::vector<KeptStretch>& stretches, Report& out) {
  Table& pieces = out.table(
      "stretches", "Stretches that were kept; records count from 0",
      {{"first", "first record", ""}, {"records", "records", ""}, {"why", "because of", ""}});
  Table& records =
      out.table("records", "Instructions by their number in the list of code, and events",
                {{"instruction", "instruction", ""},
                 {"iteration", "iteration", ""},
                 {"code", "code", ""},
                 {"addresses", "addresses", ""},
                 {"iterations", "iterations reported together", ""},
                 {"step", "bytes from one to the next", "bytes"},
                 {"event", "event", ""}});
  std::map<InstructionKey, std::uint64_t> numbers;
  std::vector<InstructionKey> code;
  for (const KeptStretch& stretch : stretches) {
    std::string why;
    std::string last;
    for (const MomentReason& reason : stretch.reasons) {
      if (reason.text != last) why += (why.empty() ? "" : ", ") + reason.text;
      last = reason.text;
    }
    pieces.row({std::uint64_t{records.rows.size()}, std::uint64_t{stretch.records.size()}, why});
    for (const ToldRecord& r : stretch.records) {
      Cell number = std::string();
      if (r.code != nullptr) {
        const InstructionKey key = InstructionKey::of(*r.code);
        const auto [at, added] = numbers.try_emplace(key, std::uint64_t{code.size()});
        if (added) code.push_back(key);
        number = at->second;
      }
      records.row({r.position.instruction, std::uint64_t{r.position.iteration}, std::move(number),
                   addresses_text(r), std::uint64_t{r.iterations}, std::uint64_t{r.step},
                   r.code == nullptr ? kt_note_text(r.event) : std::string()});
    }
  }
  Table& table =
      out.table("code", "Their code",
                {{"address", "address", ""}, {"bytes", "bytes", ""}, {"text", "text", ""}});
  for (const InstructionKey& key : code) {
    table.row({hexadecimal(key.linear.value), key.bytes_text(), key.text()});
  }
}

void MomentsTool::report(Report& out) const {
  report_events(out);
  report_stretches(kept_.all(), out);
}

std::unique_ptr<Tool> make_moments(ToolOptions& options, const Setup& setup) {
  MomentsOptions moments;
  moments.edge = options.number("edge", 256, 0, 1u << 20);
  moments.around = options.number("around", 24, 0, 1u << 16);
  moments.events = options.number("events", 400, 1, 1u << 20);
  moments.places = options.number("places", 12, 1, 1u << 16);
  return std::make_unique<MomentsTool>(moments, setup);
}

}  // namespace

extern const ToolRow kMomentsTool{
    "moments",
    "Show the run instruction by instruction at its ends and around events",
    "edge=N    instructions at both ends (256)\n"
    "around=N  instructions on both sides of an event (24)\n"
    "events=N  list at most about N events of each kind (400)\n"
    "places=N  show the instructions around at most about N events of each kind (12)\n",
    "citcat analyze boot.citcat --tool moments:around=100 --json",
    ToolRow::Merging::serial,
    make_moments};

}  // namespace citcat::tools
