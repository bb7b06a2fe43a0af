// Loading what the stream only tells the changes of.

import { getJSON } from "./api.ts";
import { tellError } from "./dialogs.ts";

const firstWait = 1000;
const longestWait = 15_000;
/** The server gives up after 20 s. */
const timeout = 30_000;

/** Snapshot loads one thing as often as it is asked to, one load at a time, and tries again until it has it. */
export class Snapshot<T> {
  private running = false;
  private again = false;

  constructor(private readonly what: string, private readonly path: string, private readonly use: (body: T) => void) {}

  async load(): Promise<void> {
    this.again = true;
    if (this.running) return; // it begins anew when it is done
    this.running = true;
    while (this.again) {
      this.again = false;
      this.use(await this.get());
    }
    this.running = false;
  }

  private async get(): Promise<T> {
    for (let wait = firstWait; ; wait = Math.min(longestWait, 2 * wait)) {
      try {
        return await getJSON<T>(this.path, AbortSignal.timeout(timeout));
      } catch (error) {
        if (wait === firstWait) tellError(`${this.what}; trying again`, error);
      }
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}
