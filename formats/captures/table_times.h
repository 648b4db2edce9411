#pragma once
// Times in text tables: which column has them, in which unit, how they are written, and which
// sample a row with a time is.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace citcat {

/// A unit of time in seconds: "s", "Seconds", "ms", "(us)", "[ns]"; 0 for anything else.
double unit_of_time(std::string_view text);

/// "Time", "Time [s]", "Time(s)", "Timestamp", "Sample", "Line", "State Number": no channel.
bool names_a_position(std::string_view column);
/// The unit in seconds that the name of a column of times tells: "Time[s]", "Time (us)", "t/ms", or
/// only a unit, as libsigrok writes; 0 where it tells none, or is no time.
double unit_of_column(std::string_view column);

/// A cell that tells a unit: "s", "(V)", "[ns]", "bool", or is empty.
bool is_unit_cell(std::string_view cell);

/// A time as programs write it: "0.000001", "-1.05E-07", "1,260.5 ns", and with a decimal comma
/// "0,000001" or "1.260,5 us"; "1 260.5", with any blank of Unicode or an apostrophe between
/// thousands; of a date with a time of day, in ISO 8601, the time of day. In
/// seconds; `unit` counts where the cell has none of its own.
/// Nothing for anything else.
std::optional<double> parse_time(std::string_view text, double unit);
/// The day of a time that begins with a date, in days since 1970; nothing for any other time.
std::optional<std::int64_t> day_of_time(std::string_view text);
/// The sign that parts thousands in the times of successive rows, where a single time does not show
/// it ("1.020" for 1020 ns): '.' or ','. 0 where there is none, or each time shows it. Read as
/// fractions, such times would be less than half a nanosecond apart, closer than analysers sample.
char sign_of_thousands(std::span<const std::string_view> cells, double unit);
/// The last digit of such a time, in seconds; 0 if the text is not a time, or has an exponent:
/// digits may then be left out.
double resolution_of_time(std::string_view text, double unit);

/// Turns times into sample numbers.
class RowClock {
 public:
  /// Samples a second as the file says; 0: as learn() finds, else nanoseconds.
  explicit RowClock(double rate_hz) : rate_(rate_hz) {}

  /// Whether these times, of successive rows, are all one step apart, as far as their last digits
  /// tell: every row is then a sample, and the rate is known.
  void learn(std::span<const double> times, double resolution);
  /// What learn() found; 0 for nothing.
  double rate_found() const { return step_ > 0 ? 1 / step_ : 0; }
  /// Rows that were not a whole number of such steps after the row before.
  std::uint64_t uneven() const { return uneven_; }
  /// Rows whose time was that of the sample before: each got the number after it.
  std::uint64_t crowded() const { return crowded_; }

  /// The sample number of the next row, more than that of the row before; nullopt when its time is
  /// less, or not within a capture. Times may begin below zero: those before a trigger do.
  std::optional<std::uint64_t> number_of(double seconds);

 private:
  double rate_;
  double step_ = 0;   ///< found; 0: none
  double begin_ = 0;  ///< time of number 0
  double last_ = 0;
  std::uint64_t number_ = 0, uneven_ = 0, crowded_ = 0;
  bool any_ = false;
};

}  // namespace citcat
