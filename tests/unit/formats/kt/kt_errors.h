#pragma once
// What is said of bytes that are no KT.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/io/error.h"
#include "formats/kt/kt.h"

namespace citcat {

/// Reading them to their end fails with a message that has this in it.
inline void expect_kt_error(const std::vector<std::uint8_t>& bytes, const std::string& message) {
  KtReader reader(bytes, "bad.kt");
  KtRecord record;
  EXPECT_THAT(
      [&] {
        while (reader.next(record)) {
        }
      },
      ::testing::ThrowsMessage<FormatError>(::testing::HasSubstr(message)));
}

}  // namespace citcat
