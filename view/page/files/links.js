// Moments and places as links.

import { element } from "./dom.js";
import { link_to } from "./place.js";

/// "123" of the moment "123~4".
export const position_of = (moment) => String(moment).split("~")[0];

export function moment_link(moment, text = position_of(moment)) {
  return element("a", { href: link_to({ at: moment }), title: `Go to instruction ${position_of(moment)}` }, text);
}

/// An address that opens the memory there.
export function memory_link(address, text = address, space = "linear") {
  return element("a", {
    href: link_to({ panel: "memory", space, address }),
    title: `Memory at ${space === "physical" ? "physical " : ""}${address}`,
  }, text);
}
