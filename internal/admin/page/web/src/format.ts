// Figures in words, the same everywhere on the page.

const whole = new Intl.NumberFormat("en");
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });

export const count = (n: number) => whole.format(Math.round(n));

/** plural: "1 device", "12 devices". */
export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export function rate(perSecond: number): string {
  if (perSecond >= 100) return count(perSecond);
  if (perSecond >= 10) return perSecond.toFixed(0);
  return perSecond === 0 ? "0" : perSecond.toFixed(1);
}

export function millis(ms: number): string {
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 1000) return `${(ms / 1000).toFixed(2)} s`;
  return ms >= 10 || ms === 0 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`;
}

/** duration: "8 s", "3 min 20 s", "2 h 5 min", "3 d 4 h". */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  const units: [number, string][] = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const first = units.findIndex(([size]) => s >= size);
  if (first < 0) return "0 s";
  const parts: string[] = [];
  let rest = s;
  for (const [size, name] of units.slice(first, first + 2)) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n} ${name}`);
  }
  return parts.join(" ");
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = n / 1024;
  let i = 0;
  for (; value >= 1024 && i < units.length - 1; i++) value /= 1024;
  return `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${units[i]}`;
}

/** metres: "60 m", "1.2 km". */
export function metres(m: number): string {
  if (m < 0.05) return "0 m";
  if (m < 1000) return `${m < 10 ? m.toFixed(1) : Math.round(m)} m`;
  return `${(m / 1000).toFixed(m < 10_000 ? 2 : 1)} km`;
}

export function area(squareMetres: number): string {
  if (squareMetres < 100_000) return `${count(squareMetres)} m²`;
  const km = squareMetres / 1e6;
  return `${km < 100 ? km.toFixed(2) : count(km)} km²`;
}

export const timeOfDay = (when: string | number) => clock.format(new Date(when));
/** place reads out well: "53.0123° north, 11.9877° west". */
export const place = (lon: number, lat: number) =>
  `${Math.abs(lat).toFixed(4)}° ${lat < 0 ? "south" : "north"}, ${Math.abs(lon).toFixed(4)}° ${lon < 0 ? "west" : "east"}`;

export const latLon = (lat: number, lon: number) => `${lat.toFixed(5)}, ${lon.toFixed(5)}`;
