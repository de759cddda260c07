// The drawn components on fake streams, and the row-by-row screen: waits for content.
import { render } from 'ink-testing-library';
import { afterEach, describe, expect, test } from 'vitest';
import { cleanup } from 'ink-testing-library';
import { App } from '../../src/tui/components/app.js';
import { frame } from '../../src/tui/frame.js';
import { keysOf } from '../../src/tui/keys.js';
import { press, type Effect, type Key } from '../../src/tui/model-ui.js';
import { lastWords } from '../../src/tui/panels/banner.js';
import { Budget } from '../../src/tui/poll.js';
import { Screen } from '../../src/tui/screen.js';
import { widthOf } from '../../src/tui/text.js';
import { WatchStore } from '../../src/tui/store.js';
import { observe, probe, start } from '../support/watch-states.js';

afterEach(() => cleanup());

function open(words = 'x9@3 x9@3 x5@3') {
  const store = new WatchStore(probe(probe(start(3), words), words), { colour: false, unicode: false });
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
    store.dispatch({
      type: 'probed',
      probe: observe('?', 2),
      askedAt: store.state.now,
      at: store.state.now + 1,
    });
    expect(frames.length).toBe(before);
    store.dispatch({ type: 'settled', at: store.state.now + 1000, wall: store.state.wall + 1000 });
    await until('DOWN', () => /r3 +DOWN/.test(lastFrame()!));
    store.dispatch({ type: 'resized', columns: 60, rows: 16 });
    await until('the small frame', () => !lastFrame()!.includes('CHAIN'));
  });

  test.each([
    ['jjG', {}, ['j', 'j', 'G']],
    ['j\r', {}, ['j', 'enter']],
    ['c', { ctrl: true }, ['ctrl-c']],
    ['', { return: true }, ['enter']],
    ['', { escape: true }, ['escape']],
    ['[99~', {}, []],
    ['', { tab: true, shift: true }, ['backtab']],
    ['x', { ctrl: true }, []],
  ])('keys: %j %j → %j', (input, key, expected) => {
    const none = {
      upArrow: false,
      downArrow: false,
      pageUp: false,
      pageDown: false,
      return: false,
      escape: false,
      ctrl: false,
      shift: false,
      tab: false,
      backspace: false,
      delete: false,
    };
    expect(keysOf(input, { ...none, ...key }, false)).toEqual(expected);
  });
});

/** As much of a terminal as the screen uses: cursor, erasing, colour; a wide character takes two cells. */
class Drawn {
  private readonly cells: (string | undefined)[][] = [];
  private at: [row: number, column: number] = [0, 0];
  private style = '';

