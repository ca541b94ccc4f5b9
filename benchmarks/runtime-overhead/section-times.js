'use strict';

// How long the default metrics hold a worker's event loop at a scrape. Their hooks run in one go when the primary asks,
// and sample what takes longer in the turns after that; records of collections are taken over in between; then the
// snapshot is captured and written.

const v8 = require('node:v8');
const { processorWait } = require('../shared/processor-wait.js');
const { SectionClock } = require('../shared/section-clock.js');

/** @typedef {{hooks: number, collections: number, capture: number}} Sections milliseconds on a processor, the longest of each */

/** Times sections from its construction on. What it puts in their way costs time itself, so it must not stay. */
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

  /** Replaces methods by ones that are timed: from the first call to the end of the last one of the same turn. */
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

  /** @returns {Sections} since it was asked last */
  take() {
    const sections = this.#sections;
    this.#sections = { hooks: 0, collections: 0, capture: 0 };
    return sections;
  }

  /** Takes everything out of the way again. */
  end() {
    for (const restore of this.#restore.splice(0)) restore();
  }
}

module.exports = { SectionTimes };
