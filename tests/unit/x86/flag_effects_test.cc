#include "x86/flag_effects.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "events/machine/cpu_state.h"

namespace citcat {
namespace {

DecodedInstruction decoded(std::initializer_list<std::uint8_t> bytes) {
  const std::vector<std::uint8_t> copy(bytes);
  DecodedInstruction info = decode_instruction(copy, {true, false}, CpuModel::p6);
  EXPECT_EQ(info.state, DecodeState::ok);
  return info;
}

std::uint32_t undefined_after(std::initializer_list<std::uint8_t> bytes, std::uint32_t ecx = 0) {
  UndefinedFlagTracker tracker;
  tracker.completed(decoded(bytes), ecx);
  return tracker.undefined();
}

TEST(FlagEffects, FollowTheManual) {
  EXPECT_EQ(undefined_after({0x21, 0xd8}), kAf);           // AND
  EXPECT_EQ(undefined_after({0x01, 0xd8}), 0u);            // ADD
  EXPECT_EQ(undefined_after({0xd1, 0xc0}), 0u);            // ROL by 1
  EXPECT_EQ(undefined_after({0xc1, 0xc0, 7}), kOf);        // ROL by 7
  EXPECT_EQ(undefined_after({0xc1, 0xe0, 7}), kOf | kAf);  // SHL by 7
  EXPECT_EQ(undefined_after({0x66, 0xc1, 0xe8, 20}), kOf | kAf | kCf);
  EXPECT_EQ(undefined_after({0xf7, 0xe3}), kSf | kZf | kAf | kPf);  // MUL
  EXPECT_EQ(undefined_after({0xf7, 0xf3}), kArithmeticFlags);       // DIV
  EXPECT_EQ(undefined_after({0x0f, 0xa3, 0xd8}), kOf | kSf | kAf | kPf);
  EXPECT_EQ(undefined_after({0x0f, 0xbc, 0xc3}), kArithmeticFlags & ~kZf);
}

TEST(FlagEffects, CountInClDecides) {
  EXPECT_EQ(undefined_after({0xd3, 0xc0}, 0x20), 0u);  // modulo 32: nothing happens
  EXPECT_EQ(undefined_after({0xd3, 0xc0}, 1), 0u);
  EXPECT_EQ(undefined_after({0xd3, 0xc0}, 0x1234507), kOf);
  EXPECT_EQ(undefined_after({0xd3, 0xe1}, 0), kOf | kAf);  // SHL ECX, CL: the count is gone
}

TEST(FlagEffects, LaterInstructionsDefineThemAgain) {
  UndefinedFlagTracker tracker;
  tracker.completed(decoded({0xf7, 0xf3}), 0);  // DIV
  tracker.completed(decoded({0x89, 0xd8}), 0);  // MOV
  EXPECT_EQ(tracker.undefined(), kArithmeticFlags);
  tracker.completed(decoded({0x40}), 0);  // INC
  EXPECT_EQ(tracker.undefined(), kCf);
  tracker.completed(decoded({0xf8}), 0);  // CLC
  EXPECT_EQ(tracker.undefined(), 0u);
}

TEST(UndefinedFlagTracker, KnowsImagesOfTheFlagsFromOtherStores) {
  UndefinedFlagTracker tracker;
  const auto eflags = [] { return 0xa07u; };
  EXPECT_EQ(tracker.undefined_in_store(0xa07, eflags), 0u);
  tracker.completed(decoded({0xc1, 0xc0, 7}), 0);
  EXPECT_EQ(tracker.undefined_in_store(0xa06, eflags), 0u);
  EXPECT_EQ(tracker.undefined_in_store(0x10a07, eflags), kOf);  // RF belongs to the interruption
  EXPECT_EQ(tracker.undefined_in_store(0x8a07, eflags), 0u);    // never set in EFLAGS
  // Kept in a register and stored again, when the flags themselves have long been others.
  tracker.completed(decoded({0x31, 0xc0}), 0);
  tracker.completed(decoded({0x83, 0xc0, 0x01}), 0);
  EXPECT_EQ(tracker.undefined(), 0u);
  EXPECT_EQ(tracker.undefined_in_store(0x10a07, [] { return 0x246u; }), kOf);
}

TEST(UndefinedFlagTracker, KnowsImagesWhoseUpperBitsAreSet) {
  UndefinedFlagTracker tracker;
  tracker.completed(FlagEffect{kArithmeticFlags, kAf});
  EXPECT_EQ(tracker.undefined_in_store(0xf297, [] { return 0xf297u; }), kAf);
  EXPECT_EQ(tracker.undefined_in_store(0x7297, [] { return 0x7297u; }), kAf);
  EXPECT_EQ(tracker.undefined_in_store(0x9297, [] { return 0x9297u; }), 0u);
}

TEST(UndefinedFlagTracker, TakesTheFlagsOfAnInterruptFromBeforeIt) {
  UndefinedFlagTracker tracker;
  tracker.completed(decoded({0xc1, 0xc0, 7}), 0);
  tracker.image_follows(0xa07);
  // Delivery has cleared IF in the register before the frame is stored.
  EXPECT_EQ(tracker.undefined_in_store(0x10a07, [] { return 0x6u; }), kOf);
}

TEST(UndefinedFlagTracker, LoadingAnImageBringsItsUndefinedFlagsBack) {
  UndefinedFlagTracker tracker;
  tracker.completed(decoded({0xc1, 0xc0, 7}), 0);
  EXPECT_EQ(tracker.undefined_in_store(0xa07, [] { return 0xa07u; }), kOf);
  tracker.completed(decoded({0x9d}), 0);  // POPF
  EXPECT_EQ(tracker.undefined(), 0u);
  tracker.reloaded();
  EXPECT_EQ(tracker.undefined(), kOf);
}

TEST(FlagEffects, ComparisonsOfTheFpuDefineThreeFlags) {
  EXPECT_EQ(flag_effect(decoded({0xdb, 0xf1}), std::nullopt).written, kZf | kPf | kCf);  // FCOMI
}

}  // namespace
}  // namespace citcat
