#include <cstdint>
#include <string_view>

#include "fuzz/fuzz_target.h"
#include "view/server/request_target.h"

// Anybody who reaches the port of `citcat view` may send this as the target of a request.
CITCAT_FUZZ_TARGET(request_target) {
  citcat::view::parse_target({reinterpret_cast<const char*>(data), size});
  return 0;
}
