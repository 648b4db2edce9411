#include "acceptance/fault_injection.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "replay/diagnose/explanation.h"
#include "replay/session/replayer.h"
#include "replay/verify/verifier.h"
#include "unit/capture/machine_data.h"

namespace citcat::test {
namespace {

/// A capture held in memory.
class StoredCapture final : public CaptureReader {
 public:
  using Inserted = std::optional<std::pair<std::size_t, BusTransaction>>;
  using LeftOut = std::optional<std::pair<std::size_t, std::size_t>>;
  StoredCapture(const CaptureInfo& info, const std::vector<BusTransaction>& transactions,
                LeftOut left_out, Inserted inserted)
      : info_(info), transactions_(transactions), left_out_(left_out), inserted_(inserted) {}
  const CaptureInfo& info() const override { return info_; }
  bool next(BusTransaction& out) override {
    if (left_out_ && at_ == left_out_->first) at_ = left_out_->second;
    if (at_ >= transactions_.size()) return false;
    if (inserted_ && at_ == inserted_->first && shift_ == 0) {
      shift_ = 1;
      out = inserted_->second;
      return true;
    }
    out = transactions_[at_++];
    out.index += shift_;
    return true;
  }

 private:
  const CaptureInfo& info_;
  const std::vector<BusTransaction>& transactions_;
  LeftOut left_out_;
  Inserted inserted_;
  std::size_t at_ = 0;
  std::uint64_t shift_ = 0;
};

class Collector final : public EvidenceWriter {
 public:
  explicit Collector(std::vector<BusTransaction>& out) : out_(out) {}
  void write(const BusTransaction& transaction) override { out_.push_back(transaction); }

 private:
  std::vector<BusTransaction>& out_;
};

/// Everything the run did, as one number (FNV-1a over its parts).
class StreamHash final : public Observer {
 public:
  void instruction(const ExecutedInstruction& e, Position now) override {
    add(now.instruction);
    add(e.linear.value);
    for (unsigned i = 0; i < e.ea_count; ++i) add(e.ea[i].low32());
    for (std::size_t i = 0; i < e.info->length; ++i) add(e.info->bytes[i]);
  }
  void write(PhysAddr a, std::span<const std::uint8_t> bytes, AccessKind, Position) override {
    add(a.value);
    for (const std::uint8_t byte : bytes) add(byte);
  }
  std::uint64_t value() const { return hash_; }

