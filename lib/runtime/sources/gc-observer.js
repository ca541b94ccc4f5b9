'use strict';

// Reports every garbage collection to metric families. All of them share one PerformanceObserver: an entry
// costs the runtime 50 µs or more for each observer, and a subscriber 1 µs.

// Not in a function: the runtime would hold its `require`, and with that all modules of this package, which a
// development server may have replaced.
const perfHooks = require('perf_hooks');

/** @typedef {(kind: number, seconds: number) => void} Subscriber */

const MILLISECONDS = 1e3;

/** @type {Set<Subscriber>} */
const subscribers = new Set();

/** @type {import('perf_hooks').PerformanceObserver | undefined} while there are subscribers */
let observer;

/** @returns {boolean} whether the runtime reports collections */
function isObservable() {
  const { PerformanceObserver } = /** @type {any} */ (perfHooks);
  return Boolean(PerformanceObserver?.supportedEntryTypes?.includes('gc'));
}

/**
 * Reports every collection from now on.
 *
 * @param {Subscriber} subscriber must not reference metrics: the runtime holds the subscriber, so a registry
 *   that the application drops would never be garbage
 * @returns {() => void} ends that
 */
function observeCollections(subscriber) {
  deliverCollections();
  subscribers.add(subscriber);
  if (observer === undefined) {
    observer = new perfHooks.PerformanceObserver(list => notify(list.getEntries()));
    observer.observe({ entryTypes: ['gc'] });
  }
  return () => {
    deliverCollections();
    subscribers.delete(subscriber);
    if (subscribers.size > 0) return;
    observer?.disconnect();
    observer = undefined;
  };
}

/** Reports the collections that the runtime has handed over and not reported yet. */
function deliverCollections() {
  if (observer !== undefined) notify(observer.takeRecords());
}

/** @param {any[]} entries */
function notify(entries) {
  for (const { detail, duration } of entries) {
    for (const subscriber of subscribers) subscriber(detail.kind, duration / MILLISECONDS);
  }
}

module.exports = { isObservable, observeCollections, deliverCollections };
