// The calls to the console's server.

const kKeyName = 'softlookup-console-key';

/** A call that failed: `code` and `reason` as the server of softlookup named them. */
export class CallError extends Error {
  constructor({ code, reason, message, retry_after_ms: retryAfter }) {
    super(reason ? `${reason}: ${message}` : `${code}: ${message}`);
    this.code = code;
    this.reason = reason;
    this.retryAfter = retryAfter ?? null;
  }
}

/** Says that this browser has no session. */
export class NoSession extends Error {}

function storedKey() {
  try {
    return localStorage.getItem(kKeyName) ?? '';
  } catch {
    return '';
  }
}

async function post(path, body, headers, signal) {
  return fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
    credentials: 'same-origin',
    cache: 'no-store',
    redirect: 'error',
    signal,
  });
}

/** Begins a session with the token of the printed link. */
export async function enter(token) {
  const response = await post('/api/enter', { token }, {});
  if (!response.ok) throw new NoSession((await response.text()).trim());
  localStorage.setItem(kKeyName, (await response.json()).key);
}

export function hasKey() {
  return storedKey() !== '';
}

/** Calls `name` and returns its result. */
export async function call(name, body = {}, signal = undefined) {
  let response;
  try {
    response = await post(`/api/${name}`, body, { 'X-Softlookup-Key': storedKey() }, signal);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new CallError({
      code: 'UNAVAILABLE',
      reason: '',
      message: 'softlookup console has ended',
    });
  }
  if (response.status === 401) throw new NoSession((await response.text()).trim());
  if (!response.ok) {
    const message = (await response.text()).trim();
    throw new CallError({ code: `HTTP ${response.status}`, reason: '', message });
  }
  const answer = await response.json();
  if (answer.error) throw new CallError(answer.error);
  return answer.result;
}
