// How are hundreds of millions of visited states kept? As 64-bit fingerprints in a typed array (open addressing). A
// JavaScript Set ends at 16.7 million entries and needs ten times the memory. If two states have the same fingerprint,
// one of them is missed: with 10^8 states the chance is about 3 in 10,000.

export class FingerprintSet {
  private capacity: number;
  /** Both halves of a fingerprint are next to each other, so that a look-up touches one place in memory. */
  private slots: Uint32Array;
  size = 0;

  constructor(initialBits = 16) {
    this.capacity = 2 ** initialBits;
    this.slots = new Uint32Array(2 * this.capacity);
  }

  /** Returns true if the fingerprint is new. */
  add(high: number, low: number): boolean {
    const h = high >>> 0;
    const l = low >>> 0 || 1; // 0,0 marks a free slot
    if (!this.put(h, l)) return false;
    this.size += 1;
    if (this.size > this.capacity * 0.75) this.grow();
    return true;
  }

  private put(h: number, l: number): boolean {
    const { slots } = this;
    const mask = 2 * this.capacity - 1;
    let at = 2 * ((h ^ Math.imul(l, 0x9e3779b1)) & (this.capacity - 1));
    while (slots[at + 1] !== 0) {
      if (slots[at + 1] === l && slots[at] === h) return false;
      at = (at + 2) & mask;
    }
    slots[at] = h;
    slots[at + 1] = l;
    return true;
  }

  private grow(): void {
    const { slots } = this;
    this.capacity *= 2;
    this.slots = new Uint32Array(2 * this.capacity);
    for (let i = 0; i < slots.length; i += 2) if (slots[i + 1] !== 0) this.put(slots[i]!, slots[i + 1]!);
  }
}

/** Two independent 32-bit hashes of a sequence of small whole numbers. */
export class Hasher {
  a = 0;
  b = 0;

  reset(seed = 0): this {
    this.a = 0x243f6a88 ^ seed;
    this.b = 0x13198a2e ^ Math.imul(seed, 0x85ebca6b);
    return this;
  }

  add(value: number): this {
    let k = Math.imul(value + 1, 0xcc9e2d51);
    k = (k << 15) | (k >>> 17);
    this.a ^= Math.imul(k, 0x1b873593);
    this.a = (Math.imul((this.a << 13) | (this.a >>> 19), 5) + 0xe6546b64) | 0;
    let m = Math.imul(value + 7, 0x9e3779b1) ^ this.b;
    m ^= m >>> 15;
    this.b = (Math.imul(m, 0x2c1b3c6d) + Math.imul((this.b << 7) | (this.b >>> 25), 0x297a2d39)) | 0;
    return this;
  }

  finish(): this {
    let { a, b } = this;
    a ^= a >>> 16;
    a = Math.imul(a, 0x85ebca6b);
    a ^= a >>> 13;
    a = Math.imul(a, 0xc2b2ae35);
    a ^= a >>> 16;
    b ^= b >>> 15;
    b = Math.imul(b, 0x735a2d97);
    b ^= b >>> 15;
    b = Math.imul(b, 0x0ca7d2e9 | 1);
    b ^= b >>> 16;
    this.a = a;
    this.b = b;
    return this;
  }
}
