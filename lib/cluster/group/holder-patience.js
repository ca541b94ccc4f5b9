'use strict';

// How long a process of a group waits for a holder that does not answer. A holder that is stopped has to be
// replaced soon. On a machine that has no time for its processes each new holder would be replaced, too, and
// every change costs time. So the wait doubles with each hand-over beyond a few in a minute.

const WINDOW_MILLISECONDS = 60_000;
const FREE_HANDOVERS = 4;
const SHORTEST_MILLISECONDS = 2000;
const LONGEST_MILLISECONDS = 32_000;

class HolderPatience {
  /** @type {{generation: number, at: number}[]} the latest before the window, and those in it */
  #met = [];

  /**
   * @param {number} generation of the holder that this process is linked to
   * @param {number} now milliseconds, of a clock that never goes back
   * @returns {number} milliseconds after which its holder is taken for stopped
   */
  milliseconds(generation, now) {
    if (this.#met.at(-1)?.generation !== generation) this.#met.push({ generation, at: now });
    while (this.#met.length > 1 && this.#met[1].at <= now - WINDOW_MILLISECONDS) this.#met.shift();
    const handovers = generation - this.#met[0].generation;
    const excess = Math.max(handovers - FREE_HANDOVERS, 0);
    return Math.min(SHORTEST_MILLISECONDS * 2 ** excess, LONGEST_MILLISECONDS);
  }
}

module.exports = { HolderPatience };
