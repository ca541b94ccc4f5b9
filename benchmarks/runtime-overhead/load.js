'use strict';

// A load generator in its own process: sends the demo's requests on reused connections, either at a fixed
// rate or always one at a time on each. A connection per request would make requests more expensive, and
// default metrics cheaper in comparison.

const { REQUESTS } = require('../../example/demo/traffic');
const { ReusedConnection, textOf } = require('./reused-connection.js');

const CONNECTIONS = 32;
const TEXTS = REQUESTS.map(textOf);

/** @type {ReusedConnection[]} */
let connections = [];

const commands = {
  /** Opens connections to a service, and closes the previous ones. */
  aim({ port }) {
    for (const connection of connections) connection.close();
    connections = Array.from({ length: CONNECTIONS }, () => new ReusedConnection(port));
  },

  /** @returns {Promise<{answered: number, failed: number, seconds: number}>} */
  async run({ seconds, rate }) {
    const outcome = { answered: 0, failed: 0 };
    const began = performance.now();
    await (rate ? atRate({ seconds, rate }, outcome) : alwaysUnderWay({ seconds }, outcome));
    return { ...outcome, seconds: (performance.now() - began) / 1e3 };
  },
};

process.on('disconnect', () => process.exit(0));
process.on('message', async ({ id, command, settings }) => {
  process.send({ id, answer: await commands[command](settings) });
});

let lastText = 0;

async function ask(connection, outcome) {
  const isAnswered = await connection.ask(TEXTS[lastText++ % TEXTS.length]);
  if (isAnswered) outcome.answered += 1;
  else outcome.failed += 1;
}

function alwaysUnderWay({ seconds }, outcome) {
  const until = performance.now() + seconds * 1e3;
  const chain = async connection => {
    while (performance.now() < until) await ask(connection, outcome);
  };
  return Promise.all(connections.map(chain));
}

/** Sends the requests that are due each millisecond, on the connection that is free first. */
async function atRate({ seconds, rate }, outcome) {
  const began = performance.now();
  const free = [...connections];
  const underWay = new Set();
  const requests = Math.round(seconds * rate);
  let started = 0;
  const start = () => {
    const due = Math.min(((performance.now() - began) / 1e3) * rate, requests);
    for (; started < due && free.length > 0; started++) {
      const connection = free.shift();
      const one = ask(connection, outcome).then(() => {
        free.push(connection);
        underWay.delete(one);
      });
      underWay.add(one);
    }
  };
  await new Promise(resolve => {
    const timer = setInterval(() => {
      start();
      if (started < requests) return;
      clearInterval(timer);
      resolve();
    }, 1);
  });
  await Promise.all(underWay);
}
