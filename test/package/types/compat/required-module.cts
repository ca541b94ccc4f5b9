// Compiles with the types of prom-client 15.1.3 and with ours: TypeScript's way to require a module.

import client = require('prom-client');

const counter: client.Counter<'a'> = new client.Counter({ name: 'n', help: 'help', labelNames: ['a'] });
const child: client.Counter.Internal = counter.labels('x');
client.register.metrics().then((text: string) => text.length);

export = child;
