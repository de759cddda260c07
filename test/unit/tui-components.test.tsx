// The drawn components on fake streams, and the row-by-row screen: waits for content.
import { render } from 'ink-testing-library';
import { afterEach, describe, expect, test } from 'vitest';
import { cleanup } from 'ink-testing-library';
import { App } from '../../src/tui/components/app.js';
import { keysOf } from '../../src/tui/keys.js';
import { press, type Effect, type Key } from '../../src/tui/model-ui.js';
import { Screen } from '../../src/tui/screen.js';
import { WatchStore } from '../../src/tui/store.js';
import { observe, look, start } from '../support/watch-states.js';

afterEach(() => cleanup());

function open(words = 'x9@3 x9@3 x5@3') {
  const store = new WatchStore(look(look(start(3), words), words), { colour: false, unicode: false });
  const effects: Effect[] = [];
  const onKey = (key: Key) => {
    const { state, effect } = press(store.state, key);
    store.set(state);
    if (effect) effects.push(effect);
  };
  return { store, effects, ...render(<App store={store} onKey={onKey} />) };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let turn = 0; turn < 500; turn += 1) {
    if (holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`${what} did not come`);
}

describe('tui: components', () => {
  test('app: the frame of the model, row for row', async () => {
    const { lastFrame } = open();
    await until('a frame', () => lastFrame()!.includes('LEASE'));
    expect(lastFrame()).toContain('WARN   r3 is 4 blocks behind');
    expect(lastFrame()!.split('\n').length).toBe(23);
  });

  test('app: keys move, open, close, and reach the outside as effects', async () => {
    const { lastFrame, stdin, effects } = open();
    await until('a frame', () => lastFrame()!.includes('> r1'));
    stdin.write('jj');
    await until('the cursor on r3', () => lastFrame()!.includes('> r3'));
    stdin.write('\r');
    await until('its detail', () => lastFrame()!.includes('NODE r3'));
    stdin.write('\u001b');
    await until('back', () => lastFrame()!.includes('SEQUENCERS'));
    stdin.write('y');
    stdin.write('q');
    await until('effects', () => effects.length === 2);
    expect(effects).toEqual([{ do: 'copy', text: 'seq stream diff --on r3 -c lab' }, { do: 'quit' }]);
  });

  test('store: an answer alone draws nothing; a settled look does', async () => {
    const { store, frames, lastFrame } = open();
    await until('a frame', () => lastFrame()!.includes('LEASE'));
    const before = frames.length;
    store.dispatch({ type: 'observed', observation: observe('?', 2), askedAt: store.state.now, at: store.state.now + 1 });
    expect(frames.length).toBe(before);
    store.dispatch({ type: 'settled', at: store.state.now + 1000, wall: store.state.wall + 1000 });
    await until('DOWN', () => /r3 +DOWN/.test(lastFrame()!));
    store.dispatch({ type: 'resized', columns: 60, rows: 16 });
    await until('the small frame', () => !lastFrame()!.includes('CHAIN'));
  });

  test.each([
    ['jjG', {}, ['j', 'j', 'G']], ['j\r', {}, ['j', 'enter']], ['c', { ctrl: true }, ['ctrl-c']], ['', { return: true }, ['enter']], ['', { escape: true }, ['escape']], ['[99~', {}, []], ['', { tab: true, shift: true }, ['backtab']], ['x', { ctrl: true }, []],
  ])('keys: %j %j → %j', (input, key, expected) => {
    const none = { upArrow: false, downArrow: false, pageUp: false, pageDown: false, return: false, escape: false, ctrl: false, shift: false, tab: false, backspace: false, delete: false };
    expect(keysOf(input, { ...none, ...key }, false)).toEqual(expected);
  });
});

describe('tui: screen', () => {
  const open_ = () => {
    const written: string[] = [];
    const screen = new Screen({ write: (text) => { written.push(text); } }, () => ['last', 'words']);
    return { written, screen };
  };
  test('screen: only rows that changed are written; after forget all of them', () => {
    const { written, screen } = open_();
    screen.enter();
    screen.draw('a\nb\nc');
    screen.draw('a\nB\nc');
    expect(written.at(-1)).toBe('\u001b[2;1H\u001b[KB');
    screen.draw('a\nB\nc');
    expect(written.length).toBe(3);
    screen.draw('a');
    expect(written.at(-1)).toBe('\u001b[2;1H\u001b[K\u001b[3;1H\u001b[K');
    screen.forget();
    screen.draw('a\nB');
    expect(written.at(-1)).toBe('\u001b[0m\u001b[2J\u001b[1;1H\u001b[Ka\u001b[2;1H\u001b[KB');
  });
  test('screen: left once, with the last words; nothing is drawn afterwards', () => {
    const { written, screen } = open_();
    screen.draw('too early');
    expect(written).toEqual([]);
    screen.enter();
    screen.leave();
    screen.leave();
    screen.draw('too late');
    expect(written.length).toBe(2);
    expect(written[1]).toMatch(/\u001b\[\?7h\u001b\[\?25h\u001b\[\?1049llast\nwords\n$/);
  });
});
