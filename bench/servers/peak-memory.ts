// Loaded before a program (`node -r`): reports its maximum memory, in KiB, when it ends.
import { writeSync } from 'node:fs';

process.on('exit', () => writeSync(2, `peak ${process.resourceUsage().maxRSS}\n`));
