#include "capture/inspect/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "capture/bus/cache_form.h"
#include "capture/import/byu_capture.h"
#include "capture/import/native_writer.h"
#include "capture/import/record_csv.h"
#include "capture/import/sample_formats.h"
#include "capture/inspect/sample_writer.h"
#include "capture/inspect/text_out.h"
#include "events/capture_time.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "formats/io/once_input.h"

namespace citcat {
namespace {

constexpr ConvertTarget kTargets[] = {
    {"byu", "BYU address trace, 12-byte records (v1.1): addresses without data", false},
    {"record-csv", "bus records as CSV, which import reads again", false},
    {"native", "bus records, binary: the form that import reads fastest", false},
    {"vcd", "value change dump: the channels, or the transactions of a capture of records", false},
    {"samples-csv", "one row a sample, as libsigrok writes them", true},
    {"ols", "Logic Sniffer client file, changes only", true},
};

/// [from, to).
struct Range {
  std::uint64_t from = 0, to = std::numeric_limits<std::uint64_t>::max();

  bool has(std::uint64_t number) const { return number >= from && number < to; }
};

/// The times of `range` as clocks, of `rate` a second: 0 if it is not known.
Range clocks_of(const ConvertRange& range, double rate, const std::string& path) {
  Range clocks;
  for (const auto& [seconds, clock] :
       {std::pair(range.from_seconds, &clocks.from), std::pair(range.to_seconds, &clocks.to)}) {
    if (!seconds) continue;
    if (rate <= 0)
      throw UsageError("--from, --until: expected a number, found a time, and " + path +
                       " does not give its sample rate");
    *clock = clock_at(*seconds, rate);
  }
  return clocks;
}

/// Copies the samples of a range to a writer.
class SampleCopy {
 public:
  /// `all`: also those in which nothing changes.
  SampleCopy(SampleWriter& writer, std::size_t unit_bytes, const Range& range, bool all)
      : writer_(writer), unit_(unit_bytes), range_(range), all_(all) {}

  /// False where nothing of what follows is in the range.
  bool add(const SampleBlock& block) {
    const std::size_t count = block.bytes.size() / unit_;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t number = block.numbers.empty() ? block.first + i : block.numbers[i];
      begin_before(number);
      if (number >= range_.to) return false;
      last_ = number;
      take(number, block.bytes.subspan(i * unit_, unit_));
    }
    return true;
  }
  std::uint64_t written() const { return written_; }
  /// The capture has ended (`at_end`), or the range.
  void finish(bool at_end) {
    if (!at_end) last_ = range_.to - 1;
    if (range_.from > last_) {
      throw UsageError(fmt::format(
          "--from: expected a sample of the capture, and it ends after {} samples", last_ + 1));
    }
    begin_before(last_ + 1);
    writer_.finish(last_ + 1);
  }

 private:
  /// Where the range begins between two samples of a file of changes, the levels are those of the
  /// first.
  void begin_before(std::uint64_t number) {
    if (begun_ || held_.empty() || number <= range_.from) return;
    begun_ = true;
    writer_.sample(range_.from, held_, {});
    ++written_;
  }
  void take(std::uint64_t number, std::span<const std::uint8_t> levels) {
    const bool same = std::equal(levels.begin(), levels.end(), held_.begin(), held_.end());
    const bool wanted = number >= range_.from && (!begun_ || !same || all_);
    if (wanted) {
      writer_.sample(
          number, levels,
          begun_ ? std::span<const std::uint8_t>(held_) : std::span<const std::uint8_t>());
      begun_ = true;
      ++written_;
    }
    if (!same) held_.assign(levels.begin(), levels.end());
  }

  SampleWriter& writer_;
  std::size_t unit_;
  Range range_;
  bool all_;
  std::vector<std::uint8_t> held_;  ///< levels of the sample before
  bool begun_ = false;
  std::uint64_t last_ = 0, written_ = 0;
};

// ---- transactions

class TransactionWriter {
 public:
  virtual ~TransactionWriter() = default;
  /// False when the format has no record for it.
  virtual bool write(const BusTransaction& transaction) = 0;
  /// After the last transaction, where the capture says how far the processor has come. Most
  /// formats have no place for it.
  virtual void reached(const Position&) {}
  /// After the last transaction of a capture that was interrupted. Most formats have no place for
  /// it.
  virtual void interrupted(Ending) {}
  /// After everything; may have something to say.
  virtual void finish(std::vector<std::string>& /*warnings*/) {}
};

class ByuWriter final : public TransactionWriter {
 public:
  explicit ByuWriter(ByteSink& sink) : sink_(sink) {}
  bool write(const BusTransaction& t) override {
    ByuRecord record;
    if (!byu_record_of(t, record)) return false;
    constexpr std::uint64_t kLongest = 0xfffffffe;  // all ones say that the time is not known
    if (t.has(kClockKnown)) {
      if (last_clock_ && t.clock > *last_clock_)
        record.time = static_cast<std::uint32_t>(std::min(t.clock - *last_clock_, kLongest));
      last_clock_ = t.clock;
    }
    sink_.write(pack_byu(record));
    return true;
  }

