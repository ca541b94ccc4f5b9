'use strict';

// Runs in a thread that has joined. Sends its messages to the hub, and receives the hub's requests. Does not
// keep the thread alive.

const { randomUUID } = require('node:crypto');
const { BroadcastChannel, threadId } = require('node:worker_threads');
const { scopeOf, inboxOf, helloOf, channelOf, listen } = require('./thread-messages');
const { ownTask } = require('./kernel-tasks');
const { ownProcessState } = require('../registry/process-state');

class ThreadLink {
  #scope = scopeOf();
  #id = '';
  /** In which the hub says that it listens on this thread's channel. */
  #listening = newFlag();
  /** @type {BroadcastChannel | undefined} */
  #channel;
  /**
   * Channel to the hub for the rest of this turn.
   *
   * @type {BroadcastChannel | undefined}
   */
  #inbox;
  #hello;
  #onRequest;
  /**
   * Messages since open(); undefined once the thread has joined.
   *
   * @type {any[] | undefined}
   */
  #early = undefined;

  /**
   * @param {object} events
   * @param {(message: any) => void} events.onRequest
   * @param {() => void} events.onHello called when there is a new hub
   */
  constructor({ onRequest, onHello }) {
    this.#onRequest = onRequest;
    this.#hello = listen(helloOf(this.#scope), onHello);
  }

  /** To be called before everything is published for a hub: until join(), nothing is sent. */
  open() {
    this.#early = [];
  }

  /** Sends everything since open() to a hub, as the first message. */
  join() {
    const early = this.#early ?? [];
    this.#early = undefined;
    this.#channel?.close();
    const state = ownProcessState();
    // A hub that already has this thread replaces its record, so nothing counts twice.
    const previous = state.threadId;
    state.threadId = this.#id = randomUUID();
    this.#listening = newFlag();
    this.#channel = listen(channelOf(this.#id), message => this.#onRequest(message));
    const about = { listening: this.#listening, threadId, task: ownTask(), previous };
    const [chunks, memories] = ['chunks', 'memories'].map(key =>
      early.flatMap(({ parts }) => parts?.[key] ?? []),
    );
    const hooks = early.flatMap(message => message.hooks ?? []);
    this.send({ join: true, ...about, parts: { chunks, memories }, hooks });
  }

  /** Tells the hub that this thread publishes nothing more. */
  leave() {
    // What an earlier record has is more complete.
    if (this.#early !== undefined && ownProcessState().threadId === undefined) this.join();
    this.#early = undefined;
    this.send({ left: true });
  }

  /** @param {object} message */
  send(message) {
    if (this.#early !== undefined) {
      this.#early.push(message);
      return;
    }
    const signed = { ...message, thread: this.#id };
    if (Atomics.load(this.#listening, 0) === 1) {
      this.#channel?.postMessage(signed);
      return;
    }
    this.#inbox ??= this.#openInbox();
    this.#inbox.postMessage(signed);
  }

  /**
   * Opens the inbox until the end of the turn, because an open channel collects the messages of all other
   * threads. All messages of a turn share one channel: even a closed one exists until the end of the turn,
   * and gets a copy of each message.
   */
  #openInbox() {
    void this.#closeInbox();
    return new BroadcastChannel(inboxOf(this.#scope));
  }

  async #closeInbox() {
    // After everything that is sent in this turn. Not with queueMicrotask(), which test libraries replace.
    await undefined;
    this.#inbox?.close();
    this.#inbox = undefined;
  }

  close() {
    this.#channel?.close();
    this.#hello.close();
  }
}

function newFlag() {
  return new Int32Array(new SharedArrayBuffer(4));
}

module.exports = { ThreadLink };
