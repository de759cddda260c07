import { Flags } from '@oclif/core';
import { SeqCommand } from '../cli/command/base-command.js';
import { aimed } from '../cli/support/next.js';
import { BUNDLE_FLAG } from '../cli/support/flags.js';
import { checkNode, rulesWithoutNodes, type Cluster } from '../cli/compose/open-cluster.js';
import { nodeFreeBytes } from '../cli/support/disk-room.js';
import { aclResult, doctorResult, type DoctorData } from '../cli/present/cluster/doctor.js';
import type { Result } from '../cli/present/result.js';
import { asDuration, asSize } from '../cli/config/settings.js';
import { everyNamed, startCommands, targetFlags } from '../cli/compose/target.js';
import { DEFAULT_LIMITS, DEFAULT_TIMING } from '../core/config.js';
import { diagnose, factsOf } from '../core/report/doctor.js';
import type { CheckedNode, DoctorFinding } from '../core/report/doctor-finding.js';
import type { NodePort } from '../core/ports.js';
import { inspectWithProbes } from '../core/view/inspect.js';
import { EXIT, SeqError } from '../core/errors.js';
import type { NodeProbe } from '../core/view/cluster-view.js';

export default class Doctor extends SeqCommand {
  static override summary =
    'Check the servers: persistence, eviction, memory, rights, clocks, latency, settings; with the ' +
    'command that fixes each finding';
  static override description =
    'Reads only. Rights are tried with ACL DRYRUN (nothing is run). --acl prints the rule that gives ' +
    'a user exactly what seq needs; it needs no server that runs. In an ACL file, the line begins with user ' +
    'instead of ACL SETUSER.';
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

  /** null: neither flags nor settings name a cluster. */
  private async clusterIfNamed(): Promise<Cluster | null> {
    try {
      return await this.cluster();
    } catch (error) {
      if (error instanceof SeqError && error.code === 'NO_CLUSTER') return null;
      throw error;
    }
  }

  protected async perform(): Promise<Result> {
    const { flags } = await this.parse(Doctor);
    const cluster = flags.acl ? await this.clusterIfNamed() : await this.cluster();
    if (cluster === null) return aclResult(await rulesWithoutNodes([{}], flags.lane ?? ''));
    this.step('checking every node');
    // Each node is asked two questions, one after the other. A node that hangs must leave time to report the others.
    const limitMs = Math.min(
      Math.max(2000, 10 * cluster.nodeTimeoutMs),
      0.35 * (await this.setting('timeout', asDuration, 10_000)).value,
    );
    const target = targetFlags(cluster.settings, cluster.nodes);
    const { view: judged, probes } = await inspectWithProbes({
      nodes: everyNamed(cluster),
      limitMs,
      clock: cluster.clock,
      expectedCluster: cluster.settings.cluster,
      target,
      twice: true,
      ...startCommands(cluster.settings),
    });
    // A bundle describes another time and perhaps another machine.
    const here = flags['from-bundle'] === undefined;
    const checked = await Promise.all(cluster.asked.map((node) => withCheckup(node, probes, { limitMs, here })));
    const rules = [
      ...new Set(checked.flatMap(({ checkup }) => (checkup.outcome === 'accepted' ? [checkup.value.aclRule] : []))),
    ];
    if (flags.acl)
      return aclResult(
        rules.length > 0 ? rules : await rulesWithoutNodes(cluster.settings.nodes, cluster.settings.lane),
      );
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
    const [worst] = findings;
    const verdict: DoctorData['verdict'] = worst === undefined || worst.severity === 'INFO' ? 'OK' : worst.severity;
    const nodesChecked = checked.filter(({ checkup }) => checkup.outcome === 'accepted').length;
    const data = { verdict, findings, nodes: factsOf(checked), nodesChecked, aclRules: rules };
    return {
      ...doctorResult(data, cluster.asked.length),
      verdict: {
        verdict,
        reason: worst === undefined || verdict === 'OK' ? 'no finding that needs a change' : whatIsWrong(worst),
        reasonCode: verdict === 'OK' ? 'OK' : verdict === judged.verdict ? judged.reasonCode : 'FINDINGS',
      },
      next: nextOf(judged.next, findings),
      exit: flags['exit-code'] && verdict !== 'OK' ? EXIT.no : EXIT.ok,
    };
  }
}

async function withCheckup(
  node: NodePort,
  probes: readonly NodeProbe[],
  { limitMs, here }: { limitMs: number; here: boolean },
): Promise<CheckedNode> {
  const view = (probes.find(({ id }) => id === node.id) as NodeProbe).reply;
  const checkup = await checkNode(node, limitMs);
  const local = here && checkup.outcome === 'accepted';
  const diskFreeBytes = local ? await nodeFreeBytes(node.url, checkup.value.config?.['dir']) : null;
  return { id: node.id, url: node.url, view, checkup, diskFreeBytes };
}

/** What the judge says of a node names it already. */
function whatIsWrong({ node, what }: DoctorFinding): string {
  return node !== '' && what.startsWith(node) ? what : `${node || 'cluster'}: ${what}`;
}

/** What the judge says comes first, then the fix of each finding. */
function nextOf(judged: readonly string[], findings: readonly DoctorFinding[]): string[] {
  const fixes = findings.filter((one) => one.severity !== 'INFO' && one.fix !== '').map((one) => one.fix);
  return [...new Set([...judged, ...fixes])].slice(0, 3);
}
