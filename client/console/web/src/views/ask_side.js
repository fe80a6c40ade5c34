// One of the two settings of the view Ask, with its answer.
import { call } from '../api.js';
import { h } from '../dom.js';
import { latest, settled } from '../latest.js';
import { answerCard } from './answer.js';
import { askSettings } from './ask_settings.js';

const kListed = 256;
const kSettleMilliseconds = 200;

/** `question()` returns {query, filter, source}, or null while there is none. Calls changed() after each change. */
export function askSide({ title, store, state, labels, question, failed, answered, changed }) {
  const settings = askSettings({
    store,
    state,
    changed: () => {
      changed();
      run();
    },
  });
  const card = answerCard(store, labels);
  const element = h(
    'section',
    { class: 'panel side', 'aria-label': title },
    h('h2', {}, title),
    settings.element,
    card.element,
  );
  let current = null;

  const ask = latest(
    async (request) => {
      const begin = performance.now();
      const answer = await call('lookup', request);
      return { answer, milliseconds: performance.now() - begin };
    },
    ({ answer, milliseconds }, request) => {
      answered();
      const head = settings.head();
      card.show(answer, head, milliseconds);
      element.dataset.answered = String(request.temperature);
      current = { answer, head, request };
      spread(current);
    },
    failed,
  );

  const mass = latest(
    ({ request, answer, head }) =>
      call('mass', { ...request, head, end: request.end ?? answer.row_count, blocks: 64 }),
    (result, shown) => {
      if (shown === current) card.showMass(result, shown.answer.stats[shown.head].log_sum_exp);
    },
    (error, shown) => {
      if (shown === current) card.showMass(null, 0, `Weight over position: ${error.message}`);
    },
  );
  const spread = settled(kSettleMilliseconds, (shown) => {
    const { request, answer, head } = shown;
    if (answer.stats[head].empty) card.showMass(null, 0, 'No row has weight.');
    else if (request.mode !== 'soft')
      card.showMass(
        null,
        0,
        `Weight over position needs the mode soft, as ${request.mode} has no log-sum-exp.`,
      );
    else if (request.top_k > 0)
      card.showMass(null, 0, 'Weight over position is of all rows: set "Only the top" to nothing.');
    else if (request.source !== 'rows')
      card.showMass(null, 0, 'Weight over position is of rows, not of memories.');
    else mass(shown);
  });

  function run() {
    const asked = question();
    if (asked === null) return;
    ask({
      store: store.name,
      query: asked.query,
      dim: store.key_dim,
      ...settings.options(),
      ...asked.filter,
      ...asked.source,
      top: kListed,
    });
  }
  return {
    element,
    run,
    options: settings.options,
    state: settings.state,
    relabel: card.relabel,
    end: () => {
      ask.end();
      mass.end();
      spread.end();
      card.end();
    },
  };
}
