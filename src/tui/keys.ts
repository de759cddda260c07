// Turns terminal input into our keys. Fast typing or a script may send several characters in one piece; they are
// handled one by one.
import type { Key } from './model-ui.js';

export interface RawKey {
  upArrow: boolean;
  downArrow: boolean;
  leftArrow?: boolean;
  rightArrow?: boolean;
  pageUp: boolean;
  pageDown: boolean;
  home?: boolean;
  end?: boolean;
  return: boolean;
  escape: boolean;
  ctrl: boolean;
  shift: boolean;
  tab: boolean;
  backspace: boolean;
  delete: boolean;
}

const CONTROL: Record<string, Key> = {
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  '\u001b': 'escape',
  '\u007f': 'backspace',
  '\b': 'backspace',
  '\u0003': 'ctrl-c',
  '\u001a': 'ctrl-z',
  '\u000c': 'ctrl-l',
};

export function keysOf(input: string, key: RawKey, typing: boolean): Key[] {
  if (key.upArrow) return ['up'];
  if (key.downArrow) return ['down'];
  if (key.leftArrow) return ['left'];
  if (key.rightArrow) return ['right'];
  if (key.pageUp) return ['pageup'];
  if (key.pageDown) return ['pagedown'];
  if (key.home) return ['home'];
  if (key.end) return ['end'];
  if (key.return) return ['enter'];
  if (key.tab) return [key.shift ? 'backtab' : 'tab'];
  if (key.backspace || key.delete) return ['backspace'];
  if (key.ctrl) return ['c', 'z', 'l'].includes(input) ? [`ctrl-${input}`] : [];
  if (key.escape && input === '') return ['escape'];
  // An unknown escape sequence is not text.
  if (input.startsWith('[') && input.length > 1 && !typing) return [];
  // eslint-disable-next-line no-control-regex
  return [...input].flatMap((char) => CONTROL[char] ?? (/[\u0000-\u001f]/.test(char) ? [] : [char]));
}
