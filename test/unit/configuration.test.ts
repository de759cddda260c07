import '../support/fuzz-seed.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  compareVersions,
  configurationText,
  contradicts,
  firstConfiguration,
  isNextTo,
  memoryNamed,
  newest,
  parseConfiguration,
  quorumFor,
  withMember,
  withMemory,
  withoutMember,
  type Configuration,
} from '../../src/core/protocol/configuration.js';

const THREE = '0.0 dedup-ms=86400000 dedup-items=1000000 max-block=1048576 | r1=a@redis://x:1 r2=b@redis://x:2 r3=-@u';
const three = (): Configuration => parseConfiguration(THREE)!;

describe('configuration: text', () => {
  test('configuration: a text is read and written back as it was', () => {
    expect(three().members.map(({ id, memory }) => `${id}:${memory}`)).toEqual(['r1:a', 'r2:b', 'r3:']);
    expect(configurationText({ ...three() })).toBe(THREE);
    expect(quorumFor(three())).toBe(2);
  });

  test('configuration: settings of a later version are kept, in order', () => {
    const text = '3.1 dedup-ms=1 dedup-items=2 max-block=4096 zone=b apart=yes | r1=a@redis://x:1';
    expect(configurationText({ ...parseConfiguration(text)! })).toBe(text);
    expect(configurationText(withMemory(parseConfiguration(text)!, 'r1', 'n', 4))).toBe(
      '4.0 dedup-ms=1 dedup-items=2 max-block=4096 zone=b apart=yes | r1=n@redis://x:1',
    );
  });

  test('configuration: the producer of a lane is one of the settings, and none is no word', () => {
    const text = '3.1 dedup-ms=1 dedup-items=2 max-block=4096 producer=exec:seq/exec/1 zone=b | r1=a@redis://x:1';
    const read = parseConfiguration(text)!;
    expect(read.settings).toMatchObject({ producer: 'exec:seq/exec/1', other: { zone: 'b' } });
    expect(configurationText({ ...read })).toBe(text);
    expect(configurationText({ ...read, settings: { ...read.settings, producer: '' } })).not.toContain('producer');
    expect(three().settings.producer).toBe('');
  });

  test.each([
    '',
    '1 dedup-ms=1 dedup-items=2 max-block=4096 | r1=a@u',
    '1.0 dedup-ms=1 dedup-items=2 | r1=a@u',
    '1.0 dedup-ms=1 dedup-items=2 max-block=4096 |',
    '1.0 dedup-ms=1 dedup-items=2 max-block=4096 r1=a@u',
    '1.0 dedup-ms=1 dedup-ms=1 dedup-items=2 max-block=4096 | r1=a@u',
    '1.0 dedup-ms=1 dedup-items=2 max-block=4096 | r2=a@u r1=b@u',
    '1.0 dedup-ms=1 dedup-items=2 max-block=4096 | r1=a@u r1=b@u',
    '01.0 dedup-ms=1 dedup-items=2 max-block=4096 | r1=a@u',
    '9999999999999999.0 dedup-ms=1 dedup-items=2 max-block=4096 | r1=a@u',
    '1.0  dedup-ms=1 dedup-items=2 max-block=4096 | r1=a@u',
    `1.0 dedup-ms=1 dedup-items=2 max-block=4096 | ${Array.from({ length: 16 }, (_, i) => `r${10 + i}=a@u`).join(' ')}`,
    `1.0 dedup-ms=1 dedup-items=2 max-block=4096 pad=${'x'.repeat(256)} | r1=a@${'u'.repeat(513)}`,
  ])('configuration: %j → cannot be read', (text) => {
    expect(parseConfiguration(text)).toBeNull();
  });

  test('configuration: any configuration survives its text', () => {
    const word = fc.stringMatching(/^[a-zA-Z0-9_.:-]{1,20}$/);
    const whole = fc.nat();
    const configuration = fc.record({
      version: fc.record({ epoch: fc.nat(), turn: fc.nat(999_999) }),
      settings: fc.record({
        dedupMs: whole,
        dedupItems: whole,
        maxBlockBytes: fc.integer({ min: 1024, max: 16 * 1024 * 1024 }),
        producer: fc.constantFrom('', 'batch:seq/items/1', 'other:x/2'),
        other: fc.dictionary(fc.stringMatching(/^x[a-z-]{0,9}$/), word, { maxKeys: 3, noNullPrototype: true }),
      }),
      members: fc
        .uniqueArray(
          fc.record({
            id: word,
            memory: fc.oneof(
              fc.constant(''),
              word.filter((memory) => memory !== '-'),
            ),
            url: word.map((host) => `redis://user@${host}`),
          }),
          { minLength: 1, maxLength: 15, selector: ({ id }) => id },
        )
        .map((members) => members.sort((a, b) => (a.id < b.id ? -1 : 1))),
    });
    fc.assert(
      fc.property(configuration, (one) => {
        expect(parseConfiguration(configurationText(one))).toEqual(one);
      }),
    );
  });

  test('configuration: any text is read or refused, and what is read is written back the same', () => {
    const part = fc.oneof(
      fc.constantFrom('|', ' ', '=', '@', '1.0', 'dedup-ms=1', 'dedup-items=1', 'max-block=1024', 'r1=a@u'),
      fc.string({ maxLength: 5 }),
    );
    const soup = fc.array(part, { maxLength: 12 }).map((parts) => parts.join(' '));
    fc.assert(
      fc.property(soup, (text) => {
        const read = parseConfiguration(text);
        if (read) expect(parseConfiguration(configurationText({ ...read }))).toEqual(read);
      }),
    );
  });
});

