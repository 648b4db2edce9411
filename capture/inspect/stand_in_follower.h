#pragma once
// What a capture has said of stand-ins since the last question: a copy of it has to say the same
// before the transactions that need it.

#include <cstddef>
#include <span>

#include "capture/bus/source.h"

namespace citcat {

/// Tells of each stand-in of a capture once.
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
