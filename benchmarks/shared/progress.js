'use strict';

// Says what runs now and how much is left. A terminal sees one line that changes, a log one line a step.

class Progress {
  #steps;
  #began = performance.now();
  #total;
  #finished = 0;
  #current = 0;
  #stream;

  /**
   * @param {{title: string, seconds: number}[]} steps what is to be done, with a rough guess of how long each takes
   * @param {NodeJS.WriteStream} stream
   */
  constructor(steps, stream) {
    this.#steps = steps;
    this.#total = steps.reduce((total, { seconds }) => total + seconds, 0);
    this.#stream = stream;
  }

  /** @param {number} index of the step that begins */
  begin(index) {
    this.#current = index;
    this.#write(`${this.#where()}${this.#left(0)}`, { lasting: !this.#stream.isTTY });
  }

  /** What a step calls back with. */
  repetition(done, of) {
    if (!this.#stream.isTTY) return;
    this.#write(
      `${this.#where()}, repetition ${Math.min(done + 1, of)} of ${of}${this.#left(done / of)}`,
      {},
    );
  }

  end() {
    this.#finished += this.#steps[this.#current].seconds;
    if (this.#stream.isTTY) this.#write('', {});
  }

  #where() {
    return `[${this.#current + 1}/${this.#steps.length}] ${this.#steps[this.#current].title}`;
  }

  /** The guesses of the plan, scaled by how they fared so far. */
  #left(share) {
    const done = this.#finished + share * this.#steps[this.#current].seconds;
    const elapsed = (performance.now() - this.#began) / 1e3;
    const pace = this.#finished > 0 ? elapsed / done : 1;
    const seconds = (this.#total - done) * pace;
    return seconds < 90
      ? ` — about ${Math.ceil(seconds)} s left`
      : ` — about ${Math.ceil(seconds / 60)} min left`;
  }

  #write(text, { lasting = false }) {
    this.#stream.write(lasting ? `${text}\n` : `\r\x1b[K${text}`);
  }
}

module.exports = { Progress };
