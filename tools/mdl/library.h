#pragma once
// The definitions that a run knows: those in its texts, and then the program's own.

#include <deque>
#include <string>
#include <vector>

#include "tools/mdl/parser.h"
#include "tools/mdl/syntax.h"

namespace citcat::mdl {

class Library {
 public:
  /// Knows what kOwnDefinitions defines.
  Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Throws TextError for text that is not MDL, or has no meaning: every metric is checked, with
  /// all of its constraints. A definition takes the place of an earlier one of its name.
  void add(std::string name, std::string text);
  void add_file(const std::string& path);

  /// A definition with the text that it is from. Pointers live as long as the library.
  template <class Definition>
  struct Found {
    const Definition* definition = nullptr;  ///< null: there is none of that name
    const Source* source = nullptr;
  };
  Found<Metric> metric(const std::string& name) const;
  Found<Constraint> constraint(const std::string& name) const;
  Found<ResourceList> list(const std::string& name) const;
  /// Names of all metrics, with commas between them.
  std::string metric_names() const;

 private:
  struct Text {
    Source source;
    Program program;
  };
  template <class Definition, std::vector<Definition> Program::*All, std::string Definition::*Name>
  Found<Definition> find(const std::string& name) const;

  std::deque<Text> texts_;  ///< later ones are asked first
};

/// Constraints for all resources, and metrics that need no text of one's own.
extern const char* const kOwnDefinitions;

}  // namespace citcat::mdl
