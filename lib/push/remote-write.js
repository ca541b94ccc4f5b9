'use strict';

// When pushes are sent and by which process of a group, which waiting pushes are replaced, the counts of
// results, and the end of all series with the last push. A session builds and sends them.

const { inspect } = require('util');
const { Registry } = require('../registry/registry');
const { scrapeFamilies } = require('../registry/scrape');
const { checkOptionNames } = require('../options/option-names');
const { debug } = require('../options/debug-log');
const { warnOnce } = require('../options/warnings');
const { asError, textOf } = require('../options/thrown');
const { PUSH_TARGET } = require('../registry/push-target');
const { formatOf } = require('../exposition/formats');
const { runInSlices } = require('../event-loop/slices');
const { aggregatorSender } = require('./aggregator-sender');
const { sessionSettings, checkMilliseconds } = require('./remote-write-options');
const { MAX_TIMER, pause, settledWithin, unref } = require('../event-loop/timers');
const { invalidOption } = require('../options/coded-error');

const TITLE = 'Remote write';

const DEFAULT_INTERVAL = 15_000;

const START_OPTIONS = new Set(['interval']);

const STOP_OPTIONS = new Set(['timeout']);

/** Docker and Kubernetes kill 10 and 30 seconds after the signal to end. */
const DEFAULT_STOP_TIMEOUT = 5000;

const GIVEN_UP = 'stop() has ended before the push was sent';

const NOT_AGGREGATING =
  'Another process of the group aggregates the metrics. Call start() in each process: that one pushes.';

/** @typedef {import('./remote-write-session').RemoteWriteSession} PushSession */
/** @typedef {ReturnType<typeof aggregatorSender>} AggregatorSender */
/** @typedef {import('./aggregator-sender').PushHead} PushHead */
/** @typedef {import('./aggregator-sender').BuiltPush} BuiltPush */
/** @typedef {import('./aggregator-sender').Totals} Totals */
/** @typedef {import('./aggregator-sender').Outcome} Outcome */
/** @typedef {import('./aggregator-sender').Captured} Captured */

/** @typedef {{protocol: string, samples: number, dropped: number}} PushResult */

/** @typedef {{refusal: Error | undefined}} Turn of a push; `refusal`: why it is not sent */

/** No failure: another process of the group pushes, or a newer push has come before this one had begun. */
class NotNeededError extends Error {}

/**
 * Sends metrics to a receiver of Prometheus' remote write, for processes that cannot be scraped. One push is
 * under way at a time, and only the newest one waits for it.
 */
