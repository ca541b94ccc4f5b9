'use strict';

// The service. node service.js LIMIT, forked with an IPC channel: it sends its parent its port, accepts
// another limit, and ends when the channel closes. http://127.0.0.1:PORT/tasks/OPERATION runs a task,
// /metrics serves the metrics.

const express = require('express');
const { collectDefaultMetrics, metricsHandler, register } = require('prom-client');
const { Limiter } = require('./limiter');
const { TaskMetrics } = require('./task-metrics');
const { OPERATIONS, runTask } = require('./tasks');

const limiter = new Limiter(Number(process.argv[2]));
const metrics = new TaskMetrics(limiter);
collectDefaultMetrics({ runtime: ['gc', 'heap', 'eventLoopUtilization'] });

const app = express();
for (const operation of Object.keys(OPERATIONS)) app.get(`/tasks/${operation}`, limited(operation));
app.get('/metrics', metricsHandler(register));

const server = app.listen(0, '127.0.0.1', error => {
  if (error) throw error;
  process.send({ type: 'ready', port: server.address().port });
});

process.on('message', message => {
  if (message.type !== 'limit') return;
  limiter.limit = message.limit;
  process.send({ type: 'limited' });
});
process.on('disconnect', () => process.exit(0));

/** The handler of an operation: a task waits for its turn, and is measured from its start. */
function limited(operation) {
  return async (request, response) => {
    const arrived = performance.now();
    await limiter.enter();
    const taskEnds = metrics.taskBegins(operation, (performance.now() - arrived) / 1000);
    try {
      response.json(await runTask(operation));
    } finally {
      taskEnds();
      limiter.leave();
    }
  };
}
