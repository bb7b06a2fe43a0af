// Canvas and map can't use the style sheet's colours; they are read from it,
// again whenever the operator's system changes between light and dark.

const names = [
  "sea", "land", "border", "label", "graticule", "ink", "muted", "line", "surface",
  "device", "device-still", "halo", "fence", "fence-fill", "fence-band", "fence-label", "fence-chosen",
  "ok", "ok-soft", "testing", "testing-soft", "bad", "bad-soft", "off", "off-soft",
  "t-enter", "t-exit", "t-dwell", "t-cross", "t-other",
] as const;

export type Colours = Record<(typeof names)[number], string>;

const listeners: (() => void)[] = [];
let current = read();

function read(): Colours {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(names.map((n) => [n, style.getPropertyValue(`--${n}`).trim()])) as Colours;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  current = read();
  for (const listener of listeners) listener();
});

export const colours = () => current;
export const onThemeChange = (listener: () => void) => void listeners.push(listener);

export function transitionColour(transition: string): string {
  switch (transition) {
    case "enter": return current["t-enter"];
    case "exit": return current["t-exit"];
    case "dwell": return current["t-dwell"];
    case "cross": return current["t-cross"];
    default: return current["t-other"];
  }
}

const still = matchMedia("(prefers-reduced-motion: reduce)");
export const reducedMotion = () => still.matches;
