// Loaded before a program (`node -r`): tells the most memory that it had, in KiB, when it ends.
import { writeSync } from 'node:fs';

process.on('exit', () => writeSync(2, `peak ${process.resourceUsage().maxRSS}\n`));
