#include "capture/import/byu_capture.h"

#include <bit>
#include <filesystem>

#include "capture/bus/hex.h"
#include "events/machine/cpu_traits.h"
#include "formats/io/error.h"
#include "formats/io/input.h"

namespace citcat {
namespace {

// A delta of all ones says nothing: the first record of real traces has it.
constexpr std::uint32_t kNoTime = 0xffffffff;
constexpr std::uint8_t kWriteBackMemory = 3;
constexpr std::uint8_t kUncacheableMemory = 0;
constexpr std::size_t kSmallestLine = 16;  // the smallest line of these processors

struct RequestOp {
  ByuRequest request;
  BusOp op;
  std::uint8_t data0;  ///< see BusOp::flush
};
/// In the order in which a transaction's request is looked up.
constexpr RequestOp kOps[] = {
    {ByuRequest::fetch, BusOp::code_read, 0},
    {ByuRequest::read, BusOp::data_read, 0},
    {ByuRequest::read_invalidate, BusOp::data_read, 0},
    {ByuRequest::write, BusOp::data_write, 0},
    {ByuRequest::io_read, BusOp::io_read, 0},
    {ByuRequest::io_write, BusOp::io_write, 0},
    {ByuRequest::interrupt_acknowledge, BusOp::interrupt_acknowledge, 0},
    {ByuRequest::reset, BusOp::reset, 0},
    {ByuRequest::shutdown, BusOp::shutdown, 0},
    {ByuRequest::flush, BusOp::flush, 1},
    {ByuRequest::sync, BusOp::flush, 2},
    {ByuRequest::halt, BusOp::halt, 0},
    {ByuRequest::smi_acknowledge, BusOp::smi, 0},
};

/// Files of records of one size, each a segment; a cut record at the end is left out.
class ByuRecords : public CaptureReader {
 public:
  const CaptureInfo& info() const override { return info_; }

  bool next(BusTransaction& out) override {
    while (input_) {
      const auto bytes = input_->peek(record_bytes_);
      if (bytes.size() < record_bytes_) {
        close(bytes.size());
        return false;
      }
      const std::uint64_t offset = input_->offset();
      const bool used = decode(bytes, offset, out);
      input_->consume(record_bytes_);
      if (!used) {
        ++left_out_;
        continue;
      }
      out.index = index_++;
      return true;
    }
    return false;
  }

  bool next_segment() override {
    if (input_ || next_path_ == paths_.size()) return false;
    open();
    return true;
  }

 protected:
  ByuRecords(const char* format, const std::vector<std::string>& paths,
             const CaptureOptions& options, std::size_t record_bytes)
      : paths_(paths), record_bytes_(record_bytes) {
    if (paths_.empty()) throw UsageError("no capture file was given");
    info_.format = format;
    info_.cpu = options.cpu;
    info_.has_data = false;
    info_.bus.bus_bytes = 8;
    if (options.cache) info_.bus.form = *options.cache;
    info_.warnings.emplace_back(kAddressesOnly);
    open();
  }

  /// False for a record that stands for no transaction. FormatError for an impossible one.
  virtual bool decode(std::span<const std::uint8_t> bytes, std::uint64_t offset,
                      BusTransaction& out) = 0;

  const std::string& name() const { return input_->name(); }

  CaptureInfo info_;

 private:
  void open() {
    input_ = std::make_unique<InputStream>(paths_[next_path_++]);
    if (input_->at_end()) throw FormatError(name(), 0, "expected records, found an empty file");
  }

  void close(std::size_t rest) {
    if (rest != 0)
      info_.warnings.push_back("the last " + std::to_string(rest) +
                               " bytes that are not a whole record are left out");
    if (left_out_ != 0)
      info_.warnings.push_back(std::to_string(left_out_) +
                               " records that are not transactions of the processor are left out");
    left_out_ = 0;
    input_->consume(rest);
    while (!input_->next_block().empty()) {
    }
    info_.files.push_back({std::filesystem::path(name()).filename().string(),
                           input_->stored_bytes(), input_->stored_hash().hex()});
    input_.reset();
  }

  std::vector<std::string> paths_;
  std::size_t record_bytes_;
  std::size_t next_path_ = 0;
  std::unique_ptr<InputStream> input_;
  std::uint64_t index_ = 0, left_out_ = 0;
};

class ByuCapture final : public ByuRecords {
 public:
  ByuCapture(const std::vector<std::string>& paths, const CaptureOptions& options)
      : ByuRecords("byu", paths, options, kByuRecordBytes) {
    info_.has_clock = true;
  }

 protected:
  bool decode(std::span<const std::uint8_t> bytes, std::uint64_t offset,
              BusTransaction& out) override {
    const ByuRecord record = unpack_byu(bytes.first<kByuRecordBytes>());
    if (!is_byu_request(record.request))
      throw FormatError(name(), offset + 4,
                        "expected a request type, found " + hex(record.request, 2));
    if (record.size > kMaxTransactionBytes)
      throw FormatError(
          name(), offset + 5,
          "expected a size of at most 32 bytes, found " + std::to_string(record.size));
    if (record.time != kNoTime) clock_ += record.time;
    for (const RequestOp& entry : kOps) {
      if (static_cast<std::uint8_t>(entry.request) != record.request) continue;
      out = BusTransaction{};
      out.op = entry.op;
      out.clock = clock_;
      out.address = PhysAddr{record.address};
      out.size = record.size;
      out.flags = flags_of(record);
      out.data[0] = entry.data0;
      return true;
    }
    return false;
  }

