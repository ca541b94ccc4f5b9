// Compiles with the types of prom-client 15.1.3 and with ours, also to declarations: metrics that a module
// exports without writing down their types.

import { Counter, Gauge, Histogram, Registry, Summary } from 'prom-client';

export const requests = new Counter({ name: 'a', help: 'help' });
export const queued = new Gauge({ name: 'b', help: 'help', labelNames: ['queue'] });
export const durations = new Histogram({ name: 'c', help: 'help', labelNames: ['route', 'code'] as const });
export const sizes = new Summary<'route'>({ name: 'd', help: 'help' });

export const end = durations.startTimer({ route: '/' });
export const timers = { start: () => queued.startTimer(), child: sizes.labels('/').startTimer() };
export const { startTimer } = sizes;

export function createCounter<T extends string>(name: string, labelNames: readonly T[]) {
  return new Counter({ name, help: 'help', labelNames });
}

export class Metrics {
  readonly registry = new Registry();
  readonly errors = new Counter({ name: 'e', help: 'help', labelNames: ['code'] });
  readonly #seconds = new Histogram({ name: 'f', help: 'help' });
  latency = this.#seconds;

  observe() {
    return this.#seconds.startTimer();
  }
}

export default { requests, queued, durations, sizes };
