// @ts-check
// Taking a card elsewhere, by the pointer or by the keyboard. Once it is taken up the server says how far it can go
// and what is tied to it; where it is let go the server decides.

const SLOP = 4;
const EDGE = 70;

class Hand {
  /**
   * @param {Column} column
   * @param {{reach: (i: number) => Promise<any>, drop: (i: number, to: number, alone: boolean) => void,
   *   say: (sentence: string) => void, chosen: (i: number) => void, may: () => boolean}} table
   */
  constructor(column, table) {
    this.column = column;
    this.table = table;
    /** @type {{i: number, y: number, to: number, alone: boolean, reach: Reach | null, pointer: boolean} | null} */
    this.held = null;
    /** @type {{i: number, y: number} | null} */
    this.pressed = null;
    const { root } = column;
    root.addEventListener("pointerdown", (event) => this.press(event));
    root.addEventListener("focusin", (event) => this.choose(event.target));
    root.addEventListener("keydown", (event) => this.key(event));
    addEventListener("pointermove", (event) => this.move(event));
    addEventListener("pointerup", (event) => this.release(event));
    addEventListener("pointercancel", () => this.cancel());
    addEventListener("blur", () => this.held?.pointer && this.cancel());
  }

  /** @param {EventTarget | null} target @returns {number | null} */
  instruction(target) {
    const card = target instanceof Element ? target.closest("li") : null;
    return card && this.column.root.contains(card) ? Number(card.id.slice(1)) : null;
  }

  /** @param {EventTarget | null} target */
  choose(target) {
    const i = this.instruction(target);
    if (i === null) return;
    this.column.root.querySelector("li[tabindex='0']")?.setAttribute("tabindex", "-1");
    this.column.cards[i].tabIndex = 0;
    this.table.chosen(i);
  }

  /** @param {PointerEvent} event */
  press(event) {
    const i = this.instruction(event.target);
    if (i === null || event.button !== 0) return;
    this.column.cards[i].focus({ preventScroll: true });
    this.pressed = { i, y: event.clientY };
    // A finger scrolls the page unless it is on the handle at the left.
    if (event.pointerType === "mouse") event.preventDefault();
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (this.pressed && !this.held && Math.abs(event.clientY - this.pressed.y) > SLOP && this.table.may()) {
      this.take(this.pressed.i, this.pressed.y, true);
    }
    const { held } = this;
    if (!held?.pointer) return;
    event.preventDefault();
    held.alone = event.altKey;
    if (event.clientY < EDGE + 40) scrollBy(0, -12);
    if (event.clientY > innerHeight - EDGE) scrollBy(0, 12);
    const here = this.column.cards[held.i];
    here.style.transform = `translateY(${event.clientY - held.y}px)`;
    this.aim(this.column.at(this.column.block(held.i), event.clientY));
  }

  /** @param {PointerEvent} event */
  release(event) {
    this.pressed = null;
    if (!this.held?.pointer) return;
    this.held.alone = event.altKey;
    this.drop();
  }

  /** @param {number} i @param {number} y @param {boolean} pointer */
  async take(i, y, pointer) {
    const held = { i, y, to: this.column.position.get(i) ?? 0, alone: false, reach: null, pointer };
    this.held = held;
    this.column.root.classList.add("holding");
    this.column.cards[i].classList.add("held");
    this.column.cards[i].setAttribute("aria-grabbed", "true");
    const found = await this.table.reach(i);
    if (this.held !== held) return;
    if (found.sentence) {
      this.cancel();
      return this.table.say(found.sentence);
    }
    held.reach = found;
    this.mark();
    this.aim(held.to);
  }

  /** Which positions it can take by itself, with others, and not at all. */
  mark() {
    const { held, column } = this;
    if (!held?.reach) return;
    const alone = new Set(held.reach.alone);
    const { first, last } = held.reach;
    const list = column.lists.get(column.block(held.i));
    const [start] = column.kernel.blocks[column.block(held.i)];
    [...(list?.children ?? [])].forEach((card, k) => {
      const position = start + k;
      card.classList.add(alone.has(position) ? "free" : first <= position && position <= last ? "along" : "beyond");
    });
  }

