// The server's clock, so that its deadlines count down rightly on a machine
// whose own clock is off.

let ahead = 0;

export function setServerTime(now: string): void {
  const parsed = Date.parse(now);
  if (Number.isFinite(parsed)) ahead = parsed - Date.now();
}

/** serverNow is the server's time, unix milliseconds. */
export const serverNow = () => Date.now() + ahead;

/** A Go zero time ("0001-01-01...") is no time. */
export function parseTime(text: string | null): number | null {
  if (!text) return null;
  const ms = Date.parse(text);
  return Number.isFinite(ms) && ms > 0 ? ms : null;
}
