// @ts-check
// The listing answers: whoever points at an instruction, or comes to it by the keyboard, sees what it depends on,
// who needs it, its slack and its waits; and where it stands on the other side. Everything is read from the data
// of the page.

/**
 * @typedef {"before" | "after"} SideName
 * @typedef {{order: number[], position: number[], control: string[], executions: number[], waits: number[][],
 *   awaited: (number | null)[], slack: [number, number][]}} Side
 * @typedef {{is_loop: boolean, iterations: number, reasons: string[], text: string[],
 *   before: Side, after: Side}} Loop
 * @typedef {[first: number, second: number, need: number, what: string]} Dependence
 * @typedef {{issues: [index: number, cycle: number, complete: number, reason: number | null, by: number | null][]}} Issues
 * @typedef {{loop: Loop, dependences: Dependence[], timeline: {before: Issues, after: Issues} | null}} Data
 */

const MOST = 9;
const SIDES = /** @type {SideName[]} */ (["before", "after"]);

/** @param {string} tag @param {string} looks @param {(string | Node)[]} inside */
function element(tag, looks, ...inside) {
  const made = document.createElement(tag);
  if (looks) made.className = looks;
  made.append(...inside);
  return made;
}

/** @param {number} position */
const address = (position) => (16 * position).toString(16).padStart(4, "0");

class Listing {
  /** @param {HTMLElement} root @param {Data} data */
  constructor(root, data) {
    this.root = root;
    this.loop = data.loop;
    this.inspector = /** @type {HTMLElement} */ (root.querySelector(".inspector"));
    /** @type {Map<number, string>} */
    this.texts = new Map(data.loop.before.order.map((index, k) => [index, data.loop.text[k]]));
    this.places = Object.fromEntries(
      SIDES.map((side) => [side, new Map(data.loop[side].order.map((index, k) => [index, k]))]),
    );
    this.issued = Object.fromEntries(
      SIDES.map((side) => [side, new Map((data.timeline?.[side].issues ?? []).map((issue) => [issue[0], issue]))]),
    );
    /** @type {Map<number, Dependence[]>} */
    this.behind = new Map();
    /** @type {Map<number, Dependence[]>} */
    this.ahead = new Map();
    for (const edge of data.dependences) {
      this.behind.set(edge[1], [...(this.behind.get(edge[1]) ?? []), edge]);
      this.ahead.set(edge[0], [...(this.ahead.get(edge[0]) ?? []), edge]);
    }
    /** @type {Element[]} */
    this.marked = [];
    this.listen();
  }

  listen() {
    const { root } = this;
    for (const list of root.querySelectorAll(".code")) {
      // One stop for the Tab key, and arrows from there.
      const first = /** @type {HTMLElement | null} */ (list.querySelector(".x, .m") ?? list.firstElementChild);
      first?.setAttribute("tabindex", "0");
    }
    root.addEventListener("pointerover", (event) => this.over(event.target));
    root.addEventListener("pointerleave", () => this.hide());
    root.addEventListener("focusin", (event) => this.over(event.target));
    root.addEventListener("focusout", () => this.hide());
    root.addEventListener("click", (event) => this.row(event.target)?.focus({ preventScroll: true }));
    root.addEventListener("keydown", (event) => this.key(event));
    for (const moved of [root.querySelector(".frame"), document]) {
      moved?.addEventListener("scroll", () => this.follow(), { passive: true });
    }
    addEventListener("hashchange", () => this.arrive());
    this.tabs();
    this.arrive();
  }

  /** On narrow screens one side at a time. */
  tabs() {
    const tabs = this.root.querySelector(".tabs");
    if (!(tabs instanceof HTMLElement)) return;
    tabs.hidden = false;
    tabs.addEventListener("click", (event) => {
      const side = event.target instanceof HTMLElement ? event.target.dataset.side : undefined;
      if (side) this.turn(side);
    });
    this.turn("after");
  }

