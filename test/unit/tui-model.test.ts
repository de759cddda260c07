// The watch as a pure function: probes in, screen out. One word per node and probe. No screen exceeds its size.
import { describe, expect, test } from 'vitest';
import { summarize } from '../../src/core/view/model.js';
import type { NodeView, Presence } from '../../src/core/protocol/types.js';
import { frame } from '../../src/tui/frame.js';
import { bands, panelsOf } from '../../src/tui/layout.js';
import { sizeClass } from '../../src/tui/size.js';
import { addEvents } from '../../src/tui/model-events.js';
import { isWorse, since } from '../../src/tui/model-since.js';
import { addEntries, checked, NO_ENTRIES, wantedEntries } from '../../src/tui/model-entries.js';
import { eventList, nodeList } from '../../src/tui/model-lists.js';
import type { NodePort } from '../../src/core/ports.js';
import { systemClock } from '../../src/core/nodes/system-clock.js';
import { Poller } from '../../src/tui/poll.js';
import { reduce } from '../../src/tui/model.js';
import { press, type Key } from '../../src/tui/model-ui.js';
import { lastWords } from '../../src/tui/panels/banner.js';
import { age, clean, cut, fit, widthOf, wrap } from '../../src/tui/text.js';
import { sparkline, themeOf } from '../../src/tui/theme.js';
import { block, entry, hash, observe, start, probe } from '../support/watch-states.js';
import type { WatchState } from '../../src/tui/model-state.js';

const PLAIN = { colour: false, unicode: false };
const screen = (state: WatchState) => frame(state, PLAIN).join('\n');

describe('tui: text of an exact width', () => {
  test.each([
    ['abc', 5, 'abc  '],
    ['abcdef', 4, 'abc~'],
    ['日本語', 6, '日本語'],
    ['日本語', 5, '日本~'],
    ['日本語', 4, '日~ '],
    ['👩‍👩‍👧x', 3, '👩‍👩‍👧x'],
    ['é', 2, 'é '],
    ['', 2, '  '],
    ['\u001b[31mred', 8, ' [31mred'],
    ['a\nb', 3, 'a b'],
  ])('text: %j in %d cells → %j', (text, width, expected) => {
    expect(fit(text, width)).toBe(expected);
    expect(widthOf(fit(text, width))).toBe(width);
  });

  test('text: nothing that moves the cursor gets through', () => {
    expect(clean('a\u001b]0;x\u0007\u202eb\u009b2J')).not.toMatch(/[\u0000-\u001f\u0080-\u009f\u202e]/);
    expect(cut('x'.repeat(100), 0)).toBe('');
    expect(wrap('one two three', 7)).toEqual(['one two', 'three']);
  });

  test.each([
    [800, '0.8s'],
    [12_000, '12s'],
    [128_000, '2m08s'],
    [11_520_000, '3h12m'],
    [356_400_000, '4d03h'],
    [null, '?'],
  ])('age: %s ms → %s', (ms, expected) => {
    expect(age(ms)).toBe(expected);
  });

  test('theme: locale, TERM=linux and NO_COLOR decide on glyphs', () => {
    expect(themeOf({ LANG: 'en_US.UTF-8', TERM: 'xterm' }, true)).toEqual({ colour: true, unicode: true });
    expect(themeOf({ LANG: 'C', TERM: 'xterm' }, true).unicode).toBe(false);
    expect(themeOf({ LANG: 'C.UTF-8', TERM: 'linux' }, false)).toEqual({ colour: false, unicode: false });
    expect(sparkline(PLAIN, [0, 1, 2, 4], 6, 4)).toBe('  _.=#'.replace('=', '='));
  });
});