 private:
  ByteSink& sink_;
  std::optional<std::uint64_t> last_clock_;
};

class RecordCsvWriter final : public TransactionWriter {
 public:
  /// `info` may come to know more of the machine while transactions are written.
  RecordCsvWriter(const CaptureInfo& info, TextOut& out) : info_(info), out_(out) {
    out_.add(kRecordCsvDeclaration);
    if (!info.has_data) out_.add(kRecordCsvWithoutData);
    if (is_known(info.cpu)) out_.add(fmt::format(" cpu={}", cpu_model_name(info.cpu)));
    // What is inferred here will be inferred there, by then from all of the capture.
    if (!info.width_inferred) out_.add(fmt::format(" bus={}", info.bus.bus_bytes));
    if (!info.cache_inferred) {
      out_.add(
          fmt::format(" cache={} line={}", cache_form_name(info.bus.form), info.bus.line_bytes));
    }
    out_.add(fmt::format(" mask={:x}\n{}\n", info.address_mask, record_csv_header()));
  }
  bool write(const BusTransaction& t) override {
    out_.add(record_csv_lines(t, info_.bus.line_bytes, info_.has_data));
    out_.add("\n");
    next_ = t.index + 1;
    return true;
  }
  void reached(const Position& position) override {
    out_.add(record_csv_reached_line(next_, position));
    out_.add("\n");
  }
  void interrupted(Ending ending) override {
    out_.add(record_csv_cut_line(next_, ending));
    out_.add("\n");
  }

 private:
  const CaptureInfo& info_;
  TextOut& out_;
  std::uint64_t next_ = 0;  ///< index of the transaction that would come next
};

class NativeTransactionWriter final : public TransactionWriter {
 public:
  NativeTransactionWriter(const CaptureInfo& info, ByteSink& sink) : writer_(sink, info) {}
  bool write(const BusTransaction& t) override { return writer_.write(t); }
  void reached(const Position& position) override { writer_.write_reached(position); }
  void interrupted(Ending ending) override { writer_.write_cut(ending); }
  void finish(std::vector<std::string>& warnings) override {
    writer_.finish();
    if (writer_.lost_time()) {
      warnings.emplace_back(
          "more than 2^32 clocks passed between two transactions: the clock of those that follow "
          "is "
          "too small");
    }
  }

 private:
  NativeWriter writer_;
};

/// What is known of a capture when it was read to its end: the native form declares it at the
/// beginning.
CaptureInfo whole_info(const std::vector<std::string>& paths, const CaptureOptions& options) {
  for (const std::string& path : paths) make_rereadable(path);
  const auto capture = open_capture(paths, options);
  const CaptureInfo& info = capture->info();
  if (!info.has_data) {
    throw UsageError(paths[0] + ": format '" + info.format +
                     "' holds addresses only, and the native form needs data: convert it to csv");
  }
  if (!info.width_inferred) return info;
  std::vector<BusTransaction> block(256);
  do {
    while (capture->next_block(block) != 0) {
    }
  } while (capture->next_segment());
  return info;
}

/// Transactions as signals: what a waveform viewer shows of a capture that has no pins.
class VcdTransactionWriter final : public TransactionWriter {
 public:
  explicit VcdTransactionWriter(TextOut& out) : out_(out) {
    out_.add("$comment one unit is one clock, or one transaction where no clock is known\n op:");
    for (int i = 0; i < kBusOpCount; ++i)
      out_.add(fmt::format(" {} {}", i, bus_op_name(static_cast<BusOp>(i))));
    out_.add(
        fmt::format(" $end\n$timescale 1 ns $end\n$scope module bus $end\n"
                    "$var wire 4 o op $end\n$var wire 32 a address $end\n"
                    "$var wire 6 s size $end\n$var wire {} d data $end\n"
                    "$upscope $end\n$enddefinitions $end\n",
                    8 * kMaxTransactionBytes));
  }
  bool write(const BusTransaction& t) override {
    if (t.address.value >> 32 != 0) return false;
    const std::uint64_t wanted = t.has(kClockKnown) ? t.clock : t.index;
    const std::uint64_t time = any_ ? std::max(time_ + 1, wanted) : wanted;
    time_ = time;
    any_ = true;
    std::string data;
    for (std::size_t i = t.size; i-- > 0;) data += fmt::format("{:08b}", t.data[i]);
    out_.add(fmt::format("#{} b{:b} o b{:b} a b{:b} s b{} d\n", time, static_cast<unsigned>(t.op),
                         t.address.u32(), t.size, data.empty() ? "0" : data));
    return true;
  }

