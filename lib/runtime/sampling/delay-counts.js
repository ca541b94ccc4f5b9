'use strict';

const { insideOf, locate } = require('../../metric/metric');

const MILLISECONDS = 1e3;

/**
 * What a probe of the event loop has measured and the histogram does not know yet. A probe that runs a hundred times a
 * second in a process that does nothing else must be short: here it takes 4 µs, with histogram.observe() 40 µs (the
 * caches are cold each time).
 */
class DelayCounts {
  /** @type {number[]} milliseconds */
  #bounds;
  /** @type {Float64Array} per bucket, not cumulative; above all bounds the last */
  #counts;
  #sum = 0;

  /** @param {readonly number[]} bounds in seconds that rise */
  constructor(bounds) {
    this.#bounds = bounds.map(bound => bound * MILLISECONDS);
    this.#counts = new Float64Array(bounds.length + 1);
  }

  /**
   * @param {number} lateness milliseconds. Below zero, where a timer went off in an earlier millisecond: no delay
   * @param {number} count how often
   */
  add(lateness, count) {
    const late = Math.max(0, lateness);
    let column = 0;
    while (late > this.#bounds[column]) column++;
    this.#counts[column] += count;
    this.#sum += late * count;
  }

  /**
   * Counts `lateness`, `lateness - step` and so on, in no more time however many they are: a process that was stopped for
   * an hour missed 180,000 probes.
   *
   * @param {number} lateness milliseconds
   * @param {number} step milliseconds
   * @param {number} count how many, of which none is below zero
   */
  addSeries(lateness, step, count) {
    let below = 0;
    this.#bounds.forEach((bound, column) => {
      const longer = Math.min(count, Math.max(0, Math.ceil((lateness - bound) / step)));
      this.#counts[column] += count - longer - below;
      below = count - longer;
    });
    this.#counts[this.#bounds.length] += count - below;
    this.#sum += count * lateness - (step * count * (count - 1)) / 2;
  }

  /**
   * Adds the counts to a series, and starts again from zero. Without any the series is there afterwards, too: the first
   * stall is an increase only from a zero that was scraped.
   *
   * @param {import('../../metric/histogram').Histogram} histogram with these bounds
   * @param {Record<string, string | number>} labels
   */
  moveTo(histogram, labels) {
    const { table } = insideOf(histogram);
    const row = locate(histogram, table, labels);
    const page = table.pageOf(row);
    const offset = table.offsetOf(row);
    for (let column = 0; column < this.#counts.length; column++)
      page[offset + column] += this.#counts[column];
    page[offset + this.#counts.length] += this.#sum / MILLISECONDS;
    this.#counts.fill(0);
    this.#sum = 0;
  }
}

module.exports = { DelayCounts };
