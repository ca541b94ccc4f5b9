'use strict';

// Measures each phase of a scrape, in one process and without transport, and a lower bound for each: the time
// that the machine needs for the same work. The same for recording, and the cost of sending a page's data to
// a thread. `node benchmarks/phases/run.js`; docs/internals/performance.md has the results.

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { clientNamed, loadLibrary, OURS } = require('../shared/clients.js');
const { describeMachine } = require('../shared/machine.js');
const { Progress } = require('../shared/progress.js');
const { number, table } = require('../shared/table.js');
const { Workload } = require('../shared/workload.js');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { ColumnsFile } = require('../../lib/cluster/worker/columns-file');
const { Source } = require('../../lib/source/source');
const { widthOf } = require('../../lib/series/layouts');
const { readRegularFile } = require('../../lib/spool/safe-files');
const { runThrough } = require('../../lib/event-loop/slices');
const { TEXT } = require('../../lib/exposition/formats');
const { renderBytes } = require('../../lib/exposition/text-bytes');
const { Phases } = require('./phases.js');
const recording = require('./recording.js');
const thread = require('./thread.js');

const SAMPLES = 100_000;
const WORKERS = 4;
const WARM_UPS = 10;
const RUNS = 15;
const HOOK_TIME = 1000; // ms; there are no hooks

/**
 * @typedef {{kind: 'integers' | 'floats', changed: number}} Conditions tenths of the series that change
 *   between two scrapes
 */

/** @type {(Conditions & {title: string, seconds: number})[]} with a rough guess of what each takes */
const STEPS = ['integers', 'floats'].flatMap(kind =>
  [1, 10].map(changed => ({ kind, changed, title: `${kind}, ${changed * 10} % changed`, seconds: 3 })),
);

main();

async function main() {
  console.log(`${describeMachine()}\n`);
  const progress = new Progress([...STEPS, ...recording.RECORDINGS, thread.STEP], process.stderr);
  const onRepetition = (done, of) => progress.repetition(done, of);
  const rows = [];
  for (const step of STEPS) {
    progress.begin();
    const phases = await measure(step, onRepetition);
    progress.end();
    rows.push(...rowsOf(phases, step.title, step.changed));
  }
  console.log(
    table(['100,000 samples x 4 workers', 'phase', 'ms', 'the least it could be', 'ms', 'times'], rows),
  );

  const library = loadLibrary(clientNamed(OURS).key);
  const recordingRows = [];
  for (const step of recording.RECORDINGS) {
    progress.begin();
    recordingRows.push(await recording.measureRecording(step, library, onRepetition));
    progress.end();
  }
  console.log(`\n${table(recording.HEAD, recordingRows)}`);

  progress.begin();
  const threadRows = await thread.measureThread(library, onRepetition);
  progress.end();
  console.log(`\n${table(thread.HEAD, threadRows)}`);
}

/**
 * @param {Conditions} conditions
 * @param {(done: number, of: number) => void} onRepetition including warm-ups
 * @returns {Promise<Phases>}
 */
async function measure({ kind, changed }, onRepetition) {
  const library = loadLibrary(clientNamed(OURS).key);
  library.register.clear();
  const workload = new Workload(library, { samples: SAMPLES, kind, seed: 1 });
  const source = new Source(() => [library.register]);
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'bench-phases-'));
  const cluster = { store: new ClusterStore(), memory: 1 << 20, phases: new Phases(WARM_UPS) };
  try {
    let round = 0;
    for (let run = 0; run < WARM_UPS + RUNS; run++) {
      onRepetition(run, WARM_UPS + RUNS);
      for (let part = 0; part < changed; part++) workload.change(round++);
      await source.prepare(HOOK_TIME);
      scrape(cluster, source, directory);
      await new Promise(resolve => setImmediate(resolve));
    }
    return cluster.phases;
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

function scrape(cluster, source, directory) {
  const { store, phases } = cluster;
  const name = 'snapshot';
  const file = path.join(directory, name);
  for (let workerId = 1; workerId <= WORKERS; workerId++) {
    const snapshot = phases.time('capture', () =>
      source.captureWithLog(workerId, store.worker(workerId)?.position),
    );
    phases.time('write', () => new ColumnsFile(directory, name, () => {}).finish(() => snapshot));
    const bytes = phases.time('read', () => readRegularFile(file));
    phases.time('unlink', () => fs.unlinkSync(file));
    phases.time('apply', () => store.apply(workerId, bytes));
    cluster.columns = bytes;
  }
  const merged = phases.time('merge', () => runThrough(store.merge(new Set())));
  const families = merged.flatMap(({ view }) => view ?? []);
  const { memory } = cluster;
  const page = phases.time('render', () => runThrough(renderBytes(families, TEXT, memory)));
  const text = phases.time('string', () => Buffer.from(page.buffer, 0, page.length).toString('latin1'));
  cluster.memory = page.buffer;
  timeFloors(cluster, families, text, directory);
}

/** A lower bound for each phase: moving its bytes, adding or writing its numbers. */
function timeFloors({ columns, phases }, families, text, directory) {
  const copy = Buffer.allocUnsafeSlow(columns.length).fill(1);
  phases.time('copy columns', () => columns.copy(copy));
  const totals = new Float64Array(Math.floor(columns.length / 8));
  // Not the columns themselves: label integers read as floating point are denormal numbers, which take longer
  // to add.
  const numbers = new Float64Array(totals.length).fill(1);
  phases.time('add numbers', () => {
    for (let worker = 0; worker < WORKERS; worker++) addTo(totals, numbers);
  });
  const empty = path.join(directory, 'empty');
  fs.writeFileSync(empty, '');
  phases.time('unlink an empty file', () => fs.unlinkSync(empty));
  const bytes = Buffer.allocUnsafeSlow(text.length).fill(1);
  const page = Buffer.from(text, 'latin1');
  phases.time('copy page', () => page.copy(bytes));
  phases.time('format numbers', () => {
    let characters = 0;
    for (const { rows, pageOf, offsetOf, layout } of families) {
      const width = widthOf(layout);
      for (const row of rows()) {
        const from = offsetOf(row);
        for (let i = from; i < from + width; i++) characters += String(pageOf(row)[i]).length;
      }
    }
    return characters;
  });
}

/** A separate function, so that it stays compiled. */
function addTo(totals, numbers) {
  for (let i = 0; i < totals.length; i++) totals[i] += numbers[i];
}

function rowsOf(phases, title, changed) {
  const row = (name, times, floorName, floor) => {
    const own = phases.medianOf(name) * times;
    const what = times > 1 ? `${name}, ${times} times` : name;
    return [title, what, number(own), floorName, number(floor), number(own / floor)];
  };
  const columns = phases.medianOf('copy columns');
  const page = phases.medianOf('copy page');
  const formatting = (phases.medianOf('format numbers') * changed) / 10;
  return [
    row('capture', 1, '', NaN),
    row('write', 1, 'copy the columns', columns),
    row('read', WORKERS, 'copy the columns', columns * WORKERS),
    row('unlink', WORKERS, 'unlink empty files', phases.medianOf('unlink an empty file') * WORKERS),
    row('apply', WORKERS, '', NaN),
    row('merge', 1, 'add the numbers', phases.medianOf('add numbers')),
    row('render', 1, 'copy the page, print the changed numbers', page + formatting),
    row('string', 1, 'copy the page', page),
  ];
}
