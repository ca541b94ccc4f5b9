// Each route has its own copy of this module, and `next dev` runs it again after a change. So metrics are
// made with getOrCreate(): new Counter() would throw the second time. The registry is the same for all, even
// if Next.js bundles a copy of the client for each route.

import { Counter, Registry } from 'prom-client';

export const registry = Registry.shared();

export const orders = registry.getOrCreate(Counter, {
  name: 'orders_total',
  help: 'Orders by kind',
  labelNames: ['kind'],
});
