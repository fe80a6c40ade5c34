// The stores that views choose from.
import { call } from './api.js';
import { h, newId, setOptions } from './dom.js';

const kPagesMax = 10;

/** The names of the first stores, some thousand. Damaged ones are left out. */
export async function storeNames() {
  const names = [];
  let token = '';
  for (let page = 0; page < kPagesMax; page += 1) {
    const { stores, next_page_token: next } = await call('stores', { page_token: token });
    names.push(...stores.filter((store) => store.damage === '').map((store) => store.name));
    token = next;
    if (token === '') break;
  }
  return names;
}

/**
 * A list to choose a store from. `chosen(store)` gets the whole store, once it is read. Returns
 * {element, open, end}; open(name) chooses, or the first store if `name` is empty.
 */
export function storePicker(chosen, failed) {
  const id = newId('store');
  const list = h('select', { id, onchange: () => choose(list.value) });
  const element = h('div', { class: 'field store-field' }, h('label', { for: id }, 'Store'), list);
  let latestName = '';
  let ended = false;

  async function choose(name) {
    latestName = name;
    try {
      const store = await call('store', { name });
      if (name === latestName && !ended) chosen(store);
    } catch (error) {
      if (name === latestName && !ended) failed(error);
    }
  }
  return {
    element,
    async open(name = '') {
      try {
        const names = await storeNames();
        if (name !== '' && !names.includes(name)) names.unshift(name);
        if (ended) return;
        if (names.length === 0) {
          setOptions(list, [['', 'no stores yet']], '');
          failed(new Error('This server has no stores yet. softlookup store create makes one.'));
          return;
        }
        const first =
          name !== '' ? name : (names.find((each) => !each.startsWith('recall/')) ?? names[0]);
        setOptions(list, names, first);
        await choose(first);
      } catch (error) {
        if (!ended) failed(error);
      }
    },
    /** Nothing is chosen after this. */
    end() {
      ended = true;
    },
  };
}
