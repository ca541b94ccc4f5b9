'use strict';

const { histogramQuantile } = require('./scrape-window');
const { levelOf } = require('./task-metrics');
const { OPERATIONS } = require('./tasks');
const { mebibytes, milliseconds, percent, textTable } = require('./text-table');

/**
 * @typedef {object} StepFigures what was scraped at one limit
 * @property {number} limit
 * @property {number} throughput tasks per second
 * @property {Record<string, {p50: number, p99: number}>} latency seconds by operation, of tasks that began at
 *   this level
 * @property {number} wait mean seconds in the queue
 * @property {number} gcShare of the time, from 0 to 1
 * @property {number} scavenges per second
 * @property {number} utilization of the event loop, from 0 to 1
 * @property {number} newSpace committed bytes, the most
 */

/**
 * @param {number} limit
 * @param {import('./scrape-window').ScrapeWindow} window
 * @returns {StepFigures}
 */
function stepFigures(limit, window) {
  const active = window.increase('nodejs_eventloop_active_seconds_total');
  const idle = window.increase('nodejs_eventloop_idle_seconds_total');
  return {
    limit,
    throughput: window.rate('task_duration_seconds_count'),
    latency: Object.fromEntries(Object.keys(OPERATIONS).map(name => [name, latency(window, name, limit)])),
    wait: window.increase('task_queue_wait_seconds_sum') / window.increase('task_queue_wait_seconds_count'),
    gcShare: window.rate('nodejs_gc_pause_seconds_total'),
    scavenges: window.rate('nodejs_gc_runs_total', { kind: 'minor' }),
    utilization: active / (active + idle),
    newSpace: window.max('nodejs_heap_space_committed_bytes', { space: 'new' }),
  };
}

function latency(window, operation, limit) {
  const buckets = window.buckets('task_duration_seconds', { operation, concurrency: levelOf(limit) });
  return { p50: histogramQuantile(0.5, buckets), p99: histogramQuantile(0.99, buckets) };
}

/**
 * @param {StepFigures[]} steps
 * @returns {string}
 */
function stepsTable(steps) {
  const operations = Object.keys(OPERATIONS);
  const titles = ['limit', 'tasks/s', ...operations.map(name => `${name} P50/P99 ms`)];
  titles.push('queued ms', 'GC share', 'scavenges/s', 'loop busy', 'new space MiB');
  const rows = steps.map(step => [
    String(step.limit),
    step.throughput.toFixed(step.throughput < 10 ? 1 : 0),
    ...operations.map(
      name => `${milliseconds(step.latency[name].p50)} / ${milliseconds(step.latency[name].p99)}`,
    ),
    milliseconds(step.wait),
    percent(step.gcShare),
    step.scavenges.toFixed(1),
    percent(step.utilization),
    mebibytes(step.newSpace),
  ]);
  return textTable(titles, rows);
}

module.exports = { stepFigures, stepsTable };
