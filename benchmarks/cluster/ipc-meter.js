'use strict';

// Counts the bytes that one process writes into one IPC channel.
//
// Node writes each message as one string, `JSON.stringify(message) + '\n'`, to the pipe handle behind the
// channel. The meter wraps that handle, so it counts exactly the bytes on the wire, however they are sent,
// without serialising them again. There is no other way: `/proc/<pid>/io` does not count sockets, and
// wrapping `send` would miss messages that a library sends without it. Each end counts what it writes.

const { CONTROL_PREFIX } = require('./control-messages.js');

class IpcMeter {
  #bytes = 0;
  #messages = 0;

  /**
   * @param {import('node:child_process').ChildProcess | NodeJS.Process} channelOwner `worker.process` in the
   *   primary, `process` in a worker
   * @throws {Error} if this version of Node.js stores the channel elsewhere
   */
  constructor(channelOwner) {
    const pipe = pipeOf(channelOwner);
    const write = pipe.writeUtf8String;
    pipe.writeUtf8String = (request, text, handle) => {
      this.#count(text);
      return write.call(pipe, request, text, handle);
    };
  }

  /** @param {string} text */
  #count(text) {
    if (text.startsWith(CONTROL_PREFIX)) return;
    this.#bytes += Buffer.byteLength(text);
    this.#messages += 1;
  }

  /**
   * @returns {{bytes: number, messages: number}} since the meter was created, without the benchmark's own
   *   messages
   */
  get written() {
    return { bytes: this.#bytes, messages: this.#messages };
  }
}

/** The handle is stored under a symbol that Node.js does not export. */
function pipeOf(channelOwner) {
  const symbol = Object.getOwnPropertySymbols(channelOwner).find(
    each => each.description === 'kChannelHandle',
  );
  const pipe = symbol && channelOwner[symbol];
  if (typeof pipe?.writeUtf8String !== 'function') {
    throw new Error(`cannot count IPC bytes: no channel handle to be found in Node ${process.version}`);
  }
  return pipe;
}

module.exports = { IpcMeter };
