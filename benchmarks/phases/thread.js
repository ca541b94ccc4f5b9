'use strict';

// Measures the cost of sending a thread what it needs to write the page of one process, compared with writing
// the page on this event loop, in slices.

const { Worker, MessageChannel } = require('node:worker_threads');
const { LABEL_NAMES, labelSet } = require('../shared/label-sets.js');
const { number } = require('../shared/table.js');
const { ClusterStore } = require('../../lib/store/cluster-store');
const { Source } = require('../../lib/source/source');
const { capturedFamily } = require('../../lib/exposition/live-family');
const { runThrough } = require('../../lib/event-loop/slices');
const { TEXT } = require('../../lib/exposition/formats');
const { renderBytes } = require('../../lib/exposition/text-bytes');
const { viewOf } = require('../../lib/registry/metric-view');
const { Phases } = require('./phases.js');

const SERIES = 100_000;
const WARM_UPS = 4;
const RUNS = 11;
const HOOK_TIME = 1000; // ms; there are no hooks
const MEMORY_MIB = 16;

const HEAD = ['100,000 series of one process', 'ms'];
const STEP = { title: 'a thread for one process', seconds: 8 };

/**
 * @param {any} library
 * @param {(done: number, of: number) => void} onRepetition
 * @returns {Promise<string[][]>} rows of the table
 */
async function measureThread(library, onRepetition) {
  library.register.clear();
  const counter = new library.Counter({ name: 'requests_total', help: 'Requests', labelNames: LABEL_NAMES });
  for (let series = 0; series < SERIES; series++) counter.inc(labelSet(series));
  const phases = new Phases(WARM_UPS);
  for (let run = 0; run < WARM_UPS + RUNS; run++) {
    onRepetition(run, WARM_UPS + RUNS);
    counter.inc(labelSet(run));
    await scrape(library.register, phases);
  }
  return phases.names.map(name => [name, number(phases.medianOf(name))]);
}

/**
 * One scrape, in each way.
 *
 * @param {any} registry
 * @param {Phases} phases
 */
async function scrape(registry, phases) {
  const views = registry.getMetricsAsArray().map(viewOf);
  const families = phases.time('capture, as metrics() does it', () =>
    views.map(view => capturedFamily(view, {})),
  );
  const page = phases.time('write the page', () => runThrough(renderBytes(families, TEXT, MEMORY_MIB << 20)));
  phases.time('the page as a string', () => Buffer.from(page.buffer, 0, page.length).toString('latin1'));

  const [{ rows, labelText }] = families;
  const texts = phases.time('put together the texts of all label sets', () =>
    Array.from(rows(), row => labelText(row, false)),
  );
  phases.time('send these texts (structured clone)', () => post(texts, []));

  const source = new Source(() => [registry]);
  await source.prepare(HOOK_TIME);
  const store = new ClusterStore();
  // Copied, so that later recordings do not change it; the copy is transferred.
  const send = () => {
    const bytes = Buffer.concat(source.captureWithLog(1, store.worker(1)?.position).chunks);
    post(bytes.buffer, [bytes.buffer]);
  };
  phases.time('send the first snapshot: integers, and a dictionary of label values', send);
  store.apply(1, Buffer.concat(source.captureWithLog(1, store.worker(1)?.position).chunks));
  phases.time('send a later snapshot: the numbers alone', send);

  const began = performance.now();
  const thread = phases.time('start a thread: its part of this loop', () => new Worker('', { eval: true }));
  await new Promise(resolve => thread.once('online', resolve));
  phases.note('start a thread: until it runs', performance.now() - began);
  await new Promise(resolve => thread.once('exit', resolve));
}

/** Sends a message and drops it. */
function post(message, transferred) {
  const { port1, port2 } = new MessageChannel();
  port1.postMessage(message, transferred);
  port2.close();
}

module.exports = { HEAD, STEP, measureThread };
