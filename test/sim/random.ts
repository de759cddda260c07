// Where does all chance in a run come from? A seed and a name give a stream (sfc32). Each user has a named stream, so
// that leaving out one fault changes little of what the others draw. This makes it possible to minimise a failing run.
import type { Random } from '../../src/core/ports.js';

export class Prng implements Random {
  private a: number;
  private b: number;
  private c: number;
  private d = 1;

  constructor(seed: number, name: string) {
    this.a = seed | 0;
    this.b = Math.floor(seed / 2 ** 32) | 0;
    this.c = 0x9e3779b9;
    for (let i = 0; i < name.length; i++) this.c = Math.imul(this.c ^ name.charCodeAt(i), 0x01000193);
    for (let i = 0; i < 12; i++) this.next();
  }

  private next(): number {
    const t = (((this.a + this.b) | 0) + this.d) | 0;
    this.d = (this.d + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (this.c << 21) | (this.c >>> 11);
    this.c = (this.c + t) | 0;
    return t >>> 0;
  }

  unit(): number {
    return this.next() / 2 ** 32;
  }

  hex(bytes: number): string {
    let out = '';
    for (let i = 0; i < bytes; i++) out += (this.next() & 0xff).toString(16).padStart(2, '0');
    return out;
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  /** A whole number from low to high, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.unit() * (high - low + 1));
  }

  between(low: number, high: number): number {
    return low + this.unit() * (high - low);
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.unit() * from.length)]!;
  }
}
