#include "capture/import/processor_capture.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "capture/import/machine_records.h"
#include "capture/import/native.h"
#include "events/derive/begun_instruction.h"
#include "events/machine/cpu_traits.h"
#include "events/machine/startup_state.h"
#include "events/processors/bus_flags.h"
#include "events/startup_event.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

constexpr const char* kMonitorsFormat = "machine-smp";

/// The processor that a format of several names after a colon. Other formats have something else
/// there.
std::optional<unsigned> named_processor(const std::string& format) {
  const std::size_t colon = format.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const std::string name = format.substr(0, colon);
  if (name != kMonitorsFormat && name != "native") return std::nullopt;
  unsigned number = 0;
  const char* const end = format.data() + format.size();
  const auto parsed = std::from_chars(format.data() + colon + 1, end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || number >= kMostProcessors) {
    throw UsageError("--format " + format + ": expected the number of a processor below " +
                     std::to_string(kMostProcessors) + " after the colon");
  }
  return number;
}

const CaptureFormat* format_of(const std::vector<std::string>& paths,
                               const CaptureOptions& options) {
  return options.format.empty() ? detect_capture_format(paths.front())
                                : find_capture_format(options.format);
}

bool is_native(const std::vector<std::string>& paths, const CaptureOptions& options) {
  const CaptureFormat* const format = format_of(paths, options);
  return format != nullptr && format->id == "native";
}

BusNote note_of(const ProcessorRecord& record) {
  BusNote note = record.note;
  note.clock = record.clock;
  return note;
}

std::unique_ptr<RecordFile> open_records(const std::string& path, bool native) {
  auto input = std::make_unique<InputStream>(path);
  return native ? make_native_record_file(std::move(input))
                : make_machine_record_file(std::move(input));
}

}  // namespace

ProcessorCapture::ProcessorCapture(std::string format, RecordDialect dialect,
                                   std::unique_ptr<RecordFile> file, const CaptureOptions& options,
                                   unsigned processor)
    : file_(std::move(file)), dialect_(dialect), processor_(static_cast<std::uint8_t>(processor)) {
  const RecordDeclaration& declared = file_->declaration();
  info_.format = std::move(format);
  info_.cpu = is_known(options.cpu) ? options.cpu : declared.cpu;
  info_.has_positions = declared.has_positions;
  info_.has_clock = declared.has_clock;
  info_.clock_hz = declared.has_clock ? declared.clock_hz : 0;
  info_.bus = declared.bus;
  if (options.cache) info_.bus.form = *options.cache;
  info_.address_mask = info_.bus.address_mask;
  info_.width_inferred = !declared.width_declared;
  info_.cache_inferred = !declared.cache_declared;
  facts_.shows_sharing = dialect == RecordDialect::monitors || declared.shows_sharing;
  width_declared_ = declared.width_declared;
  cache_declared_ = declared.cache_declared;
  cache_given_ = options.cache.has_value();
  constexpr std::uint32_t kWidestBus = 8;
  fields_ = {declared.width_declared ? declared.bus.bus_bytes : kWidestBus, declared.has_positions,
             declared.has_clock};
  if (!options.internal_path.empty()) accesses_ = RegisterAccesses(options.internal_path);
  read_beginning();
}

void ProcessorCapture::fail(const std::string& wrong) const {
  throw FormatError(file_->input().name(), file_->where(first_), "bus record: " + wrong);
}

/// The next record of a processor or another bus master. False at the end.
bool ProcessorCapture::read_record(ProcessorRecord& out) {
  do {
    if (!read_any_record(out)) return false;
  } while (out.kind == ProcessorRecord::Kind::high);
  return true;
}

bool ProcessorCapture::read_any_record(ProcessorRecord& out) {
  if (at_end_) return false;
  if (records_.empty()) {
    records_ = file_->next();
    first_ = 0;
    if (records_.empty()) {
      close();
      return false;
    }
  }
  const BusRecord record = unpack_bus_record(records_.first<kBusRecordBytes>());
  const std::string wrong = read_processor_record(record, dialect_, fields_.bus_bytes, out);
  if (!wrong.empty()) fail(wrong);
  if (info_.ending != Ending::capture_end) fail("follows the one that ends an interrupted capture");
  records_ = records_.subspan(kBusRecordBytes);
  ++first_;
  const bool is_reached = out.kind == ProcessorRecord::Kind::reached;
  if (out.kind == ProcessorRecord::Kind::high) {
    upper_ = std::uint64_t{record.address} << 32;
    ++record_;
    return true;
  }
  give_address(out);
  if (is_reached && out.agent == processor_)
    info_.reached = Position{record.instructions, record.iterations};
  // The mark at the end of an interrupted capture has no clock.
  const bool is_mark = is_reached || out.kind == ProcessorRecord::Kind::cut;
  if (!is_mark) follow_clock(out);
  out.clock = shown_clock_;
  if (out.agent == processor_) check_own(out);
  if (out.agent < kMostProcessors) facts_.processors.set(out.agent);
  if (out.agent == processor_ && info_.share.empty()) {
    info_.share = "processor " + std::to_string(processor_) + ", whose first record is number " +
                  std::to_string(record_);
  }
  if (out.kind == ProcessorRecord::Kind::cut) {
    info_.ending = ending_of_cut(out.record.data[0]);
    info_.warnings.push_back(file_->input().name() + ": the capture was interrupted (" +
                             std::string(ending_name(info_.ending)) + "): it was meant to go on");
  }
  ++record_;
  return true;
}

