'use strict';

const PLAIN_EVERY_MS = 3000;

/** A line that is rewritten in place on a terminal, and printed every few seconds elsewhere. */
class LiveLine {
  #stream;
  #lastPrinted = -Infinity;
  #text = '';
  #closed = false;

  /** @param {import('node:tty').WriteStream} stream */
  constructor(stream) {
    this.#stream = stream;
  }

  /** @param {string} text */
  show(text) {
    if (this.#closed) return;
    this.#text = text;
    if (this.#stream.isTTY) {
      // A line that wraps could not be rewritten.
      this.#stream.write(`\r${text.slice(0, (this.#stream.columns || 80) - 1)}\x1b[K`);
    } else if (performance.now() - this.#lastPrinted >= PLAIN_EVERY_MS) {
      this.#print();
    }
  }

  #print() {
    this.#lastPrinted = performance.now();
    this.#stream.write(`${this.#text}\n`);
    this.#text = '';
  }

  /** Leaves the last text as it is and begins a new line. */
  end() {
    if (this.#stream.isTTY && this.#text) this.#stream.write('\n');
    else if (this.#text) this.#print();
    this.#text = '';
    this.#lastPrinted = -Infinity;
  }

  /** Ends the line; later calls of show() have no effect. */
  close() {
    this.end();
    this.#closed = true;
  }
}

module.exports = { LiveLine };
