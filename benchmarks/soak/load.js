'use strict';

// The load of a worker. It follows from the worker's start and the number of batches alone, so the controller
// knows what a worker had counted after any batch, also of a worker that was killed.

const LABEL_SETS = 2000;
const PER_BATCH = 50;
const ROUTES = 10;
const BOUNDS = [0.25, 0.5, 1];
const BATCH_MILLISECONDS = 10;

// Each epoch replaces 1 % of the label sets, so a minute replaces 10 %.
const EPOCH_SECONDS = 6;
const EPOCH_BATCHES = (EPOCH_SECONDS * 1000) / BATCH_MILLISECONDS;
const EPOCHS_PER_VERSION = 100;

/**
 * What a batch of a worker records.
 *
 * @param {number} firstEpoch of the worker
 * @param {number} batch
 * @param {object} sink
 * @param {(set: number, version: number) => void} sink.replace a label set that has a new version
 * @param {(set: number, version: number, amount: number) => void} sink.count
 * @param {(route: number, value: number) => void} sink.observe
 */
function runBatch(firstEpoch, batch, { replace, count, observe }) {
  const epoch = epochOf(firstEpoch, batch);
  if (batch > 0 && epoch !== epochOf(firstEpoch, batch - 1)) {
    for (let set = 0; set < LABEL_SETS; set++) {
      if ((epoch + set) % EPOCHS_PER_VERSION === 0) replace(set, versionOf(epoch, set));
    }
  }
  for (let i = 0; i < PER_BATCH; i++) {
    const set = (batch * PER_BATCH + i) % LABEL_SETS;
    count(set, versionOf(epoch, set), 1 + (batch % 3));
  }
  // Eighths add up exactly.
  observe(batch % ROUTES, (batch % 16) / 8);
}

/**
 * @param {number} firstEpoch
 * @param {number} batch
 */
function epochOf(firstEpoch, batch) {
  return firstEpoch + Math.floor(batch / EPOCH_BATCHES);
}

/**
 * @param {number} epoch
 * @param {number} set
 */
function versionOf(epoch, set) {
  return Math.floor((epoch + set) / EPOCHS_PER_VERSION);
}

module.exports = { LABEL_SETS, BOUNDS, BATCH_MILLISECONDS, EPOCH_SECONDS, runBatch, epochOf };
