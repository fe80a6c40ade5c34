// What a heat map shows, as commands, Python and C++.
import { cpp, python, shell } from './copy_as.js';
import { shortest } from './numbers.js';

/**
 * `store` is as the call `store` returns it, and `request` that of the call `attention`. `vectors` are
 * the written queries; null if the keys of rows ask.
 */
export function attentionTexts({ server, store, request, vectors }) {
  const tool = `softlookup --server ${shell(server)}`;
  const options = [
    ['temperature', request.temperature],
    ['top_k', request.top_k],
    ['causal', request.causal],
    ['causal_offset', request.causal ? request.causal_offset : 0],
  ].filter(([, value]) => value);
  const flags = options.map(([name, value]) => {
    const flag = `--${name.replace(/_/g, '-')}`;
    return value === true ? flag : `${flag} ${value}`;
  });
  const shared = {
    flags: ['--weights all', ...flags].join(' '),
    keywords: [...options.map(([name, value]) => `${name}=${python(value)}`), 'weights="all"'],
    setters: (target) => [
      ...options.map(([name, value]) => `${target}set_${name}(${value});`),
      `${target}set_weights(softlookup::v1::WEIGHTS_MODE_ALL);`,
    ],
  };
  if (request.self) return selfTexts({ tool, server, store, request, shared });
  return lookupTexts({ tool, server, store: store.name, request, vectors, shared });
}

const exported = (tool, store, begin, end, file) =>
  `${tool} export ${shell(store)} --begin ${begin} --end ${end} --keys ${file} --values values.npy`;

const connected = (server, lines) =>
  [
    'import numpy as np',
    'import softlookup as sl',
    '',
    `with sl.connect(${python(server)}) as client:`,
    ...lines.map((line) => `    ${line}`),
  ].join('\n');

function selfTexts({ tool, server, store, request, shared }) {
  const { row_begin: begin, row_end: end } = request;
  // Attend knows nothing of the store's own settings.
  const { score, num_heads: heads } = store;
  const own = `score=${python(score.replace(/-/g, '_'))}, num_heads=${heads}`;
  const call = ['inputs=np.load("keys.npy")', own, ...shared.keywords].join(', ');
  return {
    cli: [
      exported(tool, store.name, begin, end, 'keys.npy'),
      `${tool} attend --self --inputs keys.npy --score ${score} --heads ${heads} ${shared.flags}`,
    ].join('\n'),
    python: connected(server, [`answer = client.attend(${call})`]),
    cpp: [
      `softlookup::v1::AttendRequest request;  // Its inputs: the keys of rows [${begin}, ${end}).`,
      'request.set_self(true);',
      `request.set_num_heads(${heads});`,
      `request.mutable_options()->set_score(softlookup::v1::${`score-${score}`.toUpperCase().replace(/-/g, '_')});`,
      ...shared.setters('request.mutable_options()->'),
      'auto answer = client->Attend(request);',
    ].join('\n'),
  };
}

function lookupTexts({ tool, server, store, request, vectors, shared }) {
  const { row_begin: begin, row_end: end } = request;
  const written = vectors?.map((vector) => Array.from(vector, shortest).join(','));
  const asked = written
    ? written.map((vector) => `--query ${shell(vector)}`).join(' ')
    : '--queries queries.npy';
  const lookup = `${tool} lookup ${shell(store)} ${asked} --begin ${begin} --end ${end} ${shared.flags}`;
  const fetched = exported(tool, store, request.query_begin, request.query_end, 'queries.npy');
  const call = ['queries', `where=sl.rows(begin=${begin}, end=${end})`, ...shared.keywords];
  const queries = written ? `[[${written.join('], [')}]]` : 'np.load("queries.npy")';
  return {
    cli: written ? lookup : `${fetched}\n${lookup}`,
    python: connected(server, [
      `queries = ${queries}`,
      `answer = client.store(${python(store)}).lookup(${call.join(', ')})`,
    ]),
    cpp: [
      written
        ? `const std::vector<float> queries = {${written.join(', ')}};  // [${written.length} x key_dim]`
        : `// queries: the keys of rows [${request.query_begin}, ${request.query_end}).`,
      'softlookup::LookupOptions options;',
      ...shared.setters('options.attention.'),
      `options.filter.set_begin(${begin});`,
      `options.filter.set_end(${end});`,
      `auto answer = client->Lookup(${cpp(store)}, queries, options);`,
    ].join('\n'),
  };
}
