#include "capture/inspect/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/bus/cache_form.h"
#include "capture/import/byu_capture.h"
#include "capture/import/native_writer.h"
#include "capture/import/record_csv.h"
#include "capture/import/sample_formats.h"
#include "events/cpu_traits.h"
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

/// Collects text and hands it on in large pieces.
class TextOut {
 public:
  explicit TextOut(ByteSink& sink) : sink_(sink) {}
  void add(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPiece) flush();
  }
  void flush() {
    sink_.write(std::span(reinterpret_cast<const std::uint8_t*>(text_.data()), text_.size()));
    text_.clear();
  }

 private:
  static constexpr std::size_t kPiece = 1 << 16;
  ByteSink& sink_;
  std::string text_;
};

// ---- samples to samples

/// Receives every change of the levels.
class SampleWriter {
 public:
  virtual ~SampleWriter() = default;
  /// `number` is the sample's; `previous` is empty for the first one.
  virtual void sample(std::uint64_t number, std::span<const std::uint8_t> levels,
                      std::span<const std::uint8_t> previous) = 0;
};

bool level_of(std::span<const std::uint8_t> levels, std::size_t channel) {
  return ((levels[channel / 8] >> (channel % 8)) & 1) != 0;
}

std::string channel_name(const SampleInfo& info, std::size_t channel) {
  return info.channels[channel].empty() ? std::to_string(channel) : info.channels[channel];
}

/// Identifiers of VCD variables: printable characters, least significant first.
std::string vcd_identifier(std::size_t number) {
  constexpr std::size_t kFirst = 33, kCount = 94;
  std::string id;
  do {
    id += static_cast<char>(kFirst + number % kCount);
    number /= kCount;
  } while (number != 0);
  return id;
}

class VcdSampleWriter final : public SampleWriter {
 public:
  VcdSampleWriter(const SampleInfo& info, TextOut& out) : info_(info), out_(out) {
    // Times are sample numbers: any scale would be a rounded one.
    out_.add("$comment one unit is one sample");
    if (info.sample_rate_hz > 0) out_.add(fmt::format(", {} Hz", info.sample_rate_hz));
    out_.add(" $end\n$timescale 1 ns $end\n$scope module capture $end\n");
    for (std::size_t i = 0; i < info.channels.size(); ++i) {
      std::string name = channel_name(info, i);
      std::replace(name.begin(), name.end(), ' ', '_');
      out_.add(fmt::format("$var wire 1 {} {} $end\n", vcd_identifier(i), name));
    }
    out_.add("$upscope $end\n$enddefinitions $end\n");
  }
  void sample(std::uint64_t number, std::span<const std::uint8_t> levels,
              std::span<const std::uint8_t> previous) override {
    out_.add(fmt::format("#{}", number));
    for (std::size_t i = 0; i < info_.channels.size(); ++i) {
      const bool level = level_of(levels, i);
      if (previous.empty() || level_of(previous, i) != level)
        out_.add(fmt::format(" {}{}", level ? 1 : 0, vcd_identifier(i)));
    }
    out_.add("\n");
  }

 private:
  const SampleInfo& info_;
  TextOut& out_;
};

class OlsSampleWriter final : public SampleWriter {
 public:
  OlsSampleWriter(const SampleInfo& info, TextOut& out) : out_(out) {
    if (info.sample_rate_hz > 0) out_.add(fmt::format(";Rate: {:.0f}\n", info.sample_rate_hz));
    out_.add(fmt::format(";Channels: {}\n;EnabledChannels: -1\n;Compressed: true\n",
                         info.channels.size()));
  }
  void sample(std::uint64_t number, std::span<const std::uint8_t> levels,
              std::span<const std::uint8_t>) override {
    std::string line;
    for (std::size_t i = levels.size(); i-- > 0;) line += fmt::format("{:02x}", levels[i]);
    out_.add(fmt::format("{}@{}\n", line, number));
  }

 private:
  TextOut& out_;
};

class CsvSampleWriter final : public SampleWriter {
 public:
  CsvSampleWriter(const SampleInfo& info, TextOut& out) : info_(info), out_(out) {
    for (std::size_t i = 0; i < info.channels.size(); ++i)
      out_.add((i == 0 ? "" : ",") + channel_name(info, i));
    out_.add("\n");
  }
  /// Samples left out because nothing changed are written again.
  void sample(std::uint64_t number, std::span<const std::uint8_t> levels,
              std::span<const std::uint8_t> previous) override {
    for (; !previous.empty() && next_ < number; ++next_) row(previous);
    row(levels);
    next_ = number + 1;
  }

