#include "capture/import/record_capture.h"

#include <algorithm>
#include <filesystem>

#include "events/machine/cpu_traits.h"
#include "events/machine/stand_ins.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

class RecordCapture final : public CaptureReader {
 public:
  /// `paths` are the segments after `first`.
  RecordCapture(std::string format, std::unique_ptr<InputStream> first,
                std::vector<std::string> paths, const CaptureOptions& options, RecordFileMaker make)
      : paths_(std::move(paths)), options_(options), make_(std::move(make)) {
    info_.format = std::move(format);
    open_file(std::move(first));
  }

  const CaptureInfo& info() const override { return info_; }

  bool next(BusTransaction& out) override { return next_block({&out, 1}) == 1; }

  std::size_t next_block(std::span<BusTransaction> out) override {
    do {
      if (!file_ || (records_.empty() && !read_records())) return 0;
    } while (take_stand_in() || take_high() || take_reached());
    const std::size_t count = std::min(out.size(), records_.size() / kBusRecordBytes);
    std::size_t i = 0;
    while (true) {
      const auto left = records_.subspan(i * kBusRecordBytes, (count - i) * kBusRecordBytes);
      const std::size_t plain = decoder_.decode_plain(left, fields_, out.subspan(i));
      if (!is_low_) give_addresses(out.subspan(i, plain));
      i += plain;
      if (i == count) break;
      const BusRecord record =
          unpack_bus_record(records_.subspan(i * kBusRecordBytes).first<kBusRecordBytes>());
      const bool cut = record.type == static_cast<std::uint8_t>(BusRecordType::cut);
      const bool is_transaction =
          !cut && !is_stand_in(record) && !is_high(record) && !is_reached(record);
      if (!check(record, i, i != 0) || (!is_transaction && i != 0)) break;
      if (cut) {
        take_cut(record);
        return 0;
      }
      decoder_.decode(record, fields_, out[i]);
      if (!is_low_) give_addresses(out.subspan(i, 1));
      ++i;
      if (decoder_.learnt()) learn();
    }
    leave_out(i);
    return i;
  }

  bool has_runs() const override { return has_runs_; }

  AccessRun run() override {
    // The addresses of a run are those of its records.
    if (!is_low_ || !file_ || (records_.empty() && !read_records())) return {};
    return decoder_.run(records_, fields_);
  }

  void take_run(const AccessRun& run) override {
    decoder_.take(run);
    leave_out(run.size());
  }

  bool next_segment() override {
    if (file_ || next_path_ == paths_.size()) return false;
    open_file(std::make_unique<InputStream>(paths_[next_path_++]));
    decoder_.begin_segment();
    return true;
  }

 private:
  static bool is_stand_in(const BusRecord& record) {
    return record.type == static_cast<std::uint8_t>(BusRecordType::stand_in);
  }

  static bool is_high(const BusRecord& record) {
    return record.type == static_cast<std::uint8_t>(BusRecordType::high);
  }

  static bool is_reached(const BusRecord& record) {
    return record.type == static_cast<std::uint8_t>(BusRecordType::reached);
  }

  /// Whether the next record said how far the processor has come; it is consumed. Nothing but the
  /// mark of an interruption may follow.
  bool take_reached() {
    const BusRecord record = unpack_bus_record(records_.first<kBusRecordBytes>());
    if (!is_reached(record)) {
      if (!info_.reached || record.type == static_cast<std::uint8_t>(BusRecordType::cut))
        return false;
      throw FormatError(file_->input().name(), file_->where(first_),
                        "bus record: follows the one that says how far the processor has come");
    }
    (void)check(record, 0, false);
    info_.reached = Position{record.instructions, record.iterations};
    leave_out(1);
    return true;
  }

  /// Puts addresses that records do not have as a whole in their place.
  void give_addresses(std::span<BusTransaction> transactions) const {
    for (BusTransaction& t : transactions) {
      if (!t.is_memory()) continue;
      t.address = PhysAddr{upper_ | stand_ins_.meant(t.address).value};
    }
  }

  /// Whether the next record said where in memory those after it are; it is consumed.
  bool take_high() {
    const BusRecord record = unpack_bus_record(records_.first<kBusRecordBytes>());
    if (!is_high(record)) return false;
    (void)check(record, 0, false);
    set_upper(record.address);
    leave_out(1);
    return true;
  }

  void set_upper(std::uint32_t upper) {
    upper_ = std::uint64_t{upper} << 32;
    is_low_ = upper_ == 0 && stand_ins_.empty();
  }

  /// Whether the next record said what a page stands for; it is consumed.
  bool take_stand_in() {
    const BusRecord record = unpack_bus_record(records_.first<kBusRecordBytes>());
    if (!is_stand_in(record)) return false;
    (void)check(record, 0, false);
    const std::string wrong = stand_ins_.add(PhysAddr{record.address}, stood_for(record));
    if (!wrong.empty())
      throw FormatError(file_->input().name(), file_->where(first_), "bus record: " + wrong);
    is_low_ = false;
    leave_out(1);
    return true;
  }

  void leave_out(std::size_t count) {
    records_ = records_.subspan(count * kBusRecordBytes);
    first_ += count;
  }

