'use strict';

// Runs in a thread that has joined, on its event loop and within the calls that record. Publishes the
// registries of the thread: metrics, label sets and exemplars through a log, numbers and digests as shared
// memory. So others can read them without the help of this thread. Only `collect` hooks and custom metric
// objects need its event loop.

const { viewOf, OBSERVER, MEASURED } = require('../registry/metric-view');
const { timedSection } = require('../event-loop/timed-section');
const { CollectHooks } = require('../source/collect-hooks');
const { CustomMetrics } = require('../source/custom-metrics');
const { readableMetrics, isReadable } = require('../source/readable-metrics');
const { distinctMetrics } = require('../registry/distinct-metrics');
const { readableDefaults } = require('../registry/readable-defaults');
const { ThreadLink } = require('./thread-link');
const { LogWriter } = require('../source/shared-log');
const { NumberBlocks } = require('../series/number-blocks');
const { TablePublisher } = require('./table-publisher');
const RECORD = require('../source/log-records');
const { debug } = require('../options/debug-log');
const { textOf } = require('../options/thrown');
const { warnOnce } = require('../options/warnings');

/** A hook that takes longer has failed. The hub stops waiting earlier if its scraper does. */
const HOOK_MILLISECONDS = 30_000;

/**
 * The hub keeps everything that was sent, because the thread that reads it may be lost. So if more was sent
 * than this multiple of the tables' size, plus SPARE_BYTES, everything is published again.
 */
const MOST_GROWTH = 4;
const SPARE_BYTES = 4 * 2 ** 20;
/** Size of the record of a row without its labels. */
const RECORD_BYTES = 24;
/** Size of each label: its integer, and a text. */
const LABEL_BYTES = 20;

/** Properties that a program may assign to a metric. */
const DEFINITION = /** @type {const} */ (['name', 'help', 'aggregator']);

/** @typedef {import('../exposition/live-family').MetricView} MetricView */

/**
 * A registry that has joined.
 *
 * @typedef {object} Followed
 * @property {string} [defaults] its default labels as published: pairs as JSON
 * @property {Map<any, Published>} metrics by metric
 */

/**
 * @typedef {object} Published
 * @property {number} number
 * @property {Followed} registry
 * @property {any} metric
 * @property {MetricView} [view] as published; undefined for a custom metric object
 * @property {TablePublisher} [table] undefined for a custom metric object
 * @property {string} [json] what get() of a custom metric object has returned, as published
 * @property {boolean} [hasHook] whether a hook was published
 */

class ThreadPublisher {
  #registries;
  #link;
  #hooks = new CollectHooks();
  /** Memory of numbers. */
  blocks = new NumberBlocks(sharedNumbers);
  /** @type {LogWriter | undefined} */
  log = undefined;
  /** @type {SharedArrayBuffer | undefined} the latest one that was sent */
  #memory = undefined;
  /** The number of this memory. */
  #memoryNumber = 0;
  /** @type {Map<any, Followed>} by registry */
  #followed = new Map();
  #nextNumber = 0;
  #customMetrics = new CustomMetrics();
  #isPublishingChanges = false;
  /** How much memory was sent since open(). */
  #sentBytes = 0;
  /** How much had been sent at the end of open(). */
  #openedBytes = 0;
  /** How much may be sent before the tables are measured again. */
  #mostBytes = Infinity;

