'use strict';

const SERVICES = [
  'accounts',
  'billing',
  'cart',
  'catalog',
  'checkout',
  'inventory',
  'orders',
  'reviews',
  'search',
  'shipping',
];

const RESOURCES = ['items', 'events', 'reports', 'settings', 'members', 'labels'];

const ROUTES = RESOURCES.flatMap(resource => [`/${resource}`, `/${resource}/:id`]);

const OUTCOMES = [
  { method: 'GET', status: 200 },
  { method: 'GET', status: 404 },
  { method: 'POST', status: 201 },
  { method: 'PUT', status: 200 },
  { method: 'DELETE', status: 503 },
];

/** Ids from here on do not exist, so that some of the traffic is answered with 404. */
const FIRST_MISSING_ID = 1000;

/** The paths that the load generator requests, in this order. */
const REQUESTS = [
  { method: 'GET', path: '/catalog/items/17' },
  { method: 'GET', path: '/search/items' },
  { method: 'POST', path: '/cart/items', body: '{"item":17,"quantity":2}' },
  { method: 'GET', path: '/accounts/members/42' },
  { method: 'GET', path: '/catalog/items/451' },
  { method: 'PUT', path: '/cart/items/3', body: '{"quantity":1}' },
  { method: 'GET', path: '/reviews/items/1984' },
  { method: 'POST', path: '/checkout/events', body: '{"cart":99,"payment":"card"}' },
  { method: 'GET', path: '/shipping/reports' },
  { method: 'GET', path: '/orders/items/731' },
].map(request => (request.body ? { ...request, headers: { 'content-type': 'application/json' } } : request));

/**
 * Label sets of the request histogram, as a service that has run for a while would have them: first those of
 * every service, then those of its further versions.
 *
 * @param {number} count how many
 * @returns {Generator<{service: string, method: string, route: string, status: number}>}
 */
function* requestLabelSets(count) {
  let left = count;
  for (let version = 1; ; version++) {
    for (const name of SERVICES) {
      const service = version === 1 ? name : `${name}-v${version}`;
      for (const route of ROUTES) {
        for (const outcome of OUTCOMES) {
          if (left-- <= 0) return;
          yield { service, method: outcome.method, route, status: outcome.status };
        }
      }
    }
  }
}

module.exports = { SERVICES, ROUTES, REQUESTS, FIRST_MISSING_ID, requestLabelSets };
