// The settings of a lookup: temperature, mode, score and bounds.
import { field, h, input, select } from '../dom.js';
import { temperatureControl } from '../temperature.js';
import { wholeOf } from './rows.js';

const kModes = ['soft', 'hard', 'linear'];
const kScores = ['dot', 'scaled-dot', 'cosine', 'euclidean', 'squared-euclidean'];

const numberOf = (text) =>
  text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : null;

/** `state` has the settings of the link, by the names of the call. Calls changed() after each change. */
export function askSettings({ store, state, changed }) {
  const temperature = temperatureControl(
    'Temperature',
    store.temperature,
    Number(state.temperature) || store.temperature,
    changed,
  );
  const mode = select(kModes, state.mode || 'soft', changed);
  const score = select(
    [['', `the store's: ${store.score}`], ...kScores],
    state.score ?? '',
    changed,
  );
  const texts = {};
  for (const name of ['top_k', 'min_score', 'recency_decay', 'max_error', 'head']) {
    texts[name] = input(
      {
        type: 'text',
        inputmode: 'decimal',
        value: state[name] ?? '',
        placeholder: {
          top_k: 'all',
          min_score: 'none',
          recency_decay: '1',
          max_error: '1e-5',
          head: '0',
        }[name],
      },
      changed,
    );
  }
  const more = h(
    'details',
    {},
    h('summary', {}, 'More settings'),
    h(
      'div',
      { class: 'fields' },
      field('Score', score),
      field('Lowest score', texts.min_score),
      field('Recency decay', texts.recency_decay),
      field('Allowed error', texts.max_error),
      store.num_heads > 1 ? field(`Head, 0 to ${store.num_heads - 1}`, texts.head) : null,
    ),
  );
  more.open = ['score', 'min_score', 'recency_decay', 'max_error', 'head'].some(
    (name) => state[name],
  );
  return {
    element: h(
      'div',
      { class: 'settings' },
      temperature.element,
      h('div', { class: 'fields' }, field('Mode', mode), field('Only the top', texts.top_k)),
      more,
    ),
    head: () => Math.min(wholeOf(texts.head.value) ?? 0, store.num_heads - 1),
    /** As the call takes them. */
    options: () => ({
      temperature: temperature.value(),
      mode: mode.value,
      score: score.value,
      top_k: wholeOf(texts.top_k.value) ?? 0,
      min_score: numberOf(texts.min_score.value),
      recency_decay: numberOf(texts.recency_decay.value),
      max_error: numberOf(texts.max_error.value),
    }),
    /** As a link has them. */
    state: () => ({
      temperature: temperature.value() === store.temperature ? '' : temperature.value(),
      mode: mode.value === 'soft' ? '' : mode.value,
      score: score.value,
      ...Object.fromEntries(
        Object.entries(texts).map(([name, control]) => [name, control.value.trim()]),
      ),
    }),
  };
}
