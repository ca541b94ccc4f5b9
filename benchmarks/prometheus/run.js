'use strict';

// What a page costs on the wire, and its series in Prometheus: the figures of docs/scaling.md.
//   node benchmarks/prometheus/run.js
//
// Needs `prometheus` and `promtool`. The metrics are those of a web service: a counter and a histogram with
// the labels method, route and status, filled by random requests.

const { execFileSync } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const http = require('node:http');
const os = require('node:os');
const path = require('node:path');
const { Counter, Histogram, Registry, RemoteWrite } = require('../..');
const { PrometheusServer } = require('../../test/fixtures/prometheus-server');
const { randomFrom } = require('../shared/random');
const { number, table } = require('../shared/table');

const PAGE_SAMPLES = 10_000;
const SAMPLES_PER_LABEL_SET = 15; // one of the counter, 14 of the histogram
const REQUESTS = 1_000_000;
const BOXES = 10; // 100,000 series
const SCRAPES = 12;
const WITHIN_MS = 600_000;

// What is stored: 15 seconds apart for two hours, the length of Prometheus' blocks.
const STORED_SAMPLES = 3000;
const STEP_SECONDS = 15;
const BLOCK_SECONDS = 2 * 60 * 60;
const REQUESTS_PER_STEP = 1500;

/** A service that has had some requests. */
class Service {
  registry = new Registry();
  #random = randomFrom(1);
  #labelSets;
  #requests;
  #durations;

  /** @param {number} samples of its page, about */
  constructor(samples) {
    const labels = { labelNames: ['method', 'route', 'status'], registers: [this.registry] };
    this.#requests = new Counter({ name: 'http_requests_total', help: 'Requests', ...labels });
    const duration = { name: 'http_request_duration_seconds', help: 'Duration of requests' };
    this.#durations = new Histogram({ ...duration, ...labels });
    this.#labelSets = Array.from({ length: Math.round(samples / SAMPLES_PER_LABEL_SET) }, (_, i) => ({
      method: ['GET', 'POST', 'PUT', 'DELETE'][i % 4],
      status: ['200', '201', '404', '500'][Math.floor(i / 4) % 4],
      route: `/api/v1/resources/:id/part-${Math.floor(i / 16)}`,
    }));
    for (const labelSet of this.#labelSets) this.#record(labelSet);
  }

  #record(labelSet) {
    this.#requests.inc(labelSet);
    this.#durations.observe(labelSet, 0.003 * 1000 ** this.#random());
  }

  /** A few label sets get most of the requests. */
  work(requests) {
    const sets = this.#labelSets;
    for (let i = 0; i < requests; i++) this.#record(sets[Math.floor(sets.length * this.#random() ** 3)]);
  }
}

function progress(text) {
  process.stderr.write(`${text} ...\n`);
}

