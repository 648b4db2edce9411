// Where answers come from: the server of the page, or the page itself where it was exported.

import { ExportedSource } from "./exported_source.js";
import { LiveSource } from "./live_source.js";

export async function open_source() {
  const data = document.getElementById("exported");
  return data === null ? new LiveSource() : ExportedSource.open(data);
}
