/** Quantiles of what was pushed in the last `maxAgeSeconds`, or ever where one of the arguments is missing. */
declare class TimeWindowQuantiles {
  constructor(maxAgeSeconds?: number, ageBuckets?: number);
  push(value: number): void;
  /** 0 where the window is empty. */
  percentile(quantile: number): number;
  size(): number;
  reset(): void;
  compress(): void;
}

export = TimeWindowQuantiles;
