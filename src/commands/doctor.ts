import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { aimed } from '../cli/support/next.js';
import { BUNDLE_FLAG } from '../cli/support/flags.js';
import { checkNode } from '../cli/compose/open-cluster.js';
import { nodeFreeBytes } from '../cli/support/disk-room.js';
import type { Result } from '../cli/present/result.js';
import { asDuration, asSize } from '../cli/config/settings.js';
import { startCommands, targetFlags } from '../cli/compose/target.js';
import { DEFAULT_LIMITS, DEFAULT_TIMING } from '../core/config.js';
import { diagnose, factsOf } from '../core/report/doctor.js';
import { mib } from '../core/report/doctor-memory.js';
import { duration } from '../core/duration.js';
import { inspectWithProbes } from '../core/view/inspect.js';
import { EXIT } from '../core/errors.js';
import type { NodeProbe } from '../core/view/cluster-view.js';

export default class Doctor extends SeqCommand {
  static override summary =
    'Check the servers: persistence, eviction, memory, rights, clocks, latency, settings; with the ' +
    'command that fixes each finding';
  static override description =
    'Reads only. Rights are tried with ACL DRYRUN (nothing is run). --acl prints the rule that gives ' +
    'a user exactly what seq needs.';
  static override examples = [
    '<%= config.bin %> doctor -c prod',
    '<%= config.bin %> doctor --exit-code -o json',
    '<%= config.bin %> doctor --acl',
  ];
  static override flags = {
    ...BUNDLE_FLAG,
    acl: Flags.boolean({ description: 'print the ACL rule, and nothing else' }),
    'exit-code': Flags.boolean({ description: 'exit 1 when there is a finding of severity WARN or CRIT' }),
  };
  protected readonly kind = 'doctor';

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Doctor);
    const cluster = await this.cluster();
    this.step('checking every node');
    // Each node is asked two questions, one after the other. A node that hangs must leave time to report the others.
    const limitMs = Math.min(
      Math.max(2000, 10 * cluster.nodeTimeoutMs),
      0.35 * (await this.setting('timeout', asDuration, 10_000)).value,
    );
    const target = targetFlags(cluster.settings, cluster.nodes);
    const { view: judged, probes } = await inspectWithProbes({
      nodes: cluster.asked,
      limitMs,
      clock: cluster.clock,
      expectedCluster: cluster.settings.cluster,
      target,
      twice: true,
      ...startCommands(cluster.settings),
    });
    const checked = await Promise.all(
      cluster.asked.map(async (node) => {
        const view = (probes.find(({ id }) => id === node.id) as NodeProbe).reply;
        const checkup = await checkNode(node, limitMs);
        // A bundle describes another time and perhaps another machine.
        const here = flags['from-bundle'] === undefined && checkup.outcome === 'accepted';
        return {
          id: node.id,
          url: node.url,
          view,
          checkup,
          diskFreeBytes: here ? await nodeFreeBytes(node.url, checkup.value.config?.['dir']) : null,
        };
      }),
    );
    const rules = [
      ...new Set(checked.flatMap(({ checkup }) => (checkup.outcome === 'accepted' ? [checkup.value.aclRule] : []))),
    ];
    const { complete = (line: string) => line } = startCommands(cluster.settings);
    const found = diagnose(checked, {
      nodeTimeoutMs: cluster.settings.nodeTimeoutMs,
      ttlMs: (await this.setting('ttl', asDuration, DEFAULT_TIMING.ttlMs)).value,
      target,
      judged: judged.findings,
      retainBytes: (await this.setting('retain-bytes', asSize, DEFAULT_LIMITS.retainBytes)).value,
      maxBlockBytes: (await this.setting('max-block-bytes', asSize, DEFAULT_LIMITS.maxBlockBytes)).value,
    });
    const findings = found.map((one) => ({ ...one, fix: aimed(complete(one.fix), { ...flags, nodes: flags.node }) }));
    const answered = checked.filter(({ checkup }) => checkup.outcome === 'accepted').length;
    const [worst] = findings;
    const verdict = worst === undefined || worst.severity === 'INFO' ? 'OK' : worst.severity;
    const nodes = factsOf(checked);
    const data = { verdict, findings, nodes, nodesChecked: answered, aclRules: rules };
    const bad = flags['exit-code'] && verdict !== 'OK' ? EXIT.no : EXIT.ok;
    if (flags.acl) {
      const text = rules.map((rule) => `${rule}\n`).join('');
      return {
        data,
        texts: { table: text, wide: text, plain: text },
        exit: rules.length === 0 ? EXIT.noQuorum : EXIT.ok,
      };
    }
    return {
      data,
      facts: [
        ['verdict', verdict],
        ['checked', `${answered} of ${cluster.asked.length} nodes`],
        ['findings', findings.length],
      ],
      tables: [
        {
          columns: [{ key: 'severity' }, { key: 'check' }, { key: 'node' }, { key: 'what' }, { key: 'fix' }],
          rows: findings.map((one) => ({ ...one, node: one.node === '' ? 'cluster' : one.node })),
        },
        {
          columns: [
            { key: 'node' },
            { key: 'p50', align: 'right' },
            { key: 'p95', align: 'right' },
            { key: 'max', align: 'right' },
            { key: 'clock', align: 'right' },
            { key: 'up', align: 'right' },
            { key: 'used', align: 'right' },
            { key: 'limit', align: 'right' },
            { key: 'full', label: 'RETENTION FULL', align: 'right' },
          ],
          rows: nodes.map((one) => ({
            node: one.node,
            p50: ms(one.roundTripMs?.p50),
            p95: ms(one.roundTripMs?.p95),
            max: ms(one.roundTripMs?.max),
            clock: one.clockMs === null ? '?' : `${one.clockMs > 0 ? '+' : ''}${one.clockMs}ms`,
            up: one.uptimeSeconds === null ? '?' : duration(1000 * one.uptimeSeconds),
            used: size(one.usedBytes),
            limit: size(one.limitBytes),
            full: size(one.fullBytes),
          })),
        },
      ],
      items: findings,
      next: [
        ...new Set([
          ...judged.next,
          ...findings.filter((one) => one.severity !== 'INFO' && one.fix !== '').map((one) => one.fix),
        ]),
      ].slice(0, 3),
      exit: bad,
      meta: { nodesAnswered: answered },
    };
  }
}

function ms(value: number | undefined): string {
  return value === undefined ? '?' : `${value.toFixed(1)}ms`;
}

function size(bytes: number | null): string {
  return bytes === null ? '?' : mib(bytes);
}
