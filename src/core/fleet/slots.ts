// How many lanes of one process are promoted at once? A promotion is four round trips that must end within a lease.
// When many lanes lose their leader at one moment, a few at a time get there, each quickly. All at once would be in
// each other's way, miss their leases, and begin anew.
export class Slots {
  private taken = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly most: number) {}

  /** The function that gives the slot back. Null: there is none now, and `free` is called once there may be one. */
  take(free: () => void): (() => void) | null {
    if (this.taken >= this.most) {
      this.waiting.push(free);
      return null;
    }
    this.taken += 1;
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.taken -= 1;
      this.waiting.shift()?.();
    };
  }
}
