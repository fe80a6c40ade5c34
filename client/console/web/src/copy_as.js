// The request of a view as text for a terminal and for programs, and as a link.
import { h, fill, newId } from './dom.js';

/** A pattern of the characters that a terminal may obey when they are pasted: controls, DEL and C1. */
const kControls = /[\x00-\x1f\x7f-\x9f]/;

/** Text for a POSIX shell, without characters that a terminal would obey. */
export function shell(text) {
  if (/^[\w@%+:,./-][\w@%+=:,./-]*$/.test(text)) return text;
  if (!kControls.test(text)) return `'${text.replace(/'/g, "'\\''")}'`;
  const bytes = (part) =>
    Array.from(new TextEncoder().encode(part), (byte) => `\\${octal(byte)}`).join('');
  return `$'${text.replace(/[\\']/g, '\\$&').replace(new RegExp(kControls, 'g'), bytes)}'`;
}

/** A flag with a text. One that begins with - would be taken for a flag itself. */
export function flagText(name, text) {
  return `--${name}${text.startsWith('-') ? '=' : ' '}${shell(text)}`;
}

const octal = (number) => number.toString(8).padStart(3, '0');

/** Text of a literal of Python. */
export function python(value) {
  if (value === true) return 'True';
  if (value === null) return 'None';
  return Array.isArray(value) ? `[${value.map(python).join(', ')}]` : JSON.stringify(value);
}

/** The digits of a whole number as Python and C++ take them. What has others, as from a link, is no code. */
export const whole = (text) => (/^\d+$/.test(text) ? text : JSON.stringify(text));

/** Text of a literal of C++. */
export function cpp(value) {
  if (typeof value !== 'string') return String(value);
  const escape = (character) => `\\${octal(character.codePointAt(0))}`;
  return `"${value.replace(/[\\"]/g, '\\$&').replace(/[\x00-\x1f\x7f]/g, escape)}"`;
}

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Select and copy';
  }
  setTimeout(() => {
    button.textContent = before;
  }, 1500);
}

/**
 * A button that opens a dialog with the texts of `requests()`: {cli, python, cpp}. Any may be missing.
 */
export function copyAs(requests) {
  const titleId = newId('copy');
  const body = h('div', { class: 'copy-texts' });
  const dialog = h(
    'dialog',
    { 'aria-labelledby': titleId },
    h(
      'div',
      { class: 'dialog-head' },
      h('h2', { id: titleId }, 'The same request as'),
      h('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Close'),
    ),
    body,
  );
  function open() {
    const texts = { ...requests(), link: location.href };
    const names = { cli: 'Command', python: 'Python', cpp: 'C++', link: 'Link to this view' };
    fill(
      body,
      Object.keys(names)
        .filter((kind) => texts[kind])
        .map((kind) => {
          const button = h(
            'button',
            { type: 'button', onclick: () => copy(texts[kind], button) },
            'Copy',
          );
          return h(
            'section',
            { class: 'copy-text' },
            h('div', { class: 'dialog-head' }, h('h3', {}, names[kind]), button),
            h('pre', { tabindex: 0, 'data-kind': kind, 'aria-label': names[kind] }, texts[kind]),
          );
        }),
    );
    dialog.showModal();
  }
  return h(
    'div',
    { class: 'copy-as' },
    h('button', { type: 'button', onclick: open }, 'Copy as'),
    dialog,
  );
}