 private:
  void row(std::span<const std::uint8_t> levels) {
    std::string line;
    for (std::size_t i = 0; i < info_.channels.size(); ++i) {
      if (i != 0) line += ',';
      line += level_of(levels, i) ? '1' : '0';
    }
    out_.add(line + "\n");
  }

  const SampleInfo& info_;
  TextOut& out_;
  std::uint64_t next_ = 0;
};

std::uint64_t copy_samples(SampleSource& source, SampleWriter& writer, bool all,
                           const std::function<void(std::uint64_t)>& progress) {
  const std::size_t unit = source.info().unit_bytes;
  std::vector<std::uint8_t> previous;
  SampleBlock block;
  std::uint64_t written = 0;
  while (source.next(block)) {
    const std::size_t count = block.bytes.size() / unit;
    for (std::size_t i = 0; i < count; ++i) {
      const auto levels = block.bytes.subspan(i * unit, unit);
      const bool same = std::equal(levels.begin(), levels.end(), previous.begin(), previous.end());
      if (same && !all) continue;
      writer.sample(block.numbers.empty() ? block.first + i : block.numbers[i], levels, previous);
      previous.assign(levels.begin(), levels.end());
      ++written;
    }
    if (progress) progress(written);
  }
  return written;
}

// ---- transactions

class TransactionWriter {
 public:
  virtual ~TransactionWriter() = default;
  /// False when the format has no record for it.
  virtual bool write(const BusTransaction& transaction) = 0;
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

void copy_transactions(CaptureReader& capture, TransactionWriter& writer, ConvertResult& result,
                       const std::function<void(std::uint64_t)>& progress) {
  std::uint64_t segments = 1;
  BusTransaction transaction;
  for (;;) {
    while (capture.next(transaction)) {
      drop_count(capture.info(), transaction);
      ++(writer.write(transaction) ? result.written : result.left_out);
      if (progress) progress(result.written);
    }
    if (!capture.next_segment()) break;
    ++segments;
  }
  if (is_interrupted(capture.info().ending)) writer.interrupted(capture.info().ending);
  result.warnings = capture.info().warnings;
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
  throw UsageError("unknown target '" + std::string(id) + "'; known are " + names);
}

void convert_samples(SampleSource& source, std::string_view target, TextOut& out,
                     ConvertResult& result, const std::function<void(std::uint64_t)>& progress) {
  const SampleInfo& info = source.info();
  std::unique_ptr<SampleWriter> writer;
  if (target == "vcd") {
    writer = std::make_unique<VcdSampleWriter>(info, out);
  } else if (target == "ols") {
    writer = std::make_unique<OlsSampleWriter>(info, out);
  } else {
    writer = std::make_unique<CsvSampleWriter>(info, out);
  }
  result.written = copy_samples(source, *writer, target == "samples-csv", progress);
  result.warnings = source.warnings();
}

}  // namespace

std::span<const ConvertTarget> convert_targets() { return kTargets; }

ConvertResult convert_capture(const std::vector<std::string>& paths, const CaptureOptions& options,
                              std::string_view target, std::unique_ptr<ByteSink> sink,
                              const std::function<void(std::uint64_t)>& progress) {
  const ConvertTarget& row = find_target(target);
  if (paths.empty()) throw UsageError("no capture file was given");
  const CaptureFormat* format = options.format.empty() ? detect_capture_format(paths[0])
                                                       : find_capture_format(options.format);
  if (format == nullptr)
    throw FormatError(paths[0], 0, "expected a capture in a known format, found none");
  ConvertResult result;
  result.from = format->id;
  TextOut out(*sink);
  const bool pins = row.needs_samples || row.id == "vcd";
  const auto samples = pins ? open_samples(format->id, paths) : nullptr;
  if (samples) {
    convert_samples(*samples, row.id, out, result, progress);
  } else if (row.needs_samples) {
    throw UsageError(paths[0] + ": format '" + std::string(format->id) +
                     "' holds records, from which no samples can be made");
  } else {
    const CaptureInfo whole = row.id == "native" ? whole_info(paths, options) : CaptureInfo{};
    const auto capture = open_capture(paths, options);
    std::unique_ptr<TransactionWriter> writer;
    if (row.id == "native") {
      writer = std::make_unique<NativeTransactionWriter>(whole, *sink);
    } else if (row.id == "byu") {
      writer = std::make_unique<ByuWriter>(*sink);
    } else if (row.id == "record-csv") {
      writer = std::make_unique<RecordCsvWriter>(capture->info(), out);
    } else {
      writer = std::make_unique<VcdTransactionWriter>(out);
    }
    copy_transactions(*capture, *writer, result, progress);
  }
  out.flush();
  sink->finish();
  return result;
}

}  // namespace citcat
