#include "events/archive/recording_codec.h"

#include <algorithm>
#include <span>

#include "events/archive/rows.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/byte_writer.h"
#include "formats/io/column.h"
#include "formats/io/error.h"

namespace citcat {

namespace {

constexpr std::uint64_t kMaxText = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxItems = std::uint64_t{1} << 20;

template <typename T>
T read_enum(ByteReader& in, std::string_view field, T last) {
  const std::uint64_t value = in.u8(field);
  if (value > static_cast<std::uint64_t>(last)) {
    in.fail(std::string(field) + ": expected 0 to " +
            std::to_string(static_cast<std::uint64_t>(last)) + ", found " + std::to_string(value));
  }
  return static_cast<T>(value);
}

bool read_bool(ByteReader& in, std::string_view field) { return in.count(field, 1) != 0; }

void write_provenance(ByteWriter& out, const Provenance& provenance) {
  out.varint(provenance.files.size());
  for (const Provenance::File& file : provenance.files) {
    out.string(file.name);
    out.varint(file.bytes);
    out.string(file.xxh3);
  }
  out.string(provenance.format);
  out.string(provenance.options);
}

Provenance read_provenance(ByteReader& in) {
  Provenance provenance;
  const std::size_t files = in.count("capture files", kMaxItems);
  for (std::size_t i = 0; i < files; ++i) {
    Provenance::File file;
    file.name = in.string("capture file name", kMaxText);
    file.bytes = in.varint("capture file size");
    file.xxh3 = in.string("capture file hash", kMaxText);
    provenance.files.push_back(std::move(file));
  }
  provenance.format = in.string("capture format", kMaxText);
  provenance.options = in.string("import options", kMaxText);
  return provenance;
}

void write_strings(ByteWriter& out, const std::vector<std::string>& texts) {
  out.varint(texts.size());
  for (const std::string& text : texts) out.string(text);
}

std::vector<std::string> read_strings(ByteReader& in, std::string_view field) {
  const std::size_t count = in.count(field, kMaxItems);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < count; ++i) texts.push_back(in.string(field, kMaxText));
  return texts;
}

/// The members of RecordingTotals in the order in which they are stored.
template <typename Totals>
auto totals_members(Totals& t) {
  return std::array{
      &t.transactions, &t.reads,     &t.writes,     &t.write_backs, &t.line_fills,
      &t.io_reads,     &t.io_writes, &t.interrupts, &t.specials,    &t.instruction_starts};
}

void write_segment(ByteWriter& out, const Segment& segment) {
  out.u16(segment.selector);
  out.u32(segment.base);
  out.u32(segment.limit);
  out.u16(segment.attributes);
  out.u8(segment.unusable ? 1 : 0);
}

Segment read_segment(ByteReader& in) {
  Segment segment;
  segment.selector = in.u16("segment selector");
  segment.base = in.u32("segment base");
  segment.limit = in.u32("segment limit");
  segment.attributes = in.u16("segment attributes");
  segment.unusable = read_bool(in, "segment usability");
  return segment;
}

void write_table(ByteWriter& out, const TableRegister& table) {
  out.u32(table.base);
  out.u16(table.limit);
}

TableRegister read_table(ByteReader& in) {
  TableRegister table;
  table.base = in.u32("table base");
  table.limit = in.u16("table limit");
  return table;
}

template <typename State>
auto control_members(State& s) {
  return std::array{&s.eip, &s.eflags,   &s.cr0,    &s.cr2,      &s.cr3,
                    &s.cr4, &s.a20_mask, &s.smbase, &s.ram_bytes};
}

void write_long_mode(ByteWriter& out, const LongModeState& state) {
  for_each_upper_half(state, [&](std::uint32_t half) { out.u32(half); });
  for_each_whole(state, [&](std::uint64_t whole) { out.u64(whole); });
}

LongModeState read_long_mode(ByteReader& in) {
  LongModeState state;
  for_each_upper_half(state, [&](std::uint32_t& half) { half = in.u32("upper half"); });
  for_each_whole(state, [&](std::uint64_t& whole) { whole = in.u64("register of 64 bits"); });
  return state;
}

void write_cpuid(ByteWriter& out, const CpuidLeaf& leaf) {
  for (const std::uint32_t v : {leaf.leaf, leaf.eax, leaf.ebx, leaf.ecx, leaf.edx}) out.u32(v);
}

CpuidLeaf read_cpuid(ByteReader& in) {
  CpuidLeaf leaf;
  for (std::uint32_t* v : {&leaf.leaf, &leaf.eax, &leaf.ebx, &leaf.ecx, &leaf.edx}) {
    *v = in.u32("CPUID leaf");
  }
  return leaf;
}

}  // namespace