describe('tui: what the looks add up to', () => {
  test('watch: open across a recovery → follows the later generation of its cluster, and says so', async () => {
    let state = start(3);
    let generation = 1;
    // Nodes as one opens them for a generation: for any other one they are foreign.
    const opened = (expected: number) =>
      ['x9@3', 'x9@3', 'x9@3'].map((word, index): NodePort => {
        const call = async () => {
          const { reply } = observe(word, index);
          if (reply.outcome !== 'accepted') throw new Error('it answers');
          const admission = generation === expected ? 'admitted' : 'foreign';
          return { ...reply, value: { ...reply.value, cluster: `c.${generation}`, admission } };
        };
        const read = async () => ({ outcome: 'unknown', step: 'call', cause: 'not asked', limitMs: 1 });
        return { id: `r${index + 1}`, url: `redis://127.0.0.1:${7000 + index}`, call, read } as unknown as NodePort;
      });
    const poller = new Poller({
      nodes: opened(1),
      rediscover: async () => opened(generation),
      identified: true,
      limitMs: 1000,
      clock: systemClock,
      state: () => state,
      dispatch: (input) => (state = reduce(state, input)),
      still: true,
    });
    // The first verdict comes with the second probe.
    await poller.poll();
    await poller.poll();
    expect(state.data.view!.cluster).toBe('c.1');
    generation = 2;
    await poller.poll();
    expect(state.data.view!.nodes.map((row) => row.state)).toEqual(['FOREIGN', 'FOREIGN', 'FOREIGN']);
    await poller.poll();
    await poller.poll();
    const { view, events } = state.data;
    expect([view!.cluster, view!.nodes.map((row) => row.state)]).toEqual(['c.2', ['OK', 'OK', 'OK']]);
    expect(events.map((one) => one.text)).toContain('the cluster was recovered: following c.2');
  });

  test.each([
    ['y7@3', 'DIVERGED', `DIVERGED: at height 7 it holds block ${hash('y', 7).slice(0, 16)}, the committed one is `],
    ['x7@3', 'NODE_LAGGING', '2 blocks behind the committed head'],
  ])('watch: a node behind shows %s, another one has read x7 → %s', (word, code, note) => {
    const words = `x9@3 x9@3 ${word}`;
    const read = {
      outcome: 'accepted' as const,
      incarnation: 'boot',
      value: { entries: [entry('x', 7)], damaged: [], lastId: '' },
    };
    const seen = reduce(probe(start(3), words), { type: 'chain-at-head', id: 'r3', height: 7, read });
    const view = probe(probe(seen, words), words).data.view!;
    expect([view.reasonCode, view.nodes[2]!.note.startsWith(note)]).toEqual([code, true]);
  });

  test('watch: same observations → the verdict, leader and next of summarize', () => {
    const words = 'x9@3 x9@3 ?';
    const state = probe(probe(start(3), words), words);
    const direct = summarize(
      words.split(' ').map((word, i) => observe(word, i)),
      { target: '-c lab' },
    );
    const { verdict, reasonCode, leader, margin, next, committed } = state.data.view!;
    expect({ verdict, reasonCode, leader, margin, next, committed }).toEqual({
      verdict: direct.verdict,
      reasonCode: direct.reasonCode,
      leader: direct.leader,
      margin: direct.margin,
      next: direct.next,
      committed: direct.committed,
    });
  });

  test('watch: one look alone → no verdict yet; the second gives it', () => {
    const first = probe(start(3), 'x9@3 x9@3 x9@3');
    expect(first.data.view).toBeNull();
    expect(screen(first)).toContain('asking 3 nodes');
    expect(probe(first, 'x9@3 x9@3 x9@3').data.view?.verdict).toBe('OK');
  });

  test.each([
    [
      'a node goes and comes back',
      ['x9@3 x9@3 x9@3', 'x9@3 x9@3 ?', 'x9@3 x9@3 x9@3'],
      ['r3 back after', 'r3 gone: no answer'],
    ],
    [
      'the leader changes',
      ['x9@3 x9@3 x9@3', '-x9@3 -x9@3 -x9@3', 'b:x9@4 b:x9@4 b:x9@4'],
      ['seq-b leads under epoch 4', 'seq-a no longer leads (epoch 3); nobody does'],
    ],
    [
      'a node falls behind and catches up',
      ['x9@3 x9@3 x9@3', 'x9@3 x9@3 x5@3', 'x9@3 x9@3 x9@3'],
      ['r3 caught up', 'r3 4 behind'],
    ],
    [
      'a node restarts and is admitted',
      ['x9@3 x9@3 x9@3', 'x9@3 x9@3 x9@3r', 'x9@3 x9@3 x9@3'],
      ['r3 admitted', 'r3 not admitted'],
    ],
    ['a node fences the leader', ['x9@3 x9@3 x9@3', 'x9@3 x9@3 -x9@3e7'], ['r3 fences seq-a: its epoch 7 is above 3']],
    ['two blocks under one epoch', ['x9@3 x9@3 x9@3', 'x10@3 y10@3 x9@3'], ['CONFLICT at height 10']],
    [
      'an orphan is repaired',
      ['x9@3 x9@3 x9@3', 'x9@3 x9@3 y9@2e3', 'x9@3 x9@3 x9@3'],
      ['r3: its orphan was repaired', 'r3 holds an orphan'],
    ],
  ])('events: %s → %j', (_name, probes, expected) => {
    let state = probe(start(3), probes[0]!);
    for (const words of probes) state = probe(state, words);
    const texts = state.data.events.map((event) => event.text);
    for (const text of expected)
      expect(
        texts.some((one) => one.includes(text)),
        `${text} in ${texts.join(' | ')}`,
      ).toBe(true);
  });

  test('events: the same flapping → counted, not repeated; never more than 1000', () => {
    let state = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
    for (let i = 0; i < 6; i++) state = probe(probe(state, 'x9@3 x9@3 x5@3'), 'x9@3 x9@3 x9@3');
    expect(state.data.events.filter((event) => event.text === 'r3 caught up')).toMatchObject([{ count: 6 }]);
    expect(state.data.events.length).toBeLessThanOrEqual(1000);
  });

  test('watch: a silent node keeps its last facts, marked, with their age', () => {
    let state = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
    for (let i = 0; i < 7; i++) state = probe(state, 'x9@3 x9@3 ?');
    const row = screen(state)
      .split('\n')
      .find((line) => / r3 /.test(line) && line.includes('DOWN'))!;
    expect(row).toMatch(/r3 +DOWN +seq-a\? +\? +3\? +9\? +\? +\? +7s/);
    expect(screen(probe(probe(start(3), '? ? ?'), '? ? ?'))).toMatch(/CRIT.*0 of 3 nodes can vote/);
  });

  test.each([
    ['a word from before only', { role: 'leader', seenAtMs: '900000' }, [1, 0, 0], /seq-b leads under epoch 4/],
    [
      'a follower now, same process',
      { role: 'follower', seenAtMs: '999900' },
      [1, 1, 0],
      /seq-a stepped down from epoch 3 and goes on as a follower/,
    ],
    ['no longer heard of', null, [1, 0, 1], /seq-a is no longer heard of/],
    [
      'started again',
      { role: 'follower', seenAtMs: '999900', pid: 77 },
      [1, 0, 1],
      /seq-a was started again \(pid 77\)/,
    ],
  ] as const)(
    'watch: another leads; the one before: %s → elections, stepdowns, leaders gone',
    (_, before, counts, event) => {
      const say = (state: WatchState, words: string) => {
        const at = state.now + 1000;
        let next = state;
        for (const [i, word] of words.split(' ').entries()) {
          const seen = observe(word, i);
          const view = (seen.reply as unknown as { value: NodeView }).value;
          const [a, b] = view.sequencers as [Presence, Presence];
          const then =
            before === null
              ? []
              : [
                  {
                    ...a,
                    role: before.role,
                    pid: 'pid' in before ? before.pid : a.pid,
                    extra: { ...a.extra, seenAtMs: before.seenAtMs },
                  },
                ];
          view.sequencers = [...then, { ...b, role: 'leader', extra: { ...b.extra, seenAtMs: '999900' } }];
          next = reduce(next, { type: 'probed', probe: seen, askedAt: at - 2, at: at - 1 });
        }
        return reduce(next, { type: 'settled', at, wall: state.wall + 1000 });
      };
      let state = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
      expect([state.data.elections, state.data.stepdowns, state.data.gone]).toEqual([0, 0, 0]);
      state = probe(state, '-x9@3 -x9@3 -x9@3');
      for (let i = 0; i < 2; i += 1) state = say(state, 'b:x9@4 b:x9@4 b:x9@4');
      expect([state.data.elections, state.data.stepdowns, state.data.gone]).toEqual(counts);
      expect(state.data.events.map((one) => one.text).join('\n')).toMatch(event);
    },
  );

  test(
    'watch: 60x16 → why a node is down, and the reason in whole; with tabs the title does not repeat ' + 'the lane',
    () => {
      let state = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
      state = reduce(probe(probe(state, 'x9@3 x9@3 ?'), 'x9@3 x9@3 ?'), { type: 'resized', columns: 60, rows: 16 });
      expect(screen(state)).toMatch(/r3 +DOWN .*\d+s call: no reply/);
      expect(screen(state).split('\n').slice(0, 2).join(' ').replace(/ +/g, ' ')).toContain(
        state.data.view!.reason.split(' ').at(-1),
      );
      const tabs = [
        { name: '', verdict: 'OK' },
        { name: 'orders', verdict: 'OK' },
      ];
      expect(screen({ ...state, title: 'lab:orders', tabs, tab: 1 })).toMatch(/> orders[\s\S]* \[lab\] +WARN/);
      expect(screen({ ...state, title: 'lab:orders', tabs, tab: 1, size: { columns: 60, rows: 6 } })).toMatch(
        /^ \[lab:orders\]/,
      );
    },
  );

  test(
    'watch: keys go to panels that can be seen; a filter is dropped by Esc; what a key brought about ' +
      'is told in whole',
    () => {
      const keys = (state: WatchState, ...pressed: Key[]) => pressed.reduce((at, key) => press(at, key).state, state);
      const at80 = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
      expect([1, 2, 3, 4, 5, 6].map((n) => keys(at80, ...Array<Key>(n).fill('tab')).ui.panel)).toEqual([
        'sequencers',
        'agreement',
        'events',
        'lease',
        'chain',
        'nodes',
      ]);
      const at60 = reduce(at80, { type: 'resized', columns: 60, rows: 16 });
      expect(screen(keys(at60, '5'))).toContain('AGREEMENT is shown from 80x24 on, if few sequencers run');
      const at140 = keys(reduce(at80, { type: 'resized', columns: 140, rows: 40 }), '5');
      expect(at140.ui.panel).toBe('agreement');
      expect(reduce(at140, { type: 'resized', columns: 80, rows: 24 }).ui.panel).toBe('agreement');
      expect(reduce(at140, { type: 'resized', columns: 60, rows: 16 }).ui.panel).toBe('nodes');
      const filtered = keys(at80, '/', 'r', '2', 'enter');
      expect(nodeList(filtered).length).toBe(1);
      expect([nodeList(keys(filtered, '/', 'escape')).length, nodeList(keys(filtered, 'escape')).length]).toEqual([
        3, 3,
      ]);
      const told = reduce(at80, { type: 'told', text: `written: seq-watch-${'2'.repeat(40)}.json`, at: at80.now });
      expect(screen(told)).toContain(`${'2'.repeat(40)}.json`);
    },
  );

  test('watch: 80x24, long names of sequencers → their numbers are whole', () => {
    const look_ = (state: WatchState) => {
      const at = state.now + 1000;
      let next = state;
      for (let i = 0; i < 3; i += 1) {
        const seen = observe('x9@3', i);
        const view = (seen.reply as unknown as { value: NodeView }).value;
        view.sequencers = view.sequencers.map((one) => ({ ...one, id: `${one.id}-${'n'.repeat(50)}`, height: 8 }));
        next = reduce(next, { type: 'probed', probe: seen, askedAt: at - 2, at: at - 1 });
      }
      return reduce(next, { type: 'settled', at, wall: state.wall + 1000 });
    };
    expect(screen(look_(look_(start(3))))).toMatch(/\| {3}seq-b-~ follower {6}8 {3}\d {3}0s \|/);
  });

  test('watch: a renewed term is no election', () => {
    let state = probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3');
    state = probe(state, 'x9@4 x9@4 x9@4');
    expect([state.data.elections, state.data.stepdowns, state.data.gone]).toEqual([0, 0, 0]);
  });
});