 private:
  void add(std::uint64_t v) { hash_ = (hash_ ^ v) * 0x100000001b3; }
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

template <class T>
T below(std::mt19937& random, T limit) {
  return static_cast<T>(std::uniform_int_distribution<std::uint64_t>(
      0, static_cast<std::uint64_t>(limit) - 1)(random));
}

bool same_registers(const CpuState& a, const CpuState& b) {
  return a.gpr == b.gpr && a.eip == b.eip && a.eflags == b.eflags && a.segment == b.segment &&
         a.ldtr == b.ldtr && a.tr == b.tr && a.gdtr == b.gdtr && a.idtr == b.idtr &&
         a.cr0 == b.cr0 && a.cr2 == b.cr2 && a.cr3 == b.cr3 && a.cr4 == b.cr4 && a.dr == b.dr &&
         a.fx == b.fx;
}

}  // namespace

std::string_view fault_name(FaultKind kind) {
  constexpr std::array<std::string_view, kFaultKinds> kNames{
      "bit of a read",     "bit of a port read",
      "bit of a write",    "missing write",
      "missing interrupt", "bit of a vector",
      "shifted interrupt", "missing external write",
      "bit of a register", "bit of an internal value",
      "extra interrupt",   "extra write",
      "byte of a read",    "value of a port read",
      "byte of a write",   "value of a register",
      "mistyped register", "exchanged registers",
      "cut samples",       "late start",
      "early start",       "transfer twice",
      "swapped writes",    "bit of a code read"};
  return kNames[static_cast<std::size_t>(kind)];
}

FaultInjector::FaultInjector(const std::vector<std::string>& paths, ImportOptions options)
    : options_(std::move(options)) {
  const auto capture = open_capture(paths, options_.capture);
  BusTransaction t;
  while (capture->next(t)) transactions_.push_back(t);
  info_ = capture->info();
  const ImportedRecording imported = import();
  interrupts_ = imported.recording.interrupts;
  const std::uint64_t first = imported.evidence.front().index;
  positions_.resize(transactions_.size());
  std::size_t at = 0;
  for (const BusTransaction& e : imported.evidence) {
    while (transactions_[at].index < e.index) ++at;
    if (e.index == first) first_ = at;
    positions_[at] = e.has(kPositionKnown) ? e.position.instruction
                     : at == 0             ? 0
                                           : positions_[at - 1];
  }
  const FaultOutcome outcome = replay(imported, {}, true);
  if (outcome.result != FaultOutcome::Result::no_effect) throw std::runtime_error(outcome.text);
}

ImportedRecording FaultInjector::import() const {
  StoredCapture capture(info_, transactions_, left_out_, inserted_);
  ImportedRecording imported;
  Collector collector(imported.evidence);
  imported.recording = import_from(capture, options_, &collector);
  return imported;
}

std::optional<std::size_t> FaultInjector::pick(std::mt19937& random, BusOp op, BusOp other) const {
  std::vector<std::size_t> candidates;
  // An interrupt that the recording begins with cannot be missing: it would begin with the next.
  const bool begins = op == BusOp::interrupt_acknowledge && options_.start &&
                      options_.start->kind == Where::Kind::interrupt;
  for (std::size_t i = first_ + (begins ? 1 : 0); i < transactions_.size(); ++i) {
    const BusTransaction& t = transactions_[i];
    if ((t.op == op || t.op == other) && !t.has(kStateWindow)) candidates.push_back(i);
  }
  if (candidates.empty()) return std::nullopt;
  return candidates[below(random, candidates.size())];
}

/// One of these once more, before a transaction anywhere.
std::optional<FaultInjector::Fault> FaultInjector::insert_copy(BusOp op, std::mt19937& random) {
  const std::optional<std::size_t> from = pick(random, op, op);
  if (!from) return std::nullopt;
  const std::size_t to = first_ + 1 + below(random, transactions_.size() - first_ - 1);
  BusTransaction copy = transactions_[*from];
  copy.index = transactions_[to].index;
  copy.clock = transactions_[to].clock;
  copy.position = transactions_[to].position;
  inserted_ = {to, copy};
  Fault fault{positions_[to], fmt::format("{} at {:08x} once more as transaction {}",
                                          bus_op_name(op), copy.address.value, copy.index)};
  fault.transaction = copy.index;
  return fault;
}

/// A stretch anywhere, or right behind the state, is not in the capture.
std::optional<FaultInjector::Fault> FaultInjector::cut(FaultKind kind, std::mt19937& random) {
  constexpr std::size_t kMaxCut = 200, kMaxLate = 40;
  const bool late = kind == FaultKind::start_late;
  // An interrupt that the recording begins with is what it is found by.
  if (late && options_.start) return std::nullopt;
  const std::size_t count = (late ? 1 : 2) + below(random, late ? kMaxLate : kMaxCut - 1);
  const std::size_t last = transactions_.size() - first_ - count;
  const std::size_t begin = late ? first_ : first_ + 1 + below(random, last - 1);
  left_out_ = {begin, begin + count};
  Fault fault{positions_[begin],
              fmt::format("transactions {} to {} left out", transactions_[begin].index,
                          transactions_[begin + count - 1].index)};
  fault.transaction = transactions_[begin].index;
  fault.size = static_cast<std::uint32_t>(count);
  return fault;
}

std::optional<FaultInjector::Fault> FaultInjector::begin_early(std::mt19937& random) {
  constexpr std::size_t kMax = 40;
  if (!options_.start || first_ <= kMax) return std::nullopt;
  const std::size_t at = first_ - 1 - below(random, kMax);
  start_ = std::exchange(options_.start, Where{Where::Kind::transaction, transactions_[at].index});
  Fault fault{0, fmt::format("begun at transaction {}, not {}", transactions_[at].index,
                             transactions_[first_].index)};
  fault.original = transactions_[first_].index;
  return fault;
}

std::optional<FaultInjector::Fault> FaultInjector::change_register(FaultKind kind,
                                                                   std::mt19937& random,
                                                                   CpuState& state) {
  const auto& unknown = state.unknown;
  const bool narrow = cpu_traits(state.model).instructions == InstructionSet::i8088;
  std::vector<std::string> names;
  for (const char* name :
       {"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "es", "ss", "ds"}) {
    if (std::find(unknown.begin(), unknown.end(), name) == unknown.end()) names.push_back(name);
  }
  const std::string name = names[below(random, names.size())];
  const std::uint64_t value = get_register(state, name).value();
  Fault fault{0, fmt::format("{} was {:x}", name, value), name};
  fault.original = value;
  if (kind == FaultKind::registers_swapped) {
    fault.other_register = names[below(random, names.size())];
    // A segment is exchanged with another one.
    if ((name.size() == 2) != (fault.other_register.size() == 2)) return std::nullopt;
    const std::uint64_t other = get_register(state, fault.other_register).value();
    set_register(state, name, other);
    set_register(state, fault.other_register, value);
    fault.text += fmt::format(" and is exchanged with {}, {:x}", fault.other_register, other);
    return other == value ? std::nullopt : std::optional(fault);
  }
  std::uint64_t changed = narrow ? below(random, 0x10000u) : below(random, 0xffffffffu);
  if (kind == FaultKind::register_mistyped) {
    const std::uint64_t swapped_word =
        (value & ~0xffffu) | (value & 0xff) << 8 | (value >> 8 & 0xff);
    const std::array<std::uint64_t, 8> forms{
        swapped_word, narrow ? swapped_word : __builtin_bswap32(static_cast<std::uint32_t>(value)),
        value + 1,    value - 1,
        value + 2,    value << 4,
        value >> 4,   -value};
    changed = forms[below(random, forms.size())];
  }
  set_register(state, name, changed);
  const std::uint64_t now = get_register(state, name).value();
  fault.text += fmt::format(" and is {:x}", now);
  return now == value ? std::nullopt : std::optional(fault);
}

std::optional<FaultInjector::Fault> FaultInjector::change_capture(FaultKind kind,
                                                                  std::mt19937& random) {
  BusOp op = BusOp::data_read, other = BusOp::code_read;
  bool leave_out = false, any_value = false;
  switch (kind) {
    case FaultKind::read_byte:
      any_value = true;
      [[fallthrough]];
    case FaultKind::read_bit:
      break;
    case FaultKind::code_bit:
      op = other = BusOp::code_read;
      break;
    case FaultKind::port_value:
      any_value = true;
      [[fallthrough]];
    case FaultKind::port_bit:
      op = other = BusOp::io_read;
      break;
    case FaultKind::write_byte:
    case FaultKind::write_missing:
      leave_out = kind == FaultKind::write_missing;
      any_value = !leave_out;
      [[fallthrough]];
    case FaultKind::write_bit:
      op = other = BusOp::data_write;
      break;
    case FaultKind::interrupt_missing:
      leave_out = true;
      [[fallthrough]];
    case FaultKind::interrupt_vector:
      op = other = BusOp::interrupt_acknowledge;
      break;
    case FaultKind::interrupt_extra:
      return insert_copy(BusOp::interrupt_acknowledge, random);
    case FaultKind::write_extra:
      return insert_copy(BusOp::data_write, random);
    case FaultKind::samples_cut:
    case FaultKind::start_late:
      return cut(kind, random);
    case FaultKind::start_early:
      return begin_early(random);
    case FaultKind::transfer_twice:
      return repeat_transfer(random);
    case FaultKind::writes_swapped:
      return swap_writes(random);
    default:
      return std::nullopt;
  }
  const std::optional<std::size_t> at = pick(random, op, other);
  if (!at) return std::nullopt;
  BusTransaction& t = transactions_[*at];
  Fault fault{positions_[*at], fmt::format("transaction {}, {} at {:08x}", t.index,
                                           bus_op_name(t.op), t.address.value)};
  fault.transaction = t.index;
  fault.address = t.address;
  fault.size = t.size;
  fault.original = t.data[0];
  if (leave_out) {
    left_out_ = {*at, *at + 1};
    return fault;
  }
  changed_ = {*at, t};
  const std::size_t byte = below(random, std::size_t{t.size});
  if (any_value) {
    const auto wrong = static_cast<std::uint8_t>(t.data[byte] ^ (1 + below(random, 255u)));
    fault.text += fmt::format(", byte {} {:02x} is {:02x}", byte, t.data[byte], wrong);
    t.data[byte] = wrong;
    return fault;
  }
  const unsigned bit = below(random, 8u);
  t.data[byte] = static_cast<std::uint8_t>(t.data[byte] ^ 1u << bit);
  fault.text += fmt::format(", byte {} bit {}", byte, bit);
  return fault;
}

std::optional<FaultInjector::Fault> FaultInjector::change_recording(FaultKind kind,
                                                                    std::mt19937& random,
                                                                    Recording& recording) {
  switch (kind) {
    case FaultKind::interrupt_shifted: {
      if (recording.interrupts.empty()) return std::nullopt;
      Interrupt& event = recording.interrupts[below(random, recording.interrupts.size())];
      constexpr std::int64_t kMax = 20;
      std::int64_t by = 1 + below(random, kMax);
      if (below(random, 2) == 0 && event.position.instruction > kMax) by = -by;
      const std::uint64_t was = event.position.instruction;
      event.position = {static_cast<std::uint64_t>(static_cast<std::int64_t>(was) + by), 0};
      Fault fault{std::min(was, event.position.instruction),
                  fmt::format("interrupt at {} shifted by {}", was, by)};
      fault.transaction = event.transaction;
      fault.original = was;
      return fault;
    }
    case FaultKind::external_missing: {
      auto& writes = recording.external_writes;
      if (writes.empty()) return std::nullopt;
      const auto at = writes.from(below(random, writes.size()));
      Fault fault{at->position.instruction,
                  fmt::format("external write at {:08x}", at->address.value)};
      fault.address = at->address;
      fault.size = static_cast<std::uint32_t>(at->data.size());
      writes.erase(at.index());
      return fault;
    }
    case FaultKind::register_bit: {
      const auto& unknown = recording.initial.unknown;
      std::vector<std::string> names;
      for (const std::string& name : register_names(recording.initial.model)) {
        const bool known = std::find(unknown.begin(), unknown.end(), name) == unknown.end();
        // What a replay takes from elsewhere, or another processor would have to be replayed.
        if (known && name != "tsc" && name != "fx" && name != "a20_mask" && name != "dr4" &&
            name != "dr5") {
          names.push_back(name);
        }
      }
      const std::string name = names[below(random, names.size())];
      const std::uint64_t value = get_register(recording.initial, name).value();
      const bool narrow = cpu_traits(recording.initial.model).instructions == InstructionSet::i8088;
      const unsigned bit = below(random, narrow ? 16u : 32u);
      set_register(recording.initial, name, value ^ std::uint64_t{1} << bit);
      if (get_register(recording.initial, name) == value) return std::nullopt;  // no such bit
      Fault fault{0, fmt::format("{} bit {}", name, bit), name};
      fault.original = value;
      return fault;
    }
    case FaultKind::register_value:
    case FaultKind::register_mistyped:
    case FaultKind::registers_swapped:
      return change_register(kind, random, recording.initial);
    case FaultKind::internal_bit: {
      auto& reads = recording.internal_reads;
      if (reads.empty()) return std::nullopt;
      const std::size_t n = below(random, reads.size());
      InternalRead read = reads[n];
      const unsigned bit = below(random, 64u);
      if (read.op == InternalRead::Op::wrmsr || read.op == InternalRead::Op::cpuid)
        return std::nullopt;
      std::uint32_t& half = bit < 32 ? read.eax : read.edx;
      half ^= 1u << bit % 32;
      reads.replace(n, read);
      Fault fault{read.position.instruction, fmt::format("internal value {} bit {}", n, bit)};
      fault.original = n;
      return fault;
    }
    default:
      return std::nullopt;
  }
}

FaultOutcome FaultInjector::inject(FaultKind kind, std::mt19937& random, bool diagnose) {
  const bool in_recording =
      kind == FaultKind::interrupt_shifted || kind == FaultKind::external_missing ||
      kind == FaultKind::register_bit || kind == FaultKind::internal_bit ||
      kind == FaultKind::register_value || kind == FaultKind::register_mistyped ||
      kind == FaultKind::registers_swapped;
  std::optional<Fault> fault;
  if (!in_recording) fault = change_capture(kind, random);
  FaultOutcome outcome;
  try {
    if (in_recording || fault) {
      ImportedRecording imported = import();
      if (in_recording) fault = change_recording(kind, random, imported.recording);
      if (fault) {
        fault->kind = kind;
        outcome = replay(imported, *fault, false);
        if (diagnose && outcome.result == FaultOutcome::Result::noticed) {
          outcome.diagnosis = this->diagnose(imported, *fault);
        }
      }
    }
  } catch (const FormatError& e) {
    outcome.result = FaultOutcome::Result::refused;
    outcome.text = fault->text + ": " + e.what();
  } catch (...) {
    outcome.result = FaultOutcome::Result::crashed;
    outcome.text = fault->text;
  }
  if (changed_) transactions_[changed_->first] = changed_->second;
  changed_.reset();
  undo_swap();
  left_out_.reset();
  inserted_.reset();
  if (start_) options_.start = std::exchange(start_, std::nullopt);
  return outcome;
}

FaultOutcome FaultInjector::replay(const ImportedRecording& imported, const Fault& fault,
                                   bool baseline) {
  Verifier verifier(imported.recording, imported.read_evidence(), {});
  StreamHash hash;
  Listeners listeners;
  listeners.add(verifier);
  listeners.add(hash);
  ReplayOptions options;
  options.evidence = [&imported] { return imported.read_evidence(); };
  if (!baseline) options.to = baseline_.instructions + 100'000;
  Replayer replayer(imported.recording, listeners, std::move(options));
  const ReplayReport report = verifier.finish(replayer.run());
  FaultOutcome outcome;
  outcome.text = fault.text;
  if (report.end != ReplayReport::End::complete) {
    const std::uint64_t where =
        report.divergence ? report.divergence->position.instruction : report.instructions;
    outcome.result = FaultOutcome::Result::noticed;
    outcome.distance = static_cast<std::int64_t>(where) - static_cast<std::int64_t>(fault.position);
    if (report.divergence) outcome.text += ": " + report.divergence->reason;
    return outcome;
  }
  Signature found{report.instructions, hash.value(), replayer.machine().save(),
                  verifier.totals().single_bit_changes};
  if (baseline) baseline_ = found;
  // What is wrong may have stayed where it was.
  for (const std::string& name : {fault.register_name, fault.other_register}) {
    if (name.empty() || found.stream != baseline_.stream) continue;
    set_register(found.registers, name, get_register(baseline_.registers, name).value());
  }
  const bool same = found.instructions == baseline_.instructions &&
                    found.stream == baseline_.stream &&
                    same_registers(found.registers, baseline_.registers);
  outcome.result = found.single_bit_changes > baseline_.single_bit_changes
                       ? FaultOutcome::Result::suspected
                   : same ? FaultOutcome::Result::no_effect
                          : FaultOutcome::Result::latent;
  if (found.stream != baseline_.stream) outcome.text += " [stream differs]";
  return outcome;
}

bool FaultInjector::is_true_cause(const Cause& cause, const Fault& fault) const {
  const Hint hint = cause.hints.empty() ? Hint{} : cause.hints.front();
  const bool same_transaction = hint.transaction == fault.transaction;
  switch (fault.kind) {
    case FaultKind::read_bit:
    case FaultKind::read_byte:
    case FaultKind::code_bit:
      return cause.kind == CauseKind::captured_read && same_transaction;
    case FaultKind::port_bit:
    case FaultKind::port_value:
      return cause.kind == CauseKind::captured_port_read && same_transaction;
    case FaultKind::write_bit:
    case FaultKind::write_byte:
      return cause.kind == CauseKind::captured_write && same_transaction;
    case FaultKind::write_missing:
      return cause.kind == CauseKind::missing_write &&
             hint.address.is_within32(fault.address, fault.size);
    case FaultKind::interrupt_missing: {
      const auto was = std::find_if(interrupts_.begin(), interrupts_.end(), [&](const auto& i) {
        return i.transaction == fault.transaction;
      });
      return cause.kind == CauseKind::missing_interrupt && was != interrupts_.end() &&
             hint.position == was->position && hint.value == was->vector;
    }
    case FaultKind::interrupt_vector:
      return cause.kind == CauseKind::interrupt_vector && same_transaction &&
             hint.value == fault.original;
    case FaultKind::interrupt_shifted:
      return cause.kind == CauseKind::interrupt_position && same_transaction &&
             hint.position.instruction == fault.original;
    case FaultKind::external_missing:
      return cause.kind == CauseKind::external_write &&
             hint.address.is_within32(fault.address, fault.size);
    case FaultKind::register_bit:
      return cause.kind == CauseKind::initial_register && hint.name == fault.register_name &&
             hint.value == fault.original;
    case FaultKind::register_value:
    case FaultKind::register_mistyped:
    case FaultKind::registers_swapped:
      return cause.kind == CauseKind::initial_register &&
             (hint.name == fault.register_name || hint.name == fault.other_register);
    case FaultKind::samples_cut:
      return cause.kind == CauseKind::missing_transactions;
    case FaultKind::start_late:
    case FaultKind::start_early:
      return cause.kind == CauseKind::wrong_start;
    case FaultKind::internal_bit:
      return blamed_internal_read(cause) == fault.original;
    case FaultKind::interrupt_extra:
      return cause.kind == CauseKind::extra_interrupt && same_transaction;
    case FaultKind::write_extra:
      return cause.kind == CauseKind::extra_write && same_transaction;
    case FaultKind::transfer_twice:
    case FaultKind::writes_swapped:
      break;
  }
  return false;
}

/// Everything the run does is what it does without the fault.
bool FaultInjector::runs_as_before(const ImportedRecording& imported,
                                   const std::vector<Hint>& hints) const {
  VerifierOptions verifying;
  verifying.policy.waived = reviewed_transactions(hints);
  Verifier verifier(imported.recording,
                    std::make_unique<HintedEvidence>(imported.read_evidence(), hints), verifying);
  StreamHash hash;
  Listeners listeners;
  listeners.add(verifier);
  listeners.add(hash);
  ReplayOptions options;
  options.evidence = [&imported] { return imported.read_evidence(); };
  Replayer replayer(imported.recording, listeners, std::move(options));
  const ReplayReport report = verifier.finish(replayer.run());
  return report.end == ReplayReport::End::complete &&
         report.instructions == baseline_.instructions && hash.value() == baseline_.stream;
}

Diagnosis FaultInjector::diagnose(ImportedRecording& imported, const Fault& fault) const {
  Explanation explanation =
      explain(imported.recording, [&imported] { return imported.read_evidence(); }, {});
  Diagnosis diagnosis;
  if (explanation.rounds.empty()) return diagnosis;
  const std::vector<TriedCause>& causes = explanation.rounds.front().causes;
  if (!causes.empty()) {
    diagnosis.best =
        fmt::format("{}: {}", cause_name(causes.front().cause.kind), causes.front().cause.text);
  }
  for (std::size_t i = 0; i < causes.size() && diagnosis.rank == 0; ++i) {
    if (is_true_cause(causes[i].cause, fault)) {
      diagnosis.rank = static_cast<unsigned>(i + 1);
      diagnosis.tied = causes[i].tied;
    }
  }
  imported.recording = std::exchange(explanation.corrected, {});
  diagnosis.repaired = runs_as_before(imported, explanation.hints);
  return diagnosis;
}

bool is_large(const InjectedCapture& capture) {
  return !std::string_view(capture.first).ends_with("_tiny");
}

FaultInjector open_machine(const InjectedCapture& capture) {
  const MachineData data(machine_folder() + "/" + capture.first);
  ImportOptions options;
  options.capture.internal_path = data.path("side.csv.zst");
  return {{data.path(std::string("bus") + capture.second + ".bin.zst")}, options};
}

FaultInjector open_ibm5150() {
  ImportOptions options;
  options.capture.cpu = CpuModel::i8088;
  options.initial_state_path = CITCAT_SOURCE_DIR "/samples/ibm5150/state.json";
  options.start = Where{Where::Kind::interrupt, 0};
  return {{CITCAT_SOURCE_DIR "/samples/ibm5150/area5150.sr"}, options};
}

}  // namespace citcat::test
