'use strict';

// The documents stay true: a reader that follows docs/internals/snapshot-format.md alone reads what a worker
// writes, the tables are those of the code, and every path that a document names exists.

const assert = require('node:assert');
const cluster = require('node:cluster');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { Registry, Counter, Gauge, Histogram, Summary, openMetricsContentType } = require('../..');
const { SnapshotSource } = require('../../lib/cluster/capture/snapshot-source');
const { ClusterStore } = require('../../lib/cluster/store/cluster-store');
const fileNames = require('../../lib/cluster/wire/file-names');
const messages = require('../../lib/cluster/wire/messages');
const { tableBelow, readSnapshot, readRetired } = require('./fixtures/documented-snapshot');

const ROOT = path.join(__dirname, '../..');
const FORMAT = fs.readFileSync(path.join(ROOT, 'docs/internals/snapshot-format.md'), 'utf8');
const HEADER = tableBelow(FORMAT, '### Header');
const WORKER_ID = 7;

/** The bytes as they would be in the file, at an address that is a multiple of 8. */
function bytesOf({ chunks, bytes }) {
  const file = Buffer.allocUnsafeSlow(bytes);
  let length = 0;
  for (const chunk of chunks) {
    file.set(chunk, length);
    length += chunk.length;
  }
  return file;
}

function someRegistry() {
  const registry = new Registry(openMetricsContentType);
  registry.setDefaultLabels({ host: 'one', method: 'default' });
  const registers = [registry];
  const requests = new Counter({
    name: 'requests_total',
    help: 'Requests',
    labelNames: ['method', 'path'],
    registers,
  });
  requests.inc({ path: '/', method: 'GET' }, 5);
  requests.inc({ method: 'PUT', path: '/gone' });
  requests.inc({ path: '/ünïcode' }, 2.5);
  requests.remove({ method: 'PUT', path: '/gone' });
  const temperature = new Gauge({ name: 'temperature', help: 'T', aggregator: 'max', registers });
  temperature.set(-3.25);
  const waits = new Histogram({
    name: 'wait_seconds',
    help: 'W',
    buckets: [0.5, 1],
    enableExemplars: true,
    registers,
  });
  for (const value of [0.25, 0.75, 0.75]) waits.observe(value);
  waits.observe({ value: 20, exemplarLabels: { trace: 'abc', span: 'd' } });
  const sizes = new Summary({
    name: 'sizes',
    help: 'S',
    percentiles: [0.5],
    labelNames: ['kind'],
    registers,
  });
  for (const value of [1, 2, 4]) sizes.observe({ kind: 'a' }, value);
  const values = [{ value: NaN, labels: { x: 'y' } }];
  registry.registerMetric({
    name: 'foreign',
    get: () => ({ name: 'foreign', help: 'F', type: 'gauge', values }),
  });
  const failing = () => {
    throw new Error('no');
  };
  new Gauge({ name: 'failing', help: 'F', registers, collect: failing });
  return { registry, requests, sizes };
}

function captured(source, position) {
  return source.prepare(1000, {
    readerPosition: position,
    capture: dictionary => bytesOf(source.capture(WORKER_ID, position, { dictionary })),
  });
}

