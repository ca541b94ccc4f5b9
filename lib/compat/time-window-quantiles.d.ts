/** Quantiles of the values pushed in the last `maxAgeSeconds`, or of all values if an argument is missing. */
declare class TimeWindowQuantiles {
  constructor(maxAgeSeconds?: number, ageBuckets?: number);
  push(value: number): void;
  /** 0 if the window is empty. */
  percentile(quantile: number): number;
  size(): number;
  reset(): void;
  compress(): void;
}

export = TimeWindowQuantiles;
