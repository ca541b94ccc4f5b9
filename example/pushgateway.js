'use strict';

// A batch job ends before it is scraped, so it pushes its metrics to a Pushgateway, which Prometheus scrapes.
// PUSHGATEWAY_URL=http://127.0.0.1:9091 node example/pushgateway.js

const { Counter, Gauge, Pushgateway, Registry } = require('prom-client');

const registry = new Registry();
const registers = [registry];
const rows = new Counter({ name: 'import_rows_total', help: 'Rows read', registers });
const duration = new Gauge({ name: 'import_duration_seconds', help: 'Duration of the import', registers });
const success = new Gauge({
  name: 'import_last_success_timestamp_seconds',
  help: 'Time of the last successful import',
  registers,
});

async function runImport() {
  const end = duration.startTimer();
  for (const line of ['id,name', '1,one', '2,two']) {
    if (line !== 'id,name') rows.inc();
  }
  end();
  success.setToCurrentTime();
}

async function main() {
  const url = process.env.PUSHGATEWAY_URL ?? 'http://127.0.0.1:9091';
  const gateway = new Pushgateway(url, { timeout: 5000 }, registry);
  const group = { jobName: 'import', groupings: { file: 'in/customers.csv' } };
  await runImport();
  const { resp } = await gateway.push(group);
  console.log(`pushed: ${resp.statusCode}`);
}

// The job has done its work: a gateway that cannot be reached is reported, and is no uncaught error.
main().catch(error => {
  console.error(`nothing was pushed: ${error.message}`);
  process.exitCode = 1;
});
