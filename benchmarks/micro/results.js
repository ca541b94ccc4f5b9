'use strict';

const { resultsOf } = require('../shared/results.js');

/**
 * @typedef {object} Results
 * @property {string} date ISO
 * @property {string} machine
 * @property {string} loadAtEnd
 * @property {object} options
 * @property {import('./budgets.js').Outcome[]} outcomes
 */

/**
 * @param {{id: string, clients: string[]}[]} plan all cases, with the clients that each can be measured with
 * @returns {Results & {measuredAgain: string[]}} the newest complete results; cases that were measured
 *   again later, with all these clients and not with --short, replace theirs
 * @throws {Error} if there are none
 */
function newestCompleteResults(plan) {
  /** @type {Map<string, import('./budgets.js').Outcome>} */
  const again = new Map();
  for (const results of resultsOf('micro')) {
    if (results.options.short) continue;
    const byId = new Map(results.outcomes.map(outcome => [outcome.id, outcome]));
    const measured = plan
      .filter(({ id, clients }) => clients.every(client => client in (byId.get(id)?.runs ?? {})))
      .map(({ id }) => /** @type {import('./budgets.js').Outcome} */ (byId.get(id)));
    if (measured.length === plan.length) {
      const outcomes = measured.map(outcome => again.get(outcome.id) ?? outcome);
      return { ...results, outcomes, measuredAgain: [...again.keys()].sort() };
    }
    for (const outcome of measured) if (!again.has(outcome.id)) again.set(outcome.id, outcome);
  }
  throw new Error('there are no results of a whole run yet: npm run bench');
}

module.exports = { newestCompleteResults };
