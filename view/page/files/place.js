// What is seen, as the address of the page says it: a link can be sent to a colleague who has the
// same recording. Where the page shows several runs, `run` is the one that is looked at, and each
// has a moment of its own: `at`, `at2`, `at3` ...

/// Digits of a recording's identity that stand in a link.
const IDENTITY_DIGITS = 12;

let identity = "";

/// Tells of which recordings links are from now on.
export function set_identities(wholes) {
  identity = wholes.map((whole) => whole.slice(0, IDENTITY_DIGITS)).join("-");
}

const moment_name = (run) => (String(run) === "1" ? "at" : `at${run}`);

/// What the address of the page says, as it stands there.
function place_there() {
  const place = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) place[name] = value;
  return place;
}

/// What the address of the page says: at (moment), run, screen, panel, space, address, from and to of
/// the timeline, text that is looked for; `at` is that of the run that is looked at.
export function current_place() {
  const place = place_there();
  place.run ??= "1";
  place.at = place[moment_name(place.run)];
  return place;
}

/// The moment of a run, of which there may be several; undefined where none was chosen.
export const moment_of = (run) => place_there()[moment_name(run)];

/// The link is of the recordings that are shown, or says nothing of any.
export function is_of_this_recording(place) {
  return place.id === undefined || place.id === identity;
}

/// A link to what is seen now, but for `changes`; null takes a value away. `moments` has those of
/// several runs, by their numbers.
export function link_to({ at, moments, ...changes }) {
  const place = { ...place_there(), ...changes, id: identity };
  if (at !== undefined) place[moment_name(place.run ?? 1)] = at;
  for (const [run, moment] of Object.entries(moments ?? {})) place[moment_name(run)] = moment;
  // Who goes to a moment leaves the figures.
  if ((at !== undefined || moments !== undefined) && changes.screen === undefined) delete place.screen;
  if (String(place.run) === "1") delete place.run;
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(place)) {
    if (value !== null && value !== undefined) parts.set(name, value);
  }
  return "#" + parts.toString();
}

/// Goes there, as if the link had been followed.
export function go_to(changes) {
  location.hash = link_to(changes);
}

/// The same without a step in the browser's history.
export function replace_place(changes) {
  history.replaceState(null, "", link_to(changes));
}
