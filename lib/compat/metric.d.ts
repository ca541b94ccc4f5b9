/** The base of Counter, Gauge, Histogram and Summary. */
export declare abstract class Metric {
  readonly name: string;
  readonly help: string;
  remove(...labels: any[]): void;
}
