// The watch as lines that are only appended: for screen readers and for terminals without cursor movement. Each line
// says what changed.
import { watchLoop, type LoopOptions } from './loop.js';
import { isWorse } from './model-since.js';
import { clockOf, clean } from './text.js';
import type { WatchState } from './model-state.js';

/** Resolves when aborted, or after `count` probes. */
export async function watchLines(
  options: LoopOptions & { label?: string; bell?: boolean; write(text: string): Promise<void> },
): Promise<void> {
  let said = 0;
  let summary = '';
  let verdict = '';
  await watchLoop(options, async (state: WatchState) => {
    const { view, events } = state.data;
    if (view === null) return;
    const fresh = events.filter((event) => event.seq > said).reverse();
    said = events[0]?.seq ?? 0;
    const now = `${view.verdict} ${view.reasonCode} ${view.margin}`;
    const lines = fresh.map((event) => `${clockOf(event.wall)} ${event.text}`);
    if (now !== summary)
      lines.push(
        `${clockOf(state.wall)} ${view.verdict}: ${view.reason}; ` +
          `${view.margin < 0 ? `${-view.margin} missing` : `may lose ${view.margin}`}; next: ` +
          `${view.next[0] ?? 'nothing to do'}`,
      );
    summary = now;
    const bell = options.bell === true && isWorse(verdict, view.verdict) ? '\u0007' : '';
    verdict = view.verdict;
    const label = options.label === undefined ? '' : `[${options.label}] `;
    if (lines.length > 0) await options.write(`${bell}${lines.map((line) => clean(label + line)).join('\n')}\n`);
  });
}
