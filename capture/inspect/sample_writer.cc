#include "capture/inspect/sample_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "formats/text/printable_text.h"

namespace citcat {
namespace {

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

/// A name or text as a value change dump can hold it: words end at blanks.
std::string vcd_word(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '_');
  return text;
}

/// When each sample was: in picoseconds where the rate is known, else in samples, of which the file
/// then has the numbers for times.
class VcdTimes {
 public:
  explicit VcdTimes(double rate)
      : unit_(rate > 0 && rate <= kPicoseconds ? kPicoseconds / rate : 0) {}
  std::uint64_t of(std::uint64_t sample) const {
    if (unit_ == 0) return sample;
    return static_cast<std::uint64_t>(std::llround(static_cast<double>(sample) * unit_));
  }
  std::string head(const SampleInfo& info) const {
    if (unit_ == 0) return "$comment one unit is one sample $end\n$timescale 1 ns $end\n";
    // The comment in which libsigrok tells the rate, which our reader and others understand.
    return fmt::format(
        "$comment Acquisition with {0}/{0} channels at {1:.12g} Hz $end\n"
        "$timescale 1 ps $end\n",
        info.channels.size(), info.sample_rate_hz);
  }

 private:
  static constexpr double kPicoseconds = 1e12;
  double unit_;  ///< of a sample
};

class VcdSampleWriter final : public SampleWriter {
 public:
  VcdSampleWriter(const SampleInfo& info, TextOut& out, ExtraSignals* extra)
      : info_(info), out_(out), extra_(extra), times_(info.sample_rate_hz) {
    out_.add(times_.head(info));
    out_.add("$scope module capture $end\n");
    for (std::size_t i = 0; i < info.channels.size(); ++i) {
      out_.add(fmt::format("$var wire 1 {} {} $end\n", vcd_identifier(i),
                           vcd_word(channel_name(info, i))));
    }
    out_.add("$upscope $end\n");
    if (extra_ != nullptr) declare_signals();
    out_.add("$enddefinitions $end\n");
  }

  void sample(std::uint64_t number, std::span<const std::uint8_t> levels,
              std::span<const std::uint8_t> previous) override {
    tell_signals(number);
    begin(number);
    for (std::size_t i = 0; i < info_.channels.size(); ++i) {
      const bool level = level_of(levels, i);
      if (previous.empty() || level_of(previous, i) != level)
        out_.add(fmt::format(" {}{}", level ? 1 : 0, vcd_identifier(i)));
    }
    if (previous.empty()) {
      for (std::size_t s = 0; s < latest_.size(); ++s) out_.add(" " + value(latest_[s]));
    }
  }

  void finish(std::uint64_t end) override {
    tell_signals(end);
    out_.add("\n");
  }

 private:
  void declare_signals() {
    signals_ = extra_->signals();
    out_.add("$scope module replay $end\n");
    for (std::size_t s = 0; s < signals_.size(); ++s) {
      out_.add(fmt::format("$var {} {} {} {} $end\n", signals_[s].bits == 0 ? "string" : "wire",
                           std::max(signals_[s].bits, 1u), identifier(s), signals_[s].name));
      latest_.push_back({0, s, 0, "-"});
    }
    out_.add("$upscope $end\n");
    advance();
  }
  void advance() {
    ExtraSignals::Change change;
    coming_ = extra_->next(change) ? std::optional(std::move(change)) : std::nullopt;
  }
  /// The changes before sample `end`. Those before the first sample are what it begins with.
  void tell_signals(std::uint64_t end) {
    for (; coming_ && coming_->clock < end; advance()) {
      if (begun_) {
        begin(std::max(coming_->clock, at_));
        out_.add(" " + value(*coming_));
      }
      latest_[coming_->signal] = *coming_;
    }
  }
  /// What follows is of this sample.
  void begin(std::uint64_t number) {
    if (begun_ && number == at_) return;
    out_.add(fmt::format("{}#{}", begun_ ? "\n" : "", times_.of(number)));
    begun_ = true;
    at_ = number;
  }
  std::string identifier(std::size_t signal) const {
    return vcd_identifier(info_.channels.size() + signal);
  }
  std::string value(const ExtraSignals::Change& change) const {
    const unsigned bits = signals_[change.signal].bits;
    const std::string id = identifier(change.signal);
    if (bits == 0) return fmt::format("s{} {}", vcd_word(change.text), id);
    return bits == 1 ? fmt::format("{}{}", change.number & 1, id)
                     : fmt::format("b{:b} {}", change.number, id);
  }

  const SampleInfo& info_;
  TextOut& out_;
  ExtraSignals* extra_;
  VcdTimes times_;
  std::vector<ExtraSignals::Signal> signals_;
  std::vector<ExtraSignals::Change> latest_;  ///< of each signal
  std::optional<ExtraSignals::Change> coming_;
  std::uint64_t at_ = 0;
  bool begun_ = false;
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
      out_.add((i == 0 ? "" : ",") + csv_field(channel_name(info, i)));
    out_.add("\n");
  }
  /// Samples left out because nothing changed are written again.
  void sample(std::uint64_t number, std::span<const std::uint8_t> levels,
              std::span<const std::uint8_t> previous) override {
    for (; !previous.empty() && next_ < number; ++next_) row(previous);
    row(levels);
    next_ = number + 1;
    last_.assign(levels.begin(), levels.end());
  }
  void finish(std::uint64_t end) override {
    for (; !last_.empty() && next_ < end; ++next_) row(last_);
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
  std::vector<std::uint8_t> last_;  ///< levels of the sample before
};

}  // namespace

std::unique_ptr<SampleWriter> make_sample_writer(std::string_view target, const SampleInfo& info,
                                                 TextOut& out, ExtraSignals* extra) {
  if (target == "vcd") return std::make_unique<VcdSampleWriter>(info, out, extra);
  if (target == "ols") return std::make_unique<OlsSampleWriter>(info, out);
  return std::make_unique<CsvSampleWriter>(info, out);
}

}  // namespace citcat