  /// The capture says that it was interrupted; nothing may follow.
  void take_cut(const BusRecord& record) {
    info_.ending = ending_of_cut(record.data[0]);
    info_.warnings.push_back(file_->input().name() + ": the capture was interrupted (" +
                             std::string(ending_name(info_.ending)) + "): it was meant to go on");
    leave_out(1);
    if (records_.empty() && !read_records()) return;
    throw FormatError(file_->input().name(), file_->where(first_),
                      "bus record: follows the one that ends an interrupted capture");
  }

  void open_file(std::unique_ptr<InputStream> input) {
    file_ = make_(std::move(input));
    has_runs_ = file_->is_stored_so();
    info_.ending = Ending::capture_end;
    info_.reached.reset();
    const RecordDeclaration& declared = file_->declaration();
    info_.cpu = is_known(options_.cpu) ? options_.cpu : declared.cpu;
    info_.has_positions = declared.has_positions;
    info_.has_clock = declared.has_clock;
    info_.clock_hz = declared.has_clock ? declared.clock_hz : 0;
    if (info_.has_data && !declared.has_data) info_.warnings.emplace_back(kAddressesOnly);
    info_.has_data = info_.has_data && declared.has_data;
    info_.bus = declared.bus;
    set_upper(0);
    if (options_.cache) info_.bus.form = *options_.cache;
    info_.width_inferred = !declared.width_declared;
    info_.cache_inferred = !declared.cache_declared;
    info_.address_mask = info_.bus.address_mask;
    // Without a declaration any width up to the widest processor bus is believed.
    constexpr std::uint32_t kWidestBus = 8;
    fields_ = {declared.width_declared ? declared.bus.bus_bytes : kWidestBus,
               declared.has_positions, declared.has_clock};
  }

  bool read_records() {
    records_ = file_->next();
    first_ = 0;
    if (records_.empty()) close_file();
    return !records_.empty();
  }

  /// Throws for a record that makes no sense; returns false instead where `later` wants the records
  /// before it handed out first.
  bool check(const BusRecord& record, std::size_t index, bool later) const {
    const std::string wrong = check_bus_record(record, fields_.bus_bytes);
    if (wrong.empty()) return true;
    if (later) return false;
    throw FormatError(file_->input().name(), file_->where(first_ + index), "bus record: " + wrong);
  }

  /// What the records show of the machine, where the file does not declare it.
  void learn() {
    const BusModel seen = decoder_.seen();
    if (!file_->declaration().width_declared) info_.bus.bus_bytes = seen.bus_bytes;
    if (file_->declaration().cache_declared) return;
    info_.bus.line_bytes = seen.line_bytes;
    if (!options_.cache) info_.bus.form = seen.form;
  }

  void close_file() {
    const InputStream& input = file_->input();
    if (input.is_unfinished() && info_.ending == Ending::capture_end) {
      info_.ending = Ending::source_gone;
      info_.warnings.push_back(input.name() +
                               ": an interrupted recording, taken up to its last whole record, "
                               "number " +
                               std::to_string(decoder_.count()));
    }
    info_.files.push_back({std::filesystem::path(input.name()).filename().string(),
                           input.stored_bytes(), input.stored_hash().hex()});
    file_.reset();
  }

  std::vector<std::string> paths_;
  CaptureOptions options_;
  RecordFileMaker make_;
  CaptureInfo info_;
  StandIns stand_ins_;
  std::uint64_t upper_ = 0;  ///< half of memory addresses
  bool is_low_ = true;       ///< records have addresses as they are
  std::size_t next_path_ = 0;
  BusRecordFields fields_;
  std::unique_ptr<RecordFile> file_;
  bool has_runs_ = false;
  std::span<const std::uint8_t> records_;  ///< read but not yet decoded
  std::size_t first_ = 0;                  ///< ordinal of the first of them within what was read
  BusRecordDecoder decoder_;
};

}  // namespace

std::unique_ptr<CaptureReader> open_record_capture(std::string format,
                                                   const std::vector<std::string>& paths,
                                                   const CaptureOptions& options,
                                                   RecordFileMaker make) {
  if (paths.empty()) throw UsageError("no capture file was given");
  return std::make_unique<RecordCapture>(
      std::move(format), std::make_unique<InputStream>(paths.front()),
      std::vector<std::string>(paths.begin() + 1, paths.end()), options, std::move(make));
}

std::unique_ptr<CaptureReader> open_record_stream(std::string format,
                                                  std::unique_ptr<InputStream> input,
                                                  const CaptureOptions& options,
                                                  RecordFileMaker make) {
  return std::make_unique<RecordCapture>(std::move(format), std::move(input),
                                         std::vector<std::string>(), options, std::move(make));
}

int rate_bus_records(std::span<const std::uint8_t> prefix, int most) {
  constexpr std::size_t kEnough = 64;
  const std::size_t whole = std::min(prefix.size() / kBusRecordBytes, kEnough);
  std::size_t valid = 0;
  for (std::size_t i = 0; i < whole; ++i) {
    const auto bytes = prefix.subspan(i * kBusRecordBytes).first<kBusRecordBytes>();
    if (check_bus_record(unpack_bus_record(bytes), 8).empty()) ++valid;
  }
  // A damaged record is for the reader to name. One valid record can be chance, a few cannot: half
  // the bytes of each are fixed.
  if (valid * 4 < whole * 3) return 0;
  constexpr std::size_t kConvincing = 4;
  return most * static_cast<int>(std::min(valid, kConvincing)) / static_cast<int>(kConvincing);
}

}  // namespace citcat
