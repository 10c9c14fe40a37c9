// @ts-check
// What stands beside the cards: the clock, where the cycles go, the chosen instruction, the history, a search.

class Side {
  /** @param {Kernel} kernel @param {string} mode @param {(to: number) => void} go */
  constructor(kernel, mode, go) {
    this.kernel = kernel;
    this.mode = mode;
    this.go = go;
    part("clock-says").textContent = kernel.clock;
  }

  /** @param {State} state */
  show(state) {
    part("cycles").replaceChildren(figure(state.cycles, tenths(state.cycles)));
    const gain = part("gain");
    gain.replaceChildren(figure(state.gain, percent(state.gain)));
    gain.className = state.gain > 0 ? "better" : state.gain < 0 ? "worse" : "";
    part("best").replaceChildren("best so far ", figure(state.best.gain, percent(state.best.gain)));
    this.reasons(state);
    this.history(state);
    this.search(state.agent);
    this.saving(state.saving);
  }

  /** Two bars on one scale, and the figures below them. @param {State} state */
  reasons(state) {
    const { original, divisor, reasons } = this.kernel;
    const longest = Math.max(original.cycles, state.cycles);
    for (const [id, reading] of /** @type {[string, Reading][]} */ ([["bar-before", original], ["bar-now", state]])) {
      part(id).replaceChildren(
        ...Object.entries(reasons).flatMap(([number, name]) => {
          const cycles = (reading.reasons[name] ?? 0) / divisor;
          const bar = element("i", `r${number}`);
          bar.style.width = `${((100 * cycles) / longest).toPrecision(4)}%`;
          bar.title = `${name}: ${tenths(cycles)}`;
          return cycles ? [bar] : [];
        }),
      );
    }
    const rows = Object.entries(reasons).flatMap(([number, name]) => {
      const [old, now] = [original, state].map((reading) => (reading.reasons[name] ?? 0) / divisor);
      if (!old && !now) return [];
      const change = now - old;
      const less = element("td", change < 0 ? "less" : "more", Math.abs(change) >= 0.05 ? `${change < 0 ? "−" : "+"}${tenths(Math.abs(change))}` : "");
      return [element("tr", "", element("th", "", element("i", `swatch r${number}`), name),
        element("td", "", figure(now, tenths(now))), less)];
    });
    part("reasons").replaceChildren(...rows);
  }

  /** @param {State} state */
  history(state) {
    const last = state.first + state.history.length - 1;
    const items = state.history.map((step, k) => {
      const place = state.first + k;
      const button = element("button", "", element("span", "", step.words), figure(step.gain, percent(step.gain)));
      button.setAttribute("type", "button");
      if (place === state.cursor) button.setAttribute("aria-current", "step");
      button.addEventListener("click", () => this.go(place));
      return element("li", place > state.cursor ? "undone" : "", button);
    });
    const list = part("history");
    list.replaceChildren(...items.reverse());
    const current = list.querySelector("[aria-current]");
    if (current instanceof HTMLElement) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 2;
    /** @type {HTMLButtonElement} */ (part("undo")).disabled = state.cursor === 0;
    /** @type {HTMLButtonElement} */ (part("redo")).disabled = state.cursor === last;
  }

  /** @param {Playing | undefined} agent */
  search(agent) {
    const box = part("search");
    box.hidden = !agent;
    if (!agent) return;
    const said = [`${agent.name}: ${agent.done.toLocaleString("en-US")} of ${agent.budget.toLocaleString("en-US")} evaluations`];
    if (agent.rate) said.push(`${agent.rate.toFixed(0)} a second`);
    if (agent.stage) said.push(agent.stage);
    if (agent.problem) said.push(agent.problem);
    part("search-says").textContent = said.join(", ");
    this.curve(agent);
  }

  /** @param {Playing} agent */
  curve(agent) {
    const { tried, best } = agent.curve;
    const top = Math.max(0.001, ...best.map(([, gain]) => gain)) * 1.1;
    const low = -0.35 * top;
    const x = (/** @type {number} */ n) => ((340 * n) / Math.max(1, agent.budget)).toFixed(1);
    const y = (/** @type {number} */ gain) => (110 - (110 * (Math.max(gain, low) - low)) / (top - low)).toFixed(1);
    const dots = tried.map(([n, gain]) => `M${x(n)} ${y(gain)}h0`).join("");
    const line = best.map(([n, gain], k) => (k ? `H${x(n)}V${y(gain)}` : `M${x(n)} ${y(gain)}`)).join("");
    part("curve-zero").setAttribute("d", `M0 ${y(0)}H340`);
    part("curve-tried").setAttribute("d", dots);
    part("curve-best").setAttribute("d", line && `${line}H${x(agent.done)}`);
    part("curve").setAttribute("aria-label", `best so far ${percent(best.length ? best[best.length - 1][1] : 0)} after ${agent.done} evaluations`);
  }

  /** @param {Saving | undefined} saving */
  saving(saving) {
    const box = part("saving");
    box.hidden = !saving;
    if (!saving) return;
    const inside = [element("p", saving.accepted ? "ok" : "", saving.sentence ?? saving.problem ?? `${saving.stage} …`)];
    for (const [name, outcome, sentence] of saving.checks ?? []) {
      inside.push(element("p", "check", element("b", "", `${name} ${outcome}`), ` ${sentence}`));
    }
    if (saving.run) inside.push(element("p", "dim", `run: ${saving.run}`));
    if (saving.report && this.mode === "watch") inside.push(element("p", "dim", `report: ${saving.report}`));
    if (saving.report && this.mode === "play") {
      const link = element("a", "", "open its report");
      link.setAttribute("href", "report");
      link.setAttribute("target", "_blank");
      inside.push(element("p", "", link));
    }
    part("saving-says").replaceChildren(...inside);
  }

  /** The chosen instruction. @param {State} state @param {number} i @param {number} position */
  inspect(state, i, position) {
    const { kernel } = this;
    const waits = state.waits[position];
    const each = Math.max(1, kernel.executions[i]);
    const told = [];
    for (let n = 0; n < waits.length; n += 2) told.push(`${kernel.reasons[waits[n]]} ${(waits[n + 1] / each).toFixed(1)}`);
    part("chosen").hidden = false;
    part("chosen-text").textContent = kernel.text[i];
    const came = position === i ? "" : `, as compiled at ${address(i)}`;
    part("chosen-where").textContent = `${address(position)}  ${state.control[position]}${came}`;
    part("chosen-waits").textContent = told.length ? `cycles waited: ${told.join(", ")}` : "no wait";
  }
}