  /** @param {() => Iterable<any>} registries that have joined */
  constructor(registries) {
    this.#registries = registries;
    this.#link = new ThreadLink({
      onRequest: message => void this.#answer(message),
      onHello: () => this.open(),
    });
    process.on('exit', this.#onExit);
    this.open();
  }

  /** Publishes everything to a new hub. */
  open() {
    this.guard(() => {
      this.#forget();
      this.#link.open();
      this.log = new LogWriter(chunk => {
        this.#sentBytes += chunk.byteLength;
        this.#link.send({ parts: { chunks: [chunk] } });
      });
      this.#sync();
      this.#link.join();
      this.#openedBytes = this.#sentBytes;
      this.#mostBytes = SPARE_BYTES;
    });
  }

  /** Publishes everything again if most of what was sent is obsolete. */
  shorten = () => {
    if (this.#sentBytes < this.#mostBytes) return;
    let present = 0;
    for (const { view } of this.#all()) if (view !== undefined) present += bytesOf(view);
    this.#mostBytes = SPARE_BYTES + MOST_GROWTH * Math.max(present, this.#openedBytes);
    if (this.#sentBytes >= this.#mostBytes) this.open();
  };

  /** Publishes what has changed in the list of registries and their metrics. */
  sync() {
    this.guard(() => this.#sync());
  }

  /** Leaves the hub, which keeps what was recorded so far. */
  close() {
    process.removeListener('exit', this.#onExit);
    this.sync();
    this.#leave();
  }

  /** What was published so far is shown. */
  #leave() {
    try {
      this.#link.leave();
    } catch (error) {
      debug('the end of this thread cannot be announced: %O', error);
    }
    this.#forget();
    this.#link.close();
  }

  #onExit = () =>
    this.guard(() => {
      this.#sync();
      this.#link.send({ ended: true });
    });

  /**
   * Handles errors of publishing, because the application is recording and must not see them.
   *
   * @param {() => void} publish
   */
  guard(publish) {
    try {
      publish();
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {unknown} error */
  fail(error) {
    debug('this thread has left the page of all threads: %O', error);
    warnOfMissing(error);
    process.removeListener('exit', this.#onExit);
    this.#leave();
  }

  #forget() {
    for (const registry of this.#followed.keys()) delete registry[OBSERVER];
    for (const { table } of this.#all()) table?.close();
    this.#followed.clear();
    this.#memory = undefined;
    this.log = undefined;
    this.#sentBytes = 0;
    this.#mostBytes = Infinity;
  }

  #sync() {
    if (this.log === undefined) return;
    const current = new Set(this.#registries());
    for (const registry of [...this.#followed.keys()]) if (!current.has(registry)) this.#unfollow(registry);
    for (const registry of current) if (!this.#followed.has(registry)) this.#follow(registry);
    for (const [registry, metrics] of distinctMetrics(current, each => readableMetrics(each, leaveOut)))
      this.#syncRegistry(registry, metrics);
    this.#publishChanges();
  }

  /** @param {any} registry */
  #follow(registry) {
    /** @type {Followed} */
    const followed = { metrics: new Map() };
    this.#followed.set(registry, followed);
    const value = (/** @type {any} */ added) =>
      this.guard(() => {
        // The registry may have left, or be in the middle of its first publication.
        const hasJoined = followed.defaults !== undefined && new Set(this.#registries()).has(registry);
        const isPublishedAlone = added !== undefined && (this.#followed.size === 1 || !added[MEASURED]);
        if (!isPublishedAlone || !hasJoined) this.#sync();
        else if (isReadable(added, leaveOut)) this.#publish(added, followed);
        this.shorten();
      });
    Object.defineProperty(registry, OBSERVER, { value, configurable: true });
  }

  /** @param {any} registry that has left */
  #unfollow(registry) {
    delete registry[OBSERVER];
    const { metrics } = /** @type {Followed} */ (this.#followed.get(registry));
    for (const published of [...metrics.values()]) this.#drop(published);
    this.#followed.delete(registry);
  }

  /**
   * @param {any} registry
   * @param {any[]} list of its metrics
   */
  #syncRegistry(registry, list) {
    const followed = /** @type {Followed} */ (this.#followed.get(registry));
    const labels = readableDefaults(registry, (error, name) =>
      debug('the default label %s is left out: %O', name, error),
    );
    const before = followed.defaults;
    followed.defaults = JSON.stringify(Object.entries(labels));
    const metrics = new Set(list);
    for (const published of [...followed.metrics.values()]) {
      const isThere = metrics.has(published.metric);
      if (!isThere || before !== followed.defaults) this.#drop(published, isThere);
    }
    for (const metric of metrics) this.#publish(metric, followed);
  }

  /**
   * @param {any} metric
   * @param {Followed} registry
   * @param {number} [replaces] number of the metric that is shown until this one is complete
   */
  #publish(metric, registry, replaces) {
    if (registry.metrics.has(metric) || metric[MEASURED]?.ofProcess) return;
    const view = viewOf(metric);
    const number = this.#nextNumber++;
    /** @type {Published} */
    const published = { number, registry, metric, view };
    registry.metrics.set(metric, published);
    const common = { defaults: JSON.parse(String(registry.defaults)), replaces };
    if (view === undefined) {
      this.log?.append(RECORD.DEFINE, [number], JSON.stringify({ ...common, name: nameOf(metric) }));
      this.#publishCustom(published);
      this.#announceHook(published);
      return;
    }
    const { table, layout, windowed = false } = view;
    const { width, pageShift, labelNames, maxIdleSeconds } = table;
    const [name, help, type, aggregator] = [view.name, view.help, view.type, view.aggregator].map(String);
    const definition = {
      ...{ ...common, name, help, type, aggregator, windowed, labelNames, width, pageShift },
      ...{ maxIdleSeconds, expiredCount: table.expiredCount },
      exemplarWidth: view.exemplars?.width ?? 0,
      zeroThreshold: view.buckets?.zeroThreshold,
      // JSON has no infinity.
      maxBuckets: String(view.buckets?.maxBuckets),
      layout: { kind: layout.kind, marks: layout.marks.map(String) },
    };
    this.log?.append(RECORD.DEFINE, [number], JSON.stringify(definition));
    published.table = new TablePublisher(view, number, this, () => this.#drop(published, true));
    published.table.open();
    void this.#publishChangesSoon();
  }

  /** Later than the registration of a metric, because programs may then assign a hook or an aggregator. */
  async #publishChangesSoon() {
    if (this.#isPublishingChanges) return;
    this.#isPublishingChanges = true;
    await undefined;
    this.guard(() => this.#publishChanges());
    this.#isPublishingChanges = false;
  }

  /** Publishes what programs have assigned to metrics. */
  #publishChanges() {
    for (const published of this.#all()) {
      try {
        this.#publishChange(published);
      } catch (error) {
        debug('a change of a metric is left out: %O', error);
      }
    }
  }

  /** @param {Published} before */
  #publishChange(before) {
    const view = viewOf(before.metric);
    const changed = DEFINITION.filter(key => view?.[key] !== before.view?.[key]);
    // A value that cannot be converted to text throws here, before anything is published. The next scrape
    // leaves such a metric out.
    for (const key of changed) String(view?.[key]);
    if (changed.length > 0) this.#drop(before, true);
    const published = /** @type {Published} */ (before.registry.metrics.get(before.metric));
    if (view === undefined || published.hasHook) return;
    if (typeof before.metric.collect !== 'function' && view.beforeRead === undefined) return;
    this.#announceHook(published);
  }

  /** @param {Published} published whose hook the hub asks for from now on */
  #announceHook(published) {
    published.hasHook = true;
    this.#link.send({ hooks: [[published.number, nameOf(published.metric)]] });
  }

  /**
   * @param {Published} published
   * @param {boolean} [again] whether the metric is to be published again; the old one is shown until that is
   *   complete
   */
  #drop({ number, registry, metric, table, hasHook }, again = false) {
    table?.close();
    registry.metrics.delete(metric);
    if (again) this.#publish(metric, registry, number);
    this.log?.append(RECORD.DROP, [number]);
    if (hasHook) this.#link.send({ unhook: number });
  }

  /**
   * Sends memory, once if several tables in a row share it.
   *
   * @param {SharedArrayBuffer} memory
   * @returns {number}
   */
  memoryNumber(memory) {
    if (memory !== this.#memory) {
      this.#sentBytes += memory.byteLength;
      this.#link.send({ parts: { memories: [[++this.#memoryNumber, memory]] } });
      this.#memory = memory;
    }
    return this.#memoryNumber;
  }

  /** @returns {Published[]} */
  #all() {
    return Array.from(this.#followed.values(), ({ metrics }) => [...metrics.values()]).flat();
  }

  /**
   * Runs the `collect` hooks, and publishes the values of custom metric objects.
   *
   * @param {any} message of the hub
   */
  async #answer(message) {
    const request = message?.request;
    const log = this.log;
    try {
      /** @type {Map<string, string>} */
      const failed = new Map();
      const running = timedSection('thread:hooks', () => {
        this.#link.send({ started: request });
        this.#sync();
        const hooks = this.#all().map(({ metric, table }) =>
          table === undefined ? this.#customMetrics.hookOf(metric) : metric,
        );
        return this.#hooks.run(new Set(hooks), HOOK_MILLISECONDS, (name, reason) =>
          failed.set(nameOf({ name }), textOf(reason)),
        );
      });
      await running;
      // This thread has left meanwhile, or joins again: the hub does not wait for the answer any more.
      if (this.log !== log) return;
      for (const published of this.#all()) {
        viewOf(published.metric)?.beforeRead?.();
        this.#publishCustom(published);
      }
      this.#link.send({ answer: request, failed: [...failed] });
      this.shorten();
    } catch (error) {
      debug('this thread cannot answer: %O', error);
      this.guard(() => this.#link.send({ answer: request, failed: [] }));
    }
  }

  /** @param {Published} published */
  #publishCustom(published) {
    const json = this.#customMetrics.jsonOf(published.metric);
    if (json !== undefined && json !== published.json)
      this.log?.append(RECORD.READ, [published.number], (published.json = json));
  }
}

/** @param {number} count */
function sharedNumbers(count) {
  return new Float64Array(new SharedArrayBuffer(count * Float64Array.BYTES_PER_ELEMENT));
}

/**
 * Warns that the page lacks some of what this thread records from now on.
 *
 * @param {unknown} error
 */
function warnOfMissing(error) {
  warnOnce('thread', `This thread's metrics are missing on the page of all threads: ${String(error)}`);
}

/**
 * @param {MetricView} view
 * @returns {number} approximate size of what must be sent
 */
function bytesOf({ table: { pages, rowCount, labelNames }, buckets }) {
  const numbers = pages.reduce((sum, { byteLength }) => sum + byteLength, buckets?.byteLength ?? 0);
  return numbers + rowCount * (RECORD_BYTES + labelNames.length * LABEL_BYTES);
}

/** @param {unknown} error */
function leaveOut(error) {
  debug('a metric is left out: %O', error);
}

/**
 * @param {any} metric a custom metric object, which may have anything as its name
 * @returns {string}
 */
function nameOf({ name }) {
  return typeof name === 'string' ? name : '';
}

module.exports = { ThreadPublisher, warnOfMissing };
