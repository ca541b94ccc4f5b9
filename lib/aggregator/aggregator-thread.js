'use strict';

// The main file of the aggregator thread, and what an application bundles as
// prom-client-cluster/aggregator-thread. Handles messages in order, one at a time.

// If a loader provides the dependencies (Yarn PnP) and this thread was started without it, loading the
// dependencies fails here, and the thread is started again with the loader. A later failure would look like
// an error of the file system.
require('tmp');
require('proper-lockfile');
require('tdigest');

const fs = require('node:fs');
const os = require('node:os');
const { parentPort, workerData } = require('node:worker_threads');
const { Aggregator } = require('./aggregator');
const { runThrough } = require('../event-loop/slices');
const { PACKAGE_VERSION } = require('../options/package-version');
const { debug } = require('../options/debug-log');

if (parentPort === null) throw new Error('This file is run by a thread, see docs/bundling.md');
const port = parentPort;

// Messages between the two may change with each version.
if (workerData.version !== PACKAGE_VERSION)
  throw new Error(`the thread is of version ${PACKAGE_VERSION}, the primary of ${workerData.version}`);

// Requests go first: on a machine without idle time, this thread uses a tenth of a core instead of half of
// one. Not before it has started: scrapes wait for that, which under load takes half as long again otherwise.
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
 * @param {number} id
 * @param {unknown} result
 * @param {import('./aggregator').RenderResult['bodies']} [bodies] whose memory is transferred
 */
function reply(id, result, bodies = []) {
  const memory = bodies.flatMap(body => ('buffer' in body ? body.buffer : []));
  port.postMessage({ op: 'done', id, result }, memory);
}

/** Whether the logs of threads are about to be read. */
let isReading = false;

/** @param {any} message */
function handle(message) {
  try {
    perform(message);
  } catch (error) {
    // The state may be half changed: another thread takes over, and the scrape is tried again in it.
    port.postMessage({ op: 'broken', message: String(/** @type {any} */ (error)?.message ?? error) });
  }
}

/** @param {any} message its op is a method of the aggregator, which has `args` */
function perform({ op, args, id }) {
  switch (op) {
    case 'answer':
    case 'discard':
    case 'retire':
    case 'forgetThread':
    case 'removeRetired':
    case 'supersedePush': {
      const result = /** @type {any} */ (aggregator)[op](...args);
      if (id !== undefined) reply(id, result);
      break;
    }
    case 'share':
      aggregator.share(args[0], args[1]);
      // After the messages that wait: they may say that the thread has joined again.
      if (!isReading) setImmediate(() => handle({ op: 'readLogs' }));
      isReading = true;
      break;
    case 'readLogs':
      isReading = false;
      runThrough(aggregator.readLogs());
      break;
    case 'render': {
      const result = runThrough(aggregator.render(args[0]));
      reply(id, result, result.bodies);
      break;
    }
    case 'finish': {
      const bodies = runThrough(aggregator.finish(args[0]));
      reply(id, bodies, bodies);
      break;
    }
    case 'deliverPush':
      aggregator.deliverPush(args[0]).then(
        result => reply(id, result),
        error => port.postMessage({ op: 'done', id, error: error.message }),
      );
      break;
    case 'close':
      close(id);
      break;
    default:
      // A primary of another release of this package has sent it.
      debug('unknown operation: %s', op);
  }
}

/** @param {number} id */
async function close(id) {
  try {
    await aggregator.close();
  } catch (error) {
    debug('closing failed: %s', error);
  }
  reply(id, undefined);
  port.close();
}

const opened = aggregator.open().then(() => {
  port.on('message', handle);
  port.postMessage({ op: 'ready' });
  lowerPriority();
});
// The thread ends with the error, whatever the application does about unhandled rejections.
opened.catch(error =>
  setImmediate(() => {
    throw error;
  }),
);
