'use strict';

// The thread beside the primary's event loop. Takes messages in order; each is done before the next.

// Where a loader provides the dependencies (Yarn PnP) and this thread was started without it, it fails here, at once, and
// is started again with the loader. Later, the failure would look like one of the file system.
for (const dependency of ['tmp', 'proper-lockfile', 'tdigest']) require.resolve(dependency);

const fs = require('node:fs');
const os = require('node:os');
const { parentPort, workerData } = require('node:worker_threads');
const { Aggregator } = require('./aggregator');
const { runThrough } = require('../../event-loop/slices');

/** @type {import('node:worker_threads').MessagePort} */
const port = /** @type {any} */ (parentPort);

// Requests come first: on a machine with nothing idle the page is written in a tenth of a core instead of half of it.
const NICENESS = 10;

yieldToOthers();

const aggregator = new Aggregator({
  ...workerData,
  lock: true,
  onDirectory: directory => port.postMessage({ op: 'directory', directory }),
  onRetired: workerIds => port.postMessage({ op: 'retired', workerIds }),
});

/** On Linux a priority is that of a thread; elsewhere this would be the application's. */
function yieldToOthers() {
  if (process.platform !== 'linux') return;
  // The first to use the thread pool starts its threads, which inherit the priority, and they are the application's.
  fs.access(__filename, () => {});
  try {
    os.setPriority(Math.max(os.getPriority(), NICENESS));
  } catch {
    // A sandbox may forbid it.
  }
}

/**
 * @param {number} id
 * @param {import('./aggregator').RenderResult} result
 */
function reply(id, result) {
  const memory = result.bodies?.map(({ buffer }) => buffer) ?? [];
  port.postMessage({ op: 'done', id, result }, memory);
}

/** @param {any} message */
function perform(message) {
  switch (message.op) {
    case 'answer':
      aggregator.answer(message.answer);
      break;
    case 'discard':
      aggregator.discard(message.file);
      break;
    case 'retire':
      aggregator.retire(message.workerId);
      break;
    case 'reuse':
      aggregator.reuse(message.memory);
      break;
    case 'render':
      reply(message.id, runThrough(aggregator.render(message.request)));
      break;
    case 'finish':
      reply(message.id, { ...message.result, bodies: runThrough(aggregator.finish(message.request)) });
      break;
    default:
      aggregator.close().finally(() => {
        port.postMessage({ op: 'done', id: message.id, result: undefined });
        port.close();
      });
  }
}

aggregator.open().then(() => {
  port.on('message', message => {
    try {
      perform(message);
    } catch (error) {
      // Costs this scrape a second try, in another thread.
      port.postMessage({
        op: 'broken',
        message: String(/** @type {any} */ (error)?.message ?? error),
      });
    }
  });
  port.postMessage({ op: 'ready' });
});
