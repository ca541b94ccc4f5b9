'use strict';

// The main file of the aggregator thread, and what an application bundles as
// prom-client-cluster/aggregator-thread. Handles messages in order, one at a time.

// If a loader provides the dependencies (Yarn PnP) and this thread was started without it, loading the
// dependencies fails here, and the thread is started again with the loader. A later failure would look like
// an error of the file system.
require('tmp');
require('proper-lockfile');

const fs = require('node:fs');
const os = require('node:os');
const { parentPort, workerData } = require('node:worker_threads');
const { Aggregator } = require('./aggregator');
const { runThrough } = require('../event-loop/slices');
const { PACKAGE_VERSION } = require('../options/package-version');

if (parentPort === null) throw new Error('This file is run by a thread, see docs/bundling.md');
const port = parentPort;

// Messages between the two may change with each version.
if (workerData.version !== PACKAGE_VERSION)
  throw new Error(`the thread is of version ${PACKAGE_VERSION}, the primary of ${workerData.version}`);

// Requests have priority: on a machine without idle time, this thread then uses a tenth of a core instead of
// half of one. The priority is lowered only after the start, because scrapes wait for the start, which would
// take half as long again under load.
const NICENESS = 10;

const aggregator = new Aggregator({
  ...workerData,
  lock: true,
  onDirectory: directory => port.postMessage({ op: 'directory', directory }),
  onRetired: (workerIds, totals) => {
    const memory = totals === undefined ? [] : [/** @type {ArrayBuffer} */ (totals.buffer)];
    port.postMessage({ op: 'retired', workerIds, totals }, memory);
  },
});

/**
 * Lowers the thread's priority, on Linux only: on other systems this would lower the priority of the
 * application.
 */
function lowerPriority() {
  if (process.platform !== 'linux') return;
  // Start the thread pool first: its threads inherit the priority of the thread that starts them, and the
  // application uses them.
  fs.access('.', () => {});
  try {
    os.setPriority(Math.max(os.getPriority(), NICENESS));
  } catch {
    // A sandbox may forbid this.
  }
}

/**
 * An error ends the thread, because the state may be inconsistent: another thread takes over, and the scrape
 * is tried again there.
 *
 * @param {any} message its op is a method of the aggregator, which has `args`
 */
function perform({ op, args, id }) {
  const called = /** @type {any} */ (aggregator)[op](...args);
  if (called instanceof Promise) void replyLater(op, id, called);
  else reply(id, typeof called?.next === 'function' ? runThrough(called) : called);
}

/**
 * @param {number | undefined} id undefined if no reply is expected
 * @param {any} result pages, or what has them, are transferred
 */
function reply(id, result) {
  if (id === undefined) return;
  const bodies = [result?.bodies ?? result].flat();
  const memory = bodies.flatMap(body => (body?.buffer instanceof ArrayBuffer ? body.buffer : []));
  port.postMessage({ op: 'done', id, result }, memory);
}

/**
 * A push may take minutes: other messages are handled meanwhile.
 *
 * @param {string} op
 * @param {number} id
 * @param {Promise<unknown>} pending
 */
async function replyLater(op, id, pending) {
  try {
    reply(id, await pending);
  } catch (error) {
    port.postMessage({ op: 'done', id, error: String(/** @type {any} */ (error)?.message ?? error) });
  }
  if (op === 'close') port.close();
}

const opened = aggregator.open().then(() => {
  port.on('message', perform);
  // As the reply to request 0, the start.
  port.postMessage({ op: 'ready', id: 0 });
  lowerPriority();
});
// The thread ends with the error, whatever the application does about unhandled rejections.
opened.catch(error =>
  setImmediate(() => {
    throw error;
  }),
);
