'use strict';

const { insideOf, locate } = require('../metric/metric');

const MILLISECONDS = 1e3;

/**
 * Records what a stall of the event loop did to everybody who was waiting. A probe that should have run each `interval`
 * was late by `lateness`; had the loop not stood, more probes would have run meanwhile, and each would have been late
 * by one interval less than the one before. They are recorded with it, as HdrHistogram does it to correct for
 * coordinated omission (recordValueWithExpectedInterval). So each observation stands for the same time, and quantiles
 * are those of a callback that becomes due at any time; without it a stall of a second among a hundred probes is one
 * per cent, although it may have been half of the time.
 *
 * Computed per bucket: a process that was stopped for an hour missed 360,000 probes.
 *
 * @param {import('../metric/histogram').Histogram} histogram in seconds, whose buckets rise
 * @param {Record<string, string | number>} labels
 * @param {number} lateness milliseconds. Below zero, where a timer went off in an earlier millisecond: no delay
 * @param {number} interval milliseconds, above zero
 */
function observeStall(histogram, labels, lateness, interval) {
  if (lateness < interval) {
    histogram.observe(labels, Math.max(0, lateness) / MILLISECONDS);
    return;
  }
  const probes = Math.floor(lateness / interval) + 1;
  const { table } = insideOf(histogram);
  const row = locate(histogram, table, labels);
  const page = table.pageOf(row);
  const offset = table.offsetOf(row);
  let below = 0;
  histogram.buckets.forEach((bound, column) => {
    const longer = Math.ceil((lateness - bound * MILLISECONDS) / interval);
    const count = probes - Math.min(probes, Math.max(0, longer));
    page[offset + column] += count - below;
    below = count;
  });
  page[offset + histogram.buckets.length] += probes - below;
  const sum = probes * lateness - (interval * probes * (probes - 1)) / 2;
  page[offset + table.width - 1] += sum / MILLISECONDS;
}

module.exports = { observeStall };