describe('configuration: changes', () => {
  test('configuration: a term counts its turns; a later term begins again at 0', () => {
    const first = withMemory(three(), 'r3', 'n1', 4);
    const second = withMemory(first, 'r3', 'n2', 4, 'redis://y:9');
    const later = withMemory(second, 'r1', 'n3', 7);
    expect([first, second, later].map(({ version }) => `${version.epoch}.${version.turn}`)).toEqual([
      '4.0',
      '4.1',
      '7.0',
    ]);
    expect(memoryNamed(later, 'r3')).toBe('n2');
    expect(later.members[2]).toEqual({ id: 'r3', memory: 'n2', url: 'redis://y:9', since: '4.1' });
    expect(configurationText(later)).toContain('r3=n2@redis://y:9#4.1');
    expect(parseConfiguration(configurationText(later))!.members).toEqual(later.members);
    expect(memoryNamed(later, 'r9')).toBe('');
    expect(compareVersions(second.version, later.version)).toBeLessThan(0);
    expect(newest(first, configurationText(later), 'nonsense', second)).toEqual(later);
    expect(newest('', null)).toBeNull();
  });

  test('configuration: of two with one version, the one that more nodes show; addresses make no difference', () => {
    const rival = THREE.replace(' r2=b@redis://x:2', '');
    const moved = THREE.replace('x:1', 'elsewhere:1');
    expect([contradicts(THREE, rival), contradicts(THREE, moved), contradicts(THREE, THREE)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(contradicts(THREE, rival.replace('0.0', '0.1')), 'a later one is no rival').toBe(false);
    expect(newest(rival, THREE, moved), 'two show the same members').toEqual(three());
    expect(newest(rival, THREE), 'one each: the first').toEqual(parseConfiguration(rival));
    expect(newest(THREE, THREE, rival.replace('0.0', '0.1')), 'the version comes first').toEqual(
      parseConfiguration(rival.replace('0.0', '0.1')),
    );
  });

  test('configuration: one step at a time is next to the last one, two are not', () => {
    const four = withMember(three(), { id: 'r0', memory: 'z', url: 'u' }, 1);
    expect(four.members.map(({ id }) => id)).toEqual(['r0', 'r1', 'r2', 'r3']);
    expect(quorumFor(four)).toBe(3);
    expect(isNextTo(three(), four)).toBe(true);
    expect(isNextTo(four, withoutMember(four, 'r1', 2))).toBe(true);
    expect(isNextTo(three(), withoutMember(four, 'r1', 2))).toBe(false);
    expect(isNextTo(three(), withMemory(three(), 'r3', 'n', 1))).toBe(true);
    expect(isNextTo(three(), withMemory(withMemory(three(), 'r3', 'n', 1), 'r1', 'm', 1))).toBe(false);
    expect(isNextTo(three(), firstConfiguration(three().members, { ...three().settings, dedupMs: 1 }))).toBe(true);
  });
});
