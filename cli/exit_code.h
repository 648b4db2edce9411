#pragma once
// The exit status of the program.

namespace citcat {

/// What the program's exit status says. The numbers are a contract: scripts test them.
enum class ExitCode {
  ok = 0,             ///< done; where there was a question, the answer is yes
  answer_is_no = 1,   ///< diverged, differs, damaged: an answer, not a failure
  usage = 2,          ///< the command line makes no sense
  bad_input = 3,      ///< a file is not what its format says
  system = 4,         ///< I/O, memory, or an engine that is not what we rely on
  interrupted = 130,  ///< by Ctrl-C, as shells report it: 128 + SIGINT
};

/// An exit status, with its explanation for people.
struct ExitMeaning {
  ExitCode code;
  const char* meaning;
};
inline constexpr ExitMeaning kExitMeanings[] = {
    {ExitCode::ok, "done"},
    {ExitCode::answer_is_no, "the answer is no"},
    {ExitCode::usage, "wrong usage"},
    {ExitCode::bad_input, "bad input"},
    {ExitCode::system, "I/O or system"},
    {ExitCode::interrupted, "interrupted"},
};

}  // namespace citcat
