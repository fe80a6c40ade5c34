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
  if (!/[",\x00-\x1f\x7f-\x9f]/.test(label) && label.trim() === label) return label;
  const escape = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(label).replace(/[\x7f-\x9f]/g, escape);
}