describe('tui: entries are read once', () => {
  const view = (head: number, letter = 'x') =>
    ({ ...(observe(`${letter}${head}@3`, 0).reply as unknown as { value: object }).value }) as never;
  test('entries: unknown window, then only what is new, then nothing; a superseded head again', () => {
    expect(wantedEntries(NO_ENTRIES, view(3))).toEqual({ from: 1, to: 3 });
    const known = addEntries(
      NO_ENTRIES,
      { entries: [entry('x', 1), entry('x', 2), entry('x', 3)], damaged: [], lastId: '' },
      { from: 1, to: 3 },
      'boot',
    );
    expect(wantedEntries(known, view(3))).toBeNull();
    expect(wantedEntries(known, view(5))).toEqual({ from: 4, to: 5 });
    expect(wantedEntries(known, view(3, 'y'))).toEqual({ from: 3, to: 3 });
    expect(checked(known, { ...(view(3) as object), incarnation: 'other' } as never)).toBe(NO_ENTRIES);
    const far = addEntries(known, { entries: [entry('x', 4)], damaged: [], lastId: '' }, { from: 4, to: 4 }, 'boot');
    expect([far.from, far.to, far.entries.length]).toEqual([1, 4, 4]);
    expect(
      addEntries(
        known,
        { entries: [block('x', 4, hash('y', 3))], damaged: [], lastId: '' },
        { from: 4, to: 4 },
        'boot',
      ),
    ).toBe(NO_ENTRIES);
  });
});

