'use strict';

// One receiver: builds pushes, delivers them one at a time, and counts. Runs where the families are: in the
// process of a Registry, or in the aggregator thread of a cluster.

const { sampleFamily } = require('../exposition/sample-family');
const { WrittenSeries } = require('./written-series');
const { Receiver } = require('./receiver');

const NAME = 'prom_client_remote_write';

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('./write-request').Protocol} Protocol */
/** @typedef {import('./written-series').Push} Push */
/** @typedef {import('./receiver').Answer} Answer */

/**
 * @typedef {object} SessionSettings
 * @property {string} url
 * @property {Record<string, string>} labels
 * @property {Record<string, string>} headers
 * @property {number} timeout milliseconds
 * @property {number} retries
 * @property {Protocol} [protocol] default: 2.0 or, if the receiver does not have it, 1.0
 */

/** @typedef {{protocol: Protocol, samples: number, dropped: number}} PushResult */

class RemoteWriteSession {
  #series;
  #receiver;
  #isNegotiated;
  /** @type {Protocol | undefined} */
  #protocol;
  #lastTimestamp = 0;
  #pushes = { pushed: 0, failed: 0, dropped: 0 };
  #samples = { pushed: 0, failed: 0, dropped: 0 };
  #seconds = 0;

  /** @param {SessionSettings} settings */
  constructor(settings) {
    this.#series = new WrittenSeries(settings.labels);
    this.#receiver = new Receiver(settings);
    this.#protocol = settings.protocol;
    this.#isNegotiated = settings.protocol === undefined;
  }

  /** @returns {number} milliseconds since the epoch; later than that of the push before */
  nextTimestamp() {
    this.#lastTimestamp = Math.max(Date.now(), this.#lastTimestamp + 1);
    return this.#lastTimestamp;
  }

  /**
   * @param {Family[]} families
   * @param {boolean} openMetrics whether names are those of OpenMetrics
   * @param {number} timestamp
   * @returns {Generator<void, Push>}
   */
  build(families, openMetrics, timestamp) {
    /** @type {Protocol[]} */
    const protocols = this.#protocol === undefined ? ['2.0', '1.0'] : [this.#protocol];
    return this.#series.push([...families, ...this.#ownFamilies()], { openMetrics, timestamp, protocols });
  }

  /** @returns {Generator<void, Push>} stale markers of all series */
  buildEnd() {
    /** @type {Protocol[]} */
    const protocols = this.#protocol === undefined ? ['2.0', '1.0'] : [this.#protocol];
    const timestamp = this.nextTimestamp();
    return this.#series.push([], { openMetrics: false, timestamp, protocols });
  }

  /**
   * @param {Push} push
   * @returns {Promise<PushResult>}
   * @throws {Error} if the receiver does not accept all of it
   */
  async deliver(push) {
    const start = performance.now();
    this.#samples.dropped += push.dropped;
    const before = this.#samples.pushed;
    try {
      const protocol = await this.#sendAll(push);
      this.#series.forget(push.ended);
      this.#pushes.pushed++;
      return { protocol, samples: push.samples, dropped: push.dropped };
    } catch (error) {
      this.#pushes.failed++;
      throw error;
    } finally {
      this.#samples.failed += push.samples - (this.#samples.pushed - before);
      this.#seconds += (performance.now() - start) / 1000;
    }
  }

  /** @param {boolean} isSuperseded a newer push waits: the one under way is not tried again */
  supersede(isSuperseded) {
    this.#receiver.supersede(isSuperseded);
  }

  /** Counts a push that was replaced by a newer one before it was built. */
  countDropped() {
    this.#pushes.dropped++;
  }

  /** Counts a push that could not be collected or built. */
  countFailed() {
    this.#pushes.failed++;
  }

  /**
   * @param {Push} push
   * @returns {Promise<Protocol>} in which it was sent
   */
  async #sendAll({ requests }) {
    let [[protocol, list]] = requests;
    for (let i = 0; i < list.length; i++) {
      const { body, samples } = list[i];
      const answer = await this.#receiver.send(body, protocol);
      const other = protocol === '2.0' && i === 0 && lacksVersion2(answer) ? requests.get('1.0') : undefined;
      if (other !== undefined) {
        protocol = '1.0';
        list = other;
        i = -1;
        continue;
      }
      // A receiver may have been replaced by one of another version.
      if (this.#isNegotiated) this.#protocol = answer.status === 415 ? undefined : protocol;
      this.#count(answer, protocol, samples);
    }
    return protocol;
  }

  /**
   * @param {Answer} answer
   * @param {Protocol} protocol
   * @param {number} samples of the request
   * @throws {Error} if it has not accepted all of them
   */
  #count(answer, protocol, samples) {
    const { status, reason } = answer;
    const isAccepted = status >= 200 && status < 300;
    const written = protocol === '2.0' ? Math.min(answer.samples ?? 0, samples) : isAccepted ? samples : 0;
    this.#samples.pushed += written;
    if (isAccepted && written === samples) return;
    if (!isAccepted) throw new Error(`the receiver has answered with status ${status}: ${reason}`);
    const missing = answer.samples === undefined ? ' It may not have version 2.0 of the protocol.' : '';
    throw new Error(`the receiver has written ${written} of ${samples} samples.${missing}`);
  }

  /** @returns {Family[]} what happened before this push */
  #ownFamilies() {
    const results = /** @type {const} */ (['pushed', 'failed', 'dropped']);
    const { pushed, failed } = this.#pushes;
    return [
      {
        name: `${NAME}_pushes_total`,
        help: 'Pushes by result; dropped: replaced by a newer one before it was sent.',
        type: 'counter',
        values: results.map(result => ({ labels: { result }, value: this.#pushes[result] })),
      },
      {
        name: `${NAME}_samples_total`,
        help: 'Samples by result; dropped: not sent, because the series is not valid or is there twice.',
        type: 'counter',
        values: results.map(result => ({ labels: { result }, value: this.#samples[result] })),
      },
      {
        name: `${NAME}_push_duration_seconds`,
        help: 'Time from the first attempt of a push to its end.',
        type: 'summary',
        values: [
          { metricName: `${NAME}_push_duration_seconds_sum`, value: this.#seconds },
          { metricName: `${NAME}_push_duration_seconds_count`, value: pushed + failed },
        ],
      },
    ].map(metric => sampleFamily(metric, {}));
  }
}

/**
 * @param {Answer} answer to a request of version 2.0
 * @returns {boolean} whether the receiver does not have that version. One of version 1.0 that does not check
 *   the content type reads the request as an empty one, and accepts it
 */
function lacksVersion2({ status, samples }) {
  return status === 415 || (status >= 200 && status < 300 && samples === undefined);
}

module.exports = { RemoteWriteSession };