  /** @param {string} side */
  turn(side) {
    if (!this.root.querySelector(".tabs")) return;
    this.root.dataset.side = side;
    for (const button of this.root.querySelectorAll(".tabs button")) {
      button.setAttribute("aria-pressed", String(button instanceof HTMLElement && button.dataset.side === side));
    }
  }

  /** A link has led to a line: make sure that it can be seen. */
  arrive() {
    const row = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
    if (!row || !this.root.contains(row)) return;
    this.turn(this.sideOf(row));
    row.scrollIntoView({ block: "center" });
    this.rove(row);
    row.focus({ preventScroll: true });
  }

  /** @param {EventTarget | null} target @returns {HTMLElement | null} */
  row(target) {
    const row = target instanceof Element ? target.closest(".code > li") : null;
    return row instanceof HTMLElement ? row : null;
  }

  /** @param {Element} row @returns {SideName} */
  sideOf(row) {
    return row.id[0] === "b" ? "before" : "after";
  }

  /** @param {HTMLElement} row */
  rove(row) {
    row.parentElement?.querySelector("[tabindex='0']")?.setAttribute("tabindex", "-1");
    row.setAttribute("tabindex", "0");
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const row = this.row(event.target);
    if (event.key === "Escape") return this.hide();
    if (!row) return;
    const other = this.sideOf(row) === "before" ? "a" : "b";
    const next = {
      ArrowDown: row.nextElementSibling,
      ArrowUp: row.previousElementSibling,
      ArrowRight: document.getElementById(other + row.id.slice(1)),
      ArrowLeft: document.getElementById(other + row.id.slice(1)),
      Home: row.parentElement?.firstElementChild,
      End: row.parentElement?.lastElementChild,
    }[event.key];
    if (!(next instanceof HTMLElement)) return;
    event.preventDefault();
    this.turn(this.sideOf(next));
    this.rove(next);
    next.scrollIntoView({ block: "nearest" });
    next.focus({ preventScroll: true });
  }

  /** @param {EventTarget | null} target */
  over(target) {
    const row = this.row(target);
    if (!row) return;
    if (!row.hasAttribute("tabindex")) row.setAttribute("tabindex", "-1");
    const side = this.sideOf(row);
    const index = Number(row.id.slice(1));
    this.clear();
    this.mark(row, "here");
    for (const edge of this.behind.get(index) ?? []) this.mark(this.line(side, edge[0]), "in");
    for (const edge of this.ahead.get(index) ?? []) this.mark(this.line(side, edge[1]), "out");
    this.mark(this.line(side === "before" ? "after" : "before", index), "twin");
    this.mark(this.root.querySelector(`.links path[data-i="${index}"]`), "on");
    this.inspector.replaceChildren(...this.describe(side, index));
    this.inspector.hidden = false;
    this.stand(row);
  }

  /** @param {SideName} side @param {number} index */
  line(side, index) {
    return document.getElementById(side[0] + index);
  }

  /** @param {Element | null} what @param {string} looks */
  mark(what, looks) {
    if (!what) return;
    what.classList.add(looks);
    this.marked.push(what);
  }

  clear() {
    for (const what of this.marked) what.classList.remove("here", "in", "out", "twin", "on");
    this.marked = [];
  }

  hide() {
    this.clear();
    this.inspector.hidden = true;
  }

  /** What the keyboard or the pointer is at stays shown while the page moves under it. */
  follow() {
    const row = this.root.querySelector(".code > .here");
    if (row instanceof HTMLElement && (row === document.activeElement || row.matches(":hover"))) this.stand(row);
    else this.hide();
  }

  /** Over the other side, so that the lines around stay in sight. @param {HTMLElement} row */
  stand(row) {
    const at = row.getBoundingClientRect();
    const box = this.inspector.getBoundingClientRect();
    const middle = innerWidth / 2;
    const left = at.left < middle - 40 && at.right < innerWidth - box.width ? at.right + 10 : at.left - box.width - 10;
    this.inspector.style.left = `${Math.min(Math.max(12, left), innerWidth - box.width - 12)}px`;
    this.inspector.style.top = `${Math.min(Math.max(60, at.top - 20), Math.max(60, innerHeight - box.height - 12))}px`;
  }