/// What no processor does, and no monitor shows.
void ProcessorCapture::check_own(const ProcessorRecord& record) {
  const std::string who = "processor " + std::to_string(processor_);
  switch (record.kind) {
    case ProcessorRecord::Kind::init:
      waits_ = true;
      return;
    case ProcessorRecord::Kind::startup:
      if (!waits_.value_or(true))
        fail(who + " is running, and a SIPI starts only a processor that waits for one");
      waits_ = false;
      return;
    case ProcessorRecord::Kind::transaction:
      break;
    default:
      return;
  }
  const BusRecord& r = record.record;
  if ((r.flags & kStateWindow) != 0) return;
  // It writes back, also while it waits, what another one asks for.
  const bool asked_for = (r.flags & kSnoop) != 0;
  if (waits_.value_or(false) && !asked_for) fail(who + " goes on after an INIT, without a SIPI");
  if (!asked_for) waits_ = false;
  check_line(r);
}

/// A line of 32 bytes is two records, one right behind the other.
void ProcessorCapture::check_line(const BusRecord& r) {
  const std::optional<BusRecord> before = std::exchange(half_, std::nullopt);
  const bool line = (r.flags & kLine) != 0;
  const bool second = before && line && r.type == before->type && r.burst != before->burst &&
                      r.address == (before->address ^ kBusRecordData);
  has_halves_ |= second || (cache_declared_ && info_.bus.line_bytes == 2 * kBusRecordData);
  if (second) return;
  if (before && has_halves_) {
    fail("follows one half of a line by processor " + std::to_string(processor_) +
         " whose other half is missing");
  }
  if (line) half_ = r;
}

/// Completes an address of which the record has the lower half.
void ProcessorCapture::give_address(ProcessorRecord& record) const {
  record.upper = upper_;
  if (record.kind == ProcessorRecord::Kind::note && record.note.kind != BusNote::Kind::message)
    record.note.address.value |= upper_;
}

/// The clock of all, which orders their transactions: where a record has that of another agent's
/// before it, the order of the file is that of the bus, and its clock is one more.
void ProcessorCapture::follow_clock(const ProcessorRecord& record) {
  constexpr std::uint32_t kHalf = std::uint32_t{1} << 31;
  const std::uint32_t clock = record.record.clock;
  const bool note = record.kind == ProcessorRecord::Kind::note;
  if (any_ && clock < last_clock_) {
    if (last_clock_ - clock < kHalf && !facts_.falls) facts_.falls = record_;
    clock_ += std::uint64_t{1} << 32;
  }
  const std::uint64_t now = clock_ + clock;
  const bool other = any_ && (record.agent != last_agent_ || (note && !is_note_last_));
  if (other && now <= shown_clock_) {
    if (ties_++ == 0) first_tie_ = record_;
    ++shown_clock_;
  } else {
    shown_clock_ = std::max(shown_clock_, now);
  }
  any_ = true;
  last_clock_ = clock;
  last_agent_ = record.agent;
  is_note_last_ = note;
}

/// Up to the first record of the processor's own that is no dump, INIT or SIPI: what says where it
/// begins.
void ProcessorCapture::read_beginning() {
  ProcessorRecord record;
  bool more = false;
  std::deque<ProcessorRecord> held;
  while ((more = read_record(record))) {
    if (record.agent != processor_) {
      if (record.agent >= kMostProcessors) give(record);
      continue;
    }
    if (!is_beginning(record)) break;
    held.push_back(record);
  }
  if (!more && held.empty()) require_records();
  if (startup_ || has_init_) {
    std::optional<DumpedState> dumped = dump_.take_state();
    if (!dumped) {
      throw FormatError(file_->input().name(), 0,
                        "expected a state dump of processor " + std::to_string(processor_) +
                            ", which INIT and SIPI start, found none");
    }
    if (!has_init_ && !dumped->waits_for_startup) {
      throw FormatError(
          file_->input().name(), 0,
          "a SIPI starts processor " + std::to_string(processor_) +
              ", which is not waiting for one according to its state dump: an INIT is missing");
    }
    state_ = has_init_ ? state_after_init(dumped->state) : std::move(dumped->state);
    if (startup_) start_up(*state_, *startup_);
  } else {
    for (const ProcessorRecord& each : held) give(each);
  }
  if (more) give(record);
}