describe('tui: keys', () => {
  const ready = () => {
    let s = start(3);
    for (let i = 0; i < 3; i++) s = probe(s, 'x9@3 x9@3 x5@3');
    return s;
  };
  const keys = (state: WatchState, ...pressed: Key[]) => pressed.reduce((s, key) => press(s, key).state, state);
  test('keys: move, open, back, panels', () => {
    const state = keys(ready(), 'j', 'j', 'j', 'enter');
    expect(state.ui.detail).toEqual({ of: 'node', id: 'r3' });
    expect(screen(state)).toContain('NODE r3');
    expect(keys(state, 'escape').ui.detail).toBeNull();
    expect(keys(ready(), 'tab').ui.panel).toBe('sequencers');
    expect(keys(ready(), '6', 'enter').ui.detail).toMatchObject({ of: 'event' });
    expect(screen(keys(ready(), '2', 'enter'))).toContain('HEIGHT 9');
    expect(screen(keys(ready(), '?'))).toContain('No key changes the cluster');
  });
  test('keys: filter while typing, keep, drop; q is text then', () => {
    const typing = keys(ready(), '/', 'r', '3', 'q');
    expect([typing.ui.typing, press(typing, 'q').effect]).toEqual(['r3q', null]);
    const kept = keys(typing, 'backspace', 'enter');
    expect(nodeList(kept).map((one) => one.value.track.id)).toEqual(['r3']);
    expect(nodeList(keys(kept, 'escape')).length).toBe(3);
  });
  test('keys: sort, freeze, rate, copy, effects', () => {
    expect(nodeList(keys(ready(), 's')).map((one) => one.value.track.id)).toEqual(['r3', 'r1', 'r2']);
    const frozen = probe(probe(keys(ready(), ' '), '? ? ?'), '? ? ?');
    expect(screen(frozen)).toMatch(/FROZEN 2\.0s/);
    expect(screen(frozen)).toContain('WARN');
    expect(screen(keys(frozen, ' '))).toContain('CRIT');
    expect(press(ready(), '+')).toMatchObject({
      state: { ui: { intervalMs: 500 } },
      effect: { do: 'interval', ms: 500 },
    });
    expect(press(ready(), 'y').effect).toEqual({ do: 'copy', text: 'seq stream diff --on r3 -c lab' });
    expect((['q', 'ctrl-c', 'ctrl-z', 'r', 'o'] as const).map((key) => press(ready(), key).effect?.do)).toEqual([
      'quit',
      'interrupt',
      'suspend',
      'probe',
      'snapshot',
    ]);
  });
});

