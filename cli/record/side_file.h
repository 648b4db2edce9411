#pragma once
// The file beside a capture that has the values that cross no bus.

#include <optional>
#include <string>

namespace citcat {

/// Whether `record` is to make a recording of that name, and not a capture.
bool makes_recording(const std::string& output);

/// The recording that `record` makes if none is named, in the current folder: "recording.citcat",
/// or the first of "recording-2.citcat" and so on that does not exist.
std::string default_recording();

/// The same of the session that `record --live` makes: "live.session" and so on.
std::string default_session();

/// Where `record` puts them if no file is named: "boot.side.csv" for the captures "boot.bin",
/// "boot.bin.zst" and "boot.binz", also where an interrupted recording left "boot.bin.zst.partial".
std::string side_file_name(const std::string& capture);

/// The same of one of several processors: "boot.side.1.csv" for "boot.side.csv".
std::string side_file_of(const std::string& side_file, unsigned processor);

/// That file, or what an interrupted recording left of it; nullopt where there is none.
std::optional<std::string> find_side_file(const std::string& capture);

}  // namespace citcat