/// Called if the processor has no records: an error if others, with higher numbers, have some.
void ProcessorCapture::require_records() const {
  std::string numbers;
  for (std::size_t p = 0; p < facts_.processors.size(); ++p) {
    if (facts_.processors.test(p)) numbers += (numbers.empty() ? "" : ", ") + std::to_string(p);
  }
  if (numbers.empty()) return;
  throw FormatError(file_->input().name(), file_->where(0),
                    "expected processors numbered from 0 without a gap, found " + numbers +
                        " (an APIC's ID need not be the number)");
}

bool ProcessorCapture::is_beginning(const ProcessorRecord& record) {
  switch (record.kind) {
    case ProcessorRecord::Kind::init:
      has_init_ = true;
      startup_.reset();
      return true;
    case ProcessorRecord::Kind::startup:
      startup_ = record.record.data[0];
      return true;
    case ProcessorRecord::Kind::note:
      // What it sent before it began is nothing of its run.
      return !startup_;
    case ProcessorRecord::Kind::cut:
    case ProcessorRecord::Kind::reached:
      return true;
    case ProcessorRecord::Kind::high:
    case ProcessorRecord::Kind::transaction:
      break;
  }
  if ((record.record.flags & kStateWindow) == 0 || startup_) return false;
  BusTransaction t;
  BusRecordDecoder().decode(record.record, fields_, t);
  t.address.value |= record.upper;
  (void)dump_.take(t);
  return true;
}

void ProcessorCapture::give(const ProcessorRecord& record) {
  if (record.kind == ProcessorRecord::Kind::note && record.agent >= kMostProcessors) {
    facts_.of_others.push_back(note_of(record));
    return;
  }
  const bool tells_of_end =
      record.kind == ProcessorRecord::Kind::cut || record.kind == ProcessorRecord::Kind::reached;
  if (record.agent != processor_ || tells_of_end) return;
  if (record.kind == ProcessorRecord::Kind::init) return;  // what counts is how it begins anew
  lone_.add(record, record_ - 1);
  settle();
}

/// Hands on the processor's own records whose counts are known to be believed or not.
void ProcessorCapture::settle() {
  for (ProcessorRecord record; lone_.take(record);) give_own(record);
  for (const std::uint64_t number : lone_.take_lone()) {
    if (lone_counts_++ == 0) first_lone_ = number;
  }
}

void ProcessorCapture::give_own(const ProcessorRecord& record) {
  if (record.kind == ProcessorRecord::Kind::note) return facts_.notes.push_back(note_of(record));
  BusTransaction t;
  if (record.kind == ProcessorRecord::Kind::startup) {
    t.op = BusOp::interrupt_acknowledge;
    t.size = 2;
    t.data[0] = record.record.data[0];
    t.data[1] = kStartupMode;
    if (fields_.positions && record.record.instructions != kNoCount) {
      t.position = {record.record.instructions, record.record.iterations};
      t.flags |= kPositionKnown;
    }
  } else {
    decoder_.decode(record.record, fields_, t);
    if (t.is_memory()) t.address.value |= record.upper;
    if (decoder_.learnt()) {
      const BusModel seen = decoder_.seen();
      if (!width_declared_) info_.bus.bus_bytes = seen.bus_bytes;
      if (!cache_declared_) info_.bus.line_bytes = seen.line_bytes;
      if (!cache_declared_ && !cache_given_) info_.bus.form = seen.form;
    }
    if (record.shared) t.flags |= kSharedFill;
    if (record.locked) t.flags |= kLocked;
    if (record.of_local_apic) t.flags |= kOfLocalApic;
  }
  while (const BusTransaction* const access = accesses_.before(t)) {
    give(*access);
    accesses_.take();
  }
  own_clock_ = record.clock;
  if (t.has(kPositionKnown) && !may_come_before_its_instruction(t))
    last_instruction_ = t.position.instruction;
  give(t);
}

void ProcessorCapture::give(BusTransaction t) {
  t.index = index_++;
  t.clock = own_clock_;
  if (fields_.clock) t.flags |= kClockKnown;
  ready_.push_back(t);
}

/// Hands out the accesses after the last transaction: they belong to the same instruction, or the
/// processor works on within its caches while the bus goes on.
void ProcessorCapture::give_rest() {
  while (const BusTransaction* const access = accesses_.rest()) {
    if (access->position.instruction > facts_.reach) return;
    give(*access);
    accesses_.take();
  }
}

bool ProcessorCapture::next(BusTransaction& out) {
  ProcessorRecord record;
  while (ready_.empty()) {
    if (!read_record(record)) {
      give_rest();
      if (ready_.empty()) return false;
      break;
    }
    give(record);
  }
  out = ready_.front();
  ready_.pop_front();
  return true;
}

