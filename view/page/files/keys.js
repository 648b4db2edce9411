// Keys, as debuggers have them; with Shift a step goes backwards.

/// Key, what is called, what it does, as help says it.
export const MOVES = [
  ["s", "step", "Step", "one instruction further"],
  ["S", "back", "Step back", "one instruction back"],
  ["n", "over", "Step over", "past a call, or all of a REP"],
  ["N", "over-back", "Back over", "before the call that has just returned"],
  ["o", "out", "Step out", "to where this call returns"],
  ["O", "out-back", "Back out", "to the call that runs here"],
];

export const OTHER_KEYS = [
  ["r", "run on to an address"],
  ["R", "run back to an address"],
  ["g", "go to an instruction"],
  ["/", "find a name or a text"],
  ["b", "the beginning"],
  ["e", "the end"],
  ["h", "the first screen"],
  ["f", "the figures"],
  ["+", "zoom in"],
  ["-", "zoom out"],
  ["0", "show the whole run"],
  ["<", "move the timeline to what was earlier"],
  [">", "move the timeline to what was later"],
  ["arrows", "from link to link in code and memory"],
  ["Esc", "out of a field, to use the keys again"],
  ["?", "this help"],
];

/// Calls `press(key)` for what is pressed outside of fields.
export function listen_to_keys(press) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && event.target.closest("input, select")) return event.target.blur();
    if (event.target.closest("input, select, textarea, dialog[open]")) return;
    if (press(event.key)) event.preventDefault();
  });
}
