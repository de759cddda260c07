// Which room of src/ may import which (docs/ARCHITECTURE.md): a table of allowed arrows. An import that has no arrow
// fails, and an arrow that nothing uses fails too, so the table says what is true. Type imports count. No cycles.
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

/**
 * Room → rooms that it may import, besides itself. `core` is the files right in src/core (ports, errors, config …).
 * A file belongs to the longest name here that its path begins with; a single file may have a row of its own.
 */
const ARROWS: Record<string, string> = {
  // The protocol is pure, and everything else may know it.
  'core/protocol': '',
  core: 'core/protocol',
  'core/chain': 'core core/protocol',

  // nodes < view < stream < report: ask nodes, judge one cluster, read its stream, report on it.
  'core/nodes': 'core core/chain core/protocol',
  'core/view': 'core core/nodes core/protocol',
  'core/stream': 'core core/chain core/nodes core/protocol core/view',
  'core/report': 'core core/nodes core/protocol core/stream core/view',

  // nodes < lead < follow < sequencer: a leader knows nothing of followers; a follower decides whether it may lead.
  'core/sequencer/lead': 'core core/chain core/nodes core/protocol',
  'core/sequencer/follow': 'core core/nodes core/protocol core/sequencer/lead',
  'core/sequencer': 'core core/chain core/nodes core/protocol core/sequencer/follow core/sequencer/lead core/stream',
  'core/sequencer/warmup': 'core core/chain core/nodes core/protocol core/sequencer core/sequencer/lead',

  // What operators do stands above the view and the stream. A repair runs a leader's term; a leader never plans one.
  'core/operate': 'core core/nodes core/protocol core/stream core/view',
  'core/repair': 'core core/chain core/nodes core/protocol core/sequencer/lead core/stream core/view',
  'core/recovery': 'core core/chain core/nodes core/protocol',
  'core/bench': 'core core/chain core/nodes core/operate core/protocol',
  'core/submit': 'core core/nodes',
  // Which lanes there are. Every lane is a cluster's chain of its own: it is made, judged and retired as one.
  'core/fleet': 'core core/nodes core/operate core/protocol core/view',

  // The outside: each of these knows one package or one format (see "each known to one folder").
  'core/redis': 'core core/chain core/dialect-fuel core/protocol',
  'core/store': 'core core/chain core/protocol',
  'core/produce': 'core core/chain core/protocol',
  'core/serve': 'core core/chain',
  'core/log': 'core',
  'core/bundle': 'core core/chain core/log core/nodes core/protocol core/stream core/view',
  // Other data in the same report: it gives the answers of report/check-answer.ts.
  'core/dialect-fuel': 'core core/nodes core/protocol core/view',

  // The command line. Only compose joins the engine to redis, disk and HTTP; support and config know neither.
  // It names the type of every code, so that a code without an entry does not compile.
  'cli/codes': 'core core/dialect-fuel core/protocol core/view',
  // What stands around a sequencer: alerts, dashboard, units and manifests. It opens nothing.
  'cli/deploy': 'cli/cluster cli/codes core core/view',
  'cli/support': 'cli/present core core/log core/nodes core/protocol',
  'cli/config': 'cli/support core',
  'cli/present':
    'core core/bench core/bundle core/chain core/dialect-fuel core/fleet core/operate core/protocol core/recovery core/repair ' +
    'core/report core/stream core/submit core/view lab',
  'cli/stream': 'cli/present cli/support core',
  'cli/submit': 'cli/support core core/chain core/nodes core/submit',
  // Which cluster is meant: settings, secrets, identity. Opens nothing.
  'cli/cluster': 'cli/config cli/support core core/protocol core/view',
  'cli/compose':
    'cli/cluster cli/compose/open-cluster.ts cli/config cli/present cli/support core core/bundle core/chain core/dialect-fuel core/fleet core/log core/nodes ' +
    'core/operate core/produce core/protocol core/recovery core/sequencer core/sequencer/lead core/sequencer/warmup ' +
    'core/serve core/store core/stream core/view lab',
  'cli/compose/open-cluster.ts':
    'cli/cluster cli/config core core/dialect-fuel core/nodes core/protocol core/redis core/view',
  'cli/command':
    'cli/cluster cli/compose cli/compose/open-cluster.ts cli/config cli/present cli/stream cli/support core ' +
    'core/dialect-fuel core/log core/nodes core/repair core/report core/view',
  'cli/start':
    'cli/cluster cli/codes cli/command cli/compose cli/compose/open-cluster.ts cli/config cli/present cli/support ' +
    'core core/log core/protocol',

  // Programs above: the local cluster, the screen, the commands, and what the package offers to other programs.
  lab: 'core core/chain core/nodes core/protocol core/stream core/submit core/view',
  tui: 'core core/nodes core/protocol core/view',
  commands:
    'cli/cluster cli/codes cli/command cli/compose cli/compose/open-cluster.ts cli/config cli/deploy cli/present cli/start ' +
    'cli/stream cli/submit cli/support core core/bench core/bundle core/dialect-fuel core/fleet core/log core/nodes core/operate ' +
    'core/protocol core/repair core/report core/serve core/stream core/submit core/view lab tui',
  client: 'core core/chain core/nodes core/protocol core/submit',
  'index.ts': 'client core core/protocol',
};

