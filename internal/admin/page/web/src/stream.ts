// Server-sent events over fetch, because an EventSource can't send the
// Authorization header. Reconnects for ever.

import { ApiError, request } from "./api.ts";

export interface StreamHandlers {
  /** An event, with its JSON body. */
  event(name: string, body: unknown): void;
  /** up: a stream has begun. down: it ended, and is tried again in a while. */
  up(): void;
  down(why: string, retryInMs: number): void;
}

const firstWait = 500;
const longestWait = 10_000;
/** The server sends something at least every 15 s. */
const deadAfter = 40_000;

export async function follow(path: string, handlers: StreamHandlers): Promise<never> {
  let wait = firstWait;
  for (;;) {
    let why = "the stream ended";
    try {
      await once(path, handlers, () => (wait = firstWait));
    } catch (error) {
      why = error instanceof ApiError ? error.message : "no connection";
    }
    const pause = wait * (0.75 + Math.random() / 2);
    handlers.down(why, pause);
    await new Promise((resolve) => setTimeout(resolve, pause));
    wait = Math.min(longestWait, wait * 2);
  }
}

async function once(path: string, handlers: StreamHandlers, healthy: () => void): Promise<void> {
  const abort = new AbortController();
  let watchdog = setTimeout(() => abort.abort(), deadAfter);
  try {
    const response = await request(path, { signal: abort.signal, headers: { Accept: "text/event-stream" } });
    if (!response.body) throw new Error("no body");
    handlers.up();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parse = parser((name, data) => handlers.event(name, JSON.parse(data)));
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      healthy();
      clearTimeout(watchdog);
      watchdog = setTimeout(() => abort.abort(), deadAfter);
      parse(value);
    }
  } finally {
    clearTimeout(watchdog);
    abort.abort();
  }
}

/** parser takes text in pieces of any size and calls back for each event. */
export function parser(emit: (name: string, data: string) => void): (chunk: string) => void {
  let rest = "";
  return (chunk) => {
    const blocks = (rest + chunk).split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      let name = "message";
      const data: string[] = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        else if (line.startsWith("data: ")) data.push(line.slice(6));
      }
      if (data.length > 0) emit(name, data.join("\n"));
    }
  };
}
