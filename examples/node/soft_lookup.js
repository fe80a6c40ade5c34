// A store made, filled, asked and deleted again.  node soft_lookup.js [ADDRESS] [PROTO_DIRECTORY]
// ADDRESS is by default that of SOFTLOOKUP_SERVER, else 127.0.0.1:7471.
// Exits with 1 where the server's answers are not those of float64 arithmetic here.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const util = require('node:util');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const [address = process.env.SOFTLOOKUP_SERVER || '127.0.0.1:7471',
  protoDirectory = path.join(__dirname, '../../proto')] = process.argv.slice(2);
const definition = protoLoader.loadSync(
  ['softlookup/v1/soft_lookup.proto', 'google/rpc/status.proto', 'google/rpc/error_details.proto'],
  { includeDirs: [protoDirectory], keepCase: true, longs: Number, enums: String, defaults: true });
const { SoftLookup } = grpc.loadPackageDefinition(definition).softlookup.v1;

// [[1, 2], [3, 4]] as a Matrix of float32.
function toMatrix(rows) {
  return { rows: rows.length, cols: rows[0].length, data: Buffer.from(Float32Array.from(rows.flat()).buffer) };
}

function toRows({ rows, cols, data }) {
  const at = (row, col) => data.readFloatLE(4 * (row * cols + col));
  return Array.from({ length: rows }, (_, row) => Array.from({ length: cols }, (_, col) => at(row, col)));
}

// The google.rpc.ErrorInfo of a failed call: { reason, domain, metadata }.
function errorInfo(error) {
  const [packed] = error.metadata.get('grpc-status-details-bin');
  const { details } = definition['google.rpc.Status'].deserialize(packed);
  const info = details.find(({ type_url }) => type_url.endsWith('/google.rpc.ErrorInfo'));
  return definition['google.rpc.ErrorInfo'].deserialize(info.value);
}

// The definition, in float64: softmax(query keys' / sqrt(d)) values.
function weightedSum(query, keys, values) {
  const logits = keys.map((key) => key.reduce((sum, x, i) => sum + x * query[i], 0) / Math.sqrt(key.length));
  const largest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - largest));
  const total = weights.reduce((sum, weight) => sum + weight);
  return values[0].map((_, col) => weights.reduce((sum, weight, row) => sum + weight * values[row][col], 0) / total);
}

// Appends the batches on one stream, which acknowledges each in turn: the row count after each.
function streamAppend(client, store, batches) {
  return new Promise((resolve, reject) => {
    const counts = [];
    const stream = client.StreamAppend();
    stream.on('data', ({ row_count }) => counts.push(row_count));
    stream.on('error', reject);
    stream.on('end', () => resolve(counts));
    for (const { keys, values } of batches) stream.write({ store, keys: toMatrix(keys), values: toMatrix(values) });
    stream.end();
  });
}

// TLS and a token, if the environment names files of them as it does for `softlookup`:
// [credentials, options].
function identity() {
  const [ca, certificate, key, token] = ['TLS_CA', 'TLS_CERTIFICATE', 'TLS_KEY', 'TOKEN_FILE']
    .map((name) => process.env[`SOFTLOOKUP_${name}`]).map((file) => (file ? fs.readFileSync(file) : null));
  const credentials =
    ca || certificate ? grpc.credentials.createSsl(ca, key, certificate) : grpc.credentials.createInsecure();
  if (!token) return [credentials, {}];
  // gRPC's own call credentials need TLS.
  const addToken = (options, nextCall) => new grpc.InterceptingCall(nextCall(options), {
    start(metadata, listener, next) {
      metadata.set('authorization', `Bearer ${token.toString().trim()}`);
      next(metadata, listener);
    } });
  return [credentials, { interceptors: [addToken] }];
}

async function main() {
  const limit = 64 << 20; // As the server's: gRPC's own default is 4 MiB.
  const [credentials, options] = identity();
  const client = new SoftLookup(address, credentials, { 'grpc.max_receive_message_length': limit, ...options });
  // Methods with one request and one answer, as promises.
  const call = (method, request) => util.promisify(client[method]).call(client, request);

  // Numbers that float32 holds exactly.
  const numbers = (rows, cols, seed) => Array.from({ length: rows }, (_, row) =>
    Array.from({ length: cols }, (_, col) => Math.fround(Math.sin(seed + row * cols + col))));
  const [keys, values, queries] = [numbers(1000, 64, 1), numbers(1000, 8, 2), numbers(3, 64, 3)];
  const part = (begin, end) => ({ keys: keys.slice(begin, end), values: values.slice(begin, end) });

  const store = 'examples/node';
  await call('CreateStore', { store: { name: store, key_dim: 64, value_dim: 8 } });
  try {
    console.log('rows:', await streamAppend(client, store, [part(0, 400), part(400, 1000)]));

    const answer = await call('Lookup', {
      store, queries: toMatrix(queries), options: { weights: 'WEIGHTS_MODE_TOP', top_weights: 3 } });
    const answers = toRows(answer.values);
    console.log('answers:', answers);
    console.log('heaviest rows of the first query:', answer.weights[0].positions);
    const expected = queries.map((query) => weightedSum(query, keys, values));
    const largest = Math.max(...expected.flat().map(Math.abs));
    const error = Math.max(...answers.flat().map((x, i) => Math.abs(x - expected.flat()[i]))) / largest;
    console.log(`difference from float64: ${error.toExponential(1)} of the largest component`);

    const refused = await call('Lookup', { store, queries: toMatrix([[0, 0, 0, 0, 0]]) }).catch((failed) => failed);
    const { reason, metadata } = errorInfo(refused);
    console.log(`refused: ${grpc.status[refused.code]}, ${reason}, ${JSON.stringify(metadata)}: ${refused.details}`);
    process.exitCode = error <= 1e-5 && reason === 'SHAPE_MISMATCH' ? 0 : 1;
  } finally {
    await call('DeleteStore', { name: store });
    client.close();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
