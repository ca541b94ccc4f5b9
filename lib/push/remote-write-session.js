'use strict';

// One receiver: builds pushes and delivers them, one at a time. Runs where the families are: in the process
// of a Registry, or in the aggregator thread of a cluster. What happened is counted by RemoteWrite, because
// that thread may be lost.

const { runInSlices } = require('../event-loop/slices');
const { TEXT } = require('../exposition/formats');
const { sampleFamily } = require('../exposition/sample-family');
const { WrittenSeries } = require('./written-series');
const { requestSteps } = require('./write-request');
const { Receiver } = require('./receiver');

const NAME = 'prom_client_cluster_remote_write';

/** What a request contains is refused: the next one may be accepted. */
const REFUSED_CONTENT = new Set([400, 409, 413, 422]);

/** @typedef {import('../exposition/text-format').Family} Family */
/** @typedef {import('../exposition/formats').Format} Format */
/** @typedef {import('./write-request').Protocol} Protocol */
/** @typedef {import('./write-request').Request} Request */
/** @typedef {import('./write-request').SeriesSample} SeriesSample */
/** @typedef {import('./receiver').Answer} Answer */

/**
 * @typedef {object} SessionSettings
 * @property {string} url
 * @property {Record<string, string>} labels
 * @property {Record<string, string>} headers
 * @property {number} timeout milliseconds
 * @property {number} retries
 * @property {Protocol} [protocol] default: 2.0 or, if the receiver does not have it, 1.0
 * @property {boolean} [nativeHistograms]
 */

/** @typedef {{samples: SeriesSample[], timestamp: number, requests: Request[]}} Push `requests`: of them */
/** @typedef {Answer & {samples?: number}} WrittenAnswer `samples`: how many were written, in 2.0 */
/** @typedef {import('./aggregator-sender').Results} Results */
/** @typedef {import('./aggregator-sender').Totals} Totals */
/** @typedef {import('./aggregator-sender').BuiltPush} BuiltPush */
/** @typedef {import('./aggregator-sender').Outcome} Outcome */

/** @type {Record<Protocol, Record<string, string>>} */
const HEADERS = {
  '1.0': {
    'Content-Type': 'application/x-protobuf',
    'X-Prometheus-Remote-Write-Version': '0.1.0',
  },
  '2.0': {
    'Content-Type': 'application/x-protobuf;proto=io.prometheus.write.v2.Request',
    'X-Prometheus-Remote-Write-Version': '2.0.0',
  },
};

class RemoteWriteSession {
  #settings;
  #series;
  /** @type {Receiver} of the last push */
  #receiver;
  #isNegotiated;
  /** @type {Protocol | undefined} */
  #protocol;
  /** @type {Push | undefined} that is to be delivered */
  #push = undefined;

  /** @param {SessionSettings} settings */
  constructor(settings) {
    this.#settings = settings;
    this.#series = new WrittenSeries(settings.labels, settings.nativeHistograms === true);
    this.#receiver = new Receiver(settings);
    this.#protocol = settings.protocol;
    this.#isNegotiated = settings.protocol === undefined;
  }

  /**
   * @param {Family[]} families
   * @param {object} push
   * @param {Format} push.format whose names samples have
   * @param {number} push.timestamp milliseconds since the epoch
   * @param {Totals} [push.totals] undefined if all series end
   * @returns {Generator<void, BuiltPush>}
   */
  *build(families, { format, timestamp, totals }) {
    this.#receiver = new Receiver(this.#settings);
    this.#push = undefined;
    const own = totals === undefined ? [] : ownFamilies(totals);
    const { samples, dropped } = yield* this.#series.push([...families, ...own], format);
    const requests = yield* requestSteps(samples, this.#protocol ?? '2.0', timestamp);
    this.#push = { samples, timestamp, requests };
    return { samples: samples.length, dropped };
  }

  /**
   * Sends what was built last.
   *
   * @param {boolean} isSuperseded whether it is sent once: a newer push waits, or the program waits to end
   * @param {number} [end] the timestamp of stale markers of all series, which are sent instead
   * @returns {Promise<Outcome>}
   */
  async deliver(isSuperseded, end) {
    if (end !== undefined) await runInSlices(this.build([], { format: TEXT, timestamp: end }));
    const start = performance.now();
    const push = this.#push;
    this.#push = undefined;
    if (isSuperseded) this.#receiver.supersede(false);
    /** @type {Outcome} */
    const outcome = {
      samples: push?.samples.length ?? 0,
      pushed: 0,
      seconds: 0,
      protocol: undefined,
      error: '',
    };
    try {
      if (push === undefined) throw new Error('the push was lost');
      outcome.protocol = await this.#sendAll(push, outcome);
    } catch (error) {
      const { message, code } = /** @type {NodeJS.ErrnoException} */ (error);
      // No message if none of several addresses of a host accepts a connection.
      outcome.error = message || String(code);
    }
    outcome.seconds = (performance.now() - start) / 1000;
    return outcome;
  }

  /**
   * A newer push waits: the one under way is not tried again.
   *
   * @param {boolean} isAborted whether nothing more is sent of it
   */
  supersede(isAborted) {
    this.#receiver.supersede(isAborted);
  }

  /**
   * @param {Buffer} body
   * @param {Protocol} protocol
   * @returns {Promise<WrittenAnswer>}
   */
  async #send(body, protocol) {
    const answer = await this.#receiver.send(body, { ...HEADERS[protocol], 'Content-Encoding': 'snappy' });
    const [samples, histograms] = ['samples', 'histograms'].map(kind => {
      const written = answer.headers[`x-prometheus-remote-write-${kind}-written`];
      return typeof written === 'string' && /^\d{1,15}$/.test(written) ? Number(written) : undefined;
    });
    return { ...answer, samples: samples === undefined ? undefined : samples + (histograms ?? 0) };
  }

