// Elements are made by these functions alone. Text becomes text nodes, never markup: names, labels
// and messages come from strangers.

/** Makes an element. Properties that begin with "on" are listeners; the others are attributes. */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replaces all children. */
export function fill(element, ...children) {
  element.replaceChildren(
    ...children.flat().filter((child) => child !== null && child !== undefined),
  );
  return element;
}

let lastId = 0;
/** A new id, for a label and its field. */
export function newId(stem) {
  lastId += 1;
  return `${stem}-${lastId}`;
}

/** A labelled field: the label above, the control below, and a hint under it. */
export function field(label, control, hint = null) {
  const id = control.id || newId('field');
  control.id = id;
  const parts = [h('label', { for: id }, label), control];
  if (hint !== null) {
    const hintId = `${id}-hint`;
    control.setAttribute('aria-describedby', hintId);
    parts.push(h('span', { class: 'hint', id: hintId }, hint));
  }
  return h('div', { class: 'field' }, parts);
}

/** A text or number input. `listener` is called after each change. */
export function input(properties, listener) {
  return h('input', { autocomplete: 'off', spellcheck: 'false', ...properties, oninput: listener });
}

/** A list to choose from. Options are texts, or pairs of value and text. */
export function select(options, value, listener, properties = {}) {
  const element = h('select', { ...properties, onchange: listener });
  setOptions(element, options, value);
  return element;
}

export function setOptions(element, options, value) {
  fill(
    element,
    options.map((option) => {
      const [key, text] = Array.isArray(option) ? option : [option, option];
      return h('option', { value: key }, text);
    }),
  );
  element.value = value;
}

export function checkbox(label, checked, listener) {
  const box = h('input', { type: 'checkbox', id: newId('check'), onchange: listener });
  box.checked = checked;
  return { box, element: h('span', { class: 'check' }, box, h('label', { for: box.id }, label)) };
}

/** A card with a heading. */
export function panel(title, ...children) {
  const id = newId('panel');
  return h('section', { class: 'panel', 'aria-labelledby': id }, h('h2', { id }, title), children);
}

/** A region for errors and notes of a view. show(null) clears it. */
export function notice() {
  const element = h('p', { class: 'notice', role: 'status' });
  element.hidden = true;
  return {
    element,
    show(text, kind = 'bad') {
      element.hidden = text === null;
      element.dataset.kind = kind;
      element.textContent = text ?? '';
    },
  };
}
