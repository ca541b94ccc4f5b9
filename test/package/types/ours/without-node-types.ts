// Compiles without the types of Node.js, as prom-client's do.

import { AggregatorRegistry, Bytes, Pushgateway, metricsHandler, register } from 'prom-client';

const bytes: Bytes = new Uint8Array(1);
new AggregatorRegistry().clusterMetricsBytes().then(bytes => bytes.byteLength);
metricsHandler(register);
new Pushgateway('http://127.0.0.1:9091', register);