  /** @param {SideName} side @param {number} index */
  describe(side, index) {
    const { loop } = this;
    const k = this.places[side].get(index) ?? 0;
    const columns = loop[side];
    const parts = [
      element("p", "sass", this.texts.get(index) ?? ""),
      element("p", "where", `${address(columns.position[k])}  ${columns.control[k]}${this.journey(side, index)}`),
      element("p", "", this.waits(columns.waits[k])),
      element("p", "", `slack: ${columns.slack[k][1].toFixed(1)} cycles in the mean, ${columns.slack[k][0]} at least`),
    ];
    const issue = this.issued[side].get(index);
    if (issue) {
      const arrives = issue[2] > issue[1] ? `, its result is there at ${issue[2]}` : "";
      parts.push(element("p", "dim", `in the timeline issued at cycle ${issue[1]}${arrives}`));
    }
    const awaited = columns.awaited[k];
    if (awaited !== null && this.places[side].has(awaited)) {
      parts.push(element("p", "", `waits mostly for ${this.name(side, awaited)}`));
    }
    parts.push(...this.edges("depends on", side, this.behind.get(index) ?? [], 0));
    parts.push(...this.edges("needed by", side, this.ahead.get(index) ?? [], 1));
    return parts;
  }

  /** @param {SideName} side @param {number} index */
  journey(side, index) {
    const before = this.places.before.get(index) ?? 0;
    const after = this.places.after.get(index) ?? 0;
    if (before === after) return "";
    const way = after < before ? "up" : "down";
    const [there, word] = side === "before" ? ["after", "goes"] : ["before", "came"];
    const position = this.loop[/** @type {SideName} */ (there)].position[this.places[there].get(index) ?? 0];
    return `  ${word} ${way} ${Math.abs(after - before)}, ${there} ${address(position)}`;
  }

  /** @param {number[]} waits */
  waits(waits) {
    const parts = [];
    for (let n = 0; n < waits.length; n += 2) {
      parts.push(`${this.loop.reasons[waits[n]]} ${(waits[n + 1] / this.loop.iterations).toFixed(1)}`);
    }
    return parts.length ? `cycles waited: ${parts.join(", ")}` : "no wait";
  }

  /** @param {SideName} side @param {number} index */
  name(side, index) {
    const k = this.places[side].get(index) ?? 0;
    const opcode = (this.texts.get(index) ?? "").replace(/^@\S+\s+/, "").split(/[ .]/)[0];
    return `${opcode} at ${address(this.loop[side].position[k])}`;
  }

  /** @param {string} title @param {SideName} side @param {Dependence[]} edges @param {0 | 1} other */
  edges(title, side, edges, other) {
    if (!edges.length) return [];
    const near = [...edges].sort((a, b) => Math.abs(a[0] - a[1]) - Math.abs(b[0] - b[1]));
    const lines = near.slice(0, MOST).map((edge) => {
      const index = edge[other];
      const place = this.loop[side].position[this.places[side].get(index) ?? 0];
      const need = edge[2] > 1 ? `${edge[3]}, ≥ ${edge[2]} cycles` : edge[3];
      return element("li", "", ...[address(place), this.texts.get(index) ?? "", need].map((t) => element("span", "", t)));
    });
    if (near.length > MOST) lines.push(element("li", "dim", `and ${near.length - MOST} more`));
    return [element("h5", "", title), element("ul", "", ...lines)];
  }
}

const holder = document.getElementById("data");
/** @type {Partial<Data>} */
const data = JSON.parse(holder?.textContent ?? "{}");
if (data.loop) {
  for (const root of document.querySelectorAll("[data-component=listing]")) {
    new Listing(/** @type {HTMLElement} */ (root), /** @type {Data} */ (data));
  }
}
