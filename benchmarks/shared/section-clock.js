'use strict';

// How long the library's synchronous sections are, without the time in which their thread waits for a
// processor: a section that wakes four workers on a machine with two is often put aside for them, by
// milliseconds.

const { subscribe, unsubscribe } = require('node:diagnostics_channel');
const { processorWait } = require('./processor-wait.js');
const sections = require('../../lib/event-loop/timed-section');

const CHANNEL = 'prom-client-cluster:section';

const { timedSection } = sections;
/** @type {number | undefined} */
let waitedBefore;

// The library reports the end of a section only. Its other files take this function when they are loaded, so
// this file has to be loaded before the library.
sections.timedSection = (name, run) =>
  timedSection(name, () => {
    waitedBefore = processorWait();
    return run();
  });

class SectionClock {
  #note;
  #onEnd = ({ name, milliseconds }) => {
    if (waitedBefore === undefined) throw new Error('section-clock.js was loaded after the library');
    this.#note(name, Math.max(0, milliseconds - (processorWait() - waitedBefore)));
  };

  /**
   * @param {(name: string, milliseconds: number) => void} note called at the end of each section of the main
   *   thread
   */
  constructor(note) {
    this.#note = note;
  }

  start() {
    subscribe(CHANNEL, this.#onEnd);
  }

  stop() {
    unsubscribe(CHANNEL, this.#onEnd);
  }
}

module.exports = { SectionClock };