describe('docs/internals/snapshot-format.md', () => {
  it('docs/internals/snapshot-format.md has all that is needed to read a snapshot', async () => {
    const before = Date.now();
    const { registry } = someRegistry();
    const file = await captured(new SnapshotSource(() => [registry]), undefined);
    const { header, units, failures, families, endMark } = readSnapshot(file, HEADER, []);

    const [digest] = families[3].samples;
    const { timestamp } = families[2].exemplars[0];
    assert.ok(timestamp * 1000 >= before - 1 && timestamp * 1000 <= Date.now());
    assert.strictEqual(header.magic.toString('latin1'), 'PCCSNAP\x01');
    assert.strictEqual(header.byteOrder, 0x01020304);
    assert.strictEqual(header.version, Number(/^Format version: (\d+)\./m.exec(FORMAT)[1]));
    assert.strictEqual(header.workerId, WORKER_ID);
    assert.strictEqual(header.epoch, 1);
    assert.strictEqual(header.sequence, 1);
    assert.ok(header.capturedAt >= before && header.capturedAt <= Date.now());
    assert.strictEqual(header.bytes, file.length);
    assert.ok(header.reserved.every(byte => byte === 0));
    assert.deepStrictEqual(endMark, { sequence: 1, magic: 'PCCSEND\x01' });
    assert.strictEqual(header.dictionaryStart, 0);
    assert.strictEqual(header.dictionaryEnd, units);
    assert.deepStrictEqual(failures, [['collect', 'failing', 1]]);
    assert.deepStrictEqual(families, [
      {
        name: 'requests_total',
        type: 'counter',
        marks: [],
        samples: [
          { labels: { path: '/', method: 'GET', host: 'one' }, numbers: [5] },
          { labels: { path: '/ünïcode', host: 'one', method: 'default' }, numbers: [2.5] },
        ],
        exemplars: [],
      },
      {
        name: 'temperature',
        type: 'gauge',
        marks: [],
        samples: [{ labels: { host: 'one', method: 'default' }, numbers: [-3.25] }],
        exemplars: [],
      },
      {
        name: 'wait_seconds',
        type: 'histogram',
        marks: [0.5, 1],
        samples: [{ labels: { host: 'one', method: 'default' }, numbers: [1, 2, 1, 21.75] }],
        exemplars: [
          {
            row: 0,
            column: 2,
            value: 20,
            timestamp,
            labels: [
              ['trace', 'abc'],
              ['span', 'd'],
            ],
          },
        ],
      },
      {
        name: 'sizes',
        type: 'summary',
        marks: [0.5],
        samples: [
          {
            labels: { kind: 'a', host: 'one', method: 'default' },
            numbers: [7, 3],
            version: digest.version,
            centroids: [
              [1, 1],
              [2, 1],
              [4, 1],
            ],
          },
        ],
        exemplars: [],
      },
      { name: 'foreign', help: 'F', type: 'gauge', values: [{ value: NaN, labels: { x: 'y' } }] },
      {
        name: 'failing',
        type: 'gauge',
        marks: [],
        samples: [{ labels: { host: 'one', method: 'default' }, numbers: [0] }],
        exemplars: [],
      },
    ]);
  });

  it('docs/internals/snapshot-format.md says what a reader that knows the journal up to a position gets', async () => {
    const { registry, requests, sizes } = someRegistry();
    const source = new SnapshotSource(() => [registry]);
    const metrics = [];
    const first = readSnapshot(await captured(source, undefined), HEADER, metrics);
    const { header } = first;
    requests.inc({ method: 'GET', path: '/new' }, 9);
    const position = {
      incarnation: header.incarnation.toString('hex'),
      epoch: header.epoch,
      series: header.dictionaryEnd,
    };
    const second = readSnapshot(await captured(source, position), HEADER, metrics);
    assert.strictEqual(second.header.dictionaryStart, header.dictionaryEnd);
    assert.strictEqual(second.header.sequence, 2);
    assert.strictEqual(second.units, 1);
    assert.deepStrictEqual(second.families[0].samples.at(-1), {
      labels: { method: 'GET', path: '/new', host: 'one' },
      numbers: [9],
    });

    const digestOf = ({ families }) => families[3].samples[0];
    sizes.observe({ kind: 'a' }, 8);
    const changed = readSnapshot(await captured(source, position), HEADER, metrics);
    assert.strictEqual(digestOf(second).version, digestOf(first).version);
    assert.notStrictEqual(digestOf(changed).version, digestOf(first).version);

    const stranger = { ...position, incarnation: '0'.repeat(32) };
    const third = readSnapshot(await captured(source, stranger), HEADER, []);
    assert.strictEqual(third.header.dictionaryStart, 0);
    assert.strictEqual(third.units, third.header.dictionaryEnd);
    assert.deepStrictEqual(third.families, changed.families);
  });

  it('docs/internals/snapshot-format.md says what becomes of a metric whose rows have got new numbers, or that is another one now', async () => {
    const { registry } = someRegistry();
    const options = { name: 'sessions', help: 'S', labelNames: ['id'], registers: [registry] };
    const sessions = new Gauge(options);
    for (let id = 0; id < 1100; id++) sessions.set({ id }, id);
    const source = new SnapshotSource(() => [registry]);
    const metrics = [];
    const first = readSnapshot(await captured(source, undefined), HEADER, metrics);
    const lastOf = ({ families }) =>
      families.at(-1).samples.map(({ labels, numbers }) => [labels.id, ...numbers]);
    assert.strictEqual(lastOf(first).length, 1100);
    const journalPositionOf = ({ header }) => ({
      incarnation: header.incarnation.toString('hex'),
      epoch: header.epoch,
      series: header.dictionaryEnd,
    });

    for (let id = 0; id < 1098; id++) sessions.remove({ id });
    const compacted = readSnapshot(await captured(source, journalPositionOf(first)), HEADER, metrics);
    assert.strictEqual(compacted.header.epoch, 1);
    assert.strictEqual(compacted.header.dictionaryStart, first.header.dictionaryEnd);
    assert.strictEqual(compacted.units, 4); // dropped, defined, two rows
    assert.strictEqual(compacted.header.dictionaryEnd, first.header.dictionaryEnd + 4);
    assert.deepStrictEqual(lastOf(compacted), [
      ['1098', 1098],
      ['1099', 1099],
    ]);

    sessions.help = 'Sessions';
    const redefined = readSnapshot(await captured(source, journalPositionOf(compacted)), HEADER, metrics);
    assert.strictEqual(redefined.header.epoch, 1);
    assert.strictEqual(redefined.units, 4);
    assert.deepStrictEqual(lastOf(redefined), lastOf(compacted));
    const { number, help } = metrics.at(-1);
    assert.deepStrictEqual(
      [metrics.length, number, help],
      [first.families.length - 1 + 2, metrics.length - 1, 'Sessions'],
    );

    // A reader without state does not get the rows that are gone.
    const anew = readSnapshot(await captured(source, undefined), HEADER, []);
    assert.strictEqual(anew.header.epoch, 2);
    assert.strictEqual(anew.header.dictionaryStart, 0);
    assert.strictEqual(anew.header.dictionaryEnd, anew.units);
    assert.ok(anew.units < 100, `${anew.units}`);
    assert.deepStrictEqual(anew.families, redefined.families);
  });

  it('docs/internals/snapshot-format.md says when an epoch ends', async () => {
    const registry = new Registry();
    const source = new SnapshotSource(() => [registry]);
    const epochAfter = async metricCount => {
      for (let i = 0; i < metricCount; i++) new Counter({ name: `c${i}`, help: 'c', registers: [registry] });
      await captured(source, undefined);
      registry.clear();
      // A capture notices what is missing, and the next one reports it.
      await captured(source, undefined);
      return readSnapshot(await captured(source, undefined), HEADER, []).header.epoch;
    };
    assert.strictEqual(await epochAfter(64), 1);
    assert.strictEqual(await epochAfter(1), 2);
  });

  it('docs/internals/snapshot-format.md names each code of refusal that there is, and no other', async () => {
    const ofSnapshots = codesBelow('### Codes of refusal');
    assert.deepStrictEqual([...(await codesOfRefusal()).keys()].sort(), ofSnapshots.sort());
    const ofRetired = codesBelow('### Codes of refusal of retired.snap');
    assert.deepStrictEqual([...(await codesOfRefusedTotals()).keys()].sort(), ofRetired.sort());

    const thrown = fs.readdirSync(path.join(ROOT, 'lib/cluster'), { recursive: true }).flatMap(file => {
      if (!file.endsWith('.js')) return [];
      const text = fs.readFileSync(path.join(ROOT, 'lib/cluster', file), 'utf8');
      return Array.from(text.matchAll(/new SnapshotError\(\s*'([a-z-]+)'/g), match => match[1]);
    });
    assert.deepStrictEqual([...new Set(thrown)].sort(), [...new Set([...ofSnapshots, ...ofRetired])].sort());
  });

  it('docs/internals/snapshot-format.md has all that is needed to read the retired totals', async () => {
    const { registry } = someRegistry();
    const store = new ClusterStore({ now: () => 1234 });
    store.apply(WORKER_ID, await captured(new SnapshotSource(() => [registry]), undefined));
    store.retire(WORKER_ID);
    const retired = readRetired(store.encodeRetired());
    assert.deepStrictEqual(
      [retired.magic, retired.version, retired.endMagic, retired.isWhole],
      ['PCCRETD\x01', 2, 'PCCRETD\x01', true],
    );
    assert.deepStrictEqual(retired.workerIds, [WORKER_ID]);
    assert.deepStrictEqual(retired.failures, [['collect', 'failing', 1]]);
    assert.deepStrictEqual(
      retired.families.map(({ name, rows }) => [
        name,
        rows.map(row => [row.labels, row.numbers, row.digest]),
      ]),
      [
        [
          'requests_total',
          [
            [{ path: '/', method: 'GET', host: 'one' }, [5], []],
            [{ path: '/ünïcode', host: 'one', method: 'default' }, [2.5], []],
          ],
        ],
        ['wait_seconds', [[{ host: 'one', method: 'default' }, [1, 2, 1, 21.75], []]]],
        ['sizes', [[{ kind: 'a', host: 'one', method: 'default' }, [7, 3], [1, 1, 2, 1, 4, 1]]]],
      ],
    );
    assert.deepStrictEqual(
      retired.families.map(({ type, aggregator, layout, marks, windowed }) => [
        type,
        aggregator,
        layout,
        marks,
        windowed,
      ]),
      [
        ['counter', 'sum', 'value', [], false],
        ['histogram', 'sum', 'histogram', [0.5, 1], false],
        ['summary', 'sum', 'summary', [0.5], false],
      ],
    );
    assert.ok(retired.families.every(({ rows }) => rows.every(({ lastSeen }) => lastSeen === 1234)));
  });

  it('docs/internals/snapshot-format.md names the types of the messages, and the names of the files', () => {
    const types = tableBelow(FORMAT, '## Messages')
      .map(([type]) => type.replaceAll('`', ''))
      .filter(type => type !== '');
    const { WELCOME, READY, LAST, PAGE, REQUEST, RESPONSE } = messages;
    assert.deepStrictEqual(types, [WELCOME, READY, LAST, PAGE, PAGE, REQUEST, RESPONSE]);
    const [, pattern] = /matches\s+`([^`]+)`/.exec(FORMAT);
    const name = fileNames.snapshotName(3, 12);
    assert.deepStrictEqual(new RegExp(pattern).exec(name).slice(1), ['3', '12']);
    assert.match(fileNames.exitSnapshotName(3), /^w3-exit-[0-9a-f]{24}\.snap$/);
  });
});

/** The codes in the table below a heading of the format's description. */
function codesBelow(heading) {
  return tableBelow(FORMAT, heading).map(([code]) => code.replaceAll('`', ''));
}

/** What each kind of damage to a snapshot is refused with, by code. */
async function codesOfRefusal() {
  const { registry, requests } = someRegistry();
  const source = new SnapshotSource(() => [registry]);
  const first = await captured(source, undefined);
  const offsetOf = field => Number(HEADER.find(row => row[2] === field)[0]);
  const store = new ClusterStore();
  store.apply(WORKER_ID, Buffer.from(new Uint8Array(first).buffer));
  const position = store.worker(WORKER_ID)?.journalPosition;
  requests.inc({ path: '/more' });
  const second = await captured(source, position);
  await source.prepare(1000);
  const laterPosition = { ...position, series: second.readDoubleLE(offsetOf('dictionaryEnd')) };
  const third = await captured(source, laterPosition);
  const otherProcess = await captured(new SnapshotSource(() => [registry]), undefined);

  const plainRegistry = new Registry();
  new Counter({ name: 'c', help: 'c', registers: [plainRegistry] });
  const plain = await captured(new SnapshotSource(() => [plainRegistry]), undefined);
  // After one empty list of default labels, no failures and the number of entries comes the first entry's
  // kind.
  const kindOf = file => file.readDoubleLE(offsetOf('numbersStart')) + 16;

  /** Why a fresh store, or one that knows the first snapshot, refuses some bytes. */
  const refusal = (file, change = () => {}, { fresh = true, workerId = WORKER_ID } = {}) => {
    const copy = Buffer.from(new Uint8Array(file).buffer);
    change(copy);
    try {
      (fresh ? new ClusterStore() : store).apply(workerId, copy);
    } catch (error) {
      return error.code;
    }
    return undefined;
  };
  const codes = [
    refusal(first.subarray(0, first.length - 8)),
    refusal(first, copy => copy.fill(0, offsetOf('magic'), 4)),
    refusal(first, copy => copy.subarray(offsetOf('byteOrder'), offsetOf('byteOrder') + 4).reverse()),
    refusal(first, copy => copy.writeUInt32LE(2, offsetOf('version'))),
    refusal(first, copy => copy.writeDoubleLE(9, copy.length - 16)),
    refusal(first, copy => copy.writeUInt32LE(0, copy.readDoubleLE(offsetOf('dictionaryOffset')))), // no definition before its rows
    refusal(plain, copy => copy.writeUInt32LE(9, kindOf(copy))),
    refusal(first, undefined, { workerId: WORKER_ID + 1 }),
    refusal(otherProcess, undefined, { fresh: false }),
    refusal(first, undefined, { fresh: false }),
    refusal(third, undefined, { fresh: false }),
  ];
  return new Map(codes.map(code => [code, true]));
}

/** What each kind of damage to retired totals is refused with, by code. */
async function codesOfRefusedTotals() {
  const registry = new Registry();
  const labelValue = 'the only one';
  new Counter({ name: 'c', help: 'h', labelNames: ['a'], registers: [registry] }).inc({ a: labelValue });
  const store = new ClusterStore();
  store.apply(WORKER_ID, await captured(new SnapshotSource(() => [registry]), undefined));
  store.retire(WORKER_ID);
  const file = store.encodeRetired();
  // After the values of the last label come the number of rows, and the integers of the first row.
  const integer = file.indexOf(labelValue) + labelValue.length + 4;

  const refusal = change => {
    const copy = Buffer.from(new Uint8Array(file).buffer);
    change(copy);
    try {
      new ClusterStore().restoreRetired(copy);
    } catch (error) {
      return error.code;
    }
    return undefined;
  };
  const codes = [
    refusal(copy => copy.fill(0, 0, 4)),
    refusal(copy => copy.writeUInt32LE(3, 8)),
    refusal(copy => copy.writeUInt32LE(1000, 12)),
    refusal(copy => copy.write('VALUE', copy.indexOf('value'))),
    refusal(copy => copy.writeUInt32LE(99, integer)),
  ];
  return new Map(codes.map(code => [code, true]));
}

// A primary of its own, written from the document: plain node:cluster, no AggregatorRegistry.
describe('the messages of docs/internals/snapshot-format.md', () => {
  let directory;
  let worker;

  before(async () => {
    directory = fs.mkdtempSync(path.join(os.tmpdir(), 'documented-'));
    cluster.setupPrimary({ exec: path.join(__dirname, 'fixtures/documented-worker.js') });
    worker = cluster.fork();
    await once(worker, 'message');
  });

  after(() => {
    worker?.process.kill('SIGKILL');
    fs.rmSync(directory, { recursive: true });
  });

  async function answerTo(message) {
    const answer = once(worker, 'message');
    worker.send(message);
    return (await answer)[0];
  }

  it('a worker answers a request with the name of a file', async () => {
    const exitName = `w${worker.id}-exit-${'a'.repeat(24)}.snap`;
    const { type, requestId, file, bytes, ...rest } = await answerTo({
      type: 'prom-client:getMetricsReq',
      requestId: 41,
      directory,
      exitName,
      timeout: 1000,
    });
    assert.deepStrictEqual([type, requestId, rest], ['prom-client:getMetricsRes', 41, {}]);
    assert.match(file, new RegExp(`^w${worker.id}-r41-[0-9a-f]{24}\\.snap$`));
    const stat = fs.statSync(path.join(directory, file));
    assert.strictEqual(stat.size, bytes);
    assert.strictEqual(stat.mode & 0o777, 0o600);
    const { families } = readSnapshot(fs.readFileSync(path.join(directory, file)), HEADER, []);
    assert.deepStrictEqual(
      families.map(({ name, samples }) => [name, samples[0].labels, samples[0].numbers]),
      [
        ['jobs_total', { queue: 'mail' }, [3]],
        ['wait_seconds', {}, [0, 1, 0, 1.5]],
      ],
    );
  });

  it('a worker answers a welcome', async () => {
    const exitName = `w${worker.id}-exit-${'b'.repeat(24)}.snap`;
    assert.deepStrictEqual(await answerTo({ type: 'prom-client-cluster:welcome', directory, exitName }), {
      type: 'prom-client-cluster:ready',
    });
  });

  it('a worker that can write no file sends the snapshot itself', async () => {
    for (const [missing, reason] of [
      ['', 'the primary has no directory'],
      [path.join(directory, 'missing'), 'ENOENT'],
    ]) {
      const answer = await answerTo({ type: 'prom-client:getMetricsReq', requestId: 42, directory: missing });
      assert.deepStrictEqual(Object.keys(answer).sort(), ['reason', 'requestId', 'snapshot', 'type']);
      assert.strictEqual(answer.reason, reason);
      const { families } = readSnapshot(Buffer.from(answer.snapshot, 'base64'), HEADER, []);
      assert.strictEqual(families[0].samples[0].numbers[0], 3);
    }
  });

  it('a worker answers prom-client with JSON', async () => {
    const answer = await answerTo({ type: 'prom-client:getMetricsReq', requestId: 43 });
    assert.deepStrictEqual(Object.keys(answer).sort(), ['metrics', 'requestId', 'type']);
    assert.strictEqual(answer.metrics[0][0].name, 'jobs_total');
  });

  it('a worker that ends leaves its last snapshot under the name it was given', async () => {
    const exitName = `w${worker.id}-exit-${'c'.repeat(24)}.snap`;
    await answerTo({ type: 'prom-client-cluster:welcome', directory, exitName });
    const ended = once(worker, 'exit');
    worker.send('end');
    await ended;
    const { families } = readSnapshot(fs.readFileSync(path.join(directory, exitName)), HEADER, []);
    assert.deepStrictEqual(families[0].samples[0], { labels: { queue: 'mail' }, numbers: [3] });
  });
});

describe('the documents', () => {
  const documents = [
    ...['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
    ...['test/README.md', 'benchmarks/README.md', 'example/README.md'],
    ...fs.readdirSync(path.join(ROOT, 'docs'), { recursive: true }).map(name => `docs/${name}`),
  ];

  for (const document of documents.filter(name => name.endsWith('.md'))) {
    it(`${document} links to what is there`, () => {
      const text = fs.readFileSync(path.join(ROOT, document), 'utf8');
      for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file, anchor] = target.split('#');
        const linked =
          file === '' ? path.join(ROOT, document) : path.join(ROOT, path.dirname(document), file);
        assert.ok(fs.existsSync(linked), `${document}: ${target}`);
        if (anchor !== undefined) assert.ok(anchorsOf(linked).has(anchor), `${document}: ${target}`);
      }
    });
  }

  const files = new Set(fs.readdirSync(path.join(ROOT, 'lib'), { recursive: true }));
  const names = new Set(Array.from(files, file => path.basename(file)));
  const folders = fs.readdirSync(path.join(ROOT, 'lib'), { withFileTypes: true }).filter(isDirectory);

  for (const document of ['docs/internals/architecture.md', 'CONTRIBUTING.md']) {
    it(`${document} names every folder of lib, and no file that is not there`, () => {
      const text = fs.readFileSync(path.join(ROOT, document), 'utf8');
      for (const { name } of folders) assert.ok(text.includes(`lib/${name}`), name);
      for (const [, file] of text.matchAll(/(?<![A-Za-z./-])([a-z][a-z-]*\.js)\b/g)) {
        assert.ok(names.has(file) || fs.existsSync(path.join(ROOT, file)), file);
      }
      for (const [, file] of text.matchAll(/\blib\/([a-z/-]+(?:\.js)?)/g)) {
        assert.ok(files.has(path.normalize(file.replace(/\/$/, ''))), file);
      }
    });
  }

  it('test/README.md names every folder of test', () => {
    const text = fs.readFileSync(path.join(ROOT, 'test/README.md'), 'utf8');
    const inTest = folder => fs.readdirSync(path.join(ROOT, 'test', folder), { withFileTypes: true });
    for (const { name } of inTest('.').filter(isDirectory)) assert.ok(text.includes(`${name}/`), name);
    for (const { name } of inTest('cluster').filter(isDirectory)) assert.ok(text.includes(name), name);
  });
});

describe('docs/differences.md', () => {
  it('docs/differences.md has short tables: no cell has more than 200 characters', () => {
    const rows = fs
      .readFileSync(path.join(ROOT, 'docs/differences.md'), 'utf8')
      .split('\n')
      .filter(line => line.startsWith('| '));
    assert.ok(rows.length > 50, String(rows.length));
    const cells = rows.flatMap(row => row.split(/(?<!\\)\|/).map(cell => cell.trim()));
    assert.deepStrictEqual(
      cells.filter(cell => cell.length > 200 && !/^-+$/.test(cell)),
      [],
    );
  });
});

/** @param {fs.Dirent} entry */
function isDirectory(entry) {
  return entry.isDirectory();
}

/** The anchors of a document's headings, as Markdown readers make them. */
function anchorsOf(file) {
  const headings = fs.readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm);
  return new Set(
    Array.from(headings, ([, heading]) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe('docs/reliability.md', () => {
  const text = fs.readFileSync(path.join(ROOT, 'docs/reliability.md'), 'utf8');
  const named = [...text.matchAll(/`(test\/[^`]+)`: "([^"]+)"/g)];

  it('docs/reliability.md names a test for nearly every statement', () => {
    const statements = text.match(/^- /gm).length;
    assert.ok(named.length >= statements - 3, `${named.length} tests for ${statements} statements`);
  });

  for (const [, file, title] of named) {
    it(`${file} has the test "${title}"`, () => {
      const source = fs.readFileSync(path.join(ROOT, file), 'utf8');
      const titles = source.matchAll(/\b(?:it|test|describe)\(\s*(['"`])((?:\\.|(?!\1).)*)\1/g);
      assert.ok([...titles].some(([, , found]) => found.replaceAll("\\'", "'").includes(title)));
    });
  }
});