std::vector<std::uint8_t> encode_meta(const Recording& recording, const ArchiveMeta& meta) {
  ByteWriter out;
  out.string(meta.engine);
  out.u8(static_cast<std::uint8_t>(meta.evidence));
  out.u8(meta.lean ? 1 : 0);
  write_provenance(out, recording.provenance);
  out.u8(static_cast<std::uint8_t>(recording.bus.form));
  out.u32(recording.bus.line_bytes);
  out.u32(recording.bus.bus_bytes);
  out.u32(recording.bus.address_mask);
  for (const std::uint64_t* total : totals_members(recording.totals)) out.varint(*total);
  out.u8(recording.instructions ? 1 : 0);
  out.varint(recording.instructions.value_or(meta.uncounted_values));
  write_strings(out, recording.warnings);
  const bool counts_bytes = recording.port_unit == PortUnit::bytes;
  if (recording.ending != Ending::unknown || counts_bytes)
    out.u8(static_cast<std::uint8_t>(recording.ending));
  if (counts_bytes) out.u8(static_cast<std::uint8_t>(recording.port_unit));
  return out.take();
}

void decode_meta(ByteReader& in, Recording& recording, ArchiveMeta& meta) {
  meta.engine = in.string("engine identity", kMaxText);
  meta.evidence = read_enum(in, "evidence mode", EvidenceMode::digests);
  meta.lean = read_bool(in, "lean events");
  recording.provenance = read_provenance(in);
  recording.bus.form = read_enum(in, "cache form", CacheForm::write_back);
  recording.bus.line_bytes = in.u32("line size");
  recording.bus.bus_bytes = in.u32("bus width");
  recording.bus.address_mask = in.u32("address mask");
  for (std::uint64_t* total : totals_members(recording.totals)) *total = in.varint("totals");
  const bool counted = read_bool(in, "instruction count known");
  const std::uint64_t instructions = in.varint("instructions");
  if (counted) {
    recording.instructions = instructions;
  } else {
    meta.uncounted_values = instructions;
  }
  recording.warnings = read_strings(in, "warnings");
  if (in.remaining() != 0) recording.ending = read_enum(in, "ending", Ending::monitor_failed);
  recording.port_unit = PortUnit::transactions;
  if (in.remaining() != 0) recording.port_unit = read_enum(in, "port unit", PortUnit::bytes);
  in.expect_end("the META chunk");
}

