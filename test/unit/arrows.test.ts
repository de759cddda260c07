// The import arrows: who may know whom. The protocol stays pure, only redis/ knows ioredis, only cli/compose/open-cluster.ts joins
// engine and redis.
import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const src = resolve(import.meta.dirname, '../../src');

interface Import {
  file: string;
  target: string;
  packageName: string | null;
}

function imports(): Import[] {
  const files = readdirSync(src, { recursive: true })
    .map(String)
    .filter((file) => /\.tsx?$/.test(file));
  return files.flatMap((file) => {
    const text = readFileSync(join(src, file), 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, '');
    const names = [
      ...text.matchAll(
        /(?:^|\n)\s*(?:import|export)\b[^;'"]*?from\s*'([^']+)'|(?:^|\n)\s*import\s*'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/g,
      ),
    ].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
    return names.map((name) =>
      name.startsWith('.')
        ? { file, target: relative(src, resolve(src, dirname(file), name)), packageName: null }
        : { file, target: '', packageName: name },
    );
  });
}

const all = imports();
const CORE_FILES = /^core\/(index|errors|events|ports|config|http-call)\.js$/;
const isNodeModule = (name: string): boolean => name.startsWith('node:') || builtinModules.includes(name);

/** Folder → what it may import of our own sources, besides itself. */
const ARROWS: [from: RegExp, allowed: RegExp[]][] = [
  [/^core\/protocol\//, []],
  [/^core\/chain\//, [/^core\/protocol\//, CORE_FILES]],
  [
    /^core\/(nodes|view|stream|report|sequencer|repair|recovery|operate|submit|bench)\//,
    [/^core\/(protocol|chain)\//, CORE_FILES],
  ],
  [/^core\/dialect-fuel\//, [/^core\/(protocol|nodes|view|stream)\//, CORE_FILES]],
  [/^core\/redis\//, [/^core\/(protocol|chain|dialect-fuel)\//, CORE_FILES]],
  [/^core\/(store|serve|produce)\//, [/^core\/(protocol|chain)\//, CORE_FILES]],
  [/^core\//, [/^core\//]],
  [/^lab\//, [/^core\/(?!redis\/|store\/|serve\/)/]],
  [/^tui\//, [/^core\/(?!redis\/|store\/|serve\/)/]],
  [/^cli\/compose\/open-cluster\.ts$/, [/^cli\//, /^core\//]],
  [/^cli\//, [/^cli\//, /^core\/(?!redis\/)/, /^lab\//]],
  [/^commands\//, [/^cli\//, /^core\/(?!redis\/)/, /^lab\//, /^tui\//]],
  [/^index\.ts$/, [/^core\/(?!redis\/|store\/|serve\/)/]],
];

function home(file: string): string {
  const parts = file.split('/');
  return parts[0] === 'core' && parts.length > 2 ? `core/${parts[1]}/` : `${parts[0]}/`;
}

describe('import arrows', () => {
  test('arrows: every import of our own goes along an allowed arrow', () => {
    const wrong = all.filter(({ file, target, packageName }) => {
      if (packageName !== null || target.startsWith(home(file))) return false;
      const arrow = ARROWS.find(([from]) => from.test(file));
      return !arrow || !arrow[1].some((allowed) => allowed.test(target));
    });
    expect(wrong.map(({ file, target }) => `${file} → ${target}`)).toEqual([]);
  });

  test('arrows: the protocol imports nothing from outside → pure', () => {
    expect(
      all
        .filter(({ file, packageName }) => file.startsWith('core/protocol/') && packageName !== null)
        .map(({ file, packageName }) => `${file} → ${packageName}`),
    ).toEqual([]);
  });

  test('arrows: ioredis, lmdb and fastify are each known to one folder', () => {
    const homes: Record<string, RegExp> = {
      ioredis: /^core\/redis\//,
      lmdb: /^core\/store\//,
      fastify: /^core\/serve\//,
      ink: /^(tui|commands)\//,
      react: /^(tui|commands)\//,
      '@oclif/core': /^(cli|commands)\//,
    };
    const wrong = all.filter(({ file, packageName }) => {
      const allowed = packageName === null ? undefined : homes[packageName];
      return allowed !== undefined && !allowed.test(file);
    });
    expect(wrong.map(({ file, packageName }) => `${file} → ${packageName}`)).toEqual([]);
  });

  test('arrows: every package that is imported is a declared dependency', () => {
    const { dependencies, optionalDependencies = {} } = JSON.parse(
      readFileSync(join(src, '../package.json'), 'utf8'),
    ) as { dependencies: object; optionalDependencies?: object };
    const declared = new Set([...Object.keys(dependencies), ...Object.keys(optionalDependencies)]);
    const names = all.flatMap(({ packageName }) =>
      packageName === null || isNodeModule(packageName)
        ? []
        : [
            packageName
              .split('/')
              .slice(0, packageName.startsWith('@') ? 2 : 1)
              .join('/'),
          ],
    );
    expect([...new Set(names)].filter((name) => !declared.has(name))).toEqual([]);
  });
});
