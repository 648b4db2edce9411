#pragma once
// The tools of a run with their results, split into groups if requested. The results of parts of a
// run are saved, put together and reported here.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/host/code_library.h"
#include "tools/host/tool.h"

namespace citcat::tools {

/// What `--by` splits tables by.
enum class Split : std::uint8_t { process, level, interrupt };
/// Parses "process,level". Throws UsageError for an unknown or repeated word.
std::vector<Split> parse_splits(const std::string& text);
const char* split_name(Split split);

/// A tool that a run is asked with.
struct ToolRequest {
  const ToolRow* row = nullptr;
  ToolOptions options;
  bool writes_file = false;  ///< its result is a file, one for each group
};

struct Group {
  std::vector<std::string> labels;           ///< of each split
  std::vector<std::unique_ptr<Tool>> tools;  ///< in the order of the command line
  std::size_t number = 0;                    ///< of the group, in the order of their coming
};

class Analysis {
 public:
  /// Throws UsageError for an option that its tool lacks.
  Analysis(std::vector<ToolRequest> requests, const Setup& setup, std::vector<Split> by);
  /// Analyses with one tool that is in no list and needs the whole run in one go; a part() of it
  /// observes the run.
  explicit Analysis(std::unique_ptr<Tool> tool);

  const std::vector<Split>& by() const { return by_; }
  Wants wants() const;
  /// How the modelled processors fill their TLB. Throws UsageError where tools disagree.
  std::optional<WalkPolicy> walks() const;
  std::vector<Wants> wants_of_each() const;
  /// For each tool, by its key in reports: which of its figures are samples in a sampled run.
  std::vector<std::pair<std::string, Tool::Sampled>> sampled() const;
  /// Names of tools that need the whole run in one go.
  std::vector<std::string> serial_tools() const;

  /// Made if there is none yet. Valid as long as the analysis.
  Group& group(const std::vector<std::string>& labels);

  /// Whether the tool, by its number in groups, has a model to be warmed up; see
  /// Tool::set_warming().
  bool warms(std::size_t tool) const { return requests_[tool].prototype->warms(); }
  /// Sets it for all tools, present and future.
  void set_warming(bool warming);

  /// All, by Group::number.
  std::vector<Group*> groups();

  /// The code that its tools have seen, which lives as long as they do.
  CodeLibrary& code() { return code_; }

  /// `later` saw the next part of the run.
  void follow(Analysis&& later);
  void save(ByteWriter& out) const;
  /// Into one that has seen nothing. Throws FormatError for what save() never writes.
  void load(ByteReader& in);

  /// Under `into`: a group "tools" with one of each tool, or with `by` a group for each "groups".
  void report(Report& into) const;
  /// Failures of tools (Tool::failure()), each once; valid after report() or save().
  std::vector<std::string> failures() const;
  /// The only tool of the only group; null where there are more.
  const Tool* only_tool() const;

 private:
  struct Request : ToolRequest {
    bool merges = false;  ///< what it has found in parts of a run is put together
    std::string name;
    std::string key;  ///< in reports: its name; as on the command line where that is there twice
    std::unique_ptr<Tool> prototype;
  };
  void report_tools(const Group& group, Report& into) const;
  std::string key_of(const std::vector<std::string>& labels) const;
  std::unique_ptr<Tool> make_for(const Request& request,
                                 const std::vector<std::string>& labels) const;

  Setup setup_;
  CodeLibrary code_;
  std::vector<Split> by_;
  std::vector<Request> requests_;
  std::map<std::vector<std::string>, Group> groups_;
  bool warming_ = false;
};

}  // namespace citcat::tools
