'use strict';

// How this library's snapshots are measured without transport: what a worker writes, and what the primary's
// side does with it.

const fs = require('node:fs');
const path = require('node:path');
const { processorWait } = require('../shared/processor-wait.js');

const WORKER_ID = 1;
const HOOK_TIME = 1000; // ms; there are no hooks

/**
 * A binary file, and the store of the aggregator thread.
 *
 * @param {any} registry
 * @param {string} directory
 */
function fileExchange(registry, directory) {
  const { Source } = require('../../lib/source/source');
  const { SourceFiles } = require('../../lib/cluster/worker/source-files');
  const { ClusterStore } = require('../../lib/store/cluster-store');
  const { runThrough } = require('../../lib/event-loop/slices');
  const { readRegularFile } = require('../../lib/spool/safe-files');
  const { logName } = require('../../lib/spool/file-names');
  const source = new Source(() => [registry]);
  const files = new SourceFiles(source, WORKER_ID);
  files.aimAt(directory);
  const readLog = (log, from, to) =>
    readRegularFile(path.join(directory, logName(WORKER_ID, log)), { from, to });
  const store = new ClusterStore();
  let requestId = 0;
  let written = '';
  return {
    async write() {
      let bytes = 0;
      const request = { requestId: ++requestId, known: undefined, hookTime: HOOK_TIME };
      await files.write(request, (file, ahead) => {
        const waitedBefore = processorWait();
        const began = performance.now();
        bytes = files.finish(file, ahead);
        this.section = performance.now() - began - (processorWait() - waitedBefore);
        written = path.join(directory, file.name);
      });
      return bytes;
    },
    /** Milliseconds that the last capture took, until its file was complete. */
    section: NaN,
    read() {
      const bytes = readRegularFile(written);
      fs.unlinkSync(written);
      store.apply(WORKER_ID, bytes, readLog);
      runThrough(store.merge(new Set()));
    },
  };
}

module.exports = { fileExchange };
