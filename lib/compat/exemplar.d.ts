/** One concrete case beside a counter's or bucket's number. */
declare class Exemplar {
  /** @param timestamp seconds since the epoch */
  constructor(labelSet?: object, value?: number | null, timestamp?: number);
  labelSet: object;
  value: number | null;
  timestamp?: number;
}

export = Exemplar;
