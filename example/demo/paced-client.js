'use strict';

/**
 * Gives autocannon's clients an even pace, with a new connection for every request.
 *
 * autocannon 9 cannot do both. With `reconnectRate: 1` it throws a connection away as soon as the response is
 * complete and never counts that response (200 requests answered, 0 reported). With `overallRate` all clients
 * send at the start of each second; and what they send then goes over connections that were opened, and
 * handed to a worker, up to a second before, so a blocked primary would not delay them. So two of the
 * client's methods are wrapped: the one after a response (to report it), and the one that connects (to wait
 * for its turn).
 *
 * @param {object} options
 * @param {number} options.rate requests per second of all clients together
 * @param {number} options.clients how many clients take turns
 * @param {object[]} options.requests what to ask for; every client starts at another one
 * @param {(milliseconds: number) => void} options.onAnswer called for each response with its latency: from
 *   opening the connection to the end of the response, or from the request's turn if the client was still
 *   busy at that time
 * @param {() => void} options.onSend called for each request
 * @returns {(client: object) => void} autocannon's `setupClient`
 */
function pacedClients({ rate, clients, requests, onAnswer, onSend }) {
  const periodMs = (clients * 1000) / rate;
  let begin;
  let count = 0;

  return function setupClient(client) {
    const position = count++;
    const { _connect: connect, _resetConnection: resetConnection } = client;
    let due;
    let start = 0;
    let status = 0;

    client.setRequests(rotated(requests, position));
    client.on('request', onSend);
    client.on('headers', headers => {
      status = headers.statusCode;
    });

    client._connect = function connectInTurn() {
      if (client.destroyed) return;
      if (client.reqsMade >= client.responseMax) client.destroy();
      else if (due === undefined) setImmediate(takeFirstTurn);
      else takeTurn();
    };

    // autocannon needs some time to create hundreds of clients: the clock starts when all of them exist.
    function takeFirstTurn() {
      begin ??= performance.now();
      due = begin + position * (1000 / rate);
      takeTurn();
    }

    function takeTurn() {
      const turn = due;
      due += periodMs;
      const wait = turn - performance.now();
      if (wait <= 0) {
        start = turn;
        connect.call(client);
        return;
      }
      setTimeout(() => {
        start = performance.now();
        connect.call(client);
      }, wait);
    }

    client._resetConnection = function reportAndReset() {
      const latency = performance.now() - start;
      onAnswer(latency);
      client.emit('response', status, client.conn.bytesRead, latency);
      resetConnection.call(client);
    };
  };
}

function rotated(list, by) {
  const first = by % list.length;
  return [...list.slice(first), ...list.slice(0, first)];
}

module.exports = { pacedClients };
