// Labels in a field, as on the command line: commas separate them, and one in quotes is a JSON string.

const kLabel = /\s*("(?:[^"\\]|\\.)*"|[^,]*)\s*(?:,|$)/y;

/** The labels of a text. What is no label is left out. */
export function splitLabels(text) {
  const labels = [];
  kLabel.lastIndex = 0;
  while (kLabel.lastIndex < text.length) {
    const match = kLabel.exec(text);
    if (match === null) break;
    const label = match[1].startsWith('"') ? unquoted(match[1]) : match[1].trim();
    if (label !== '') labels.push(label);
  }
  return labels;
}

function unquoted(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A label as the command line takes it. */
export function labelText(label) {
  return /[",\x00-\x1f]/.test(label) || label.trim() !== label ? JSON.stringify(label) : label;
}