class RemoteWrite {
  #session;
  #registry;
  /** Milliseconds. */
  #interval;
  /** The interval of start(), if it was given one. */
  #currentInterval;
  /** Whether the registry's metrics are aggregated elsewhere. */
  #isAggregated;
  /** @type {PushSession | undefined} */
  #local = undefined;
  /** @type {Totals} */
  #totals = {
    pushes: { pushed: 0, failed: 0, dropped: 0 },
    samples: { pushed: 0, failed: 0, dropped: 0 },
    seconds: 0,
  };
  #lastTimestamp = 0;
  /** @type {PushSession | AggregatorSender | undefined} of the last push */
  #sender = undefined;
  /** Whether another process goes on pushing when this one ends. */
  #isShared = false;
  /** @type {Promise<unknown>} resolved when all pushes so far have ended */
  #ended = Promise.resolve();
  /** @type {Turn | undefined} of the push under way */
  #current = undefined;
  /** @type {Turn | undefined} of the one that waits for it */
  #waiting = undefined;
  /** @type {NodeJS.Timeout | undefined} */
  #timer = undefined;

  /**
   * @param {string | URL} url of the receiver, http or https, optionally with `user:password@` for basic
   *   authentication
   * @param {object} options
   * @param {Record<string, string>} options.labels for all series that do not have a label of that name;
   *   `instance` is required, and `job` is usual
   * @param {Record<string, string>} [options.headers] such as `Authorization`
   * @param {number} [options.timeout] milliseconds for one attempt, default 30,000
   * @param {number} [options.interval] milliseconds between the pushes of start(), default 15,000
   * @param {number} [options.retries] how often a request is sent again if the connection fails, or on status
   *   5xx or 429; default 5
   * @param {import('./write-request').Protocol} [options.protocol] version of the protocol, default 2.0 or,
   *   if the receiver does not have it, 1.0
   * @param {boolean} [options.nativeHistograms] whether to send native histograms as such, default false
   * @param {any} [registry] default the global registry. The metrics of an AggregatorRegistry or
   *   WorkerRegistry are pushed by its aggregator
   * @throws {TypeError} if an argument is not valid
   */
  constructor(url, options, registry = Registry.globalRegistry) {
    const settings = sessionSettings(url, options);
    const { interval = DEFAULT_INTERVAL } = options;
    checkMilliseconds('interval', interval);
    if (typeof registry?.getMetricsAsArray !== 'function')
      throw invalidOption(`Expected Registry, got ${typeof registry}`);
    const { randomUUID } = require('crypto');
    this.#session = { id: randomUUID(), settings };
    this.#registry = registry;
    this.#interval = this.#currentInterval = interval;
    this.#isAggregated = PUSH_TARGET in registry;
  }

  /**
   * Sends all metrics once.
   *
   * @returns {Promise<PushResult>} when the receiver has accepted them
   * @throws {Error} if it does not, or if a newer push has replaced this one
   */
  push() {
    return whileAlive(this.#push());
  }

  /**
   * Pushes at an interval, from now on. A push that fails is counted, and the first failure is reported as a
   * process warning. The timer does not keep the process alive.
   *
   * @param {{interval?: number}} [options] milliseconds, default that of the constructor
   * @throws {TypeError} if it is not an object, or the interval is not a number of milliseconds
   */
  start(options = {}) {
    // start(5000) would push every 15 seconds otherwise.
    if (typeof options !== 'object' || options === null)
      throw invalidOption(`start() expected options, as in { interval: 15000 }: ${inspect(options)}`);
    checkOptionNames('start()', options, START_OPTIONS);
    const { interval = this.#interval } = options;
    checkMilliseconds('interval', interval);
    clearInterval(this.#timer);
    this.#currentInterval = interval;
    this.#timer = unref(setInterval(() => this.#pushInBackground(), interval));
    this.#pushInBackground();
  }

  /**
   * Ends start(): pushes once more, and then marks all series as ended, so that queries do not show them any
   * longer. In a group, only a process without others marks them.
   *
   * @param {{timeout?: number} | unknown} [options] milliseconds until nothing more is sent, default 5000; a
   *   text, such as the name of a signal, is ignored
   * @returns {Promise<void>} resolves when that is done, or after the timeout; rejects only with a TypeError,
   *   if the timeout is not a number of milliseconds
   */
  async stop(options) {
    const given = typeof options === 'object' && options !== null ? options : {};
    checkOptionNames('stop()', given, STOP_OPTIONS);
    const { timeout = DEFAULT_STOP_TIMEOUT } = /** @type {{timeout?: number}} */ (given);
    checkMilliseconds('timeout', timeout);
    clearInterval(this.#timer);
    this.#timer = undefined;
    const ending = { isOver: false };
    const ended = this.#pushAndEnd(ending).catch(error => this.#report(error));
    await settledWithin(
      ended.then(() => (ending.isOver = true)),
      timeout,
    );
    // Unless start() was called again meanwhile.
    if (ending.isOver || this.#timer !== undefined) return;
    ending.isOver = true;
    for (const turn of [this.#current, this.#waiting]) if (turn) turn.refusal = new Error(GIVEN_UP);
    this.#sender?.supersede(true);
  }

  /** @param {{isOver: boolean}} ending `isOver`: its time has passed */
  async #pushAndEnd(ending) {
    let isFailing = false;
    try {
      await this.#push();
    } catch (error) {
      // Otherwise that one, or another process, goes on.
      if (error instanceof NotNeededError) return;
      this.#report(error);
      isFailing = true;
    }
    // Unless start() was called again meanwhile.
    if (this.#timer === undefined && !ending.isOver) await this.#inTurn(() => this.#end(isFailing));
  }

  #pushInBackground() {
    this.#push().catch(error => this.#report(error));
  }

  /** @returns {Promise<PushResult>} */
  #push() {
    if (this.#isAggregated) return this.#inTurn(turn => this.#pushAggregated(turn));
    const timestamp = this.#nextTimestamp();
    // In this turn: a program may reset its metrics right after calling push().
    const captured = this.#captured([this.#registry]);
    // A push that is replaced before it is built does not read it.
    captured.catch(() => {});
    return this.#inTurn(turn => this.#pushHere(turn, timestamp, captured));
  }

  /**
   * @param {Turn} turn
   * @returns {Promise<PushResult>}
   */
  async #pushAggregated(turn) {
    // After this turn: the program may be about to start its workers.
    await undefined;
    const registry = this.#registry;
    /** @type {import('../registry/push-target').PushTarget | undefined} */
    const target = await /** @type {any} */ (registry)[PUSH_TARGET]();
    if (target === undefined) throw new NotNeededError(NOT_AGGREGATING);
    const { registries, primary, isShared = false } = target;
    this.#isShared = isShared;
    const timestamp = this.#nextTimestamp();
    if (primary === undefined) return this.#pushHere(turn, timestamp, this.#captured(registries ?? []));
    const sender = aggregatorSender(primary, this.#session, registry);
    return this.#pushBy(sender, turn, timestamp, head => sender.build(head));
  }

  /**
   * @param {PushSession | AggregatorSender} sender
   * @param {Turn} turn
   * @param {number} timestamp
   * @param {(head: PushHead) => Promise<BuiltPush>} build
   * @returns {Promise<PushResult>}
   */
  async #pushBy(sender, turn, timestamp, build) {
    this.#sender = sender;
    const head = { format: formatOf(this.#registry.contentType), timestamp, totals: this.#totals };
    const built = await build(head);
    this.#totals.samples.dropped += built.dropped;
    const delivered =
      turn.refusal === undefined ? sender.deliver(this.#waiting !== undefined) : Promise.reject(turn.refusal);
    return { protocol: await this.#count(delivered, built.samples), ...built };
  }

  /**
   * Marks all series as ended, unless another process goes on pushing them.
   *
   * @param {boolean} isFailing whether the receiver has refused the last push, or not answered: it is asked
   *   once, because the program waits in order to end
   */
  async #end(isFailing) {
    if (this.#sender === undefined || this.#isShared) return;
    await this.#count(this.#sender.deliver(isFailing, this.#nextTimestamp()), 0);
  }

  /**
   * @param {Promise<Outcome>} delivered
   * @param {number} samples that are lost if there is no outcome
   * @returns {Promise<string>} protocol in which it was sent
   * @throws {Error} if the receiver has not accepted all of it
   */
  async #count(delivered, samples) {
    const outcome = await delivered.catch(error => lost(samples, error));
    const totals = this.#totals;
    totals.samples.pushed += outcome.pushed;
    totals.samples.failed += outcome.samples - outcome.pushed;
    totals.seconds += outcome.seconds;
    if (outcome.protocol === undefined) throw new Error(outcome.error);
    totals.pushes.pushed++;
    return outcome.protocol;
  }

  /**
   * @param {Turn} turn
   * @param {number} timestamp
   * @param {Promise<Captured>} captured
   */
  #pushHere(turn, timestamp, captured) {
    // Loaded on first use: few programs need it, and the primary of a cluster does not.
    const { RemoteWriteSession } = require('./remote-write-session');
    const session = (this.#local ??= new RemoteWriteSession(this.#session.settings));
    return this.#pushBy(session, turn, timestamp, async head => {
      const { families, failed } = await captured;
      const built = await runInSlices(session.build(families, head));
      return { ...built, dropped: built.dropped + failed };
    });
  }

  /**
   * @returns {number} milliseconds since the epoch; later than that of the push before, unless the clock was
   *   set back by more than an interval: the time before may have been far ahead, and wrong. The receiver
   *   says what it refuses as out of order
   */
  #nextTimestamp() {
    const now = Date.now();
    const isEarlier = now <= this.#lastTimestamp && now >= this.#lastTimestamp - this.#currentInterval;
    this.#lastTimestamp = isEarlier ? this.#lastTimestamp + 1 : now;
    return this.#lastTimestamp;
  }

  /**
   * @param {any[]} registries
   * @returns {Promise<Captured>} without metrics that cannot be read, or whose `collect` hooks take longer
   *   than the timeout or the interval, because later pushes wait for this one
   */
  async #captured(registries) {
    const timeout = Math.min(this.#session.settings.timeout, this.#currentInterval);
    const deadline = pause(timeout).then(() => {
      throw new Error(`its collect hook has not ended within ${timeout} ms`);
    });
    // It passes after the scrape, too.
    deadline.catch(() => {});
    let failed = 0;
    const leaveOut = (/** @type {string} */ what, /** @type {unknown} */ error) => {
      const text = `${TITLE} leaves out ${what}, which cannot be read: ${textOf(error)}`;
      debug('%s', text);
      warnOnce(`${TITLE} of ${what}`, text);
    };
    const onFailure = (/** @type {any} */ metric, /** @type {unknown} */ error) => {
      failed++;
      leaveOut(metric.name, error);
    };
    const onUnreadableLabel = (/** @type {unknown} */ error, /** @type {string} */ name) =>
      leaveOut(`the default label ${name}`, error);
    const families = await scrapeFamilies(registries, { deadline, onFailure, onUnreadableLabel });
    return { families, failed };
  }

  /**
   * One push is under way at a time; of several that wait, only the newest is sent.
   *
   * @template T
   * @param {(turn: Turn) => Promise<T>} push
   * @returns {Promise<T>}
   */
  #inTurn(push) {
    const isFirst = this.#current === undefined && this.#waiting === undefined;
    if (this.#waiting !== undefined)
      this.#waiting.refusal = new NotNeededError('The push was replaced by a newer one.');
    /** @type {Turn} */
    const turn = { refusal: undefined };
    if (!isFirst) {
      this.#waiting = turn;
      this.#sender?.supersede(false);
    }
    const result = isFirst ? this.#run(push, turn) : this.#ended.then(() => this.#run(push, turn));
    this.#ended = result.catch(() => {});
    return result;
  }

  /**
   * @template T
   * @param {(turn: Turn) => Promise<T>} push
   * @param {Turn} turn
   */
  async #run(push, turn) {
    if (turn === this.#waiting) this.#waiting = undefined;
    if (turn.refusal !== undefined) {
      this.#totals.pushes.dropped++;
      throw turn.refusal;
    }
    this.#current = turn;
    try {
      return await push(turn);
    } catch (error) {
      if (!(error instanceof NotNeededError)) this.#totals.pushes.failed++;
      throw asError(error);
    } finally {
      this.#current = undefined;
    }
  }

  /** @param {unknown} error */
  #report(error) {
    if (error instanceof NotNeededError) return;
    const { message } = /** @type {Error} */ (error);
    debug('%s: %s', TITLE, message);
    const reason = message.replace(/\.$/, '');
    warnOnce(TITLE, `${TITLE} has failed: ${reason}. It is tried again, without another warning`);
  }
}

/**
 * Keeps the process alive until a promise settles: sockets and timers of a push do not.
 *
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
function whileAlive(promise) {
  const timer = setInterval(() => {}, MAX_TIMER);
  return promise.finally(() => clearInterval(timer));
}

/**
 * @param {number} samples
 * @param {Error} error
 * @returns {Outcome} of a push that was lost with the thread that had it
 */
function lost(samples, { message }) {
  return { samples, pushed: 0, seconds: 0, protocol: undefined, error: message };
}

module.exports = { RemoteWrite };
