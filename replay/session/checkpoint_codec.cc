#include "replay/session/checkpoint_codec.h"

#include <array>
#include <memory>
#include <optional>

#include "events/archive/recording_codec.h"
#include "formats/io/byte_writer.h"

namespace citcat {

namespace {

constexpr std::uint64_t kMaxCpuBytes = std::uint64_t{1} << 22;

/// Counters of a checkpoint, in the order of the archive.
std::array<std::uint64_t, 14> counters_of(const Replayer::Checkpoint& c) {
  return {c.machine.position.instruction,
          c.machine.position.iteration,
          c.machine.model_specific_results,
          c.report.io_reads,
          c.report.io_writes,
          c.report.external_writes,
          c.next_interrupt,
          c.next_external,
          c.next_io,
          c.next_internal,
          c.io_done,
          c.written_bytes,
          c.interrupts,
          c.exceptions};
}

constexpr std::uint8_t kResumeFlag = 1, kInterruptsInhibited = 2, kShutDown = 4,
                       kAwaitsOutputPort = 8, kInStackShadow = 16, kRare = 32, kDropped = 64;

// A TLB entry as two numbers: the page with what is allowed in its low bits, and the frame; of
// processors with long mode the upper half of the page follows; of a frame beyond 4 GiB its upper
// half.
constexpr std::uint32_t kAllowedMask = 0xf, kGlobalBit = 0x10, kLargeBit = 0x20,
                        kMoreAllowed = 0xc0, kFrameBeyond = 0x100;
constexpr unsigned kMoreShift = 2;  ///< from bits 4 and 5 of what is allowed, with CR4.SMAP

void write_tlb(ByteWriter& out, const std::vector<Tlb::Entry>& tlb, bool wide) {
  std::size_t used = 0;
  for (const Tlb::Entry& e : tlb) used += e.tag != Tlb::kInvalid ? 1 : 0;
  out.varint(used);
  std::size_t next = 0;
  for (std::size_t i = 0; i < tlb.size(); ++i) {
    const Tlb::Entry& e = tlb[i];
    if (e.tag == Tlb::kInvalid) continue;
    out.varint(i - next);
    out.u32(static_cast<std::uint32_t>(e.tag) | (e.allowed & kAllowedMask) |
            (std::uint32_t{e.allowed} << kMoreShift & kMoreAllowed) | (e.global ? kGlobalBit : 0) |
            (e.large ? kLargeBit : 0) | (e.frame >> 32 != 0 ? kFrameBeyond : 0));
    out.u32(static_cast<std::uint32_t>(e.frame));
    if (wide) out.u32(static_cast<std::uint32_t>(e.tag >> 32));
    if (e.frame >> 32 != 0) out.u32(static_cast<std::uint32_t>(e.frame >> 32));
    next = i + 1;
  }
}

std::vector<Tlb::Entry> read_tlb(ByteReader& in, std::size_t size, bool wide) {
  std::vector<Tlb::Entry> tlb(size);
  const std::size_t used = in.count("TLB entries", size);
  std::size_t next = 0;
  for (std::size_t i = 0; i < used; ++i) {
    const std::size_t index = next + in.count("TLB entry", size);
    if (index >= size) in.fail("TLB entry: expected one of " + std::to_string(size));
    const std::uint32_t tag = in.u32("TLB tag");
    std::uint64_t frame = in.u32("TLB frame") & ~kPageMask;
    const std::uint64_t upper = wide ? in.u32("TLB tag") : 0;
    if ((tag & kFrameBeyond) != 0) frame |= std::uint64_t{in.u32("TLB frame")} << 32;
    tlb[index] = {
        upper << 32 | (tag & ~kPageMask), frame,
        static_cast<std::uint8_t>((tag & kAllowedMask) | (tag & kMoreAllowed) >> kMoreShift),
        (tag & kGlobalBit) != 0, (tag & kLargeBit) != 0};
    next = index + 1;
  }
  return tlb;
}

void write_mmu(ByteWriter& out, const Mmu::State& mmu, bool wide) {
  write_tlb(out, mmu.itlb, wide);
  write_tlb(out, mmu.dtlb, wide);
  for (const std::optional<std::uint64_t>& pdpte : mmu.pdptes) {
    out.u8(pdpte ? 1 : 0);
    out.u64(pdpte.value_or(0));
  }
}

Mmu::State read_mmu(ByteReader& in, bool wide) {
  Mmu::State mmu;
  mmu.itlb = read_tlb(in, Tlb::kCodeEntries, wide);
  mmu.dtlb = read_tlb(in, Tlb::kDataEntries, wide);
  for (std::optional<std::uint64_t>& pdpte : mmu.pdptes) {
    const bool known = in.u8("page-directory pointer known") != 0;
    const std::uint64_t value = in.u64("page-directory pointer");
    if (known) pdpte = value;
  }
  return mmu;
}

/// No further along the schedule than there are events.
std::size_t read_progress(ByteReader& in, const char* field, std::size_t events) {
  return in.count(field, events);
}

}  // namespace

std::vector<std::uint8_t> encode_checkpoint_state(const Replayer::Checkpoint& checkpoint) {
  ByteWriter out;
  for (const std::uint64_t counter : counters_of(checkpoint)) out.varint(counter);
  const Machine::Snapshot& machine = checkpoint.machine;
  const bool rare = machine.debug_pending != 0 || machine.smbase != kResetSmbase;
  out.u8(static_cast<std::uint8_t>(
      (machine.resume_flag ? kResumeFlag : 0) |
      (machine.interrupts_inhibited ? kInterruptsInhibited : 0) |
      (machine.shut_down ? kShutDown : 0) | (machine.awaits_output_port ? kAwaitsOutputPort : 0) |
      (machine.in_stack_shadow ? kInStackShadow : 0) | (rare ? kRare : 0) |
      (checkpoint.next_dropped != 0 ? kDropped : 0)));
  if (rare) {
    out.u32(machine.debug_pending);
    out.u32(machine.smbase);
  }
  if (checkpoint.next_dropped != 0) out.varint(checkpoint.next_dropped);
  const std::vector<std::uint8_t> cpu = encode_cpu(machine.cpu);
  out.varint(cpu.size());
  out.bytes(cpu);
  write_mmu(out, *machine.tlb, machine.cpu.long_mode.has_value());
  return out.take();
}

Replayer::Checkpoint decode_checkpoint_state(ByteReader& in, const Recording& recording) {
  Replayer::Checkpoint c;
  c.machine.position.instruction = in.varint("instruction");
  c.machine.position.iteration =
      static_cast<std::uint32_t>(in.count("iteration", ~std::uint32_t{0}));
  c.machine.model_specific_results = in.varint("model-specific results");
  c.report.io_reads = in.varint("port reads");
  c.report.io_writes = in.varint("port writes");
  c.report.external_writes = in.varint("external writes");
  c.next_interrupt = read_progress(in, "interrupts delivered", recording.interrupts.size());
  c.next_external = read_progress(in, "external writes made", recording.external_writes.size());
  c.next_io = read_progress(in, "port reads made", recording.io_reads.size());
  c.next_internal = read_progress(in, "internal reads made", recording.internal_reads.size());
  c.io_done = in.varint("port accesses");
  c.written_bytes = in.varint("bytes written");
  c.interrupts = in.varint("interrupts");
  c.exceptions = in.varint("exceptions");
  c.report.instructions = c.machine.position.instruction;
  c.report.interrupts = c.interrupts;
  c.report.exceptions = c.exceptions;
  const std::uint8_t flags = in.u8("flags");
  c.machine.resume_flag = (flags & kResumeFlag) != 0;
  c.machine.interrupts_inhibited = (flags & kInterruptsInhibited) != 0;
  c.machine.shut_down = (flags & kShutDown) != 0;
  c.machine.awaits_output_port = (flags & kAwaitsOutputPort) != 0;
  c.machine.in_stack_shadow = (flags & kInStackShadow) != 0;
  if ((flags & kRare) != 0) {
    c.machine.debug_pending = in.u32("pending debug traps");
    c.machine.smbase = in.u32("SMBASE");
  }
  if ((flags & kDropped) != 0) {
    c.next_dropped =
        read_progress(in, "translations dropped", recording.dropped_translations.size());
  }
  const std::size_t cpu_bytes = in.count("processor state", kMaxCpuBytes);
  const std::uint64_t at = in.offset();
  ByteReader cpu(in.bytes(cpu_bytes, "processor state"), in.name(), at);
  c.machine.cpu = decode_cpu(cpu);
  c.machine.tlb =
      std::make_shared<const Mmu::State>(read_mmu(in, c.machine.cpu.long_mode.has_value()));
  in.expect_end("the checkpoint's state");
  return c;
}

SavedPageMap stored_pages(const Replayer::Checkpoint& checkpoint) {
  SavedPageMap pages;
  for (const auto& saved : checkpoint.machine.pages) {
    auto page = std::make_shared<MemoryImage::Page>();
    page->data = saved->data;
    page->valid = saved->defined;
    pages.emplace_hint(pages.end(), saved->number, std::move(page));
  }
  return pages;
}

Memory::SavedPages saved_pages(const SavedPageMap& pages) {
  Memory::SavedPages saved;
  saved.reserve(pages.size());
  for (const auto& [number, page] : pages) {
    saved.push_back(std::make_shared<const Memory::SavedPage>(
        Memory::SavedPage{number, page->data, page->valid}));
  }
  return saved;
}

}  // namespace citcat
