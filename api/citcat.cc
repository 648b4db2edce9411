#include "api/citcat.h"

#include <algorithm>
#include <memory>
#include <string>

#include "api/current_error.h"
#include "events/archive/container.h"
#include "events/archive/machine_file.h"
#include "formats/io/input.h"
#include "replay/trace/trace_reader.h"

struct citcat_trace {
  explicit citcat_trace(citcat::TraceReader opened) : reader(std::move(opened)) {}
  citcat::TraceReader reader;
  std::string error;
};

namespace {

using citcat::current_error;

static_assert(CITCAT_EXCEPTION == static_cast<int>(citcat::KtNote::Kind::exception) &&
              CITCAT_EXTERNAL_WRITE == static_cast<int>(citcat::KtNote::Kind::external_write) &&
              CITCAT_TRANSLATION_DROPPED ==
                  static_cast<int>(citcat::KtNote::Kind::translation_dropped));

thread_local std::string open_error;

/// Bytes that tell an archive from other files.
constexpr std::size_t kMagic = 8;

/// What was asked for needs a trace: an error of this thread, as there is no trace to keep it.
int no_trace() {
  open_error = "no trace was given";
  return -1;
}

template <class Record>
void copy_event(const citcat::KtNote& event, Record& to) {
  to.kind = CITCAT_EVENT;
  to.event = static_cast<std::uint8_t>(event.kind);
  to.address = static_cast<decltype(to.address)>(event.where);
  if (to.address != event.where)
    throw citcat::UsageError("an address beyond 4 GiB, which citcat_read_wide() reads");
  to.data[0] = event.value;
  to.data[1] = event.size;
}

void copy_addresses(const citcat::KtRecord& record, citcat_wide_record& to) {
  to.address = record.instruction.wide_eip();
  for (std::size_t i = 0; i < to.data_count; ++i) to.data[i] = record.instruction.wide_address(i);
  to.page = record.wide_page();
}

/// Throws UsageError where it has more than 32 bits.
void copy_addresses(const citcat::KtRecord& record, citcat_record& to) {
  const citcat::KtInstruction& instruction = record.instruction;
  std::uint32_t high = instruction.eip_high | record.page_high;
  for (std::size_t i = 0; i < to.data_count; ++i) high |= instruction.address_high[i];
  if (high != 0) {
    throw citcat::UsageError("an address of 64 bits, which citcat_read_wide() reads");
  }
  to.address = instruction.eip;
  std::copy_n(instruction.address.begin(), to.data_count, to.data);
  to.page = record.page;
}

template <class Record>
void copy_record(const citcat::TraceRecord& from, Record& to) {
  const citcat::KtRecord& record = from.record;
  to = {};
  to.instruction = from.position.instruction;
  to.iteration = from.position.iteration;
  to.bits = from.bits;
  if (from.is_event) {
    copy_event(from.event, to);
    return;
  }
  switch (record.kind) {
    case citcat::KtRecord::Kind::instruction:
      to.kind = CITCAT_INSTRUCTION;
      to.length = record.instruction.size;
      to.data_count = record.instruction.address_count;
      std::copy_n(record.instruction.code.begin(), sizeof to.bytes, to.bytes);
      copy_addresses(record, to);
      break;
    case citcat::KtRecord::Kind::process:
      to.kind = CITCAT_PROCESS;
      to.pid = record.pid;
      break;
    case citcat::KtRecord::Kind::translation:
      to.kind = CITCAT_TRANSLATION;
      copy_addresses(record, to);
      to.frame = record.frame;
      break;
  }
}

}  // namespace

citcat_trace* citcat_open(const char* path, unsigned flags) {
  open_error.clear();
  try {
    citcat::TraceReaderOptions options;
    options.process_records = (flags & CITCAT_PROCESSES) != 0;
    options.check = (flags & CITCAT_UNCHECKED) == 0;
    options.events = (flags & CITCAT_EVENTS) != 0;
    options.wide = (flags & CITCAT_WIDE) != 0;
    if (path == nullptr) throw citcat::UsageError("no file was named");
    if ((flags & ~unsigned{CITCAT_PROCESSES | CITCAT_UNCHECKED | CITCAT_EVENTS | CITCAT_WIDE}) !=
        0) {
      throw citcat::UsageError("flags are asked for that this version does not have");
    }
    return std::make_unique<citcat_trace>(citcat::TraceReader(path, options)).release();
  } catch (...) {
    open_error = current_error();
    return nullptr;
  }
}

namespace {

template <class Record>
int next_record(citcat_trace* trace, Record* record) {
  if (trace == nullptr) return no_trace();
  if (!trace->error.empty()) return -1;
  try {
    if (record == nullptr) throw citcat::UsageError("there is no record to read to");
    const citcat::TraceRecord* const next = trace->reader.next();
    if (next == nullptr) return 0;
    copy_record(*next, *record);
    return 1;
  } catch (...) {
    trace->error = current_error();
    return -1;
  }
}

template <class Record>
std::size_t read_records(citcat_trace* trace, Record* records, std::size_t count) {
  std::size_t done = 0;
  if (records == nullptr) {
    if (count != 0) next_record<Record>(trace, nullptr);
    return 0;
  }
  while (done < count && next_record(trace, records + done) > 0) ++done;
  return done;
}

}  // namespace

int citcat_next(citcat_trace* trace, citcat_record* record) { return next_record(trace, record); }

size_t citcat_read(citcat_trace* trace, citcat_record* records, size_t count) {
  return read_records(trace, records, count);
}

size_t citcat_read_wide(citcat_trace* trace, citcat_wide_record* records, size_t count) {
  return read_records(trace, records, count);
}

int citcat_seek(citcat_trace* trace, uint64_t instruction) {
  return citcat_seek_iteration(trace, instruction, 0);
}

int citcat_seek_iteration(citcat_trace* trace, uint64_t instruction, uint32_t iteration) {
  if (trace == nullptr) return no_trace();
  trace->error.clear();
  try {
    trace->reader.seek(citcat::Position{instruction, iteration});
    return 0;
  } catch (...) {
    trace->error = current_error();
    return -1;
  }
}

void citcat_close(citcat_trace* trace) { delete trace; }

const char* citcat_error(const citcat_trace* trace) {
  const std::string& error = trace == nullptr ? open_error : trace->error;
  return error.empty() ? nullptr : error.c_str();
}

size_t citcat_processors(const char* path) {
  open_error.clear();
  if (path == nullptr) {
    open_error = "no path was given";
    return 0;
  }
  try {
    // KT files are of one processor.
    if (!citcat::is_container(citcat::read_head(citcat::parse_recording_name(path).path, kMagic))) {
      return 1;
    }
    const auto machine = citcat::MachineFile::find(path);
    return machine ? machine->processors() : 1;
  } catch (...) {
    open_error = current_error();
    return 0;
  }
}

const char* citcat_version(void) { return CITCAT_VERSION; }
