declare module 'snappyjs' {
  export function compress(bytes: Buffer): Buffer<ArrayBuffer>;
  export function uncompress(bytes: Buffer, maxLength?: number): Buffer<ArrayBuffer>;
}