/** Known and being removed; a line goes as soon as it is not needed (a test says so). */
const STILL_THERE: { imports: string[]; cycles: RegExp[] } = {
  imports: [],
  cycles: [],
};

/** Package → rooms that may import it. */
const PACKAGES: Record<string, string> = {
  ioredis: 'core/redis',
  lmdb: 'core/store',
  fastify: 'core/serve',
  ink: 'tui commands',
  react: 'tui commands',
  '@oclif/core': 'cli commands',
};

/** Where one starts, and what must not be reached from there by any chain of imports. */
const OUT_OF_REACH: [from: RegExp, never: RegExp, why: string][] = [
  [/^core\/sequencer\//, /^core\/repair\//, 'a leader carries out orders; planning and evidence are an operator’s'],
  [/^core\/(?!redis\/)/, /^core\/redis\//, 'the engine runs on ports'],
  [/^core\/(?!store\/)/, /^core\/store\//, 'the engine runs on ports'],
  [/^cli\/present\/[^/]+$/, /^cli\/present\/(cluster|stream)\//, 'the form of a result knows no single answer'],
  [/^cli\/present\/cluster\//, /^cli\/present\/stream\//, 'the answers on a stream use those on its cluster'],
  [/^core\/protocol\//, /^(?!core\/protocol\/)/, 'the protocol is pure'],
  [/^index\.ts$/, /^(cli|commands|lab|tui)\/|^core\/(redis|store|serve|produce|log|sequencer)\//, 'a client is small'],
];

interface Import {
  from: string;
  /** File below src/, or '' for a package. */
  to: string;
  packageName: string;
}

const src = resolve(import.meta.dirname, '../../src');
const files = readdirSync(src, { recursive: true })
  .map(String)
  .filter((file) => /\.tsx?$/.test(file));
const imports = files.flatMap(importsOf);
const own = imports.filter(({ to }) => to !== '');
const graph = new Map(
  files.map((file) => [file, [...new Set(own.filter(({ from }) => from === file).map(({ to }) => to))]]),
);

function importsOf(from: string): Import[] {
  const text = readFileSync(join(src, from), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
  const statement = /(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s*'([^']+)'|(?:^|\n)\s*import\s*'([^']+)'/g;
  const names = [...text.matchAll(statement), ...text.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g)];
  return names.map((match): Import => {
    const name = match[1] ?? match[2] ?? '';
    if (!name.startsWith('.')) return { from, to: '', packageName: name };
    const path = relative(src, resolve(src, dirname(from), name)).replace(/\.js$/, '');
    return { from, to: files.find((file) => file === `${path}.ts` || file === `${path}.tsx`) ?? path, packageName: '' };
  });
}

function roomOf(file: string): string {
  const rooms = Object.keys(ARROWS).filter((room) => file === room || file.startsWith(`${room}/`));
  // `core` holds only the files right in it: a new folder needs a row of its own.
  const [longest] = rooms.sort((a, b) => b.length - a.length);
  return longest === undefined || (longest === 'core' && file.split('/').length > 2) ? '' : longest;
}

const wordsOf = (text: string): string[] => text.split(' ').filter((word) => word !== '');

/** The files from `start` to the first one that matches, along imports; [] when there is no way. */
function wayTo(start: string, goal: RegExp): string[] {
  const cameFrom = new Map<string, string>([[start, '']]);
  for (const file of cameFrom.keys()) {
    if (file !== start && goal.test(file)) {
      const way = [file];
      while (way[0] !== start) way.unshift(cameFrom.get(way[0]!)!);
      return way;
    }
    for (const next of graph.get(file) ?? []) if (!cameFrom.has(next)) cameFrom.set(next, file);
  }
  return [];
}

/** Every cycle that a depth-first walk meets, as `a → b → a`. */
function cyclesOf(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (file: string): void => {
    const at = path.indexOf(file);
    if (at >= 0) cycles.push([...path.slice(at), file].join(' → '));
    if (at >= 0 || done.has(file)) return;
    path.push(file);
    for (const next of edges.get(file) ?? []) visit(next);
    path.pop();
    done.add(file);
  };
  for (const file of edges.keys()) visit(file);
  return cycles;
}

describe('import arrows', () => {
  test('arrows: every file belongs to a room of the table', () => {
    expect(files.filter((file) => roomOf(file) === '')).toEqual([]);
  });

  test('arrows: every import goes along an arrow of the table', () => {
    const wrong = own.filter(
      ({ from, to }) => roomOf(from) !== roomOf(to) && !wordsOf(ARROWS[roomOf(from)] ?? '').includes(roomOf(to)),
    );
    expect(wrong.map(({ from, to }) => `${from} → ${to}`).sort()).toEqual(STILL_THERE.imports);
  });

  test('arrows: every arrow of the table is used → nothing is allowed that is not needed', () => {
    const used = new Set(own.map(({ from, to }) => `${roomOf(from)} → ${roomOf(to)}`));
    const arrows = Object.entries(ARROWS).flatMap(([from, to]) => wordsOf(to).map((room) => `${from} → ${room}`));
    expect(arrows.filter((arrow) => !used.has(arrow))).toEqual([]);
  });

  test.each(OUT_OF_REACH)('arrows: %s never reaches %s, by no chain of imports', (from, never) => {
    const ways = files.filter((file) => from.test(file)).map((file) => wayTo(file, never));
    expect(ways.filter((way) => way.length > 0).map((way) => way.join(' → '))).toEqual([]);
  });

  test('arrows: no import cycle anywhere, type imports included', () => {
    const cycles = cyclesOf(graph);
    expect(cycles.filter((cycle) => !STILL_THERE.cycles.some((known) => known.test(cycle)))).toEqual([]);
    expect(STILL_THERE.cycles.filter((known) => !cycles.some((cycle) => known.test(cycle)))).toEqual([]);
  });

  test('arrows: the walk finds a cycle and names it', () => {
    expect(
      cyclesOf(
        new Map([
          ['a', ['b']],
          ['b', ['c', 'd']],
          ['c', ['b']],
        ]),
      ),
    ).toEqual(['b → c → b']);
  });
});

describe('packages', () => {
  test('arrows: the protocol imports no package, not even of Node', () => {
    const wrong = imports.filter(({ from, packageName }) => from.startsWith('core/protocol/') && packageName !== '');
    expect(wrong.map(({ from, packageName }) => `${from} → ${packageName}`)).toEqual([]);
  });

  test('arrows: ioredis, lmdb, fastify, ink and oclif are each known to one folder', () => {
    const wrong = imports.filter(({ from, packageName }) => {
      const rooms = PACKAGES[packageName];
      return rooms !== undefined && !wordsOf(rooms).some((room) => from.startsWith(`${room}/`));
    });
    expect(wrong.map(({ from, packageName }) => `${from} → ${packageName}`)).toEqual([]);
  });

  test('arrows: every package that is imported is a declared dependency', () => {
    const { dependencies, optionalDependencies = {} } = JSON.parse(
      readFileSync(join(src, '../package.json'), 'utf8'),
    ) as { dependencies: object; optionalDependencies?: object };
    const declared = new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)]);
    const isOfNode = (name: string): boolean => name.startsWith('node:') || builtinModules.includes(name);
    const names = imports
      .filter(({ packageName }) => packageName !== '' && !isOfNode(packageName))
      .map(({ packageName }) => packageName.split('/', packageName.startsWith('@') ? 2 : 1).join('/'));
    expect([...new Set(names)].filter((name) => !declared.has(name))).toEqual([]);
  });
});
