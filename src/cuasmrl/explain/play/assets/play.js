// @ts-check
// The page: a game that is played, an agent that is watched, or a game that was recorded.

class Page {
  /** @param {PageData} data */
  constructor(data) {
    this.kernel = data.kernel;
    this.state = data.state;
    this.mode = data.mode;
    this.line = data.mode === "recorded" ? null : new Line((state) => this.news(state), (lost) => this.lost(lost));
    this.column = new Column(part("cards"), data.kernel);
    this.side = new Side(data.kernel, data.mode, (to) => this.go(to));
    /** @type {number | null} */
    this.chosen = null;
    /** @type {Hint[]} */
    this.hints = [];
    this.hand = new Hand(this.column, {
      reach: (i) => this.ask("reach", { instruction: i }),
      drop: (i, to, alone) => this.move({ kind: alone ? "shift" : "drag", instruction: i, position: to }),
      say: (sentence) => this.say(sentence),
      chosen: (i) => this.choose(i),
      may: () => this.mode === "play",
    });
    this.buttons();
    this.draw();
    if (data.recording) this.record(data.recording);
  }

  buttons() {
    const on = (/** @type {string} */ id, /** @type {() => void} */ does) => part(id).addEventListener("click", does);
    on("undo", () => this.go(this.state.cursor - 1));
    on("redo", () => this.go(this.state.cursor + 1));
    on("hint", () => this.hint());
    on("agent", () => this.ask("agent", { play: !this.state.agent?.running }));
    on("save", () => this.ask("save", {}));
    on("stall-less", () => this.stall(-1));
    on("stall-more", () => this.stall(1));
    on("yield", () => this.edit("yield"));
    on("reuse", () => this.edit("reuse"));
    part("everything").addEventListener("change", (event) => {
      this.column.everything = event.target instanceof HTMLInputElement && event.target.checked;
      this.column.build();
      this.column.shown = [];
      this.column.show(this.state);
    });
    addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (this.mode !== "play" || event.altKey) return;
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && (key === "z" || key === "y")) {
      this.go(this.state.cursor + (key === "y" || event.shiftKey ? 1 : -1));
    } else if (!event.ctrlKey && !event.metaKey && this.column.root.contains(document.activeElement) && !this.hand.held) {
      const does = { h: () => this.hint(), "+": () => this.stall(1), "-": () => this.stall(-1),
        y: () => this.edit("yield"), r: () => this.edit("reuse") }[key];
      if (!does) return;
      does();
    } else {
      return;
    }
    event.preventDefault();
  }

  /** @param {State} state */
  news(state) {
    // An answer and the news of it come both, in either order.
    if (state.pulse <= this.state.pulse) return;
    const has_moved = state.version !== this.state.version;
    this.state = state;
    if (has_moved) {
      this.hand.cancel();
      this.point([]);
    }
    this.draw();
  }

  draw() {
    const { state } = this;
    this.column.show(state);
    this.side.show(state);
    if (this.chosen !== null) this.choose(this.chosen);
    const running = Boolean(state.agent?.running);
    part("agent").textContent = running ? "Stop the agent" : `Let ${this.kernel.agent ?? "the agent"} play`;
    document.body.classList.toggle("running", running);
    for (const card of this.column.root.querySelectorAll(".touched")) card.classList.remove("touched");
    if (state.touched !== null) this.column.cards[state.touched]?.classList.add("touched");
  }

  /** @param {string} name @param {object} data */
  async ask(name, data) {
    if (!this.line) return { sentence: "this game was recorded" };
    const found = await this.line.ask(name, { version: this.state.version, ...data });
    if (found.sentence) this.refuse(found.sentence);
    return found;
  }

  /** @param {object} move */
  async move(move) {
    const before = this.state.cycles;
    const found = await this.ask("move", { move });
    if (found.sentence) return;
    const change = this.state.cycles - before;
    const words = this.state.history[this.state.cursor - this.state.first].words;
    const said = Math.abs(change) < 0.05 ? "no difference" : `${tenths(Math.abs(change))} cycles ${change < 0 ? "fewer" : "more"}`;
    this.say(`${words}: ${said}, ${percent(this.state.gain)} over the compiler.`);
  }

  /** @param {number} to */
  go(to) {
    if (this.mode === "recorded") return this.turn(to);
    if (this.mode === "play") this.ask("go", { to });
  }

  /** @param {number} by */
  stall(by) {
    if (this.chosen === null) return;
    const control = this.state.control[this.column.position.get(this.chosen) ?? 0];
    this.move({ kind: "stall", instruction: this.chosen, stall: Math.min(15, Math.max(0, Number(control.slice(-2)) + by)) });
  }

  /** @param {string} kind */
  edit(kind) {
    if (this.chosen !== null) this.move({ kind, instruction: this.chosen });
  }

  async hint() {
    this.say("looking for moves …");
    const found = await this.ask("hint", {});
    if (!found.hints) return;
    this.say(found.source);
    this.point(found.hints, found.source);
  }

  /** @param {Hint[]} hints */
  point(hints, source = "") {
    this.hints = hints;
    const items = hints.map((hint, k) => {
      const worth = hint.odds === null ? figure(hint.gain ?? 0, percent(hint.gain ?? 0)) : figure(hint.odds, `${Math.round(100 * hint.odds)} %`);
      const button = element("button", "", element("i", `key s${k % 6}`), element("span", "", hint.words), worth);
      button.setAttribute("type", "button");
      button.addEventListener("click", () => this.move({ kind: "drag", instruction: hint.instruction, position: hint.position }));
      button.addEventListener("pointerenter", () => this.column.cards[hint.instruction]?.classList.add("here"));
      button.addEventListener("pointerleave", () => this.column.cards[hint.instruction]?.classList.remove("here"));
      return element("li", "", button);
    });
    part("hints").replaceChildren(...items);
    part("hints-say").textContent = source;
    part("hints-box").hidden = !source;
    this.column.point(hints);
  }

  /** @param {number} i */
  choose(i) {
    if (this.chosen !== null) this.column.cards[this.chosen]?.classList.remove("here");
    this.chosen = i;
    this.column.cards[i]?.classList.add("here");
    this.side.inspect(this.state, i, this.column.position.get(i) ?? 0);
  }

  /** @param {string} sentence */
  say(sentence) {
    part("refused").textContent = "";
    if (part("said").textContent !== sentence) part("said").textContent = sentence;
  }

  /** @param {string} sentence */
  refuse(sentence) {
    part("said").textContent = "";
    part("refused").textContent = sentence;
  }

  /** @param {boolean} lost */
  lost(lost) {
    part("lost").hidden = !lost;
  }

  /** @param {State[]} states */
  record(states) {
    this.recorded = states;
    const slider = /** @type {HTMLInputElement} */ (part("place"));
    slider.max = String(states.length - 1);
    slider.addEventListener("input", () => this.turn(Number(slider.value)));
    /** @type {number | undefined} */
    let timer;
    const button = part("run");
    const stop = () => {
      clearInterval(timer);
      timer = undefined;
      button.textContent = "Play";
    };
    button.addEventListener("click", () => {
      if (timer !== undefined) return stop();
      button.textContent = "Pause";
      if (this.state.cursor === states.length - 1) this.turn(0);
      timer = setInterval(() => {
        this.turn(this.state.cursor + 1);
        if (this.state.cursor === states.length - 1) stop();
      }, 900);
    });
  }

  /** To a place of the recording. @param {number} to */
  turn(to) {
    const state = this.recorded?.[to];
    if (!state) return;
    this.state = { ...this.state, ...state, cursor: to };
    /** @type {HTMLInputElement} */ (part("place")).value = String(to);
    this.draw();
    this.say(state.history?.[to]?.words ?? this.state.history[to].words);
    if (state.touched !== null) this.column.cards[state.touched]?.scrollIntoView({ block: "nearest" });
  }
}

new Page(JSON.parse(part("data").textContent ?? "{}"));