  take(text: string): void {
    // eslint-disable-next-line no-control-regex
    for (const [part, args, end] of text.matchAll(/\u001b\[([\d;?]*)([A-Za-z])|[\s\S]/gu)) {
      const row = (this.cells[this.at[0]] ??= []);
      if (end === 'H') {
        const [line = '1', column = '1'] = args!.split(';');
        this.at = [Number(line) - 1, Number(column) - 1];
      } else if (end === 'K') row.length = Math.min(row.length, this.at[1]);
      else if (end === 'J') this.cells.length = 0;
      else if (end === 'm') this.style = args === '0' ? '' : args!.replace(/^0;/, '');
      else if (end === undefined) {
        for (let cell = 0; cell < widthOf(part); cell += 1)
          row[this.at[1] + cell] = cell === 0 ? `${this.style} ${part}` : '';
        this.at = [this.at[0], this.at[1] + widthOf(part)];
      }
    }
  }

  rows() {
    return Array.from({ length: 4 }, (_, at) => Array.from(this.cells[at] ?? [], (cell) => cell ?? ' '));
  }
}

describe('tui: lanes', () => {
  test(
    'lanes: a tab each with its verdict; ] and [ change what is on the screen; a verdict elsewhere ' +
      'draws, a look elsewhere does not',
    async () => {
      const well = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
      const store = new WatchStore(well, { colour: false, unicode: false }, [
        { name: 'orders', state: { ...well, title: 'lab:orders' } },
      ]);
      const onKey = (key: Key) => {
        const { state, effect } = press(store.state, key);
        store.set(state);
        if (effect?.do === 'lane') store.show(effect.at);
      };
      const { lastFrame, frames, stdin } = render(<App store={store} onKey={onKey} />);
      await until('tabs', () => /> \(default\) {2}OK +orders {2}OK/.test(lastFrame()!.split('\n')[0]!));
      const before = frames.length;
      for (const id of ['r1', 'r2', 'r3'])
        store.dispatch(
          {
            type: 'probed',
            probe: { ...observe('-x9@3', 0, id) },
            askedAt: store.state.now + 1000,
            at: store.state.now + 1001,
          },
          1,
        );
      expect(frames.length).toBe(before);
      store.dispatch({ type: 'settled', at: store.state.now + 1002, wall: store.state.wall }, 1);
      await until(
        'CRIT in its tab',
        () => /> \(default\) {2}OK +orders {2}CRIT/.test(lastFrame()!) && lastFrame()!.includes(' [lab]  OK '),
      );
      stdin.write(']');
      await until(
        'the other lane',
        () => /\(default\) {2}OK +> orders {2}CRIT/.test(lastFrame()!) && lastFrame()!.includes(' [lab]  CRIT'),
      );
      expect(lastWords(store.state, store.theme).at(-1)).toBe('lanes: (default) OK, orders CRIT (the one above)');
      stdin.write('\u001b[D');
      await until('and back', () => lastFrame()!.includes(' [lab]  OK '));
      for (const [columns, rows] of [
        [140, 40],
        [100, 30],
        [60, 16],
        [40, 8],
        [20, 3],
      ] as const) {
        store.dispatch({ type: 'resized', columns, rows });
        expect([...new Set(frame(store.state, store.theme).map(widthOf))]).toEqual([columns]);
        expect(frame(store.state, store.theme).length).toBeLessThanOrEqual(rows - 1);
      }
    },
  );

  test(
    'lanes: more than fit → those beside the one shown, the others counted with the worst verdict ' + 'among them',
    () => {
      const well = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
      const tabs = Array.from({ length: 20 }, (_, at) => ({ name: `lane-${at}`, verdict: at === 19 ? 'CRIT' : 'OK' }));
      const drawn = frame({ ...well, tabs, tab: 8 }, { colour: false, unicode: false })[0]!;
      expect(drawn).toMatch(/> lane-8 {2}OK .*\+\d+ {2}CRIT/);
      expect(widthOf(drawn)).toBe(80);
    },
  );

  test('budget: lanes on one server share five commands a second', () => {
    const budget = new Budget();
    expect([0, 100, 200, 300, 400, 500].map((at) => budget.spend('redis://a', at))).toEqual([
      true,
      true,
      true,
      true,
      true,
      false,
    ]);
    expect([budget.spend('redis://b', 500), budget.spend('redis://a', 1000)]).toEqual([true, true]);
  });
});

describe('tui: screen', () => {
  test('screen: left although its last words throw', () => {
    let written = '';
    const screen = new Screen(
      {
        write: (text) => {
          written += text;
          return true;
        },
      },
      () => {
        throw new Error('boom');
      },
    );
    screen.enter();
    screen.leave();
    // eslint-disable-next-line no-control-regex
    expect(written).toMatch(/\u001b\[\?7h\u001b\[\?25h\u001b\[\?1049l$/);
  });

  const open_ = (clogged = () => false) => {
    const written: string[] = [];
    const screen = new Screen(
      {
        write: (text) => {
          written.push(text);
          return !clogged();
        },
      },
      () => ['last', 'words'],
    );
    return { written, screen };
  };
  test('screen: only rows that changed are written; after forget all of them', () => {
    const { written, screen } = open_();
    screen.enter();
    screen.draw('a\nb\nc');
    screen.draw('a\nB\nc');
    expect(written.at(-1)).toBe('\u001b[2;1HB');
    screen.draw('a\nB\nc');
    expect(written.length).toBe(3);
    screen.draw('a');
    expect(written.at(-1)).toBe('\u001b[2;1H\u001b[K\u001b[3;1H\u001b[K');
    screen.forget();
    screen.draw('a\nB');
    expect(written.at(-1)).toBe('\u001b[0m\u001b[2J\u001b[1;1Ha\u001b[2;1HB');
  });
  test('screen: what was written adds up to the frame, cell for cell, with its colours, whatever changed', () => {
    const { written, screen } = open_();
    screen.enter();
    let seed = 7;
    const any = (below: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % below;
    };
    const tones = ['', '2', '1;31', '30;42'];
    const pieces = ['r1', ' OK ', '──', '│', '█▁', '12', '...', ' ', '2.6s', '日本', '🚀'];
    const row = () => {
      let out = '';
      while (any(9) > 0) {
        const tone = tones[any(4)];
        const text = pieces[any(pieces.length - (any(6) === 0 ? 0 : 2))];
        out += tone === '' ? text : `\u001b[${tone}m${text}\u001b[0m`;
      }
      return out;
    };
    const real = new Drawn();
    let rows = [row(), row(), row()];
    for (let round = 0; round < 400; round += 1) {
      rows = rows.map((before) =>
        any(3) === 0 ? row() : any(2) === 0 ? before.replace(/2/g, '7').replace(/▁/g, '█') : before,
      );
      if (any(20) === 0) screen.forget();
      screen.draw(rows.join('\n'));
      real.take(written.splice(0).join(''));
      const whole = new Drawn();
      whole.take(rows.map((text, at) => `\u001b[${at + 1};1H\u001b[K${text}`).join(''));
      expect(real.rows(), `round ${round}`).toEqual(whole.rows());
    }
  });
  test('screen: one digit of a long row costs its place and itself', () => {
    const { written, screen } = open_();
    screen.enter();
    screen.draw(`│ committed 41   0.0s ago${' '.repeat(60)}│`);
    screen.draw(`│ committed 42   0.0s ago${' '.repeat(60)}│`);
    expect(written.at(-1)).toBe('\u001b[1;14H2');
  });
  test('screen: a terminal that did not take it all → the next frame is whole', () => {
    let clogged = false;
    const { written, screen } = open_(() => clogged);
    screen.enter();
    screen.draw('a\nb');
    clogged = true;
    screen.draw('a\nc');
    clogged = false;
    screen.draw('a\nd');
    expect(written.at(-1)).toBe('\u001b[0m\u001b[2J\u001b[1;1Ha\u001b[2;1Hd');
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
