'use strict';

/**
 * A minimal histogram: the worker's own count, with which the values of the metrics library are compared. It
 * shares no code with the library, on purpose.
 */
class BucketRecord {
  /** @param {number[]} bounds upper bounds, ascending, without +Inf */
  constructor(bounds) {
    this.bounds = bounds;
    this.counts = new Array(bounds.length + 1).fill(0);
    this.sum = 0;
  }

  /** @param {number} value */
  observe(value) {
    let bucket = 0;
    while (bucket < this.bounds.length && value > this.bounds[bucket]) bucket++;
    this.counts[bucket]++;
    this.sum += value;
  }
}

/** One worker's own count of its requests, without a metrics library. */
class RequestRecord {
  /**
   * @param {object} bounds
   * @param {number[]} bounds.durationBounds bucket bounds in seconds
   * @param {number[]} bounds.sizeBounds bucket bounds in bytes
   */
  constructor({ durationBounds, sizeBounds }) {
    this.arrived = 0;
    this.arrivedByService = {};
    this.durations = new BucketRecord(durationBounds);
    this.sizes = new BucketRecord(sizeBounds);
  }

  /** @param {string} service */
  countArrival(service) {
    this.arrived++;
    this.arrivedByService[service] = (this.arrivedByService[service] ?? 0) + 1;
  }
}

/**
 * Adds up the records of all workers (as they came over IPC).
 *
 * @param {RequestRecord[]} records at least one
 * @returns {RequestRecord}
 */
function sumOfRecords(records) {
  const total = new RequestRecord({
    durationBounds: records[0].durations.bounds,
    sizeBounds: records[0].sizes.bounds,
  });
  for (const record of records) {
    total.arrived += record.arrived;
    for (const [service, count] of Object.entries(record.arrivedByService)) {
      total.arrivedByService[service] = (total.arrivedByService[service] ?? 0) + count;
    }
    addBuckets(total.durations, record.durations);
    addBuckets(total.sizes, record.sizes);
  }
  return total;
}

function addBuckets(total, record) {
  record.counts.forEach((count, bucket) => {
    total.counts[bucket] += count;
  });
  total.sum += record.sum;
}

module.exports = { RequestRecord, sumOfRecords };
