'use strict';

// Shows the current step and the remaining time: on a terminal in one line that changes, in a log in one line
// per step, with more lines for a long step.

const LINE_EVERY = 10; // seconds at least between the lines of one step in a log

class Progress {
  #steps;
  #stream;
  #now;
  #began;
  #total;
  #finished = 0;
  #current = -1;
  #lastLine = -Infinity;

  /**
   * @param {{title: string, seconds: number}[]} steps what is to be done, with a rough guess of how long each
   *   takes
   * @param {NodeJS.WriteStream} stream
   * @param {() => number} [now] milliseconds
   */
  constructor(steps, stream, now = () => performance.now()) {
    this.#steps = steps;
    this.#total = steps.reduce((total, { seconds }) => total + seconds, 0);
    this.#stream = stream;
    this.#now = now;
    this.#began = now();
  }

  /** @param {number} [index] of the step that begins; default: the next one */
  begin(index = this.#current + 1) {
    this.#current = index;
    this.#say('', 0);
  }

  /**
   * What a step calls back with.
   *
   * @param {number} done repetitions
   * @param {number} of how many
   */
  repetition(done, of) {
    if (!this.#stream.isTTY && this.#now() - this.#lastLine < LINE_EVERY * 1e3) return;
    this.#say(`, repetition ${Math.min(done + 1, of)} of ${of}`, done / of);
  }

  end() {
    this.#finished += this.#steps[this.#current].seconds;
    if (this.#stream.isTTY) this.#stream.write('\r\x1b[K');
  }

  #say(repetition, share) {
    const title = `[${this.#current + 1}/${this.#steps.length}] ${this.#steps[this.#current].title}`;
    const rest = `${repetition} — ${this.#left(share)}`;
    this.#lastLine = this.#now();
    if (!this.#stream.isTTY) {
      this.#stream.write(`${title}${rest}\n`);
      return;
    }
    // A line that wraps could not be rewritten: a long title gives way.
    const columns = Math.max(0, (this.#stream.columns || 80) - 1 - rest.length);
    this.#stream.write(`\r\x1b[K${title.slice(0, columns)}${rest}`);
  }

  /** The guesses of the plan, scaled by how they fared so far. */
  #left(share) {
    const done = this.#finished + share * this.#steps[this.#current].seconds;
    const elapsed = (this.#now() - this.#began) / 1e3;
    const pace = this.#finished > 0 ? elapsed / done : 1;
    const seconds = (this.#total - done) * pace;
    return seconds < 90 ? `about ${Math.ceil(seconds)} s left` : `about ${Math.ceil(seconds / 60)} min left`;
  }
}

module.exports = { Progress };
