#pragma once

#include "bench/replay/guest.h"

namespace citcat::bench {

/// What a Unicorn without any of this project does with a guest.
enum class Alone {
  nothing,  ///< runs it, with coherent code memory
  tracer,   ///< the usual tracer: a code hook that reads eight registers one by one
};

/// CPU seconds to the guest's HLT.
double run_alone(const Guest& guest, Alone what);

}  // namespace citcat::bench