  /**
   * @param {Push} push
   * @param {Outcome} outcome whose samples are counted
   * @returns {Promise<Protocol>} in which it was sent
   * @throws {Error} if the receiver does not accept all of it
   */
  async #sendAll({ samples, timestamp, requests }, outcome) {
    const protocol = this.#protocol ?? '2.0';
    /** @type {Error | undefined} */
    let refusal;
    for (const { body, samples: sent } of requests) {
      const answer = await this.#send(body, protocol);
      if (this.#protocol === undefined && lacksVersion2(answer)) {
        this.#protocol = '1.0';
        const others = await runInSlices(requestSteps(samples, '1.0', timestamp));
        return this.#sendAll({ samples, timestamp, requests: others }, outcome);
      }
      // A receiver may have been replaced by one of another version.
      if (this.#isNegotiated) this.#protocol = answer.status === 415 ? undefined : protocol;
      const written = writtenBy(answer, protocol, sent.length);
      outcome.pushed += written;
      const error = errorOf(answer, written, sent.length);
      if (error === undefined) this.#series.forgetEnded(sent);
      else if (!REFUSED_CONTENT.has(answer.status) && !isAccepted(answer.status)) throw error;
      refusal ??= error;
    }
    if (refusal !== undefined) throw refusal;
    return protocol;
  }
}

/**
 * @param {WrittenAnswer} answer
 * @param {Protocol} protocol
 * @param {number} samples of the request
 * @returns {number} how many samples the receiver has written
 */
function writtenBy({ status, samples: written = 0 }, protocol, samples) {
  if (protocol === '2.0') return Math.min(written, samples);
  return isAccepted(status) ? samples : 0;
}

/**
 * @param {WrittenAnswer} answer
 * @param {number} written
 * @param {number} samples of the request
 * @returns {Error | undefined} if the receiver has not accepted all of them
 */
function errorOf({ status, reason, samples: said }, written, samples) {
  if (!isAccepted(status)) return new Error(`the receiver has answered with status ${status}: ${reason}`);
  if (written === samples) return undefined;
  const missing = said === undefined ? ' It may not have version 2.0 of the protocol.' : '';
  return new Error(`the receiver has written ${written} of ${samples} samples.${missing}`);
}

/** @param {number} status */
function isAccepted(status) {
  return status >= 200 && status < 300;
}

/**
 * @param {WrittenAnswer} answer to a request of version 2.0
 * @returns {boolean} whether the receiver does not have that version. One of version 1.0 that does not check
 *   the content type reads the request as an empty one, and accepts it
 */
function lacksVersion2({ status, samples }) {
  return status === 415 || (isAccepted(status) && samples === undefined);
}

/**
 * @param {Totals} totals
 * @returns {Family[]}
 */
function ownFamilies({ pushes, samples, seconds }) {
  return [
    {
      name: `${NAME}_pushes_total`,
      help: 'Pushes by result; dropped: replaced by a newer one, or given up by stop(), before it was sent.',
      type: 'counter',
      values: valuesOf(pushes),
    },
    {
      name: `${NAME}_samples_total`,
      help: 'Samples by result; dropped: not sent, because the series is not valid or is there twice.',
      type: 'counter',
      values: valuesOf(samples),
    },
    {
      name: `${NAME}_push_duration_seconds`,
      help: 'Time from the first attempt of a push to its end.',
      type: 'summary',
      values: [
        { metricName: `${NAME}_push_duration_seconds_sum`, value: seconds },
        { metricName: `${NAME}_push_duration_seconds_count`, value: pushes.pushed + pushes.failed },
      ],
    },
  ].map(metric => sampleFamily(metric, {}));
}

/** @param {Results} results */
function valuesOf(results) {
  return Object.entries(results).map(([result, value]) => ({ labels: { result }, value }));
}

module.exports = { RemoteWriteSession };
