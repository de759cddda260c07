// The state, outside React. Answers of nodes are taken in silently; the screen is told once per look, per key and per resize.
import { bandText, type Band } from './frame.js';
import { reduce, type WatchInput, type WatchState } from './model.js';
import type { Theme } from './theme.js';

const QUIET: ReadonlySet<WatchInput['type']> = new Set(['observed', 'entries']);

export class WatchStore {
  private readonly listeners = new Set<() => void>();
  /** Per band, what was drawn from which state: a selector may be asked several times per drawing. */
  private readonly drawn = new Map<string, { state: WatchState; height: number; text: string }>();

  constructor(private current: WatchState, readonly theme: Theme) {}

  get state(): WatchState {
    return this.current;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly dispatch = (input: WatchInput): void => {
    this.current = reduce(this.current, input);
    if (!QUIET.has(input.type)) this.notify();
  };

  /** The outcome of a key. */
  set(state: WatchState): void {
    this.current = state;
    this.notify();
  }

  text(band: Band): string {
    const before = this.drawn.get(band.kind);
    if (before?.state === this.current && before.height === band.height) return before.text;
    const text = bandText(band, this.current, this.theme);
    this.drawn.set(band.kind, { state: this.current, height: band.height, text });
    return text;
  }

  private notify(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
