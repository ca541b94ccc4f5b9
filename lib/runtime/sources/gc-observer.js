'use strict';

// Reports every garbage collection to the metric families of a registry. All of them share one
// PerformanceObserver: an entry costs the runtime 50 µs or more for each observer, and a subscriber 1 µs.

// Not in a function: the runtime would hold its `require`, and with that all modules of this package, which a
// development server may have replaced.
const perfHooks = require('perf_hooks');

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
    this.#observer = new perfHooks.PerformanceObserver(list => this.#notify(list.getEntries()));
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

  /** Reports the entries that the observer holds and has not reported yet. */
  deliver() {
    if (this.#observer !== undefined) this.#notify(this.#observer.takeRecords());
  }

  /** @param {any[]} entries */
  #notify(entries) {
    for (const { detail, duration } of entries) {
      for (const subscriber of this.#subscribers) subscriber(detail.kind, duration / MILLISECONDS);
    }
  }
}

/** @returns {boolean} whether the runtime reports collections */
function isObservable() {
  const { PerformanceObserver } = /** @type {any} */ (perfHooks);
  return Boolean(PerformanceObserver?.supportedEntryTypes?.includes('gc'));
}

/**
 * Reports every collection from now on.
 *
 * @param {object} registry whose families share an observer
 * @param {Subscriber} subscriber must not reference metrics of the registry: the runtime holds the
 *   subscriber, so a registry that the application drops would never be garbage
 * @returns {{deliver: () => void, stop: () => void}} `deliver` reports the collections that the runtime has
 *   handed over and not reported yet
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
