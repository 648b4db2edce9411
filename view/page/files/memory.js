// Memory at the moment, and who accessed a byte of it.

import { element, fill, hex, move_by_arrows } from "./dom.js";
import { moment_link } from "./links.js";
import { current_place, go_to, link_to } from "./place.js";
import { stack_address } from "./registers.js";

const BYTES = 256, ROW = 16;

/// What was shown last, to tell what has changed since.
let last = { key: "", bytes: "" };

/// The hexadecimal digits of an address as somebody writes it; of a processor without protection also SEGMENT:OFFSET.
export function address_digits(text, run) {
  const whole = text.trim().replace(/^0x/i, ""), parts = whole.split(":");
  const is_far = parts.length === 2 && !run.has.levels;
  if (!(is_far ? parts : [whole]).every((part) => /^[0-9a-f]{1,16}$/i.test(part))) return undefined;
  return is_far ? ((16 * parseInt(parts[0], 16) + parseInt(parts[1], 16)) & 0xfffff).toString(16) : whole;
}

/// `state`: of the processor at the moment, as the question `state` has it.
export async function show_memory(target, source, moment, run, state) {
  const place = current_place();
  const space = place.space ?? "linear";
  const asked = place.address ?? stack_address(state);
  // Without paging they are the same.
  const choice = run.has.paging ? element("label", {}, "Space ", element("select", { name: "space" },
    element("option", { selected: space === "linear" }, "linear"), element("option", { selected: space === "physical" }, "physical"))) : "";
  const form = element("form", { class: "line", submit: (event) => {
    event.preventDefault();
    const data = new FormData(form);
    go_to({ panel: "memory", space: data.get("space") ?? space, address: data.get("address") });
  } },
  element("label", {}, "Address ", element("input", { name: "address", value: asked ?? "", size: 16, spellcheck: "false", autocomplete: "off" })),
  choice, element("button", {}, "Show"), place.address === undefined && asked !== undefined ? element("span", { class: "hint" }, "the top of the stack") : "");
  if (asked === undefined) return fill(target, form);
  const address = address_digits(asked, run);
  if (address === undefined) {
    const form_of = run.has.levels ? "hexadecimal digits" : "hexadecimal digits or SEGMENT:OFFSET";
    return fill(target, form, element("p", { role: "alert" }, `Address: expected ${form_of}, found '${asked}'`));
  }
  const wanted = BigInt("0x" + address);
  const first = wanted - (wanted % BigInt(ROW));
  let answer;
  try {
    answer = await source.ask("memory", { at: moment, space, address: first.toString(16), size: BYTES });
  } catch (error) {
    return fill(target, form, element("p", { role: "alert" }, error.message));
  }
  const key = `${space} ${first}`;
  const before = last.key === key ? last.bytes : answer.bytes;
  last = { key, bytes: answer.bytes };
  const results = element("div", { class: "results", "aria-live": "polite" });
  const rows = [];
  for (let i = 0; i < BYTES; i += ROW) rows.push(memory_row(answer, before, first, i, wanted, space));
  const go = (by) => link_to({ panel: "memory", space, address: BigInt.asUintN(64, first + BigInt(by) < 0n ? 0n : first + BigInt(by)).toString(16) });
  const table = element("table", { class: "memory", "aria-label": `Memory from ${hex(first, answer.at.length)} on` },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Address"),
      element("th", { scope: "col", colspan: ROW }, "Bytes"), element("th", { scope: "col" }, "Text"))),
    element("tbody", {}, rows));
  move_by_arrows(table, (link) => link.getAttribute("aria-current") === "true");
  fill(target, form,
    element("p", { class: "line" }, element("a", { href: go(-BYTES) }, "Before"), element("a", { href: go(BYTES) }, "Behind"),
      answer.pages[0] === null ? element("span", {}, "Nothing is mapped here.") : space === "linear" && run.has.paging ? element("span", {}, `physical ${answer.pages[0]}`) : ""),
    element("div", { class: "scroll" }, table),
    byte_questions(source, moment, space, wanted, answer.at.length, results), results);
}

function memory_row(answer, before, first, offset, wanted, space) {
  const cells = [];
  let text = "";
  for (let j = 0; j < ROW; ++j) {
    const at = first + BigInt(offset + j);
    const byte = answer.bytes.slice(2 * (offset + j), 2 * (offset + j) + 2);
    const changed = byte !== before.slice(2 * (offset + j), 2 * (offset + j) + 2);
    const code = parseInt(byte, 16);
    text += byte === "??" ? " " : code >= 32 && code < 127 ? String.fromCharCode(code) : "·";
    const kind = [byte === "??" ? "unknown" : "", changed ? "changed" : "", at === wanted ? "chosen" : ""].join(" ").trim();
    cells.push(element("td", { class: kind }, byte === "??" ? element("span", { title: "not known" }, "··")
      : element("a", { href: link_to({ panel: "memory", address: at.toString(16), space }), "aria-current": at === wanted ? "true" : false }, byte)));
  }
  return element("tr", {}, element("th", { scope: "row" }, hex(first + BigInt(offset), answer.at.length)), cells, element("td", { class: "text" }, text));
}

/// Who accesses the chosen byte, before and after.
function byte_questions(source, moment, space, address, digits, results) {
  const size_field = element("input", { type: "number", min: 1, max: 4096, value: 1, "aria-label": "Bytes" });
  const ask = (kind, direction, text) => element("button", { type: "button", "data-kind": kind, "data-direction": direction, click: async () => {
    fill(results, element("p", {}, "Looking ..."));
    try {
      const answer = await source.ask("access", { at: moment, space, address: address.toString(16), size: size_field.value, kind, direction });
      fill(results, access_text(answer));
    } catch (error) {
      fill(results, element("p", { role: "alert" }, error.message));
    }
  } }, text);
  return element("p", { class: "line questions" }, element("span", {}, `At ${hex(address, digits)}:`), size_field, "bytes",
    ask("write", "back", "Who wrote it last?"), ask("read", "back", "Who read it last?"),
    ask("read", "on", "Who reads it next?"), ask("write", "on", "Who writes it next?"));
}

function access_text(answer) {
  if (!answer.found) {
    return element("p", {}, answer.why, answer.searched_to === undefined ? "" : [" It was looked for up to ", moment_link(answer.searched_to), "."]);
  }
  const changed = answer.write && answer.before !== answer.after ? `: ${answer.before || "not known"} became ${answer.after}` : answer.after ? `: ${answer.after}` : "";
  return element("p", { class: "found" }, "Instruction ", moment_link(answer.moment), answer.place === undefined ? "" : ` in ${answer.place}`,
    answer.text === undefined ? "" : [", ", element("code", {}, answer.text)], answer.events === undefined ? "" : ` and ${answer.events.join(", ")}`, `, by ${answer.by}${changed}`);
}