  /** @param {number} to */
  aim(to) {
    const { held, column } = this;
    if (!held) return;
    const [start, end] = column.kernel.blocks[column.block(held.i)];
    held.to = Math.min(Math.max(to, start - 1), end);
    if (!held.reach) return;
    const here = column.position.get(held.i) ?? 0;
    const ties = this.ties();
    for (const card of column.root.querySelectorAll(".tied, .above, .below")) card.classList.remove("tied", "above", "below");
    for (const tie of ties) column.cards[tie.instruction].classList.add("tied");
    const list = column.lists.get(column.block(held.i));
    const target = list?.children[Math.min(Math.max(held.to - start, 0), end - start - 1)];
    if (held.to !== here) target?.classList.add(held.to < here ? "above" : "below");
    this.table.say(this.told(here, ties));
  }

  /** What would come along to where it is held now. @returns {Tie[]} */
  ties() {
    const { held, column } = this;
    if (!held?.reach) return [];
    const here = column.position.get(held.i) ?? 0;
    const on = (/** @type {Tie} */ tie) => {
      const position = column.position.get(tie.instruction) ?? 0;
      return held.to < here ? position >= held.to : position <= held.to;
    };
    return held.to === here ? [] : (held.to < here ? held.reach.up : held.reach.down).filter(on);
  }

  /** @param {number} here @param {Tie[]} ties */
  told(here, ties) {
    const { held, column } = this;
    if (!held?.reach) return "";
    const { reach } = held;
    const name = `${column.kernel.opcode[held.i]} at ${address(here)}`;
    if (reach.pinned) return reach.pinned;
    if (held.to < reach.first) return reach.walls[0] ?? "";
    if (held.to > reach.last) return reach.walls[1] ?? "";
    if (held.to === here) {
      const span = `${address(reach.alone[0])} to ${address(reach.alone[reach.alone.length - 1])}`;
      return `${name} goes from ${span} by itself, from ${address(reach.first)} to ${address(reach.last)} with what is tied to it.`;
    }
    const way = `to ${address(held.to)}, ${held.to < here ? "up" : "down"} ${Math.abs(held.to - here)}`;
    if (!ties.length) return `${name} ${way}: by itself.`;
    const nearest = ties[0];
    const why = `${column.kernel.opcode[nearest.instruction]} at ${address(column.position.get(nearest.instruction) ?? 0)} (${nearest.why})`;
    const tied = `${why}${ties.length > 1 ? ` and ${ties.length - 1} more` : ""}`;
    return held.alone ? `${name} ${way}: alone, although ${tied} is in the way.` : `${name} ${way}: takes along ${tied}.`;
  }

  drop() {
    const { held } = this;
    if (!held) return;
    const here = this.column.position.get(held.i) ?? 0;
    this.cancel();
    if (held.to === here) return this.table.say("");
    const last = this.column.kernel.text.length - 1;
    this.table.drop(held.i, Math.min(Math.max(held.to, 0), last), held.alone);
  }

  cancel() {
    this.pressed = null;
    if (!this.held) return;
    const card = this.column.cards[this.held.i];
    card.style.transform = "";
    card.removeAttribute("aria-grabbed");
    this.held = null;
    this.column.root.classList.remove("holding");
    for (const each of this.column.root.querySelectorAll(".held, .free, .along, .beyond, .tied, .above, .below")) {
      each.classList.remove("held", "free", "along", "beyond", "tied", "above", "below");
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const i = this.instruction(event.target);
    if (i === null || event.ctrlKey || event.metaKey) return;
    const { held, column } = this;
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (event.key === "Escape" && held) {
      this.cancel();
      this.table.say("put back");
    } else if (event.key === " " || event.key === "Enter") {
      if (held) this.drop();
      else if (this.table.may()) this.take(i, 0, false);
    } else if (held && event.key === "a") {
      held.alone = !held.alone;
      this.aim(held.to);
    } else if (held && (event.key === "Home" || event.key === "End")) {
      this.aim((event.key === "Home" ? held.reach?.first : held.reach?.last) ?? held.to);
    } else if (held && steps) {
      this.aim(held.to + steps);
      column.root.querySelector(".above, .below")?.scrollIntoView({ block: "nearest" });
    } else if (steps) {
      const cards = /** @type {HTMLElement[]} */ ([...column.root.querySelectorAll("li")]);
      const next = cards[Math.min(Math.max(cards.indexOf(column.cards[i]) + steps, 0), cards.length - 1)];
      next.focus({ preventScroll: true });
      next.scrollIntoView({ block: "nearest" });
    } else {
      return;
    }
    event.preventDefault();
  }
}
