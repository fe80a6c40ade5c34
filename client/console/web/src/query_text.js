// What a person writes as a query, as terms for the call `query`.
//
//   0.3, -1.2, 0.5          a vector
//   row 12                  the key of the row at position 12
//   id 7, label "queen"     the key of the row with this id or label
//   word "apple"            the encoding of a word
//   row 3 - row 5 + 0.5 * label "queen"

const kToken =
  /\s*(?:(row|id|label|word)\b|("(?:[^"\\]|\\.)*")|([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)|([-+*[\],])|(\S+))/y;

/** Says what is wrong with a query, for the person who wrote it. */
export class QueryError extends Error {}

function tokensOf(text) {
  const tokens = [];
  kToken.lastIndex = 0;
  while (kToken.lastIndex < text.trimEnd().length) {
    const match = kToken.exec(text);
    if (match === null) break;
    const [, name, quoted, number, sign, other] = match;
    if (other !== undefined)
      throw new QueryError(`"${other}" is no part of a query; words go in quotes`);
    if (name !== undefined) tokens.push({ kind: 'name', name });
    else if (quoted !== undefined) tokens.push({ kind: 'text', text: unquote(quoted) });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else tokens.push({ kind: sign });
  }
  return tokens;
}

function unquote(quoted) {
  return quoted.slice(1, -1).replace(/\\(.)/g, '$1');
}

export function quote(text) {
  return `"${text.replace(/[\\"]/g, '\\$&')}"`;
}

/** Reads numbers apart by commas or white space. */
export function parseVector(text) {
  const parts = text
    .replace(/^\s*\[|\]\s*$/g, '')
    .trim()
    .split(/[\s,;]+/)
    .filter((part) => part !== '');
  const numbers = parts.map(Number);
  const wrong = numbers.findIndex((value) => !Number.isFinite(value));
  if (parts.length === 0) throw new QueryError('write the numbers of the query');
  if (wrong >= 0) throw new QueryError(`"${parts[wrong]}" is no number`);
  return [{ kind: 'vector', value: numbers, factor: 1 }];
}

/** Reads a sum of terms. */
export function parseQuery(text) {
  const tokens = tokensOf(text);
  if (tokens.length === 0) throw new QueryError('write a query, such as row 0');
  if (tokens.every((token) => token.kind === 'number' || token.kind === ','))
    return parseVector(text);
  const terms = [];
  let at = 0;
  const take = (kind) => (tokens[at]?.kind === kind ? tokens[at++] : null);
  const need = (kind, what) => {
    const token = take(kind);
    if (token === null) throw new QueryError(`${what} is missing`);
    return token;
  };
  while (at < tokens.length) {
    let factor = 1;
    let signed = terms.length === 0;
    while (tokens[at]?.kind === '+' || tokens[at]?.kind === '-') {
      if (tokens[at].kind === '-') factor = -factor;
      signed = true;
      at += 1;
    }
    if (tokens[at]?.kind === 'number' && (signed || /^[-+]/.test(tokens[at].text))) {
      factor *= Number(take('number').text);
      signed = true;
      need('*', 'a * after the factor');
    }
    if (!signed) throw new QueryError('a + or - between two terms is missing');
    terms.push({ factor, ...primary() });
  }
  function primary() {
    if (take('[')) {
      const value = [];
      while (!take(']')) {
        value.push(Number(need('number', 'a number of the vector, or its ]').text));
        take(',');
      }
      return { kind: 'vector', value };
    }
    const { name } = need('name', 'row, id, label, word or [');
    if (name === 'row')
      return { kind: 'position', value: whole(need('number', 'the position').text) };
    if (name === 'id')
      return { kind: 'id', value: String(whole(need('number', 'the id').text, true)) };
    return { kind: name, value: need('text', `the ${name} in quotes`).text };
  }
  return terms;
}

function whole(text, big = false) {
  if (!/^\d+$/.test(text)) throw new QueryError(`"${text}" is no whole number`);
  return big ? text : Number(text);
}
