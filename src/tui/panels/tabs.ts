// The watched lanes, one tab each with its verdict. The lane on the screen is marked. Tabs that do not fit are counted,
// and the worst of them is named.
import { cut, widthOf } from '../text.js';
import { glyphsOf, type Theme } from '../theme.js';
import { badgeTone } from './banner.js';
import { ends, type Span } from './box.js';
import type { Tab, WatchState } from '../model-state.js';

const KEYS = ' [ ] lane ';
const SEVERITY = ['OK', '?', 'UNKNOWN', 'WARN', 'CRIT'];

const nameOf = ({ name }: Tab): string => (name === '' ? '(default)' : name);
const widthOfTab = (tab: Tab): number => 2 + widthOf(nameOf(tab)) + 1 + tab.verdict.length + 2 + 1;

function worst(tabs: readonly Tab[]): string {
  return tabs.reduce(
    (found, { verdict }) => (SEVERITY.indexOf(verdict) > SEVERITY.indexOf(found) ? verdict : found),
    'OK',
  );
}

export function tabsLine(state: WatchState, theme: Theme, width: number): string {
  const { tabs, tab } = state;
  const keys = width >= 60 ? KEYS : '';
  const room = width - 1 - widthOf(keys) - 12;
  // Starts at the lane on the screen and adds neighbours while they fit.
  let [from, to] = [tab, tab + 1];
  let used = widthOfTab(tabs[tab] as Tab);
  for (let grown = true; grown;) {
    grown = false;
    const [before, after] = [tabs[from - 1], tabs[to]];
    if (after !== undefined && used + widthOfTab(after) <= room) {
      used += widthOfTab(after);
      to += 1;
      grown = true;
    }
    if (before !== undefined && used + widthOfTab(before) <= room) {
      used += widthOfTab(before);
      from -= 1;
      grown = true;
    }
  }
  const spans = tabs.slice(from, to).flatMap((one, at): Span[] => {
    const here = from + at === tab;
    return [
      { text: here ? `${glyphsOf(theme).cursor} ` : '  ', tone: 'accent' },
      { text: cut(nameOf(one), Math.max(4, room - 8), glyphsOf(theme).cut), tone: here ? 'bold' : 'plain' },
      { text: ' ' },
      { text: ` ${one.verdict} `, tone: badgeTone(one.verdict) },
      { text: ' ' },
    ];
  });
  const hidden = [...tabs.slice(0, from), ...tabs.slice(to)];
  const more: Span[] =
    hidden.length === 0
      ? []
      : [{ text: ` +${hidden.length} ` }, { text: ` ${worst(hidden)} `, tone: badgeTone(worst(hidden)) }];
  return ends(theme, [{ text: ' ' }, ...spans, ...more], [{ text: keys, tone: 'dim' }], width);
}
