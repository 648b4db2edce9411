#pragma once
// A few instructions whose slices are held to experiment: another value of a byte that a slice
// names changes what was asked for, and of one that it does not name does not.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>

#include "events/archive/recording_file.h"
#include "replay/slice/slicer.h"

namespace citcat::test {

class SmallRun {
 public:
  using Value = std::function<std::uint64_t(const Machine&)>;

  /// `path`: of an archive to be made.
  SmallRun(const Recording& recording, std::uint64_t instructions, const std::string& path)
      : recording_(recording.clone()), end_{instructions, 0} {
    recording_.instructions = instructions + 1;
    RecordingFileWriter(path).finish(recording_);
    file_ = std::make_unique<RecordingFile>(RecordingFile::open(path));
    slicer_ = std::make_unique<Slicer>(*file_, TimelineOptions{});
  }

  SliceQuery query(std::initializer_list<PlaceRange> places) const {
    SliceQuery query;
    query.at = end_;
    for (const PlaceRange& range : places) {
      for (unsigned i = 0; i < range.count; ++i) query.places.set(range.first + i);
    }
    return query;
  }
  SliceQuery memory(std::uint32_t address, std::uint32_t size) const {
    SliceQuery query;
    query.at = end_;
    query.memory.push_back({LinearAddr{address}, std::nullopt, size});
    return query;
  }
  Slice slice(const SliceQuery& query) { return slicer_->slice(query); }

  /// The value is made of the bytes `made_of` of the image and not of the bytes `others`.
  void expect(const SliceQuery& query, const Value& value, std::initializer_list<int> made_of,
              std::initializer_list<int> others) {
    const Slice found = slice(query);
    const std::set<std::uint64_t> named = image_bytes(found);
    const std::uint64_t before = value_at_end(recording_, value);
    for (const int address : made_of) {
      EXPECT_TRUE(named.contains(static_cast<std::uint64_t>(address))) << std::hex << address;
      EXPECT_NE(value_at_end(changed(address), value), before) << std::hex << address;
    }
    for (const int address : others) {
      EXPECT_FALSE(named.contains(static_cast<std::uint64_t>(address))) << std::hex << address;
      EXPECT_EQ(value_at_end(changed(address), value), before) << std::hex << address;
    }
  }

  /// Bytes of the image that the value itself is made of.
  static std::set<std::uint64_t> image_bytes(const Slice& slice) {
    std::set<std::uint64_t> bytes;
    for (const SliceInput& input : slice.inputs) {
      if (input.kind != SliceInput::Kind::image || input.way != SliceWay::value) continue;
      for (std::uint32_t i = 0; i < input.size; ++i) bytes.insert(input.address.value + i);
    }
    return bytes;
  }
  static bool names_register(const Slice& slice, const std::string& name) {
    for (const SliceInput& input : slice.inputs) {
      if (input.kind == SliceInput::Kind::reg && input.name == name) return true;
    }
    return false;
  }

 private:
  Recording changed(int address) const {
    Recording other = recording_.clone();
    const PhysAddr a{static_cast<std::uint64_t>(address)};
    other.image.set(a, static_cast<std::uint8_t>(*other.image.byte(a) ^ 1u));
    return other;
  }
  std::uint64_t value_at_end(const Recording& recording, const Value& value) const {
    Replayer replayer(recording, nullptr, {});
    replayer.run_to(end_);
    EXPECT_EQ(replayer.machine().position(), end_);
    return value(replayer.machine());
  }

  Recording recording_;
  Position end_;
  std::unique_ptr<RecordingFile> file_;
  std::unique_ptr<Slicer> slicer_;
};

}  // namespace citcat::test