 private:
  TextOut& out_;
  std::uint64_t time_ = 0;
  bool any_ = false;
};

/// Copies the transactions of a range. False where nothing of what follows is in it.
bool copy_segment(CaptureReader& capture, TransactionWriter& writer, const ConvertOptions& how,
                  const Range& clocks, ConvertResult& result) {
  BusTransaction transaction;
  while (capture.next(transaction)) {
    if (transaction.index >= how.range.to) return false;
    drop_count(capture.info(), transaction);
    if (transaction.index < how.range.from || !clocks.has(transaction.clock)) continue;
    ++(writer.write(transaction) ? result.written : result.left_out);
    if (how.progress) how.progress(result.written);
  }
  return true;
}

void copy_transactions(CaptureReader& capture, TransactionWriter& writer, const ConvertOptions& how,
                       const std::string& path, ConvertResult& result) {
  const Range clocks = clocks_of(how.range, capture.info().clock_hz, path);
  std::uint64_t segments = 1;
  bool more = copy_segment(capture, writer, how, clocks, result);
  for (; more && capture.next_segment(); ++segments)
    more = copy_segment(capture, writer, how, clocks, result);
  const bool ranged = how.range.from != 0 || clocks.from != 0;
  if (ranged && result.written + result.left_out == 0)
    throw UsageError("--from: expected a transaction of the capture, and " + path +
                     " ends before it");
  if (more && capture.info().reached) writer.reached(*capture.info().reached);
  if (more && is_interrupted(capture.info().ending)) writer.interrupted(capture.info().ending);
  result.warnings = capture.info().warnings;
  if (result.written + result.left_out == 0)
    result.warnings.emplace_back(
        "the capture shows no transaction; citcat lint looks for the reason");
  if (const CountUnit unit = capture.info().counts; unit != CountUnit::instructions) {
    result.warnings.push_back("counts of " + std::string(count_unit_name(unit)) +
                              " at interrupts are left out: positions are instructions");
  }
  writer.finish(result.warnings);
  if (segments != 1)
    result.warnings.push_back(std::to_string(segments) +
                              " segments became one file: nothing marks where they meet");
}

const ConvertTarget& find_target(std::string_view id) {
  if (id == "csv") id = "record-csv";
  const auto it = std::find_if(std::begin(kTargets), std::end(kTargets),
                               [&](const ConvertTarget& target) { return target.id == id; });
  if (it != std::end(kTargets)) return *it;
  std::string names;
  for (const ConvertTarget& target : kTargets)
    names += (names.empty() ? "" : ", ") + std::string(target.id);
  throw UsageError("--to: expected " + names + ", found " + std::string(id));
}

void convert_samples(SampleSource& source, std::string_view target, TextOut& out,
                     const ConvertOptions& how, ConvertResult& result) {
  const SampleInfo& info = source.info();
  const Range times = clocks_of(how.range, info.sample_rate_hz, info.name);
  const Range range{std::max(how.range.from, times.from), std::min(how.range.to, times.to)};
  const auto writer = make_sample_writer(target, info, out, how.extra);
  SampleCopy copy(*writer, info.unit_bytes, range, target == "samples-csv");
  SampleBlock block;
  bool more = true, wanted = true;
  while (wanted && (more = source.next(block))) {
    wanted = copy.add(block);
    if (how.progress) how.progress(copy.written());
  }
  copy.finish(!more);
  result.written = copy.written();
  result.warnings = source.warnings();
}

std::unique_ptr<TransactionWriter> make_transaction_writer(std::string_view target,
                                                           const CaptureInfo& info,
                                                           const CaptureInfo& whole, ByteSink& sink,
                                                           TextOut& out) {
  if (target == "native") return std::make_unique<NativeTransactionWriter>(whole, sink);
  if (target == "byu") return std::make_unique<ByuWriter>(sink);
  if (target == "record-csv") return std::make_unique<RecordCsvWriter>(info, out);
  return std::make_unique<VcdTransactionWriter>(out);
}

}  // namespace

std::span<const ConvertTarget> convert_targets() { return kTargets; }

ConvertResult convert_capture(const std::vector<std::string>& paths, const CaptureOptions& options,
                              std::string_view target, std::unique_ptr<ByteSink> sink,
                              const ConvertOptions& how) {
  const ConvertTarget& row = find_target(target);
  if (paths.empty()) throw UsageError("no capture file was given");
  const CaptureFormat& format = capture_format_of(paths[0], options);
  ConvertResult result;
  result.from = format.id;
  TextOut out(*sink);
  const bool pins = row.needs_samples || row.id == "vcd";
  const auto samples = pins ? open_samples(format_in_full(format.id, options), paths) : nullptr;
  if (samples) {
    convert_samples(*samples, row.id, out, how, result);
  } else if (row.needs_samples || how.extra != nullptr) {
    throw UsageError(paths[0] + ": format '" + std::string(format.id) +
                     "' holds records, from which no samples can be made");
  } else {
    const CaptureInfo whole = row.id == "native" ? whole_info(paths, options) : CaptureInfo{};
    const auto capture = open_capture(paths, options);
    const std::unique_ptr<TransactionWriter> writer =
        make_transaction_writer(row.id, capture->info(), whole, *sink, out);
    copy_transactions(*capture, *writer, how, paths[0], result);
  }
  out.flush();
  sink->finish();
  return result;
}

}  // namespace citcat
