// Answers from the server that the page came from.

export class LiveSource {
  is_live = true;

  /// `run`: its number, of those that the server shows.
  constructor(run) {
    this.run = run;
  }

  /// The answer to a question of docs/formats/view-interface.md. Throws Error with what is wrong.
  async ask(question, parameters = {}) {
    const query = new URLSearchParams();
    if (this.run !== 1) query.set("run", this.run);
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined && value !== null) query.set(name, value);
    }
    const text = query.toString();
    let response;
    try {
      response = await fetch(`api/${question}${text === "" ? "" : "?" + text}`);
    } catch {
      throw new Error("citcat does not answer: it has ended. Start citcat view again.");
    }
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }
}
