'use strict';

// What the property tests' programs expose is understood by those who will read it: OpenMetrics by the strict
// parser of PyPI's prometheus-client, Prometheus text by promtool and the parser of the same package. And
// what they understand is what was recorded. property-format-limits.js keeps out of the programs what no
// exposition can say.

const assert = require('node:assert');
const fc = require('../fixtures/seeded-fast-check');
const { after, before, describe, it } = require('node:test');
const client = require('../..');
const { ExpositionReader, missingReader } = require('../fixtures/exposition-reader');
const { exemplarProgram, runExemplarProgram } = require('./fixtures/property-exemplar-programs');
const {
  expressibleAsText,
  expressibleAsOpenMetrics,
  expressibleWithExemplars,
} = require('./fixtures/property-format-limits');
const { runProgram } = require('./fixtures/property-interpreter');
const { copyOfFamily } = require('./fixtures/property-known-defects');
const { program, churn, manySeries } = require('./fixtures/property-programs');
const { pagesRenderedIn } = require('./fixtures/property-rendered-pages');
const { missingPrograms, promtoolCheckMetrics } = require('../fixtures/prometheus-server');

/** promtool takes a process and 25 ms per page, so it checks a small part of the runs. */
const FORMATS = [
  {
    format: 'Prometheus text',
    contentType: client.prometheusContentType,
    expressible: expressibleAsText,
    share: 0.1,
  },
  {
    format: 'OpenMetrics',
    contentType: client.openMetricsContentType,
    expressible: expressibleAsOpenMetrics,
    share: 1,
  },
];

/** promtool's own: it could read the page, and has something to say about names. */
const LINT_EXIT_CODE = 3;

const required = process.env.REQUIRE_ALL === '1';
const skip = !required && (missingPrograms(['promtool']) ?? missingReader());