describe('tui: since, and the bell', () => {
  const keys = (state: WatchState, ...pressed: Key[]) => pressed.reduce((s, key) => press(s, key).state, state);
  const marked = () => keys(probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3'), 'm');

  test.each([
    ['nothing', ['x9@3 x9@3 x9@3'], [], []],
    ['two blocks', ['x11@3 x11@3 x11@3'], ['committed: 9, now 11'], []],
    [
      'a node gone',
      ['x9@3 x9@3 ?'],
      ['verdict: OK, now WARN NODE_DOWN', 'may lose: 1, now 0', 'node r3: OK, now DOWN'],
      [/^r3 gone: /, /^verdict WARN, was OK: /],
    ],
    ['a node gone and back', ['x9@3 x9@3 ?', 'x9@3 x9@3 x9@3'], [], [/^r3 gone: /, /^r3 back after /]],
    [
      'another leader',
      ['-x9@3 -x9@3 -x9@3', 'b:x9@4 b:x9@4 b:x9@4'],
      ['leader: seq-a, epoch 3, now seq-b, epoch 4', 'elections: 0, now 1', 'seq seq-b: follower, pid 11, now LEADER'],
      [/^seq-a no longer leads/, /^seq-b leads under epoch 4/],
    ],
  ] as [string, string[], string[], RegExp[]][])('since: m, then %s → %j is told', (_, looks, facts, events) => {
    const state = looks.reduce((s, words) => probe(s, words), marked());
    const found = since(state.ui.mark!, state.data);
    const told = found.facts.map(({ what, was, is }) => `${what}: ${was}, now ${is}`);
    for (const fact of facts)
      expect(
        told.some((line) => line.startsWith(fact)),
        told.join('\n'),
      ).toBe(true);
    if (facts.length === 0) expect(told).toEqual([]);
    for (const event of events) expect(found.events.map((one) => one.text).join('\n')).toMatch(RegExp(event, 'm'));
    if (events.length === 0) expect(found.events).toEqual([]);
    const seen = screen(keys(state, 'm'));
    expect(seen).toMatch(/SINCE[\s\S]* since 22:13:22Z, \d\.0s ago/);
    for (const fact of facts) expect(seen).toContain(fact.replace(': ', ' '.repeat(14 - fact.indexOf(':'))));
    if (facts.length === 0) expect(seen).toContain('every fact is as it was');
    if (events.length === 0) expect(seen).toContain('nothing happened');
  });

  test('since: m marks, m shows, m there marks anew; Esc keeps the mark; EVENTS counts', () => {
    expect(screen(marked())).toContain('marked 22:13:22Z: m shows what changes from here');
    const later = probe(marked(), 'x9@3 x9@3 ?');
    expect(screen(later)).toMatch(/EVENTS \(2 since 22:13:22Z/);
    const open = keys(later, 'm');
    expect([open.ui.detail, open.ui.mark === marked().data]).toEqual([{ of: 'since' }, false]);
    expect(keys(open, 'escape').ui).toMatchObject({ detail: null, mark: open.ui.mark });
    const anew = keys(open, 'm');
    expect([anew.ui.detail, since(anew.ui.mark!, anew.data).events]).toEqual([null, []]);
  });

  test('since: more events than are kept → it says so', () => {
    let state = marked();
    const event = { level: 'info', kind: 'node', subject: 'r1' } as const;
    const many = Array.from({ length: 1200 }, (_, at) => ({ ...event, text: `event ${at}` }));
    const events = addEvents(state.data.events, many, { at: state.now, wall: state.wall }, []);
    state = { ...state, data: { ...state.data, events } };
    expect(since(state.ui.mark!, state.data)).toMatchObject({ forgotten: true });
    expect(screen(keys(state, 'm', 'G'))).toContain('what happened before that is no longer kept');
  });

  test.each([
    ['?', 'CRIT', false],
    ['OK', 'OK', false],
    ['OK', 'WARN', true],
    ['OK', 'UNKNOWN', true],
    ['WARN', 'UNKNOWN', true],
    ['WARN', 'CRIT', true],
    ['UNKNOWN', 'CRIT', true],
    ['CRIT', 'UNKNOWN', false],
    ['CRIT', 'WARN', false],
    ['WARN', 'OK', false],
  ])('bell: %s, then %s → rings: %s', (before, after, rings) => {
    expect(isWorse(before, after)).toBe(rings);
  });
});

describe('tui: sizes', () => {
  const sizes: [number, number, string][] = [
    [200, 60, 'full'],
    [140, 40, 'full'],
    [100, 30, 'large'],
    [80, 24, 'normal'],
    [60, 16, 'small'],
    [40, 8, 'tiny'],
    [39, 8, 'line'],
    [20, 3, 'line'],
  ];
  const cases = sizes.flatMap(([columns, rows, kind]) =>
    ['x9@3 x9@3 x9@3', 'x9@3 x9@3 ?', '? ? ?'].map((words) => [columns, rows, kind, words] as const),
  );
  test.each(cases)(
    'frame: %d×%d (%s), %s → every row as wide as the terminal, one row fewer than it has',
    (columns, rows, kind, words) => {
      for (const theme of [PLAIN, { colour: true, unicode: true }]) {
        for (const pressed of [[], ['?'], ['enter'], ['2', 'enter'], ['/'], [' ']] as Key[][]) {
          let state = reduce(probe(probe(start(3), words), words), { type: 'resized', columns, rows });
          for (const key of pressed) state = press(state, key).state;
          const drawn = frame(state, theme);
          expect(sizeClass(state.size)).toBe(kind);
          expect(drawn.length).toBeLessThanOrEqual(rows - 1);
          // eslint-disable-next-line no-control-regex
          expect([...new Set(drawn.map((row) => widthOf(row.replace(/\u001b\[[\d;]*m/g, ''))))]).toEqual([columns]);
        }
      }
    },
  );

  test('frame: each size shows what it promises', () => {
    const shows = (columns: number, rows: number) =>
      bands(reduce(probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3'), { type: 'resized', columns, rows }))
        .map((band) => band.kind)
        .join(' ');
    expect(shows(140, 40)).toBe('banner top nodes bottom next');
    expect(shows(100, 30)).toBe('banner top nodes bottom next');
    expect(shows(80, 24)).toBe('banner top nodes bottom next');
    expect(shows(60, 16)).toBe('banner lease nodes plain-events next');
    expect(shows(40, 8)).toBe('banner plain-nodes next');
    expect(shows(30, 5)).toBe('banner');
  });

  test.each([
    [80, 24, 2, 'lease chain nodes sequencers agreement events', 2],
    [80, 24, 20, 'lease chain nodes sequencers events', 0],
    [100, 30, 2, 'lease chain nodes sequencers agreement events', 5],
    [100, 30, 20, 'lease chain nodes sequencers events', 0],
    [140, 40, 2, 'lease chain nodes sequencers agreement events', 15],
    [140, 40, 20, 'lease chain nodes sequencers agreement events', 4],
    [60, 16, 2, 'lease nodes events', 0],
  ])('frame: %d×%d, %d sequencers → %s; AGREEMENT has %d heights', (columns, rows, sequencers, panels, heights) => {
    const words = 'x99@3 x99@3 x99@3';
    const state = reduce(probe(probe(start(3), words, sequencers), words, sequencers), {
      type: 'resized',
      columns,
      rows,
    });
    expect(panelsOf(state).join(' ')).toBe(panels);
    const drawn = frame(state, PLAIN);
    expect(drawn.some((row) => row.includes(' AGREEMENT '))).toBe(heights > 0);
    expect(drawn.filter((row) => /^. +\d+ [A?.] +[A?.] +[A?.] /.test(row)).length).toBe(heights);
    expect(drawn.filter((row) => /^. +HEIGHT r1 r2 r3 CLASS /.test(row)).length).toBe(heights > 0 ? 1 : 0);
  });

  test('frame: more sequencers than before → the keys leave AGREEMENT with it', () => {
    const words = 'x99@3 x99@3 x99@3';
    const on = press(probe(probe(start(3), words), words), '5').state;
    expect([on.ui.panel, probe(on, words, 20).ui.panel]).toEqual(['agreement', 'nodes']);
  });

  test('frame: 9 nodes, 20 sequencers, names of 60 characters, CJK and emoji → still aligned, nothing lost', () => {
    const names = Array.from({ length: 9 }, (_, i) =>
      i % 3 === 0 ? `節点${i}`.repeat(15) : i % 3 === 1 ? `r${i}`.padEnd(60, 'x') : `🚀${i}`,
    );
    let state = start(9, names);
    const words = Array.from({ length: 9 }, () => 'x9@3').join(' ');
    for (let i = 0; i < 3; i++) state = probe(state, words, 20);
    for (const [columns, rows] of [
      [140, 40],
      [100, 30],
      [80, 24],
      [60, 16],
      [40, 8],
    ] as const) {
      const drawn = frame(reduce(state, { type: 'resized', columns, rows }), PLAIN);
      expect([...new Set(drawn.map(widthOf))]).toEqual([columns]);
    }
    expect(frame(reduce(state, { type: 'resized', columns: 140, rows: 40 }), PLAIN).join('\n')).toMatch(
      /SEQUENCERS \(\+\d+ more\)/,
    );
    expect(eventList(state).length).toBeGreaterThan(0);
    expect(lastWords(state, PLAIN)).toHaveLength(3);
  });
});

describe('tui: what is not known is not made up', () => {
  test(
    'watch: two of three fall silent → the committed height stays, marked; counts are ?; no alarm ' +
      'about lost blocks',
    () => {
      const state = probe(probe(probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3'), 'x9@3 ? ?'), 'x9@3 ? ?');
      const drawn = screen(state);
      expect(drawn).toMatch(/committed 9\?/);
      expect(drawn).toMatch(/pending \? +orphan \? +conflict \?/);
      expect(drawn).toMatch(/owns +\?\/3/);
      expect(state.data.events.map((one) => one.text).join('\n')).not.toContain('less is provably committed');
    },
  );
  test('watch: every node answers and shows less than before → an alarm', () => {
    const state = probe(probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x9@3 x9@3 x9@3'), 'x7@3 x7@3 x7@3');
    expect(state.data.events.map((one) => one.text)).toContain('less is provably committed than before: 7, was 9');
    expect(screen(state)).toMatch(/committed 7 /);
  });
  test('watch: two blocks under one epoch → a conflict, never called an orphan that is replaced', () => {
    const state = probe(probe(probe(start(3), 'x9@3 x9@3 x9@3'), 'x10@3 x10@3 y10@3'), 'x10@3 x10@3 y10@3');
    expect(state.data.view).toMatchObject({ verdict: 'CRIT', reasonCode: 'CONFLICT' });
    expect(state.data.view?.findings.map((one) => one.code)).not.toContain('NODE_ORPHAN');
    expect(state.data.view?.nodes[2]?.note).toContain('under the same epoch (a conflict');
    expect(screen(state)).toMatch(/orphan 0 +conflict 1/);
  });
});

describe('tui: history', () => {
  test('history: h opens it → three series with their scales and a time axis; h or Esc closes it', () => {
    let state = start(3);
    for (let head = 9; head < 40; head += 1) state = probe(state, `x${head}@3 x${head}@3 x${head - 2}@3`);
    state = press(state, 'h').state;
    const drawn = screen(state);
    expect(drawn).toContain('HISTORY');
    expect(drawn).toMatch(/commit latency +now 1\.5ms +p50 1\.5ms +p99 1\.5ms +max 1\.5ms/);
    expect(drawn).toMatch(/blocks per second +now 1\.0 /);
    expect(drawn).toMatch(/greatest lag, blocks +now [12] /);
    expect(drawn).toMatch(/29s ago +now/);
    expect(press(state, 'h').state.ui.detail).toBeNull();
    for (const [columns, rows] of [
      [140, 40],
      [100, 30],
      [60, 16],
      [40, 8],
    ] as const) {
      expect([...new Set(frame(reduce(state, { type: 'resized', columns, rows }), PLAIN).map(widthOf))]).toEqual([
        columns,
      ]);
    }
  });
});