std::vector<std::uint8_t> encode_cpu(const CpuState& state) {
  ByteWriter out;
  out.u8(static_cast<std::uint8_t>(state.model));
  for (const std::uint32_t value : state.gpr) out.u32(value);
  for (const std::uint32_t* value : control_members(state)) out.u32(*value);
  for (const std::uint32_t value : state.dr) out.u32(value);
  for (const Segment& segment : state.segment) write_segment(out, segment);
  write_segment(out, state.ldtr);
  write_segment(out, state.tr);
  write_table(out, state.gdtr);
  write_table(out, state.idtr);
  out.u64(state.tsc);
  for (const bool flag : {state.halted, state.in_smm, state.ignore_cr0_cd}) out.u8(flag ? 1 : 0);
  out.bytes(state.fx);
  out.varint(state.msrs.size());
  for (const Msr& msr : state.msrs) {
    out.u32(msr.index);
    out.u64(msr.value);
  }
  out.varint(state.cpuid.size());
  for (const CpuidLeaf& leaf : state.cpuid) write_cpuid(out, leaf);
  write_strings(out, state.unknown);
  CITCAT_ASSERT(state.long_mode.has_value() == cpu_traits(state.model).has_long_mode);
  if (state.long_mode) write_long_mode(out, *state.long_mode);
  return out.take();
}

CpuState decode_cpu(ByteReader& in) {
  CpuState state;
  state.model = read_enum(in, "processor", kLastCpuModel);
  for (std::uint32_t& value : state.gpr) value = in.u32("general register");
  for (std::uint32_t* value : control_members(state)) *value = in.u32("control register");
  for (std::uint32_t& value : state.dr) value = in.u32("debug register");
  for (Segment& segment : state.segment) segment = read_segment(in);
  state.ldtr = read_segment(in);
  state.tr = read_segment(in);
  state.gdtr = read_table(in);
  state.idtr = read_table(in);
  state.tsc = in.u64("TSC");
  for (bool* flag : {&state.halted, &state.in_smm, &state.ignore_cr0_cd}) {
    *flag = read_bool(in, "processor flag");
  }
  const auto fx = in.bytes(state.fx.size(), "FXSAVE image");
  std::copy(fx.begin(), fx.end(), state.fx.begin());
  const std::size_t msrs = in.count("MSRs", kMaxItems);
  for (std::size_t i = 0; i < msrs; ++i) {
    Msr msr;
    msr.index = in.u32("MSR index");
    msr.value = in.u64("MSR value");
    state.msrs.push_back(msr);
  }
  const std::size_t leaves = in.count("CPUID leaves", kMaxItems);
  for (std::size_t i = 0; i < leaves; ++i) state.cpuid.push_back(read_cpuid(in));
  state.unknown = read_strings(in, "unknown registers");
  if (cpu_traits(state.model).has_long_mode) state.long_mode = read_long_mode(in);
  in.expect_end("the CPUS chunk");
  return state;
}

// ---- Image --------------------------------------------------------------------------------------

namespace {

/// Known bytes of a page as lengths of alternating runs: unknown, known, unknown ... up to the last
/// known byte. A page known whole is the two runs 0, 4096.
std::vector<std::uint64_t> runs_of(const MemoryImage::Page& page) {
  std::vector<std::uint64_t> runs;
  std::size_t at = 0;
  bool known = false;
  while (at < kPageSize) {
    std::size_t end = at;
    while (end < kPageSize && page.valid[end] == known) ++end;
    if (end == kPageSize && !known) break;
    runs.push_back(end - at);
    at = end;
    known = !known;
  }
  return runs;
}

/// Fills one page from its runs.
void read_page(ByteReader& in, std::span<const std::uint64_t> runs, MemoryImage::Page& page) {
  std::uint64_t at = 0;
  bool known = false;
  for (const std::uint64_t run : runs) {
    if (run > kPageSize - at) in.fail("known bytes: expected them to end with their page");
    if (known) {
      const auto data = in.bytes(run, "page data");
      std::copy(data.begin(), data.end(), page.data.begin() + static_cast<std::ptrdiff_t>(at));
      page.valid.set(at, run);
    }
    at += run;
    known = !known;
  }
}

}  // namespace

