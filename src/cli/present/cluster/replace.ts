// `seq node replace` → lines before the question, and Result. Pure. The names in `data` are a contract
// (schemas/node.replace.json).
import type { ReplaceDone, ReplacePlan } from '../../../core/operate/replace-node.js';
import type { Result } from '../result.js';

const OLD = {
  retire: 'it answers, and will refuse every call from then on',
  gone: 'it does not answer: you say that it is gone for good',
  done: 'it is out already',
} as const;

export function replaceEffect(plan: ReplacePlan): string[] {
  return [
    `  old: ${plan.from} (${OLD[plan.old]})`,
    `  new: ${plan.to}, Redis ${plan.version || 'of unknown version'}, ` +
      `${plan.successor === 'empty' ? 'empty' : 'begun with already'}`,
    `  margin ${plan.margin} → ${plan.marginMeanwhile} until ${plan.leader} has filled and admitted it`,
    `digest ${plan.digest.slice(0, 16)}`,
  ];
}

export function replaceResult(
  { plan, admitted, warnings }: ReplaceDone,
  command: string,
  context: string | null,
): Result {
  const { digest, id, from, to, old, successor, version, leader, margin, marginMeanwhile } = plan;
  const facts: [string, string | number][] = [
    ['node', id],
    ['old', `${from}: ${OLD[old]}`],
    ['new', `${to}${version === '' ? '' : `, Redis ${version}`}`],
    [
      'margin',
      admitted === null ? `${margin}, ${marginMeanwhile} meanwhile` : `${margin} before, ${admitted.margin} now`,
    ],
    ...(admitted === null
      ? [['digest', digest.slice(0, 16)] as [string, string]]
      : [['admitted', `at height ${admitted.head} after ${admitted.waitedMs} ms`] as [string, string]]),
  ];
  return {
    data: {
      node: id,
      from,
      to,
      old,
      successor,
      version,
      leader,
      digest,
      margin: { before: margin, meanwhile: marginMeanwhile, after: admitted?.margin ?? null },
      waitedMs: admitted?.waitedMs ?? null,
      head: admitted?.head ?? null,
      dryRun: admitted === null,
    },
    warnings,
    facts,
    next:
      admitted === null
        ? [`${command} --confirm ${digest.slice(0, 8)}`]
        : [
            // Only its own memory keeps the old server from voting.
            ...(old === 'gone' ? [] : [`stop ${from}: nobody asks it any more`]),
            context === null
              ? `use --node ${id}=${to} from now on`
              : `write ${to} as the address of ${id} into context ${context}`,
            `give every sequencer --node ${id}=${to} before its next start`,
          ],
  };
}
