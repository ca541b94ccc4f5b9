'use strict';

// Runs in a thread that has joined. Its messages to the hub and the hub's requests. Nothing here keeps the
// thread alive.

const { randomUUID } = require('node:crypto');
const { BroadcastChannel, threadId } = require('node:worker_threads');
const { LISTENER_BYTES, scopeOf, inboxOf, helloOf, channelOf } = require('./thread-messages');
const { ownTask } = require('./kernel-tasks');
const { ownProcessState } = require('../registry/process-state');

class ThreadLink {
  #scope = scopeOf();
  #id = '';
  #listening = new Int32Array(new SharedArrayBuffer(LISTENER_BYTES));
  /** @type {BroadcastChannel | undefined} */
  #channel;
  /**
   * To the hub, for the rest of this turn.
   *
   * @type {BroadcastChannel | undefined}
   */
  #inbox;
  #hello;
  #onRequest;

  /**
   * @param {object} events
   * @param {(message: any) => void} events.onRequest
   * @param {() => void} events.onHello called when a new hub exists, which knows nothing
   */
  constructor({ onRequest, onHello }) {
    this.#onRequest = onRequest;
    this.#hello = this.#listen(helloOf(this.#scope), onHello);
  }

  /**
   * The first message to a hub.
   *
   * @param {SharedArrayBuffer} log
   */
  join(log) {
    this.#channel?.close();
    const state = ownProcessState();
    // A hub that has it replaces what it has, and adds nothing twice.
    const previous = state.threadId;
    state.threadId = this.#id = randomUUID();
    this.#listening = new Int32Array(new SharedArrayBuffer(LISTENER_BYTES));
    this.#channel = this.#listen(channelOf(this.#id), message => this.#onRequest(message));
    this.send({ join: log, listening: this.#listening.buffer, threadId, task: ownTask(), previous });
  }

  /** @param {object} message */
  send(message) {
    const signed = { ...message, thread: this.#id };
    if (Atomics.load(this.#listening, 0) === 1) {
      this.#channel?.postMessage(signed);
      return;
    }
    this.#inbox ??= this.#openInbox();
    this.#inbox.postMessage(signed);
  }

  /**
   * A channel that stays open would collect the messages of all other threads. Not one for each message: a
   * channel exists until the end of the turn although it is closed, and all that exist get a copy of each.
   */
  #openInbox() {
    void this.#closeInbox();
    return new BroadcastChannel(inboxOf(this.#scope));
  }

  async #closeInbox() {
    // After what is sent in this turn. Not queueMicrotask(), which test libraries replace.
    await undefined;
    this.#inbox?.close();
    this.#inbox = undefined;
  }

  close() {
    this.#channel?.close();
    this.#hello.close();
  }

  /**
   * @param {string} name
   * @param {(message: any) => void} onMessage
   */
  #listen(name, onMessage) {
    const channel = new BroadcastChannel(name);
    channel.onmessage = (/** @type {any} */ event) => onMessage(event.data);
    /** @type {any} */ (channel).unref();
    return channel;
  }
}

module.exports = { ThreadLink };
