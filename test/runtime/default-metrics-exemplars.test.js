'use strict';

const assert = require('node:assert');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { describe, it, before, after } = require('node:test');
const { context, INVALID_SPAN_CONTEXT } = require('@opentelemetry/api');
const collectDefaultMetrics = require('../../lib/runtime/default-metrics');
const { Registry } = require('../../lib/registry/registry');
const { Program } = require('../fixtures/program');
const { Contexts, inSpan } = require('../fixtures/traces');

const TRACE = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', traceFlags: 1 };
const COUNTERS = ['process_cpu_user_seconds', 'process_cpu_system_seconds', 'process_cpu_seconds'];

/** A scrape that is part of a span. */
const scrapeIn = (spanContext, register) => inSpan(spanContext, () => register.metrics());

function linesOf(text, counter) {
  return text.split('\n').filter(line => line.startsWith(`${counter}_total`));
}

describe('exemplars of the CPU counters', () => {
  let register, stop;

  before(() => {
    context.setGlobalContextManager(new Contexts());
    register = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
    stop = collectDefaultMetrics({ register, enableExemplars: true, labels: { app: 'shop' } });
  });

  after(() => {
    stop();
    context.disable();
  });

  it('exemplars of the CPU counters are absent without a valid span, and unless they are enabled', async () => {
    const text = await register.metrics();
    for (const counter of COUNTERS) assert.match(linesOf(text, counter)[0], /^\w+\{app="shop"\} [\d.e-]+$/);
    assert.doesNotMatch(await scrapeIn(INVALID_SPAN_CONTEXT, register), / # \{/);
    const plain = new Registry(Registry.OPENMETRICS_CONTENT_TYPE);
    collectDefaultMetrics({ register: plain })();
    const page = await scrapeIn(TRACE, plain);
    assert.doesNotMatch(page, / # \{/);
    assert.match(page, /^process_cpu_seconds_total /m);
  });

  it('exemplars of the CPU counters point to the span in which the scrape ran', async () => {
    const start = Date.now() / 1000;
    const text = await scrapeIn(TRACE, register);
    for (const counter of COUNTERS) {
      const [line] = linesOf(text, counter);
      const exemplar = `{traceId="${TRACE.traceId}",spanId="${TRACE.spanId}"}`;
      assert.ok(line.includes(` # ${exemplar} `), line);
      const [, value, timestamp] = /\} (\S+) (\S+)$/.exec(line);
      assert.ok(value > 0, line);
      assert.ok(timestamp >= start && timestamp <= Date.now() / 1000, line);
    }
    assert.strictEqual(text.split(' # {').length - 1, COUNTERS.length, 'no other metric has any');
  });
});

it("CPU counters have exemplars of an application's own OpenTelemetry API, although other copies are newer", async t => {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), 'opentelemetry-test-'));
  t.after(() => fs.rmSync(place, { recursive: true, force: true }));
  const original = path.resolve(require.resolve('@opentelemetry/api'), '../..');
  fs.cpSync(original, place, { recursive: true });
  const { version } = require(path.join(original, 'package.json'));
  for (const name of ['version.cjs', 'internal/global-utils.cjs']) {
    const file = path.join(place, 'dist', name);
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replaceAll(version, '1.0.0'));
  }
  const program = new Program([path.join(__dirname, 'fixtures/default-metrics-api.js'), place]);
  assert.strictEqual(await program.ended(), 0, program.errors);
  assert.match(
    program.output,
    /^process_cpu_seconds_total \S+ # \{traceId="0af7651916cd43dd8448eb211c80319c",/m,
  );
});