/** @returns {Promise<string[][]>} rows of a table: format, bytes, bytes per sample */
async function pageSizes() {
  const { registry } = filled(PAGE_SAMPLES);
  const text = await registry.metricsBytes();
  const samples = text.toString().match(/^[^#]/gm).length;
  const sizes = [
    ['text', text.length],
    ['text with gzip', (await registry.metricsBytes({ gzip: true })).length],
    ['remote write 1.0 (Snappy)', await pushedBytes(registry, '1.0')],
    ['remote write 2.0 (Snappy)', await pushedBytes(registry, '2.0')],
  ];
  return sizes.map(([format, bytes]) => [format, number(bytes), number(bytes / samples)]);
}

function filled(samples) {
  const service = new Service(samples);
  service.work(REQUESTS);
  return service;
}

/** A receiver that accepts everything, and counts what arrives. */
async function pushedBytes(registry, protocol) {
  let bytes = 0;
  const receiver = http.createServer((request, response) => {
    request.on('data', chunk => (bytes += chunk.length));
    request.on('end', () =>
      response
        .writeHead(204, { 'X-Prometheus-Remote-Write-Samples-Written': String(PAGE_SAMPLES * 2) })
        .end(),
    );
  });
  const url = await listening(receiver);
  const labels = { job: 'shop', instance: 'box-1' };
  await new RemoteWrite(url, { labels, protocol }, registry).push();
  receiver.close();
  return bytes;
}

async function listening(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** Bytes of memory that a real Prometheus takes for each series. */
async function memoryPerSeries(directory) {
  const service = filled(PAGE_SAMPLES);
  const server = http.createServer(async (request, response) => {
    service.work(REQUESTS_PER_STEP);
    response.end(await service.registry.metricsBytes());
  });
  const { host } = new URL(await listening(server));
  const measured = async boxes => {
    const file = path.join(directory, 'prometheus.yml');
    const targets = Array.from({ length: boxes }, (_, i) => ({
      targets: [host],
      labels: { instance: `10.0.0.${i}:3001` },
    }));
    const configuration = {
      global: { scrape_interval: '5s' },
      scrape_configs: [{ job_name: 'shop', static_configs: targets }],
    };
    fs.writeFileSync(file, JSON.stringify(configuration));
    const prometheus = await PrometheusServer.startConfigured(file);
    const scrapes = 'min(count_over_time(up[1h]))';
    if (boxes > 0) await prometheus.numberWhen(scrapes, count => count >= SCRAPES, WITHIN_MS);
    const page = await (await fetch(new URL('/metrics', prometheus.url))).text();
    const valueOf = name => Number(new RegExp(`^${name} (.*)$`, 'm').exec(page)[1]);
    const result = {
      bytes: valueOf('process_resident_memory_bytes'),
      series: valueOf('prometheus_tsdb_head_series'),
    };
    await prometheus.stop();
    return result;
  };
  const idle = await measured(0);
  const busy = await measured(BOXES);
  server.close();
  return { series: busy.series, bytes: busy.bytes, perSeries: (busy.bytes - idle.bytes) / busy.series };
}

/** Bytes of a block, which promtool writes as Prometheus does. */
async function storedBytes(directory) {
  const service = new Service(STORED_SAMPLES);
  const start = Math.floor(Date.now() / 1000 / BLOCK_SECONDS) * BLOCK_SECONDS - BLOCK_SECONDS;
  const file = path.join(directory, 'samples.txt');
  const output = fs.openSync(file, 'w');
  let samples = 0;
  let series = 0;
  for (let second = 0; second < BLOCK_SECONDS; second += STEP_SECONDS) {
    service.work(REQUESTS_PER_STEP);
    const lines = (await service.registry.metrics()).split('\n').filter(line => /^[^#]/.test(line));
    series = lines.length;
    samples += series;
    const labelled = line => line.replace('{', '{job="shop",instance="10.0.0.1:3001",');
    fs.writeSync(output, lines.map(line => `${labelled(line)} ${start + second}\n`).join(''));
  }
  fs.writeSync(output, '# EOF\n');
  fs.closeSync(output);
  const blocks = path.join(directory, 'blocks');
  execFileSync('promtool', ['tsdb', 'create-blocks-from', 'openmetrics', file, blocks]);
  const sizeOf = pattern =>
    fs
      .readdirSync(blocks, { recursive: true })
      .filter(name => pattern.test(name))
      .reduce((sum, name) => sum + fs.statSync(path.join(blocks, name)).size, 0);
  return {
    samples,
    chunks: sizeOf(/chunks\/\d+$/) / samples,
    index: sizeOf(/index$/) / series,
    all: (sizeOf(/chunks\/\d+$/) + sizeOf(/index$/)) / samples,
  };
}

async function main() {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'benchmark-prometheus-'));
  try {
    progress('pages');
    console.log(table(['format', 'bytes', 'bytes per sample'], await pageSizes()));
    progress('blocks');
    const stored = await storedBytes(directory);
    progress('memory of Prometheus, about a minute');
    const memory = await memoryPerSeries(directory);
    const [version] = execFileSync('prometheus', ['--version'], { encoding: 'utf8' }).split(/ \(/);
    console.log(`\n${version}`);
    const rows = [
      [`memory per series (${number(memory.series)} series)`, number(memory.perSeries)],
      [`disk per sample, every ${STEP_SECONDS} s (${number(stored.samples)} samples)`, number(stored.all)],
      ['of it values', number(stored.chunks)],
      ['index per series and block of two hours', number(stored.index)],
    ];
    console.log(table(['what', 'bytes'], rows));
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
}

void main();