 private:
  static std::uint16_t flags_of(const ByuRecord& record) {
    std::uint16_t flags = kClockKnown;
    const bool memory = record.request <= static_cast<std::uint8_t>(ByuRequest::write);
    if (!memory) return flags;
    const bool line = record.size >= kSmallestLine;
    if (line) flags |= kLine;
    if ((record.attribute & 3) == kUncacheableMemory) flags |= kUncacheable;
    if (record.request == static_cast<std::uint8_t>(ByuRequest::read_invalidate))
      flags |= kStoreFill;
    const bool write = record.request == static_cast<std::uint8_t>(ByuRequest::write);
    if (line && write && (record.attribute & 3) == kWriteBackMemory) flags |= kWriteBack;
    return flags;
  }

  std::uint64_t clock_ = 0;
};

class ByuPentiumCapture final : public ByuRecords {
 public:
  ByuPentiumCapture(const std::vector<std::string>& paths, const CaptureOptions& options)
      : ByuRecords("byu-pentium", paths, options, kByuPentiumRecordBytes) {
    if (!is_known(info_.cpu)) info_.cpu = CpuModel::pentium;
  }

 protected:
  bool decode(std::span<const std::uint8_t> bytes, std::uint64_t offset,
              BusTransaction& out) override {
    const ByuPentiumRecord record = unpack_byu_pentium(bytes.first<kByuPentiumRecordBytes>());
    if (!is_byu_pentium_control(record.control))
      throw FormatError(name(), offset + 5,
                        "expected a bus cycle type, found " + hex(record.control, 2));
    out = BusTransaction{};
    // Bursts fill or write back a whole 32-byte line; bit 4 is the level of CACHE#.
    constexpr std::uint8_t kLine32 = 32;
    bool burst = false;
    switch (record.control >> 4) {
      case 1:
        out.op = BusOp::interrupt_acknowledge;
        break;
      case 3:
        return special(record, out);
      case 5:
        out.op = BusOp::io_read;
        break;
      case 7:
        out.op = BusOp::io_write;
        break;
      case 8:
        out.op = BusOp::code_read;
        burst = true;
        break;
      case 9:
        out.op = BusOp::code_read;
        out.flags |= kUncacheable;
        break;
      case 12:
        out.op = BusOp::data_read;
        burst = true;
        break;
      case 13:
        out.op = BusOp::data_read;
        out.flags |= kUncacheable;
        break;
      case 14:
        out.op = BusOp::data_write;
        burst = true;
        out.flags |= kWriteBack;
        break;
      default:
        out.op = BusOp::data_write;
        break;
    }
    const auto enabled = static_cast<std::uint8_t>(~record.enables);
    const int first = std::countr_zero(enabled);
    const int last = 7 - std::countl_zero(enabled);
    out.address = PhysAddr{record.address + static_cast<std::uint32_t>(first & 7)};
    out.size = enabled == 0 ? 0 : static_cast<std::uint8_t>(last - first + 1);
    if (burst) {
      out.flags |= kLine;
      out.address = PhysAddr{record.address & ~std::uint32_t{kLine32 - 1}};
      out.size = kLine32;
    }
    return true;
  }

 private:
  /// By the byte enables (Pentium data sheet, "Special bus cycles").
  static bool special(const ByuPentiumRecord& record, BusTransaction& out) {
    out.address = PhysAddr{record.address};
    switch (record.enables) {
      case 0xfe:
        out.op = BusOp::shutdown;
        return true;
      case 0xfd:
        out.op = BusOp::flush;
        out.data[0] = 1;
        out.size = 1;
        return true;
      case 0xfb:
        out.op = BusOp::halt;
        return true;
      case 0xf7:
        out.op = BusOp::flush;
        out.data[0] = 2;
        out.size = 1;
        return true;
      default:
        return false;  // flush acknowledge, branch trace
    }
  }
};

}  // namespace

bool byu_record_of(const BusTransaction& transaction, ByuRecord& out) {
  if (transaction.address.value >> 32 != 0) return false;
  for (const RequestOp& entry : kOps) {
    const bool same_flush = entry.op != BusOp::flush || entry.data0 == transaction.data[0];
    if (entry.op != transaction.op || !same_flush) continue;
    const bool invalidate = entry.op == BusOp::data_read && transaction.has(kStoreFill);
    const ByuRequest request = invalidate ? ByuRequest::read_invalidate : entry.request;
    const bool cached = transaction.has(kLine) || transaction.has(kWriteBack);
    out = {};
    out.address = transaction.address.u32();
    out.request = static_cast<std::uint8_t>(request);
    out.size = transaction.size;
    out.attribute = cached && transaction.is_memory() ? kWriteBackMemory : kUncacheableMemory;
    return true;
  }
  return false;
}

int detect_byu(const CaptureProbe& probe) { return rate_byu(probe.prefix); }
int detect_byu_pentium(const CaptureProbe& probe) { return rate_byu_pentium(probe.prefix); }

std::unique_ptr<CaptureReader> open_byu_capture(const std::vector<std::string>& paths,
                                                const CaptureOptions& options) {
  return std::make_unique<ByuCapture>(paths, options);
}

std::unique_ptr<CaptureReader> open_byu_pentium_capture(const std::vector<std::string>& paths,
                                                        const CaptureOptions& options) {
  return std::make_unique<ByuPentiumCapture>(paths, options);
}

}  // namespace citcat
