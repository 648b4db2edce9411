#pragma once

#include <cstdint>
#include <vector>

#include "replay/verify/cache_model.h"

namespace citcat {

/// One event that a cache processes, kept so that it can be repeated with a cache in another state.
struct CacheOp {
  enum class Kind : std::uint8_t {
    fetch,
    read,
    write,
    snoop_write,
    flush,
    disable,
    enable,
    boundary,  ///< between two instructions, or two iterations of a REP
  };
  Kind kind = Kind::boundary;
  PhysAddr address;
  std::uint32_t size = 0;
};

using CacheLog = std::vector<CacheOp>;

inline void apply(const CacheOp& op, CacheModel& model) {
  switch (op.kind) {
    case CacheOp::Kind::fetch:
      model.fetch(op.address, op.size);
      return;
    case CacheOp::Kind::read:
      model.read(op.address, op.size);
      return;
    case CacheOp::Kind::write:
      model.write(op.address, op.size);
      return;
    case CacheOp::Kind::snoop_write:
      return model.snoop_write(op.address, op.size);
    case CacheOp::Kind::flush:
      return model.flush();
    case CacheOp::Kind::disable:
      return model.set_disabled(true);
    case CacheOp::Kind::enable:
      return model.set_disabled(false);
    case CacheOp::Kind::boundary:
      return;
  }
}

}  // namespace citcat
