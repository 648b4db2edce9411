#pragma once
// The stand-ins that a capture has declared since the last question. A copy of the capture must
// declare them before the transactions that need them.

#include <cstddef>
#include <span>

#include "capture/bus/source.h"

namespace citcat {

/// Reports each stand-in of a capture once.
class StandInFollower {
 public:
  /// Those that the capture has told of since the last call, valid until it is read on.
  std::span<const StandIns::Page> take(const CaptureInfo& info) {
    if (info.bus.stand_ins == nullptr) return {};
    const auto news = std::span(info.bus.stand_ins->pages()).subspan(told_);
    told_ += news.size();
    return news;
  }

 private:
  std::size_t told_ = 0;
};

}  // namespace citcat
