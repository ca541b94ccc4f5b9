'use strict';

// Runs on the primary's loop. Represents the primary's own registries as another worker: its id is 0, it
// never ends, and messages to and from it are direct calls.

const { WorkerResponder } = require('../worker/worker-responder');

/** Ids of workers start at 1. */
const OWN_ID = 0;

class OwnWorker {
  id = OWN_ID;
  #responder;

  /**
   * @param {() => Iterable<any>} registries
   * @param {(message: object) => void} onMessage
   */
  constructor(registries, onMessage) {
    const link = {
      ...{ id: OWN_ID, isDirect: true, isConnected: () => true },
      send: (/** @type {object} */ message, onSent = () => {}) => {
        onMessage(message);
        onSent();
      },
    };
    this.#responder = new WorkerResponder(link, registries);
  }

  /**
   * @param {object} message
   * @param {(error: null) => void} onSent
   */
  send(message, onSent) {
    // No checkpoints: when the primary dies, nobody reads them.
    this.#responder.receive({ ...message, checkpointInterval: 0 });
    onSent(null);
  }
}

module.exports = { OwnWorker };
