// @ts-check
// The button that chooses a theme: the system's, light, or dark.

const THEMES = /** @type {const} */ (["auto", "light", "dark"]);
const KEY = "cuasmrl-theme";

/** @param {string} theme */
function show(theme) {
  const root = document.documentElement;
  if (theme === "auto") delete root.dataset.theme;
  else root.dataset.theme = theme;
  const label = document.querySelector("#theme span");
  if (label) label.textContent = theme;
}

/** Some browsers keep nothing for files opened from disk. @param {() => string | null} use */
function kept(use) {
  try {
    return use();
  } catch {
    return null;
  }
}

const button = document.querySelector("#theme");
if (button instanceof HTMLButtonElement) {
  let theme = kept(() => localStorage.getItem(KEY)) ?? "auto";
  if (!THEMES.some((known) => known === theme)) theme = "auto";
  show(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.findIndex((known) => known === theme) + 1) % THEMES.length];
    show(theme);
    kept(() => (localStorage.setItem(KEY, theme), null));
  });
}
