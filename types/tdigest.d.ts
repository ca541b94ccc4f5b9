declare module 'tdigest' {
  export interface Centroid {
    mean: number;
    n: number;
  }
  export class TDigest {
    constructor(delta?: number | false, K?: number, CX?: number);
    n: number;
    centroids: { each(visit: (centroid: Centroid) => void): void; size: number };
    size(): number;
    push(value: number | number[], n?: number): void;
    push_centroid(centroid: Centroid | Centroid[]): void;
    percentile(p: number): number | undefined;
    percentile(p: number[]): (number | undefined)[];
    compress(): void;
    reset(): void;
    toArray(): Centroid[];
  }
}
