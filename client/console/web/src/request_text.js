// Lookups as commands, Python and C++.
import { labelText } from './label_list.js';
import { cpp, flagText, python, shell, whole } from './copy_as.js';

/** Python's words for scores and sources have underscores. */
const pythonWord = (value) => python(typeof value === 'string' ? value.replace(/-/g, '_') : value);

/** `query` are the numbers as texts; `options` and `filter` are those of the call `lookup`. */
export function lookupTexts({ server, store, query, options, filter, top }) {
  const flags = [];
  const keywords = [];
  const lines = [];
  const flag = (name, value) => flags.push(flagText(name, String(value)));
  const each = [
    ['score', 'score'],
    ['temperature', 'temperature'],
    ['mode', 'mode'],
    ['top_k', 'top-k'],
    ['min_score', 'min-score'],
    ['recency_decay', 'recency-decay'],
    ['max_error', 'max-error'],
  ];
  for (const [name, option] of each) {
    const value = options[name];
    if (value === undefined || value === null || value === '' || value === 0 || value === 'soft')
      continue;
    flag(option, value);
    keywords.push(`${name}=${pythonWord(value)}`);
    if (name === 'score' || name === 'mode') {
      const word = `${name}-${value}`.toUpperCase().replace(/-/g, '_');
      lines.push(`options.attention.set_${name}(softlookup::v1::${word});`);
    } else lines.push(`options.attention.set_${name}(${cpp(value)});`);
  }
  const where = [];
  const conditions = [
    ['begin', 'begin', 'begin'],
    ['end', 'end', 'end'],
    ['last', 'last', 'last'],
    ['any_labels', 'label', 'labels'],
    ['no_labels', 'no-label', 'without_labels'],
    ['ids', 'id', 'ids'],
  ];
  for (const [name, option, keyword] of conditions) {
    const value = filter[name];
    if (value === undefined || value === null || value.length === 0) continue;
    const isList = Array.isArray(value);
    for (const one of isList ? value : [value]) {
      flag(option, name.endsWith('labels') ? labelText(one) : one);
      lines.push(
        `options.filter.${isList ? 'add' : 'set'}_${name}(${name === 'ids' ? whole(one) : cpp(one)});`,
      );
    }
    where.push(`${keyword}=${name === 'ids' ? `[${value.map(whole).join(', ')}]` : python(value)}`);
  }
  if (where.length > 0) keywords.push(`where=sl.rows(${where.join(', ')})`);
  if (options.source && options.source !== 'rows') {
    flag('source', options.source);
    keywords.push(`source=${pythonWord(options.source)}`);
    lines.push(
      `options.source = softlookup::v1::SOURCE_${options.source.toUpperCase().replace(/-/g, '_')};`,
    );
  }
  if (options.memory) {
    flag('memory', options.memory);
    keywords.push(`memory=${python(options.memory)}`);
    lines.push(`options.memory = ${cpp(options.memory)};`);
  }
  const vector = query.join(',');
  return {
    cli: `softlookup --server ${shell(server)} lookup ${shell(store)} \\\n  --query ${shell(vector)} \\\n  ${[...flags, `--top ${top}`].join(' ')}`,
    python: [
      'import softlookup as sl',
      '',
      `with sl.connect(${python(server)}) as client:`,
      `    store = client.store(${python(store)})`,
      `    query = [[${vector}]]`,
      `    answer = store.lookup(${['query', ...keywords, `weights=${top}`].join(', ')})`,
      '    print(answer.values, answer.log_sum_exp, answer.weights)',
    ].join('\n'),
    cpp: [
      `auto client = softlookup::Client::Connect(${cpp(server)});`,
      `const std::vector<float> query = {${vector}};`,
      'softlookup::LookupOptions options;',
      ...lines,
      'options.attention.set_weights(softlookup::v1::WEIGHTS_MODE_TOP);',
      `options.attention.set_top_weights(${top});`,
      `auto answer = client->Lookup(${cpp(store)}, {query, 1, ${query.length}}, options);`,
    ].join('\n'),
  };
}
