#include "cli/advice/line_advice.h"

#include "capture/inspect/line_check.h"

namespace citcat {

std::vector<std::string> line_advice(const RecordingFile& file) {
  LineCheck check;
  const auto evidence = file.evidence();
  for (BusTransaction t; evidence->next(t);)
    if (t.is_memory()) check.add(t, true);
  std::vector<std::string> texts;
  for (const LineCheck::Finding& finding : check.findings(file.recording().bus)) {
    if (finding.confidence == FindingConfidence::possible) continue;
    texts.push_back(finding.text + ": look at its probe, or at the channel map");
  }
  return texts;
}

}  // namespace citcat
