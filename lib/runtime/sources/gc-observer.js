'use strict';

// Tells the families of one registry of every garbage collection, with one observer for all of them: that the runtime
// hands over an entry costs more than what anybody does with it.

/** @typedef {(kind: number, seconds: number) => void} Subscriber */

/** @type {WeakMap<object, SharedObserver>} by registry */
const observers = new WeakMap();

const MILLISECONDS = 1e3;

class SharedObserver {
  /** @type {Set<Subscriber>} */
  #subscribers = new Set();
  /** @type {any} */
  #observer;

  /** @param {Subscriber} subscriber */
  add(subscriber) {
    this.deliver();
    this.#subscribers.add(subscriber);
    if (this.#observer !== undefined) return;
    const { PerformanceObserver } = require('perf_hooks');
    this.#observer = new PerformanceObserver(list => this.#tell(list.getEntries()));
    this.#observer.observe({ entryTypes: ['gc'] });
  }

  /** @param {Subscriber} subscriber */
  remove(subscriber) {
    this.deliver();
    this.#subscribers.delete(subscriber);
    if (this.#subscribers.size > 0) return;
    this.#observer?.disconnect();
    this.#observer = undefined;
  }

  /** Tells what is known and was not told yet. */
  deliver() {
    if (this.#observer !== undefined) this.#tell(this.#observer.takeRecords());
  }

  /** @param {any[]} entries all that happened since the last call, not only one */
  #tell(entries) {
    for (const { detail, duration } of entries) {
      const { kind } = detail;
      const seconds = duration / MILLISECONDS;
      for (const subscriber of this.#subscribers) subscriber(kind, seconds);
    }
  }
}

/** @returns {boolean} whether the runtime reports collections */
function isObservable() {
  const { PerformanceObserver } = /** @type {any} */ (require('perf_hooks'));
  return Boolean(PerformanceObserver?.supportedEntryTypes?.includes('gc'));
}

/**
 * Tells of every collection from now on.
 *
 * @param {object} registry of the metrics that it is for
 * @param {Subscriber} subscriber must not lead to them: the runtime holds it, and a dropped registry could otherwise
 *   never be garbage
 * @returns {{deliver: () => void, stop: () => void}} `deliver` tells of those that the runtime has handed over meanwhile
 */
function observeCollections(registry, subscriber) {
  let shared = observers.get(registry);
  if (shared === undefined) {
    shared = new SharedObserver();
    observers.set(registry, shared);
  }
  const observer = shared;
  observer.add(subscriber);
  return { deliver: () => observer.deliver(), stop: () => observer.remove(subscriber) };
}

module.exports = { isObservable, observeCollections };
