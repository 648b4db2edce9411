// What is seen, as the address of the page says it: a link can be sent to a colleague who has the
// same recording.

/// Digits of the recording's identity that stand in a link.
const IDENTITY_DIGITS = 12;

let identity = "";

export function set_identity(whole) {
  identity = whole.slice(0, IDENTITY_DIGITS);
}

/// What the address of the page says: at (moment), panel, space, address, from and to of the
/// timeline, text that is looked for.
export function current_place() {
  const place = {};
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) place[name] = value;
  return place;
}

/// The link is of the recording that is shown, or says nothing of any.
export function is_of_this_recording(place) {
  return place.id === undefined || place.id === identity;
}

/// A link to what is seen now, but for `changes`; null takes a value away.
export function link_to(changes) {
  const place = { ...current_place(), ...changes, id: identity };
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
