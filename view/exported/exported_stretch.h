#pragma once
// A stretch of a run, step by step, as an exported page has it. The predictor of each column is
// known only after the last step; until then the steps are kept in a short form.

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/io/byte_writer.h"
#include "view/exported/column.h"
#include "view/exported/exported_calls.h"
#include "view/model/run_view.h"

namespace citcat::view {

class ExportedStretch {
 public:
  explicit ExportedStretch(RunView& view);
  ~ExportedStretch();

  /// Replays [from, to). False where RunViewOptions::interrupted ended that.
  bool take(std::uint64_t from, std::uint64_t to);

  std::uint64_t steps() const { return steps_; }
  Moment begin() const { return begin_; }
  Moment end() const { return end_; }
  const std::set<FrameNumber>& frames() const { return frames_; }
  /// What the columns mean.
  nlohmann::ordered_json description() const;
  /// The columns, each with its length in front.
  std::vector<std::uint8_t> columns() const;

 private:
  class Steps;
  struct Shape;
  struct Values;
  using ShapeKey = std::vector<std::uint64_t>;

  void begin_at(const Moment& moment, const CpuState& state);
  Shape& shape_of(const RecordedStep& step, std::span<const StepAccess> accesses);
  void take_step(const RecordedStep& step);
  void take_path(Shape& shape);
  void take_access(const StepAccess& access, const RecordedStep& step, Values& values);
  void take_events(const RecordedStep& step);
  void take_table(LinearAddr at);
  void walk(std::uint64_t root, LinearAddr at);
  void put(Shape& shape, const Values& values, bool writes);
  void keep_waiting(Shape& shape, const Values& values);
  void write_steps();
  static void choose(Shape& shape);
  void add_screen();
  void copy_frames();
  nlohmann::ordered_json shape_json(const Shape& shape) const;

  RunView& view_;
  std::map<ShapeKey, std::size_t> numbers_;
  std::vector<std::unique_ptr<Shape>> shapes_;
  std::set<FrameNumber> frames_;
  ByteWriter path_, bytes_, memory_;
  ByteWriter waiting_;  ///< the steps, until they are written
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
  nlohmann::ordered_json outside_ = nlohmann::ordered_json::array();  ///< other masters' writes
  nlohmann::ordered_json registers_;                                  ///< at the beginning
  nlohmann::ordered_json end_line_;               ///< what is next behind the last step
  std::map<std::uint64_t, std::uint64_t> pages_;  ///< frame of each linear page, as met last
  ExportedCalls calls_;
  /// Pages whose tables are in frames_: CR3 and the page's number; and the one met last.
  std::set<std::pair<std::uint64_t, std::uint64_t>> walked_;
  std::pair<std::uint64_t, std::uint64_t> last_walked_{~std::uint64_t{0}, 0};
  std::set<std::uint64_t> roots_;              ///< values of CR3 met so far
  std::set<LinearAddr> upper_pages_;           ///< pages of the upper half of 64-bit addresses
  std::vector<std::size_t> numbers_in_table_;  ///< of the registers that foresee others
  CpuState state_;
  std::vector<std::uint64_t> inputs_;
  std::size_t beginning_ = 0;                                ///< mark of the timeline
  std::vector<RegisterValue> values_, values_at_beginning_;  ///< of registers, by number
  std::size_t last_shape_ = 0;
  std::uint64_t steps_ = 0;
  Moment begin_, end_;
};

}  // namespace citcat::view
