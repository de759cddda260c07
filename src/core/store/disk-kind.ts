// Is a directory on a disk that other hosts may share? LMDB and locks are made for disks of one machine.
import { statfsSync } from 'node:fs';

/** Types of statfs(2) whose files another host can open as well. */
const NETWORK_DISKS = new Map<number, string>([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x00c36400, 'CephFS'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
]);

/** The name of the network disk. Null for a disk of this machine, and where the system does not say. */
export function networkDisk(dir: string): string | null {
  try {
    return NETWORK_DISKS.get(statfsSync(dir).type >>> 0) ?? null;
  } catch {
    return null;
  }
}
