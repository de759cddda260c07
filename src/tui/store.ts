// The state, outside React: one per lane, and one of them is on the screen. Answers of nodes do not notify the screen.
// It is notified once per probe, per key and per resize. For the other lanes it is notified only when a verdict
// changed, because their tabs show it.
import { bandText } from './frame.js';
import type { Band } from './layout.js';
import { reduce, type WatchInput } from './model.js';
import { verdictOf } from './panels/banner.js';
import type { Theme } from './theme.js';
import type { Tab, WatchState } from './model-state.js';

const QUIET: ReadonlySet<WatchInput['type']> = new Set(['probed', 'entries']);

export class WatchStore {
  private readonly listeners = new Set<() => void>();
  /** Per band: what was drawn from which state. A selector may be called several times per drawing. */
  private readonly drawn = new Map<string, { state: WatchState; height: number; text: string }>();
  private readonly lanes: WatchState[];
  private readonly names: readonly string[];
  private at = 0;

  /** `first` is on the screen. `others` are lanes that are watched in addition. */
  constructor(
    first: WatchState,
    readonly theme: Theme,
    others: readonly { name: string; state: WatchState }[] = [],
    name = '',
  ) {
    this.lanes = [first, ...others.map((other) => other.state)];
    this.names = [name, ...others.map((other) => other.name)];
    this.mark();
  }

  /** The state of the lane on the screen. */
  get state(): WatchState {
    return this.lanes[this.at] as WatchState;
  }

  /** The index of the lane on the screen. */
  get lane(): number {
    return this.at;
  }

  stateOf(lane: number): WatchState {
    return this.lanes[lane] as WatchState;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly dispatch = (input: WatchInput, lane = this.at): void => {
    if (input.type === 'resized') for (const [at, state] of this.lanes.entries()) this.lanes[at] = reduce(state, input);
    else this.lanes[lane] = reduce(this.stateOf(lane), input);
    const news = this.mark();
    if (news || (lane === this.at && !QUIET.has(input.type))) this.notify();
  };

  /** Sets the state that resulted from a key. */
  set(state: WatchState): void {
    this.lanes[this.at] = state;
    this.notify();
  }

  /** Shows another lane. Time and rate continue unchanged. */
  show(lane: number): void {
    const {
      now,
      wall,
      ui: { intervalMs },
    } = this.state;
    this.at = lane;
    this.lanes[lane] = { ...this.state, now, wall, ui: { ...this.state.ui, intervalMs } };
    this.mark();
    this.notify();
  }

  text(band: Band): string {
    const { state } = this;
    const before = this.drawn.get(band.kind);
    if (before?.state === state && before.height === band.height) return before.text;
    const text = bandText(band, state, this.theme);
    this.drawn.set(band.kind, { state, height: band.height, text });
    return text;
  }

  /** Writes the text of the tabs into the state that is drawn. True when that text is new. */
  private mark(): boolean {
    if (this.lanes.length < 2) return false;
    const tabs = this.lanes.map(({ data }, at): Tab => ({
      name: this.names[at] ?? '',
      verdict: verdictOf(data).verdict,
    }));
    const { state } = this;
    if (
      state.tab === this.at &&
      state.tabs.length === tabs.length &&
      tabs.every((tab, at) => tab.verdict === state.tabs[at]?.verdict)
    )
      return false;
    this.lanes[this.at] = { ...state, tabs, tab: this.at };
    return true;
  }

  private notify(): void {
    for (const listener of [...this.listeners]) listener();
  }
}
