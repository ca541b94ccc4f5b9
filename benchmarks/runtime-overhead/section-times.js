'use strict';

// How long the default metrics hold a worker's event loop at a scrape. Their hooks run in one go when the primary asks;
// records of collections are taken over two turns later; then the snapshot is captured and written.

const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const v8 = require('node:v8');

const CHANNEL = 'prom-client-cluster:section';

/** @typedef {{hooks: number, collections: number, capture: number}} Sections milliseconds, the longest of each */

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
    const onSection = ({ name, milliseconds }) => {
      if (name === 'worker:capture') this.#note('capture', milliseconds);
    };
    subscribe(CHANNEL, onSection);
    this.#restore.push(() => unsubscribe(CHANNEL, onSection));
  }

  /** Replaces methods by ones that are timed: from the first call to the end of the last one of the same turn. */
  #timeTogether(name, objects, ...methods) {
    let began;
    let ended;
    const note = () => {
      this.#note(name, ended - began);
      began = undefined;
    };
    for (const object of objects) {
      for (const method of methods) {
        const original = object[method];
        object[method] = function timed(...values) {
          if (began === undefined) {
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