std::vector<std::uint8_t> encode_image(const MemoryImage& image, std::size_t begin,
                                       std::size_t end) {
  std::vector<std::uint64_t> numbers, run_counts, runs;
  ByteWriter data;
  auto it = std::next(image.pages().begin(), static_cast<std::ptrdiff_t>(begin));
  for (std::size_t i = begin; i < end; ++i, ++it) {
    numbers.push_back(it->first);
    const std::vector<std::uint64_t> page_runs = runs_of(*it->second);
    run_counts.push_back(page_runs.size());
    std::size_t at = 0;
    for (std::size_t r = 0; r < page_runs.size(); ++r) {
      const auto size = static_cast<std::size_t>(page_runs[r]);
      if (r % 2 == 1) data.bytes(std::span(it->second->data).subspan(at, size));
      at += size;
    }
    runs.insert(runs.end(), page_runs.begin(), page_runs.end());
  }
  ByteWriter out;
  out.varint(numbers.size());
  write_column(out, numbers);
  write_column(out, run_counts);
  out.varint(runs.size());
  write_column(out, runs);
  out.bytes(data.view());
  return out.take();
}

void decode_image(ByteReader& in, MemoryImage& image) {
  const std::size_t pages = in.count("pages", kImageChunkPages);
  const std::vector<std::uint64_t> numbers = read_column(in, pages, "page numbers");
  const std::vector<std::uint64_t> run_counts = read_column(in, pages, "runs of pages");
  const std::size_t run_count = in.count("runs", std::uint64_t{pages} * (kPageSize + 1));
  const std::vector<std::uint64_t> runs = read_column(in, run_count, "runs");
  std::size_t at = 0;
  for (std::size_t i = 0; i < pages; ++i) {
    if (numbers[i] >= kFrameNumbers) in.fail("page number: expected 40 bits");
    if (run_counts[i] > runs.size() - at) in.fail("runs of pages: expected no more than there are");
    const auto count = static_cast<std::size_t>(run_counts[i]);
    const auto page_runs = std::span(runs).subspan(at, count);
    read_page(in, page_runs, image.page(numbers[i]));
    at += count;
  }
  if (at != runs.size()) in.fail("runs: expected all to belong to pages");
  in.expect_end("the image chunk");
}

// ---- Stand-ins --------------------------------------------------------------------------------

StandIns decode_stand_ins(ByteReader& in) {
  constexpr std::uint64_t kMostFrames = std::uint64_t{1} << 20;
  const std::size_t count = in.count("stand-ins", kMostFrames);
  const std::vector<std::uint64_t> shown = read_column(in, count, "stand-ins");
  const std::vector<std::uint64_t> pages = read_column(in, count, "pages beyond 4 GiB");
  StandIns stand_ins;
  for (std::size_t i = 0; i < count; ++i) {
    const bool fits = shown[i] < kMostFrames && pages[i] < kFrameNumbers;
    if (!fits) in.fail("stand-ins: expected frames below 4 GiB of ones of memory");
    const std::string wrong =
        stand_ins.add(PhysAddr{shown[i] * kPageSize}, PhysAddr{pages[i] * kPageSize});
    if (!wrong.empty()) in.fail("stand-ins: " + wrong);
  }
  in.expect_end("the chunk of stand-ins");
  return stand_ins;
}

// ---- Digests ----------------------------------------------------------------------------------

std::vector<std::uint8_t> encode_digests(std::span<const ReplayDigest> digests) {
  RowWriter row;
  for (const ReplayDigest& d : digests) {
    row.begin_row();
    row.cell(d.instruction);
    row.cell(d.digest);
  }
  ByteWriter out;
  out.varint(digests.size());
  row.write(out);
  return out.take();
}

void decode_digests(ByteReader& in, std::vector<ReplayDigest>& digests) {
  const std::size_t count = in.count("digests", kEventChunkRows);
  RowReader row(in, count, 2, "digests");
  for (std::size_t i = 0; i < count; ++i) {
    row.begin_row(i);
    ReplayDigest d;
    d.instruction = row.cell();
    d.digest = row.cell();
    digests.push_back(d);
  }
  in.expect_end("the digests chunk");
}

}  // namespace citcat
