// The view and what it shows, in the part of the address after #. Whoever opens the link sees the same.

/** Returns {view, state} of an address such as "#/ask?store=people&temperature=0.5". */
export function readLink(hash) {
  const match = /^#\/([a-z]+)(?:\?(.*))?$/.exec(hash);
  if (match === null) return { view: '', state: {} };
  return { view: match[1], state: Object.fromEntries(new URLSearchParams(match[2] ?? '')) };
}

/** Returns the address of a view. What is empty is left out. */
export function linkTo(view, state = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== '' && value !== null && value !== undefined && value !== false)
      parameters.set(name, value);
  }
  const text = parameters.toString();
  return `#/${view}${text === '' ? '' : `?${text}`}`;
}

/** Notes the state in the address, without a new entry in the history. */
export function noteLink(view, state) {
  history.replaceState(null, '', linkTo(view, state));
}
