#include "unit/events/archive/random_recording.h"

namespace citcat::test {

std::string RandomRecording::text() {
  std::string result(number(20), ' ');
  for (char& c : result) c = static_cast<char>(byte());
  return result;
}

Segment RandomRecording::segment() {
  return {static_cast<std::uint16_t>(word()), word(), word(), static_cast<std::uint16_t>(word()),
          coin()};
}

void RandomRecording::fill_cpu(CpuState& state) {
  state.model = static_cast<CpuModel>(number(8));
  if (state.model == CpuModel::x86_64) {
    for_each_upper_half(state.long_mode.emplace(), [&](std::uint32_t& half) { half = word(); });
    for_each_whole(*state.long_mode, [&](std::uint64_t& whole) { whole = random_(); });
  }
  for (std::uint32_t& value : state.gpr) value = word();
  for (std::uint32_t* value : {&state.eip, &state.eflags, &state.cr0, &state.cr2, &state.cr3,
                               &state.cr4, &state.a20_mask, &state.smbase, &state.ram_bytes}) {
    *value = word();
  }
  for (Segment& s : state.segment) s = segment();
  state.ldtr = segment();
  state.tr = segment();
  state.gdtr = {word(), static_cast<std::uint16_t>(word())};
  state.idtr = {word(), static_cast<std::uint16_t>(word())};
  for (std::uint32_t& value : state.dr) value = word();
  state.halted = coin();
  state.in_smm = coin();
  state.ignore_cr0_cd = coin();
  state.tsc = random_();
  for (std::uint8_t& value : state.fx) value = byte();
  for (std::uint64_t i = number(5); i > 0; --i) state.msrs.push_back({word(), random_()});
  for (std::uint64_t i = number(5); i > 0; --i) {
    state.cpuid.push_back({word(), word(), word(), word(), word()});
  }
  for (std::uint64_t i = number(5); i > 0; --i) state.unknown.push_back(text());
}

void RandomRecording::fill_image(MemoryImage& image) {
  for (std::uint64_t pages = number(6); pages > 0; --pages) {
    const FrameNumber page = number(coin() ? 0x100000 : std::uint64_t{1} << 40);
    if (number(4) == 0) {
      for (std::uint32_t i = 0; i < kPageSize; ++i)
        image.set(PhysAddr{page * kPageSize + i}, byte());
      continue;
    }
    for (std::uint64_t i = number(200); i > 0; --i) {
      image.set(PhysAddr{page * kPageSize + static_cast<std::uint32_t>(number(kPageSize))}, byte());
    }
  }
}

void RandomRecording::fill_events(Recording& recording) {
  for (std::uint64_t i = number(20); i > 0; --i) {
    Interrupt e;
    e.kind = static_cast<Interrupt::Kind>(number(3));
    // An SMI has no vector; its map stands in the same place.
    e.vector = byte();
    e.position_known = coin();
    if (e.position_known) {
      e.position = position();
    } else if (coin()) {
      e.count = EventCount{static_cast<CountUnit>(1 + number(4)), random_(), coin()};
    }
    e.anchor = anchor();
    e.transaction = random_();
    recording.interrupts.push_back(e);
  }
  for (std::uint64_t i = number(20); i > 0; --i) {
    ExternalWrite e;
    e.address = PhysAddr{word()};
    e.data.resize(number(100));
    for (std::uint8_t& value : e.data) value = byte();
    e.position_known = coin();
    if (e.position_known) e.position = position();
    e.anchor = anchor();
    e.window_begin = anchor();
    e.transaction = random_();
    recording.external_writes.push_back(e);
  }
  for (std::uint64_t i = number(50); i > 0; --i) {
    IoRead e;
    e.port = static_cast<std::uint16_t>(word());
    e.size = static_cast<std::uint8_t>(1U << number(3));
    e.value = word();
    e.position_known = coin();
    if (e.position_known) e.position = position();
    e.transaction = random_();
    recording.io_reads.push_back(e);
  }
  for (std::uint64_t i = number(20); i > 0; --i) {
    InternalRead e;
    e.op = static_cast<InternalRead::Op>(number(5));
    e.position_known = coin();
    if (e.position_known) e.position = position();
    e.ip = random_() >> number(64);
    for (std::uint32_t* value : {&e.eax, &e.ebx, &e.ecx, &e.edx}) *value = word();
    recording.internal_reads.push_back(e);
  }
  std::uint64_t instruction = 0;
  for (std::uint64_t i = number(20); i > 0; --i) {
    constexpr std::uint64_t kApart = std::uint64_t{1} << 40;
    instruction += number(kApart);
    const LinearAddr page = LinearAddr{random_()}.page_begin();
    recording.dropped_translations.push_back({{instruction, word()}, page});
  }
}

Recording RandomRecording::recording() {
  Recording r;
  for (std::uint64_t i = number(4); i > 0; --i) {
    r.provenance.files.push_back({text(), random_(), text()});
  }
  r.provenance.format = text();
  r.provenance.options = text();
  fill_cpu(r.initial);
  r.bus = {static_cast<CacheForm>(number(3)), word(), word(), word()};
  fill_image(r.image);
  fill_events(r);
  RecordingTotals& t = r.totals;
  for (std::uint64_t* total :
       {&t.transactions, &t.reads, &t.writes, &t.write_backs, &t.line_fills, &t.io_reads,
        &t.io_writes, &t.interrupts, &t.specials, &t.instruction_starts}) {
    *total = random_();
  }
  if (coin()) r.instructions = random_();
  for (std::uint64_t i = number(4); i > 0; --i) r.warnings.push_back(text());
  return r;
}

BusTransaction RandomRecording::transaction(std::uint64_t index) {
  BusTransaction t;
  t.index = index;
  t.op = static_cast<BusOp>(number(kBusOpCount));
  t.size = static_cast<std::uint8_t>(number(kMaxTransactionBytes + 1));
  t.flags = static_cast<std::uint16_t>(number(1024));
  if (t.has(kClockKnown)) t.clock = random_();
  if (t.has(kPositionKnown)) t.position = position();
  t.address = PhysAddr{word() >> number(32)};
  for (std::size_t i = 0; i < t.size; ++i) t.data[i] = byte();
  return t;
}

namespace {

void expect_equal_anchor(const BusAnchor& a, const BusAnchor& b) { EXPECT_TRUE(a == b); }

void expect_equal_events(const Recording& a, const Recording& b) {
  ASSERT_EQ(a.interrupts.size(), b.interrupts.size());
  for (std::size_t i = 0; i < a.interrupts.size(); ++i) {
    const Interrupt &x = a.interrupts[i], &y = b.interrupts[i];
    EXPECT_EQ(x.kind, y.kind);
    EXPECT_EQ(x.vector, y.vector);
    EXPECT_EQ(x.position_known, y.position_known);
    EXPECT_TRUE(x.position == y.position);
    EXPECT_EQ(x.count, y.count);
    expect_equal_anchor(x.anchor, y.anchor);
    EXPECT_EQ(x.transaction, y.transaction);
  }
  ASSERT_EQ(a.external_writes.size(), b.external_writes.size());
  for (std::size_t i = 0; i < a.external_writes.size(); ++i) {
    const ExternalWrite &x = a.external_writes[i], &y = b.external_writes[i];
    EXPECT_EQ(x.address.value, y.address.value);
    EXPECT_EQ(x.data, y.data);
    EXPECT_EQ(x.position_known, y.position_known);
    EXPECT_TRUE(x.position == y.position);
    expect_equal_anchor(x.anchor, y.anchor);
    expect_equal_anchor(x.window_begin, y.window_begin);
    EXPECT_EQ(x.transaction, y.transaction);
  }
  ASSERT_EQ(a.io_reads.size(), b.io_reads.size());
  for (std::size_t i = 0; i < a.io_reads.size(); ++i) {
    const IoRead x = a.io_reads[i], y = b.io_reads[i];
    EXPECT_EQ(x.port, y.port);
    EXPECT_EQ(x.size, y.size);
    EXPECT_EQ(x.value, y.value);
    EXPECT_EQ(x.position_known, y.position_known);
    EXPECT_TRUE(x.position == y.position);
    EXPECT_EQ(x.transaction, y.transaction);
  }
  ASSERT_EQ(a.internal_reads.size(), b.internal_reads.size());
  for (std::size_t i = 0; i < a.internal_reads.size(); ++i) {
    const InternalRead &x = a.internal_reads[i], &y = b.internal_reads[i];
    EXPECT_EQ(x.op, y.op);
    EXPECT_EQ(x.position_known, y.position_known);
    EXPECT_TRUE(x.position == y.position);
    EXPECT_EQ(x.ip, y.ip);
    EXPECT_EQ(x.eax, y.eax);
    EXPECT_EQ(x.ebx, y.ebx);
    EXPECT_EQ(x.ecx, y.ecx);
    EXPECT_EQ(x.edx, y.edx);
  }
  EXPECT_TRUE(a.dropped_translations == b.dropped_translations);
}

void expect_equal_totals(const RecordingTotals& a, const RecordingTotals& b) {
  EXPECT_EQ(a.transactions, b.transactions);
  EXPECT_EQ(a.reads, b.reads);
  EXPECT_EQ(a.writes, b.writes);
  EXPECT_EQ(a.write_backs, b.write_backs);
  EXPECT_EQ(a.line_fills, b.line_fills);
  EXPECT_EQ(a.io_reads, b.io_reads);
  EXPECT_EQ(a.io_writes, b.io_writes);
  EXPECT_EQ(a.interrupts, b.interrupts);
  EXPECT_EQ(a.specials, b.specials);
  EXPECT_EQ(a.instruction_starts, b.instruction_starts);
}

}  // namespace

void expect_equal(const MemoryImage& expected, const MemoryImage& found) {
  ASSERT_EQ(expected.pages().size(), found.pages().size());
  for (const auto& [number, page] : expected.pages()) {
    const MemoryImage::Page* const other = found.find(number);
    ASSERT_NE(other, nullptr) << "page " << number;
    EXPECT_EQ(page->valid, other->valid) << "page " << number;
    EXPECT_EQ(page->data, other->data) << "page " << number;
  }
}

void expect_equal(const Recording& expected, const Recording& found) {
  const Provenance &a = expected.provenance, &b = found.provenance;
  ASSERT_EQ(a.files.size(), b.files.size());
  for (std::size_t i = 0; i < a.files.size(); ++i) {
    EXPECT_EQ(a.files[i].name, b.files[i].name);
    EXPECT_EQ(a.files[i].bytes, b.files[i].bytes);
    EXPECT_EQ(a.files[i].xxh3, b.files[i].xxh3);
  }
  EXPECT_EQ(a.format, b.format);
  EXPECT_EQ(a.options, b.options);
  EXPECT_TRUE(expected.initial == found.initial);
  EXPECT_EQ(expected.bus.form, found.bus.form);
  EXPECT_EQ(expected.bus.line_bytes, found.bus.line_bytes);
  EXPECT_EQ(expected.bus.bus_bytes, found.bus.bus_bytes);
  EXPECT_EQ(expected.bus.address_mask, found.bus.address_mask);
  expect_equal(expected.image, found.image);
  expect_equal_events(expected, found);
  expect_equal_totals(expected.totals, found.totals);
  EXPECT_EQ(expected.instructions, found.instructions);
  EXPECT_EQ(expected.ending, found.ending);
  EXPECT_EQ(expected.warnings, found.warnings);
}

void expect_equal_evidence(const BusTransaction& expected, const BusTransaction& found) {
  const bool has_data = expected.op != BusOp::code_read && expected.op != BusOp::data_read;
  EXPECT_EQ(expected.index, found.index);
  EXPECT_EQ(expected.clock, found.clock);
  EXPECT_TRUE(expected.position == found.position);
  EXPECT_EQ(expected.address.value, found.address.value);
  EXPECT_EQ(expected.op, found.op);
  EXPECT_EQ(expected.size, found.size);
  EXPECT_EQ(expected.flags, found.flags);
  EXPECT_EQ(has_data ? expected.data : decltype(expected.data){}, found.data);
}

}  // namespace citcat::test
