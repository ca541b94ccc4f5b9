'use strict';

// How long the library's synchronous sections are, without the time in which their thread waits for a processor: a
// section that wakes four workers on a machine with two is often put aside for them, by milliseconds.

const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { processorWait } = require('./processor-wait.js');

const BEGIN = 'prom-client-cluster:section-begin';
const END = 'prom-client-cluster:section';

class SectionClock {
  #note;
  #waitedBefore = 0;
  #onBegin = () => (this.#waitedBefore = processorWait());
  #onEnd = ({ name, milliseconds }) => {
    this.#note(name, Math.max(0, milliseconds - (processorWait() - this.#waitedBefore)));
  };

  /** @param {(name: string, milliseconds: number) => void} note called at the end of each section of the main thread */
  constructor(note) {
    this.#note = note;
  }

  start() {
    subscribe(BEGIN, this.#onBegin);
    subscribe(END, this.#onEnd);
  }

  stop() {
    unsubscribe(BEGIN, this.#onBegin);
    unsubscribe(END, this.#onEnd);
  }
}

module.exports = { SectionClock };
