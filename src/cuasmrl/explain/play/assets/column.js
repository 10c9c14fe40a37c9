// @ts-check
// The code as a column of cards, one for each instruction, block by block.

const GLIDE = 160;
const MOST_GLIDING = 40;

class Column {
  /** @param {HTMLElement} root @param {Kernel} kernel */
  constructor(root, kernel) {
    this.root = root;
    this.kernel = kernel;
    /** @type {HTMLElement[]} */
    this.cards = [];
    /** @type {Map<number, HTMLElement>} */
    this.lists = new Map();
    /** @type {Map<number, number>} */
    this.position = new Map();
    /** @type {string[]} */
    this.shown = [];
    // Bars are measured by the hot part: what is executed once may wait a hundred times longer.
    const hot = kernel.region.flatMap((number) => kernel.original.waits.slice(...kernel.blocks[number]));
    this.longest = Math.max(1, ...hot.map((waits) => this.waited(waits) / Math.max(1, kernel.iterations)));
    this.everything = false;
    this.build();
  }

  /** @param {number[]} waits */
  waited(waits) {
    let sum = 0;
    for (let n = 1; n < waits.length; n += 2) sum += waits[n];
    return sum;
  }

  /** Cards are made when their block is shown for the first time. */
  build() {
    const { kernel } = this;
    const blocks = this.everything ? kernel.blocks.map((_, number) => number) : kernel.region;
    this.root.replaceChildren();
    for (const number of blocks) {
      const [start, end] = kernel.blocks[number];
      let list = this.lists.get(number);
      if (!list) {
        list = element("ol", "code");
        list.setAttribute("aria-label", `basic block ${address(start)} to ${address(end - 1)}`);
        for (let i = start; i < end; i++) list.append(this.card(i));
        this.lists.set(number, list);
      }
      const title = `block ${address(start)}, ${end - start} instructions${kernel.region.includes(number) ? (kernel.is_loop ? ", hot loop" : ", hottest") : ""}`;
      const arrows = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      arrows.classList.add("arrows");
      arrows.setAttribute("aria-hidden", "true");
      this.root.append(element("section", "block", element("h3", "", title), element("div", "body", list, arrows)));
    }
    const first = this.root.querySelector("li");
    first?.setAttribute("tabindex", "0");
  }

  /** @param {number} i */
  card(i) {
    const { kernel } = this;
    const looks = [kernel.main[i] ? "k" : "", kernel.pinned[i] ? "pinned" : ""].join(" ").trim();
    const card = element("li", looks, element("i", ""), element("span", "c"), element("code", "", kernel.text[i]),
      element("span", "w"), element("em", ""));
    card.id = `i${i}`;
    card.tabIndex = -1;
    card.setAttribute("aria-roledescription", kernel.pinned[i] ? "pinned instruction" : "instruction");
    this.cards[i] = card;
    return card;
  }

  /** @param {State} state */
  show(state) {
    const old = this.position;
    this.position = new Map(state.order.map((i, position) => [i, position]));
    for (const [number, list] of this.lists) {
      const [start, end] = this.kernel.blocks[number];
      const focused = document.activeElement;
      for (let position = start; position < end; position++) {
        const i = state.order[position];
        const card = this.cards[i];
        if (list.children[position - start] !== card) list.insertBefore(card, list.children[position - start]);
        this.fill(card, i, position, state);
      }
      if (focused instanceof HTMLElement && list.contains(focused)) focused.focus({ preventScroll: true });
    }
    this.glide(old);
  }

  /** @param {HTMLElement} card @param {number} i @param {number} position @param {State} state */
  fill(card, i, position, state) {
    const waits = state.waits[position];
    const key = `${position} ${state.control[position]} ${waits}`;
    if (this.shown[i] === key) return;
    this.shown[i] = key;
    const [at, control, , bars, cycles] = /** @type {HTMLElement[]} */ ([...card.children]);
    const each = Math.max(1, this.kernel.executions[i]);
    const waited = this.waited(waits) / each;
    at.textContent = address(position);
    control.textContent = state.control[position];
    card.classList.toggle("moved", position !== i);
    bars.replaceChildren();
    for (let n = 0; n < waits.length; n += 2) {
      const bar = element("i", `r${waits[n]}`);
      bar.style.width = `${Math.min(100, (100 * waits[n + 1]) / each / this.longest).toPrecision(3)}%`;
      bars.append(bar);
    }
    cycles.textContent = waited >= 0.05 ? waited.toFixed(1) : "";
    card.setAttribute("aria-label", `${address(position)}, ${this.kernel.text[i]}, ${
      waited >= 0.05 ? `waits ${waited.toFixed(1)} cycles` : "no wait"}`);
  }

  /** Cards that have moved come from where they stood. @param {Map<number, number>} old */
  glide(old) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    const moved = [...this.position].filter(([i, position]) => old.has(i) && old.get(i) !== position && this.cards[i]);
    if (!moved.length || moved.length > MOST_GLIDING) return;
    const height = this.height();
    for (const [i, position] of moved) {
      const by = ((old.get(i) ?? position) - position) * height;
      this.cards[i].animate([{ transform: `translateY(${by}px)` }, { transform: "none" }], { duration: GLIDE, easing: "ease-out" });
    }
  }

  height() {
    return this.root.querySelector("li")?.getBoundingClientRect().height || 24;
  }

  /** @param {number} i */
  block(i) {
    return this.kernel.blocks.findIndex(([start, end]) => start <= i && i < end);
  }

  /** The position of a block at a height of the window. @param {number} number @param {number} y */
  at(number, y) {
    const list = this.lists.get(number);
    const [start] = this.kernel.blocks[number];
    return start + Math.floor((y - (list?.getBoundingClientRect().top ?? 0)) / this.height());
  }

  /** Arrows from where instructions stand to where a hint takes them. @param {Hint[]} hints */
  point(hints) {
    for (const svg of this.root.querySelectorAll(".arrows")) svg.replaceChildren();
    const height = this.height();
    hints.forEach((hint, k) => {
      const number = this.block(hint.instruction);
      const list = this.lists.get(number);
      const svg = list?.parentElement?.querySelector(".arrows");
      if (!svg || !list?.isConnected) return;
      const [start] = this.kernel.blocks[number];
      const [from, to] = [this.position.get(hint.instruction) ?? 0, hint.position].map((p) => (p - start + 0.5) * height);
      const left = 34 - 6 * k;
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M40 ${from}H${left + 4}Q${left} ${from} ${left} ${from + Math.sign(to - from) * 4}V${to - Math.sign(to - from) * 4}Q${left} ${to} ${left + 4} ${to}H40m-5 -4l5 4l-5 4`);
      path.classList.add(`s${k % 6}`);
      svg.append(path);
    });
  }
}
