'use strict';

// A load generator in a process of its own: the demo's requests on connections that are kept, either at a fixed rate or
// always one under way on each. Connections of their own would cost the service more per request, and what the default
// metrics cost would seem less.

const { REQUESTS } = require('../../example/demo/traffic');
const { KeptConnection, textOf } = require('./kept-connection.js');

const CONNECTIONS = 32;
const TEXTS = REQUESTS.map(textOf);

/** @type {KeptConnection[]} */
let connections = [];

const commands = {
  /** Opens connections to a service, in place of those before. */
  aim({ port }) {
    for (const connection of connections) connection.close();
    connections = Array.from({ length: CONNECTIONS }, () => new KeptConnection(port));
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

/** Starts what is due each millisecond, on a connection that is free or will be. */
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
