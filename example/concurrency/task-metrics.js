'use strict';

const { Gauge, Histogram, exponentialBuckets } = require('prom-client');

// 5 ms to 12 s, each bound a fifth above the one before: a quantile read from them is off by a few per cent
// at most.
const DURATION_BOUNDS = exponentialBuckets(0.005, 1.2, 44).map(bound => Number(bound.toPrecision(3)));
const HIGHEST_LEVEL = 1024;

/**
 * The level of a number of tasks in flight: the next power of two. As a label value, the number itself would
 * create a series for every value that occurs; this creates eleven.
 *
 * @param {number} inFlight at least 1
 * @returns {number}
 */
function levelOf(inFlight) {
  return Math.min(HIGHEST_LEVEL, 2 ** Math.ceil(Math.log2(inFlight)));
}

/** The metrics of the service's tasks. */
class TaskMetrics {
  #limiter;
  #durations = new Histogram({
    name: 'task_duration_seconds',
    help: 'Time that a task ran, without its wait in the queue, by the level of concurrency at which it began',
    labelNames: ['operation', 'concurrency'],
    buckets: DURATION_BOUNDS,
  });
  #waits = new Histogram({
    name: 'task_queue_wait_seconds',
    help: 'Time that a task waited for its turn',
    labelNames: ['operation'],
    buckets: DURATION_BOUNDS,
  });

  /** @param {import('./limiter').Limiter} limiter */
  constructor(limiter) {
    this.#limiter = limiter;
    const gauges = { tasks_limit: 'limit', tasks_in_flight: 'inFlight', tasks_queued: 'queued' };
    const help = {
      tasks_limit: 'How many tasks may run at a time',
      tasks_in_flight: 'Tasks that run',
      tasks_queued: 'Tasks that wait for their turn',
    };
    for (const [name, property] of Object.entries(gauges)) {
      new Gauge({
        name,
        help: help[name],
        collect() {
          this.set(limiter[property]);
        },
      });
    }
  }

  /**
   * A task begins to run.
   *
   * @param {string} operation
   * @param {number} waited seconds
   * @returns {() => void} to be called at its end
   */
  taskBegins(operation, waited) {
    this.#waits.observe({ operation }, waited);
    return this.#durations.startTimer({ operation, concurrency: levelOf(this.#limiter.inFlight) });
  }
}

module.exports = { TaskMetrics, levelOf };
