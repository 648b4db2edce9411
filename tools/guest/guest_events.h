#pragma once

#include "tools/guest/system_call_follower.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// Passes the events that a tool receives to the follower.
inline void follow(SystemCallFollower& follower, const MachineEvent& event) {
  switch (event.kind) {
    case MachineEvent::Kind::delivered:
      return follower.delivered(event.delivery, event.position);
    case MachineEvent::Kind::returned:
      if (event.value != 0) follower.returned(event.position);
      return;
    case MachineEvent::Kind::fast_call:
      return follower.fast_call(event.position, event.value == 1);
    case MachineEvent::Kind::fast_return:
      return follower.fast_returned(event.position, event.value == 1);
    default:
      return;
  }
}

}  // namespace citcat::tools
