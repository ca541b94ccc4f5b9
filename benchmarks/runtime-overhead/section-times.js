'use strict';

// Measures how long default metrics block a worker's event loop at a scrape. Their hooks run synchronously
// when the primary asks, and sample the slower metrics in the following turns. Records of collections are
// read in between. Then the snapshot is captured and written.

const v8 = require('node:v8');
const { processorWait } = require('../shared/processor-wait.js');
const { SectionClock } = require('../shared/section-clock.js');

/**
 * @typedef {{hooks: number, collections: number, capture: number}} Sections CPU milliseconds of the longest
 *   one of each
 */

/** Times sections from its construction on. Timing has a cost itself, so end() removes it. */
class SectionTimes {
  #sections = { hooks: 0, collections: 0, capture: 0 };
  #restore = [];

  /** @param {any} registry whose hooks are those of the default metrics */
  constructor(registry) {
    this.#timeTogether(
      'hooks',
      registry.getMetricsAsArray().filter(({ collect }) => collect),
      'collect',
    );
    this.#timeTogether('collections', [v8.GCProfiler.prototype], 'stop', 'start');
    const clock = new SectionClock((name, milliseconds) => {
      if (name === 'worker:capture') this.#note('capture', milliseconds);
      if (name === 'default-metrics:sample') this.#note('hooks', milliseconds);
    });
    clock.start();
    this.#restore.push(() => clock.stop());
  }

  /** Times methods: from the first call to the end of the last call in the same turn. */
  #timeTogether(name, objects, ...methods) {
    let began;
    let ended;
    let waitedBefore;
    const note = () => {
      const milliseconds = ended - began;
      const waited = processorWait() - waitedBefore;
      if (waited < milliseconds) this.#note(name, milliseconds - waited);
      began = undefined;
    };
    for (const object of objects) {
      for (const method of methods) {
        const original = object[method];
        object[method] = function timed(...values) {
          if (began === undefined) {
            waitedBefore = processorWait();
            began = performance.now();
            Promise.resolve().then(note);
          }
          try {
            return original.apply(this, values);
          } finally {
            ended = performance.now();
          }
        };
        this.#restore.push(() => (object[method] = original));
      }
    }
  }

  #note(name, milliseconds) {
    this.#sections[name] = Math.max(this.#sections[name], milliseconds);
  }

  /** @returns {Sections} since the last call */
  take() {
    const sections = this.#sections;
    this.#sections = { hooks: 0, collections: 0, capture: 0 };
    return sections;
  }

  /** Restores all methods. */
  end() {
    for (const restore of this.#restore.splice(0)) restore();
  }
}

module.exports = { SectionTimes };
