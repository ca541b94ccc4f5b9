// Each route has its own copy of this module, and `next dev` runs it again after a change. So metrics are
// made with getOrCreate(): new Counter() would throw the second time.

import { Counter, register } from 'prom-client';

export const orders = register.getOrCreate(Counter, {
  name: 'orders_total',
  help: 'Orders by kind',
  labelNames: ['kind'],
});