describe(
  'property: the page of a random program',
  { skip, timeout: 120_000 * Math.max(fc.effort, 1) },
  () => {
    /** @type {ExpositionReader} */
    let reader;

    before(() => {
      assert.strictEqual(missingPrograms(['promtool']), undefined);
      assert.strictEqual(missingReader(), undefined);
      reader = new ExpositionReader();
    });

    after(() => reader?.stop());

    /** Throws if a parser refuses a page, or reads other samples than were recorded. */
    async function checkPage({ text, isOpenMetrics, families }) {
      if (!isOpenMetrics) await assertPromtoolAccepts(text);
      const read = await reader.read(text, isOpenMetrics ? 'openmetrics' : 'text');
      if (families) assert.deepStrictEqual(read.map(withTrimmedHelp), families.map(expectedFamily));
      const samples = read.flatMap(family => family.samples);
      // No parser minds two samples of one series in all places; the strict one silently drops the second if
      // it is next.
      assert.strictEqual(new Set(samples.map(seriesKey)).size, samples.length);
      assert.strictEqual(samples.length, text.split('\n').filter(line => /^[^#]/.test(line)).length);
      return samples;
    }

    /**
     * Checks every page that is rendered for any of the programs.
     *
     * @param {import('node:test').TestContext} test
     * @param {fc.Arbitrary<object>} programs
     * @param {(given: any) => Promise<import('./fixtures/property-rendered-pages').Page[]>} render
     * @param {{runs: number, atLeast: Record<string, number>}} amount how many runs, and how many pages with
     *   samples, samples and exemplars have to come of them, lest the limits should leave nothing to check
     */
    async function checkPages(test, programs, render, { runs, atLeast }) {
      const checked = { pages: 0, samples: 0, exemplars: 0 };
      const property = fc.asyncProperty(programs, async given => {
        const pages = (await render(given)).filter(isReadable);
        for (const samples of await Promise.all(pages.map(checkPage))) {
          checked.pages += Math.min(samples.length, 1);
          checked.samples += samples.length;
          checked.exemplars += samples.filter(sample => sample.exemplar).length;
        }
      });
      await fc.assert(property, { numRuns: runs });
      test.diagnostic(
        `checked ${checked.pages} pages, ${checked.samples} samples, ${checked.exemplars} exemplars`,
      );
      for (const [what, least] of Object.entries(atLeast)) {
        assert.ok(
          checked[what] >= least * fc.effort,
          `${checked[what]} ${what} checked, not ${least * fc.effort}`,
        );
      }
    }

    for (const { format, contentType, expressible, share } of FORMATS) {
      const render = given => pagesRenderedIn(() => runProgram(client, given, { contentType }));

      it(`the page of a random program is valid ${format} with the recorded samples, after any sequence of operations`, test =>
        checkPages(test, program.map(expressible), render, {
          runs: 80 * share,
          atLeast: { pages: 120 * share, samples: 600 * share },
        }));

      it(`the page of a random program is valid ${format} with the remaining samples, if series come and go`, test =>
        checkPages(test, churn.map(expressible), render, {
          runs: 30 * share,
          atLeast: { pages: 30 * share, samples: 100 * share },
        }));

      it(`the page of a random program is valid ${format} with all samples, for thousands of series`, test =>
        checkPages(test, manySeries.map(expressible), render, {
          runs: 1,
          // A program may end with a page without samples.
          atLeast: { pages: 0.5, samples: 500 },
        }));

      it(`the page of a random program is valid ${format} if two workers are aggregated`, test =>
        checkPages(test, program.map(expressible), given => renderTwoWorkers(given, contentType), {
          runs: 60 * share,
          atLeast: { pages: 30 * share, samples: 100 * share },
        }));
    }

    for (const suffix of ['', '_total']) {
      const names = suffix ? `counters named *${suffix}` : 'counters named without _total';
      const render = given => pagesRenderedIn(() => runExemplarProgram(client, given));
      it(`the page of a random program is valid OpenMetrics with the recorded exemplars, with ${names}`, test =>
        checkPages(test, exemplarProgram(suffix).map(expressibleWithExemplars), render, {
          runs: 30,
          atLeast: { pages: 30, samples: 300, exemplars: 25 },
        }));
    }

    it('the page of a random program may have names that promtool lints', () =>
      assertPromtoolAccepts('# HELP a h\n# TYPE a counter\na 1\n'));
  },
);

/**
 * prom-client's contract for an OpenMetrics registry without a metric; the strict parser allows no blank
 * line.
 */
function isReadable({ text, isOpenMetrics }) {
  return !(isOpenMetrics && text === '\n# EOF\n');
}

/**
 * What is aggregated, registry by registry, of a worker that ran the program and of one that left every other
 * recording out.
 */
async function renderTwoWorkers(given, contentType) {
  const operations = given.operations.filter(({ op }, index) => op !== 'record' || index % 2 === 0);
  const one = await lastJson(given);
  const other = await lastJson({ ...given, operations });
  return pagesRenderedIn(async () => {
    for (const index of one.keys()) {
      await client.AggregatorRegistry.aggregate([one[index], other[index]], contentType).metrics();
    }
  });
}

async function lastJson(given) {
  const { readings } = (await runProgram(client, given)).at(-1).result;
  return readings.map(({ json }) => json.filter(({ aggregator }) => aggregator in client.aggregators));
}

async function assertPromtoolAccepts(text) {
  if (text === '\n') return; // so many of them
  const { exitCode, output } = await promtoolCheckMetrics(text);
  assert.ok(exitCode === 0 || exitCode === LINT_EXIT_CODE, output);
}

/** A family of getMetricsAsJSON() as the parser has to read it. */
function expectedFamily(json) {
  const { name, help, type, values } = copyOfFamily(json);
  const isCounter = type === 'counter';
  const familyName = isCounter ? name.replace(/_total$/, '') : name;
  return {
    name: familyName,
    help: trimmed(help),
    type,
    samples: values.map(({ metricName, labels, value, exemplar }) => ({
      name: isCounter ? `${familyName}_total` : (metricName ?? name),
      labels: labelTexts(labels),
      value,
      timestamp: null,
      exemplar: exemplar
        ? { labels: labelTexts(exemplar.labelSet), value: exemplar.value, timestamp: exemplar.timestamp }
        : null,
    })),
  };
}

function seriesKey({ name, labels }) {
  return JSON.stringify([name, Object.entries(labels).sort()]);
}

function labelTexts(labels = {}) {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [name, String(value)]));
}

/** The parsers drop spaces at the ends of a help text. */
function withTrimmedHelp(family) {
  return { ...family, help: trimmed(family.help) };
}

function trimmed(help) {
  return help.replace(/^\s+|\s+$/g, '');
}
