#include "capture/complete/completed_capture.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "capture/bus/missing_lines.h"
#include "capture/complete/address_completer.h"
#include "formats/io/error.h"

namespace citcat {
namespace {

/// So many transactions that fit show that the place is the start.
constexpr std::uint64_t kConvincingRun = 64;
/// So many fetches are tried as the first one.
constexpr std::uint64_t kMostAttempts = std::uint64_t{1} << 16;

class CompletedCapture final : public CaptureReader {
 public:
  CompletedCapture(std::unique_ptr<CaptureReader> capture, CompletionOptions options)
      : capture_(std::move(capture)), options_(std::move(options)), finder_(options_.start) {
    copy_info();
  }

  const CaptureInfo& info() const override { return info_; }

  bool next(BusTransaction& out) override {
    if (!completer_) {
      while (options_.start && !started_) {
        if (!capture_->next(out)) return end();
        if (finder_.reached(out)) {
          started_ = true;
          ahead_.push_back(out);
        } else if (!out.is_memory()) {
          return true;
        }
      }
      begin();
    }
    if (completer_ && completer_->next(out)) {
      ++completed_;
      return true;
    }
    return end();
  }

 private:
  void copy_info() {
    info_ = capture_->info();
    info_.address_mask = info_.bus.address_mask = options_.address_mask;
    // What lines cost that are not needed now.
    const std::string cost = kAddressBitMissing;
    for (std::string& text : info_.warnings)
      if (text.ends_with(cost))
        text.replace(text.size() - cost.size(), cost.size(),
                     "addresses are completed by running the processor");
    std::erase_if(info_.warnings, [](const std::string& text) {
      return text.find("never rises: assumed not to be captured") != std::string::npos;
    });
  }

  bool end() {
    if (ended_) return false;
    ended_ = true;
    copy_info();
    if (!completer_) return false;
    if (const auto& why = completer_->contradiction()) {
      const std::string where = fmt::format("after transaction {}", last_index());
      if (completed_ == 0)
        throw FormatError(name(), 0,
                          "the addresses cannot be completed from this state: " + why->text);
      info_.ending = Ending::capture_end;
      info_.warnings.push_back("addresses are completed up to " + where + ": there " + why->text +
                               "; what follows is left out");
    }
    return false;
  }

  std::uint64_t last_index() const { return first_index_ + completed_ - 1; }
  std::string name() const {
    return info_.files.empty() ? std::string("capture") : info_.files.front().name;
  }

  bool take(BusTransaction& out) {
    if (!ahead_.empty()) {
      out = ahead_.front();
      ahead_.pop_front();
      return true;
    }
    return capture_->next(out);
  }

  void begin_here() {
    if (!ahead_.empty()) first_index_ = ahead_.front().index;
    processor_ = options_.make_processor();
    completer_ = std::make_unique<AddressCompleter>([this](BusTransaction& t) { return take(t); },
                                                    setup(), *processor_);
  }

  /// At the place that was named; else at the first fetch from which the run goes on.
  void begin() {
    if (options_.start) {
      begin_here();
      return;
    }
    processor_ = options_.make_processor();
    const PhysAddr first = processor_->place().address();
    const std::uint32_t mask = capture_->info().address_mask;
    std::uint64_t attempts = 0;
    BusTransaction t;
    while (attempts < kMostAttempts && take(t)) {
      if (t.op != BusOp::code_read || ((t.address.value ^ first.value) & mask) != 0) continue;
      ++attempts;
      if (goes_on_from(t)) return;
    }
    throw FormatError(name(), 0,
                      fmt::format("expected the processor to begin at {:05x}, as the state says, "
                                  "found no fetch from which its run goes on",
                                  first.value));
  }

  /// What is read meanwhile is put back, but for a fetch that is not the first one.
  bool goes_on_from(const BusTransaction& first) {
    ahead_.push_front(first);
    std::deque<BusTransaction> taken;
    const auto processor = options_.make_processor();
    AddressCompleter trial(
        [&](BusTransaction& out) {
          if (!take(out)) return false;
          taken.push_back(out);
          return true;
        },
        setup(), *processor);
    BusTransaction ignored;
    std::uint64_t count = 0;
    while (count < kConvincingRun && trial.next(ignored)) ++count;
    ahead_.insert(ahead_.begin(), taken.begin(), taken.end());
    const bool fits = count == kConvincingRun || !trial.contradiction();
    if (fits) {
      begin_here();
    } else {
      ahead_.pop_front();
    }
    return fits;
  }

  FetchSetup setup() const {
    return {capture_->info().address_mask, options_.queue_bytes, capture_->info().bus.bus_bytes};
  }

  std::unique_ptr<CaptureReader> capture_;
  CompletionOptions options_;
  CaptureInfo info_;
  WhereFinder finder_;
  bool started_ = false, ended_ = false;
  std::deque<BusTransaction> ahead_;  ///< read, and to be read again
  std::unique_ptr<GuidedProcessor> processor_;
  std::unique_ptr<AddressCompleter> completer_;
  std::uint64_t completed_ = 0, first_index_ = 0;
};

}  // namespace

std::unique_ptr<CaptureReader> complete_addresses(std::unique_ptr<CaptureReader> capture,
                                                  CompletionOptions options) {
  return std::make_unique<CompletedCapture>(std::move(capture), std::move(options));
}

}  // namespace citcat
