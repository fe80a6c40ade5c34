// Light and dark: the system's, unless the reader chooses.

const kName = 'softlookup-console-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set();

function chosen() {
  try {
    return localStorage.getItem(kName);
  } catch {
    return null;
  }
}

export function isDark() {
  const theme = chosen();
  return theme === null ? dark.matches : theme === 'dark';
}

function apply() {
  document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
  for (const listener of listeners) listener();
}

/** Calls `listener` when the theme changes. Returns what ends that. */
export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The value of a colour of the styles, such as "--accent". */
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function switchTheme() {
  const theme = isDark() ? 'light' : 'dark';
  const system = dark.matches ? 'dark' : 'light';
  if (theme === system) localStorage.removeItem(kName);
  else localStorage.setItem(kName, theme);
  apply();
}

dark.addEventListener('change', apply);
apply();
