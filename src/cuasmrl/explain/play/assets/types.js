// @ts-check
// What the server sends, and what all parts of the page use. The files are put one behind the other into one script.

/**
 * @typedef {{cycles: number, reasons: Record<string, number>, waits: number[][]}} Reading
 * @typedef {{name: string, config: string, kernel: string, sizes: Record<string, number>, chip: string,
 *   clock: string, divisor: number, original: Reading, reasons: Record<string, string>, text: string[],
 *   opcode: string[], main: number[], pinned: number[], executions: number[], blocks: [number, number][],
 *   region: number[], is_loop: boolean, iterations: number, agent?: string}} Kernel
 * @typedef {{words: string, cycles: number, gain: number}} Step
 * @typedef {{tried: [number, number][], best: [number, number][]}} Curve
 * @typedef {{name: string, running: boolean, done: number, budget: number, problem: string | null, curve: Curve,
 *   rate?: number | null, stage?: string}} Playing
 * @typedef {{stage?: string, problem?: string, run?: string, report?: string | null, sentence?: string, accepted?: boolean,
 *   checks?: [string, string, string][]}} Saving
 * @typedef {{version: number, pulse: number, order: number[], control: string[], gain: number, touched: number | null,
 *   best: {cycles: number, gain: number}, first: number, cursor: number, history: Step[],
 *   over?: boolean, agent?: Playing, saving?: Saving}} Change
 * @typedef {Change & Reading} State
 * @typedef {{instruction: number, to: number, why: string}} Tie
 * @typedef {{instruction: number, alone: number[], first: number, last: number, up: Tie[], down: Tie[],
 *   pinned: string | null, walls: [string | null, string | null]}} Reach
 * @typedef {{instruction: number, position: number, words: string, odds: number | null, gain: number | null}} Hint
 * @typedef {{mode: "play" | "watch" | "recorded", kernel: Kernel, state: State, recording?: State[]}} PageData
 */

/** @param {string} tag @param {string} looks @param {(string | Node)[]} inside */
function element(tag, looks, ...inside) {
  const made = document.createElement(tag);
  if (looks) made.className = looks;
  made.append(...inside);
  return made;
}

/** One that the template is known to hold. @param {string} id @returns {HTMLElement} */
function part(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no part ${id}`);
  return found;
}

/** @param {number} position */
const address = (position) => (16 * position).toString(16).padStart(4, "0");

/** With a sign, and a minus as wide as the plus. @param {number} share */
function percent(share) {
  const value = (Math.round(1e4 * share) / 100 + 0).toFixed(2);
  return `${share >= 0 || Number(value) === 0 ? "+" : "−"}${value.replace("-", "")} %`;
}

/** @param {number} value */
const tenths = (value) => value.toLocaleString("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A figure that says what it is exactly. @param {number} value @param {string} text */
function figure(value, text) {
  const made = element("data", "", text);
  made.setAttribute("value", String(value));
  return made;
}