/// The last instruction that may have been made before the capture ended: at most one in each clock
/// of the bus, so that nothing is taken for captured that came after the end.
std::uint64_t ProcessorCapture::reach() const {
  if (info_.reached && info_.reached->instruction != 0) return info_.reached->instruction - 1;
  const bool hidden =
      info_.bus.form == CacheForm::write_back && info_.ending == Ending::capture_end;
  if (!hidden) return last_instruction_;
  const std::uint64_t most = last_instruction_ + shown_clock_ - own_clock_;
  // Values from after that show that the capture was cut, and not where.
  const BusTransaction* const last = accesses_.last();
  return last != nullptr && last->position.instruction > most ? last_instruction_ : most;
}

void ProcessorCapture::close() {
  at_end_ = true;
  lone_.end();
  settle();
  if (lone_counts_ != 0) {
    info_.warnings.push_back(
        "counts of processor " + std::to_string(processor_) + " that do not fit those around " +
        "them are not believed: " + std::to_string(lone_counts_) + ", the first at record " +
        std::to_string(first_lone_) + ", which may be another processor's");
  }
  if (ties_ != 0 && processor_ == 0) {
    info_.warnings.push_back(file_->input().name() + ": " + std::to_string(ties_) +
                             " records have the same clock as an earlier record of another "
                             "processor, the first at record " +
                             std::to_string(first_tie_) +
                             ": the order of the file is taken as that of the bus");
  }
  facts_.reach = reach();
  const InputStream& input = file_->input();
  if (input.is_unfinished() && info_.ending == Ending::capture_end) {
    info_.ending = Ending::source_gone;
    info_.warnings.push_back(input.name() +
                             ": an interrupted recording, taken up to its last whole record, "
                             "number " +
                             std::to_string(record_));
  }
  info_.files.push_back({std::filesystem::path(input.name()).filename().string(),
                         input.stored_bytes(), input.stored_hash().hex()});
}

int detect_processor_records(const CaptureProbe& probe) {
  if (probe.is_directory) return 0;
  constexpr std::size_t kEnough = 64;
  constexpr std::uint32_t kWidestBus = 8;
  const std::size_t whole = probe.prefix.size() / kBusRecordBytes;
  std::size_t valid = 0;
  bool several = false;
  ProcessorRecord record;
  for (std::size_t i = 0; i < whole; ++i) {
    const auto bytes = probe.prefix.subspan(i * kBusRecordBytes).first<kBusRecordBytes>();
    const bool right =
        read_processor_record(unpack_bus_record(bytes), RecordDialect::monitors, kWidestBus, record)
            .empty();
    if (right && i < kEnough) ++valid;
    several |= right && record.agent != 0;
  }
  constexpr int kSure = 90;  // above the records of one processor
  return several && valid * 4 >= std::min(whole, kEnough) * 3 ? kSure : 0;
}

bool shows_processors(const std::vector<std::string>& paths, const CaptureOptions& options) {
  if (paths.empty()) return false;
  const CaptureFormat* const format = format_of(paths, options);
  if (format == nullptr || named_processor(options.format)) return false;
  if (format->id == kMonitorsFormat) return true;
  return format->id == "native" && native_shows_processors(paths.front());
}

std::string format_of_processor(const std::string& path, const CaptureOptions& options,
                                unsigned processor) {
  if (!shows_processors({path}, options)) throw UsageError(path + " is a capture of one processor");
  return (is_native({path}, options) ? "native" : kMonitorsFormat) +
         (":" + std::to_string(processor));
}

std::unique_ptr<ProcessorCapture> open_processor_capture(const std::vector<std::string>& paths,
                                                         const CaptureOptions& options,
                                                         unsigned processor) {
  if (paths.size() != 1) {
    throw UsageError("a capture of several processors must be one file, found " +
                     std::to_string(paths.size()));
  }
  const bool native = is_native(paths, options);
  return std::make_unique<ProcessorCapture>(
      native ? "native" : kMonitorsFormat, native ? RecordDialect::native : RecordDialect::monitors,
      open_records(paths.front(), native), options, processor);
}

std::unique_ptr<CaptureReader> open_processor_records(const std::vector<std::string>& paths,
                                                      const CaptureOptions& options) {
  const std::optional<unsigned> processor = named_processor(options.format);
  if (processor) return open_processor_capture(paths, options, *processor);
  const bool native = is_native(paths, options);
  // A damaged header may claim several processors: damage is said before anything is asked for.
  open_records(paths.front(), native);
  throw UsageError(paths.front() + " shows several processors: say which one with --format " +
                   (native ? "native" : kMonitorsFormat) +
                   ":P (with dump, --processor P; import takes all of them)");
}

}  // namespace citcat
