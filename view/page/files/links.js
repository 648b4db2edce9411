// Moments and places as links.

import { element } from "./dom.js";
import { link_to } from "./place.js";

/// "123" of the moment "123~4".
export const position_of = (moment) => String(moment).split("~")[0];

/// `run`: of another run than the one that is looked at.
export function moment_link(moment, text = position_of(moment), run = undefined) {
  return element("a", { href: link_to(run === undefined ? { at: moment } : { run, at: moment }), title: `Go to instruction ${position_of(moment)}` }, text);
}

/// An address that opens the memory there.
export function memory_link(address, text = address, space = "linear", run = undefined) {
  return element("a", {
    href: link_to({ panel: "memory", space, address, ...(run === undefined ? {} : { run }) }),
    title: `Memory at ${space === "physical" ? "physical " : ""}${address}`,
  }, text);
}
