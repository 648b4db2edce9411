#pragma once
// The name of a kind of delivery in text.

#include "replay/machine/observer.h"

namespace citcat {

/// "exception", "interrupt", "software interrupt", "NMI", "SMI".
constexpr const char* delivery_name(DeliveredEvent::Kind kind) {
  switch (kind) {
    case DeliveredEvent::Kind::exception:
      return "exception";
    case DeliveredEvent::Kind::external:
      return "interrupt";
    case DeliveredEvent::Kind::software:
      return "software interrupt";
    case DeliveredEvent::Kind::nmi:
      return "NMI";
    case DeliveredEvent::Kind::smi:
      return "SMI";
  }
  return "?";
}

}  // namespace citcat
