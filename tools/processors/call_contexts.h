#pragma once
// The calls that processors are in, kept so that an access can remember them as one number: each
// way into a procedure is kept once.

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "events/machine/address.h"

namespace citcat::tools {

class CallContexts {
 public:
  /// A way into a procedure; 0 is outside of all that were seen to be called.
  using Context = std::uint32_t;

  explicit CallContexts(std::size_t processors) : now_(processors, 0) {}

  void called(std::uint8_t processor, LinearAddr from);
  void returned(std::uint8_t processor);
  Context now(std::uint8_t processor) const { return now_[processor]; }
  /// The calling instructions of a context, the innermost first, at most so many.
  std::vector<LinearAddr> calls(Context context, std::size_t most) const;

 private:
  struct Way {
    Context outer = 0;
    std::uint32_t depth = 0;
    LinearAddr from;
  };

  std::vector<Way> ways_{Way{}};
  std::map<std::pair<Context, LinearAddr>, Context> known_;
  std::vector<Context> now_;  ///< by processor
};

}  // namespace citcat::tools
