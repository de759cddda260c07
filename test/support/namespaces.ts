// Containers and hosts on one machine: a pid namespace has processes of its own, as a container has. Making one needs
// root (or user namespaces). Where the machine cannot, the tests that need it are skipped and counted by vitest.
import { spawnSync } from 'node:child_process';

/** The command line in front of a program that runs in a pid namespace of its own. It ends with its parent. */
export const CONTAINER = ['/usr/bin/unshare', '-p', '-f', '--kill-child', '--mount-proc'] as const;

const [program, ...flags] = CONTAINER;
export const mayContain = spawnSync(program, [...flags, 'true']).status === 0;
