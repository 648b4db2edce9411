#pragma once
// A stretch of a run, step by step, as an exported page has it: made in two passes over the
// stretch, the first of which learns what foresees each column.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "formats/io/byte_writer.h"
#include "view/exported/column.h"
#include "view/model/run_view.h"

namespace citcat::view {

class ExportedStretch {
 public:
  explicit ExportedStretch(RunView& view);
  ~ExportedStretch();

  /// Replays [from, to) twice. False where RunViewOptions::interrupted ended that.
  bool take(std::uint64_t from, std::uint64_t to);

  std::uint64_t steps() const { return steps_; }
  Moment begin() const { return begin_; }
  Moment end() const { return end_; }
  const std::set<std::uint32_t>& frames() const { return frames_; }
  /// What the columns mean.
  nlohmann::ordered_json description() const;
  /// The columns, each with its length in front.
  std::vector<std::uint8_t> columns() const;

 private:
  class Pass;
  struct Shape;
  using ShapeKey = std::vector<std::uint64_t>;

  Shape& shape_of(const RecordedStep& step);
  void take_step(const RecordedStep& step, bool writes);
  void take_path(Shape& shape, bool writes);
  void take_access(Shape& shape, std::size_t i, const RecordedStep& step, bool writes);
  void take_registers(Shape& shape, const CpuState& after, bool writes);
  void begin_pass(const Moment& moment, const CpuState& state, bool writes);
  void put(Column& column, std::uint64_t value, bool writes);
  void copy_frames();
  nlohmann::ordered_json shape_json(const Shape& shape) const;

  RunView& view_;
  std::map<ShapeKey, std::size_t> numbers_;
  std::vector<std::unique_ptr<Shape>> shapes_;
  std::set<std::uint32_t> frames_;
  ByteWriter path_, bytes_, memory_;
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json registers_;              ///< at the beginning
  std::map<std::uint64_t, std::uint64_t> pages_;  ///< frame of each linear page, as met last
  std::vector<std::size_t> numbers_in_table_;     ///< of the registers that foresee others
  CpuState state_;
  std::vector<std::uint64_t> inputs_;
  std::size_t last_shape_ = 0;
  std::uint64_t steps_ = 0;
  Moment begin_, end_;
};

}  // namespace citcat::view
