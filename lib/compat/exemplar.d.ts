/** An example of what a counter or bucket counted, such as a trace id. */
declare class Exemplar {
  /** @param timestamp seconds since the epoch */
  constructor(labelSet?: object, value?: number | null, timestamp?: number);
  labelSet: object;
  value: number | null;
  timestamp?: number;
}

export = Exemplar;
