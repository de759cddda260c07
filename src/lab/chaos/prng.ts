// The only source of randomness of a chaos run: a seed and a name give a stream of numbers (sfc32). Every step has a
// stream of its own. Leaving out one kind of fault therefore does not change what the others draw.

export class Prng {
  private a: number;
  private b: number;
  private c = 0x9e3779b9;
  private d = 1;

  constructor(seed: number, name: string) {
    this.a = seed | 0;
    this.b = Math.floor(seed / 2 ** 32) | 0;
    for (let i = 0; i < name.length; i++) this.c = Math.imul(this.c ^ name.charCodeAt(i), 0x01000193);
    for (let i = 0; i < 12; i++) this.next();
  }

  /** Uniform in [0, 1). */
  unit(): number {
    return this.next() / 2 ** 32;
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

  shuffled<T>(from: readonly T[]): T[] {
    const left = [...from];
    return from.map(() => left.splice(Math.floor(this.unit() * left.length), 1)[0]!);
  }

  private next(): number {
    const t = (((this.a + this.b) | 0) + this.d) | 0;
    this.d = (this.d + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = (((this.c << 21) | (this.c >>> 11)) + t) | 0;
    return t >>> 0;
  }
}
