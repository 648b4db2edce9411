// Where answers come from: the server of the page, or the page itself where it was exported. Each run
// that the page shows has a source of its own.

import { ExportedSource } from "./exported_source.js";
import { LiveSource } from "./live_source.js";

/// The sources of all runs, and what the page has of them together (docs/formats/view-interface.md,
/// `runs`).
export async function open_sources() {
  const packed = document.querySelectorAll("[id^=exported]");
  if (packed.length === 0) {
    const first = new LiveSource(1);
    const together = await first.ask("runs");
    return { sources: together.runs.map((_, i) => (i === 0 ? first : new LiveSource(i + 1))), together };
  }
  const sources = [];
  for (const data of packed) sources.push(await ExportedSource.open(data));
  return { sources, together: JSON.parse(document.getElementById("data-runs").textContent) };
}

/// What `citcat report` found out of each run; null where the page has it not.
export function open_figures() {
  const data = document.getElementById("data-figures");
  return data === null ? null : JSON.parse(data.textContent).runs;
}
