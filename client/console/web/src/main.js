// The frame around the views: navigation, session, theme.
import '../styles/main.css';
import { call, enter, hasKey, NoSession } from './api.js';
import { fill, h } from './dom.js';
import { linkTo, noteLink, readLink } from './link.js';
import { isDark, onTheme, switchTheme } from './theme.js';
import { ask } from './views/ask.js';
import { attention } from './views/attention.js';
import { memories } from './views/memories.js';
import { server } from './views/server.js';
import { stores } from './views/stores.js';

const views = [stores, ask, attention, memories, server];
const main = document.getElementById('main');
const top = document.getElementById('top');
let about = { server: '', version: '', metrics: '' };
let leave = () => {};
let shown = null;
let entered = false;
let currentStore = '';

function themeButton() {
  const button = h('button', { type: 'button', class: 'quiet theme', onclick: switchTheme });
  const name = () => {
    button.textContent = isDark() ? 'Light' : 'Dark';
    button.setAttribute('aria-label', isDark() ? 'Use light colours' : 'Use dark colours');
  };
  onTheme(name);
  name();
  return button;
}

function drawTop() {
  const links = views.map((view) =>
    h(
      'li',
      {},
      h(
        'a',
        {
          href: linkTo(
            view.name,
            currentStore && view !== stores && view !== server ? { store: currentStore } : {},
          ),
          'aria-current': view === shown ? 'page' : null,
        },
        view.title,
      ),
    ),
  );
  fill(
    top,
    h(
      'div',
      { class: 'brand' },
      h('img', { src: '/icon.svg', alt: '', width: 26, height: 26 }),
      h('strong', {}, 'softlookup'),
      h('span', { class: 'where', title: 'The server' }, about.server),
    ),
    h('nav', { 'aria-label': 'Views' }, h('ul', {}, links)),
    themeButton(),
  );
}

function showLocked(message) {
  leave();
  leave = () => {};
  shown = null;
  fill(
    main,
    h(
      'div',
      { class: 'locked' },
      h('h1', {}, 'This browser is not let in'),
      h('p', {}, message || 'Open the link that softlookup console printed last.'),
      h(
        'p',
        {},
        'Each link works once and lets one browser in. When one was used, the next is printed in the same terminal.',
      ),
    ),
  );
}

function show(hash) {
  const { view: name, state } = readLink(hash);
  const view = views.find((each) => each.name === name) ?? stores;
  leave();
  shown = view;
  if (state.store) currentStore = state.store;
  document.title = `${view.title} · softlookup console`;
  const root = h('div', { class: `view view-${view.name}` }, h('h1', { class: 'sr' }, view.title));
  fill(main, root);
  // A call of a view that was left may still end.
  let left = false;
  const stop = view.mount({
    root,
    state,
    about,
    note(next) {
      if (left) return;
      if (next.store && next.store !== currentStore) {
        currentStore = next.store;
        drawTop();
      }
      noteLink(view.name, next);
    },
    locked: showLocked,
  });
  leave = () => {
    leave = () => {};
    left = true;
    stop?.();
  };
  drawTop();
}

// A link to #main would be taken for the name of a view.
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});

const kEnter = /^#enter=([0-9a-f]+)$/;
// A link to another view, and the console's next link, leave the page loaded.
addEventListener('hashchange', (event) => {
  const { hash } = new URL(event.newURL);
  if (kEnter.test(hash)) {
    leave();
    history.replaceState(null, '', event.newURL);
    location.reload();
  } else if (entered) {
    // The view that is left may have noted its state over the new address meanwhile.
    history.replaceState(null, '', event.newURL);
    show(hash);
  }
});

async function start() {
  const token = kEnter.exec(location.hash);
  try {
    if (token !== null) {
      history.replaceState(null, '', linkTo('stores'));
      await enter(token[1]).catch((error) => {
        if (!hasKey()) throw error; // A used link, but this browser may be let in already.
      });
    } else if (!hasKey()) {
      throw new NoSession('');
    }
    about = await call('about');
    entered = true;
    show(location.hash);
  } catch (error) {
    drawTop();
    showLocked(error instanceof NoSession ? error.message : String(error.message));
  }
}

start();
