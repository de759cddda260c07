import { CheckCommand, CHECK_FLAGS, DEPTH_FLAGS } from '../../cli/command/check-command.js';

export default class CheckStream extends CheckCommand {
  static override summary = 'Do the newest heights hold together: no conflict, damage, hole or stuck block';
  static override description =
    "Exits 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN. -o nagios is a plugin's line with perfdata, -o " +
    'prometheus text for a collector.';
  static override examples = [
    '<%= config.bin %> check stream -o nagios',
    '<%= config.bin %> check stream -o json --timeout 3s',
  ];
  static override flags = { ...CHECK_FLAGS, ...DEPTH_FLAGS };
  protected readonly what = 'stream';
}
