// Compiles with the types of prom-client 15.1.3 and with ours: the module as one object.

import client from 'prom-client';
import * as namespace from 'prom-client';

const registry: client.Registry = new client.Registry();
const counter: client.Counter<'a'> = new client.Counter({ name: 'n', help: 'help', labelNames: ['a'] });
const child: client.Counter.Internal = counter.labels('x');
const same: typeof client.register = namespace.register;
const everything: typeof client = namespace;
client.collectDefaultMetrics({ register: registry });

export interface Application {
  client: typeof client;
  metrics: { [name: string]: client.Metric<string> };
}
