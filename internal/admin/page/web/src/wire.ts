// What the admin API sends. docs/API.md is the contract.

export type State = "closed" | "open" | "half_open";

export interface Backlog {
  items: number;
  bytes: number;
  max_bytes: number;
  oldest_s: number;
  replay_per_s: number;
  eta_s: number | null;
}

export interface Consumer {
  name: string;
  sink: string;
  target: string;
  state: State;
  reason: string;
  since: string;
  alive_but_slow: boolean;
  p50_ms: number;
  p99_ms: number;
  p99_limit_ms: number;
  samples: number;
  slow_ratio: number;
  error_ratio: number;
  rung: number;
  generation: number;
  open_until: string | null;
  probes_in_flight: number;
  probes: number;
  successes: number;
  successes_needed: number;
  ramp_window: number;
  concurrency: number;
  in_flight: number;
  lane_depth: number;
  lane_cap: number;
  backlog: Backlog;
  delivered_total: number;
  delivered_per_s: number;
  diverted_total: number;
  dead_total: number;
  disabled: boolean;
  paused: boolean;
  blocked: boolean;
  last_errors: { at: string; text: string }[] | null;
}

export interface Trigger {
  id: string;
  at: string;
  device: string;
  fence: string;
  transition: string;
  consumers: string[] | null;
  initial?: boolean;
  reason?: string;
}

export interface BreakerChange {
  consumer: string;
  at: string;
  from: State;
  to: State;
  reason: string;
  text: string;
  rung: number;
  until: string | null;
}

export interface Probe {
  consumer: string;
  at: string;
  verdict: string;
  latency_ms: number;
}

export interface Hello {
  version: string;
  namespace: string;
  started: string;
  now: string;
  /** A device of which nothing was heard for this long leaves the map. */
  gone_after_s: number;
}

/** What a consumer went through before the page was opened. */
export interface Past {
  consumer: string;
  from: string;
  changes: BreakerChange[];
  probes: Probe[];
  p99: { at: string; ms: number | null }[];
}

/** id, lat, lon, ts in ms, heading in degrees; how long ago it was heard, in seconds, unless just now. */
export type DeviceRow = [string, number, number, number, number | null, number?];

export interface Stay {
  device: string;
  entered_at: string;
  lat: number;
  lon: number;
}
