'use strict';

const COUNTER = 'demo_requests_total';
const SETTLE_WITHIN_MS = 10000;

/**
 * Compares what the metrics say with what the workers counted themselves.
 *
 * @param {import('./cluster-process').ClusterProcess} cluster no longer under load
 * @param {import('./scraper').Scraper} scraper
 * @returns {Promise<{counted: number, arrived: number, exposition: string}>} the counter's sum over the
 *   cluster, the workers' own count, and the text of that scrape
 */
async function readTotals(cluster, scraper) {
  const deadline = performance.now() + SETTLE_WITHIN_MS;
  for (;;) {
    const before = await cluster.record();
    const exposition = (await scraper.scrape()).text();
    const after = await cluster.record();
    // A request that the load generator abandoned may still reach a worker; then the two counts are of
    // different times.
    if (before.arrived === after.arrived || performance.now() > deadline) {
      return { counted: sumOfSeries(exposition, COUNTER), arrived: after.arrived, exposition };
    }
  }
}

/**
 * @param {string} exposition in either format, without exemplars
 * @param {string} name of the samples
 * @returns {number} their sum
 */
function sumOfSeries(exposition, name) {
  let sum = 0;
  for (const line of exposition.split('\n')) {
    if (!line.startsWith(`${name}{`) && !line.startsWith(`${name} `)) continue;
    sum += Number(line.slice(line.lastIndexOf(' ') + 1));
  }
  return sum;
}

/**
 * @param {{counted: number, arrived: number}} totals
 * @param {import('./phase').PhaseResult[]} phases everything that was sent, warming up included
 * @returns {string} the verdict, and where requests went that arrived and were not answered, or the other way
 *   round
 */
function totalsText({ counted, arrived }, phases) {
  const [sent, answered, errors, timeouts] = ['sent', 'answered', 'errors', 'timeouts'].map(key =>
    phases.reduce((sum, phase) => sum + phase[key], 0),
  );
  const verdict = counted === arrived ? 'equal' : `DIFFERENT by ${counted - arrived}`;
  const width = String(Math.max(counted, arrived)).length;
  const lines = [
    `check: ${COUNTER}, summed over all workers:        ${String(counted).padStart(width)}`,
    `       requests that arrived, by the workers' own count: ${String(arrived).padStart(width)}   ${verdict}`,
    `       (${sent} sent, ${answered} answered, warm-up included)`,
  ];
  if (arrived > answered) {
    lines.push(
      `       ${arrived - answered} arrived and the load generator did not get the answer: it gives a request`,
      `       up after ten seconds (${timeouts} times) or when its connection fails (${errors - timeouts} times).`,
    );
  }
  if (arrived < sent) {
    lines.push(
      `       ${sent - arrived} were sent and never arrived: given up, or their connection failed,`,
      '       before a worker had accepted it.',
    );
  }
  return lines.join('\n');
}

module.exports = { readTotals, totalsText };
