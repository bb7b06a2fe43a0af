// Calls to the admin API. A 401 asks for the token once, keeps it for the
// session, and tries again.

const tokenKey = "tripline-token";

/** ApiError carries the server's words. */
export class ApiError extends Error {
  constructor(readonly status: number, text: string) {
    super(text);
  }
}

let askForToken: (wrong: boolean) => Promise<string> = () => Promise.reject(new ApiError(401, "no token"));
let asking: Promise<string> | null = null;

/** onTokenNeeded says how the operator is asked. */
export function onTokenNeeded(ask: (wrong: boolean) => Promise<string>): void {
  askForToken = ask;
}

/** request does one call and answers with a response that is OK. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  for (;;) {
    const token = sessionStorage.getItem(tokenKey);
    const headers = new Headers(init.headers);
    if (token) headers.set("Authorization", `Bearer ${token}`);
    const response = await fetch(path, { ...init, headers, cache: "no-store" });
    if (response.ok) return response;
    if (response.status !== 401) throw new ApiError(response.status, await words(response));
    // Several calls may meet the 401 at once: one dialog serves them all. A
    // call that used an older token than the one kept now just tries again.
    if (token === sessionStorage.getItem(tokenKey)) {
      asking ??= askForToken(token !== null).finally(() => (asking = null));
      sessionStorage.setItem(tokenKey, await asking);
    }
  }
}

async function words(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { error?: unknown };
    if (typeof body.error === "string") return body.error;
  } catch {
    // Not ours: a proxy in between, perhaps. Its text is the best there is.
  }
  return text.trim().slice(0, 300) || `the server answered ${response.status}`;
}

export async function getJSON<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await request(path, signal ? { signal } : {})).json()) as T;
}

export async function send(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<void> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "Content-Type": "application/geo+json" };
  }
  await request(path, init);
}

export const consumerPath = (name: string, action: string) =>
  `/api/v1/consumers/${encodeURIComponent(name)}/${action}`;
export const fencePath = (id: string) => `/api/v1/fences/${encodeURIComponent(id)}`;
