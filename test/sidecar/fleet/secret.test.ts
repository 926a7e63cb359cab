import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../../src/http/config';
import { openFleetSecret } from '../../../src/sidecar/fleet/join';
import { afterTest, folderOfEachTest } from '../../support/after-test';
import { type LogLine, recordedLog } from '../../support/recorded-log';
import { until } from '../../support/until';

const FIRST = '1'.repeat(64);
const SECOND = '2'.repeat(32);
const ELEVEN = Array.from({ length: 11 }, (_, index) => `${index}${SECOND}`);
const file = join(folderOfEachTest(), 'secret');
let lines: LogLine[];
let changes: number;

const write = (text: string, mode = 0o600) => {
  writeFileSync(file, text);
  chmodSync(file, mode);
};

function open() {
  const recorded = recordedLog();
  lines = recorded.lines;
  changes = 0;
  const opened = openFleetSecret(file, { log: recorded.log, intervalMs: 10 });
  opened.onSecrets(() => {
    changes += 1;
  });
  afterTest(opened.close);
  return opened.secrets;
}

const read = (count: number): LogLine => ['info', 'fleet secret read', { file, count }];
const KEPT = 'the file of the fleet secret cannot be used; the previous secrets stay in use';

test.each([
  ['a secret alone, without the end of its line', FIRST, [FIRST]],
  ['several', `${FIRST}\n${SECOND}\n`, [FIRST, SECOND]],
  ['lines of Windows', `\ufeff${FIRST}\r\n${SECOND}\r\n`, [FIRST, SECOND]],
  ['lines of an old Macintosh', `${FIRST}\r${SECOND}`, [FIRST, SECOND]],
  ['blank lines and comments', `# of the fleet\n\n \t\n${FIRST}\n\n#${SECOND}\n`, [FIRST]],
  ['a # within a secret', `${FIRST}#1`, [`${FIRST}#1`]],
  ['the longest', '~'.repeat(1000), ['~'.repeat(1000)]],
  ['ten', ELEVEN.slice(0, 10).join('\n'), ELEVEN.slice(0, 10)],
])('reads %s', (_what, text, secrets) => {
  write(text);
  expect(open()()).toEqual(secrets);
  expect(lines).toEqual([read(secrets.length)]);
  expect(changes).toBe(0);
});

const NONE = 'holds no secret: write one on each line, the same for all sidecars: openssl rand -hex 32';

test.each<[what: string, text: string, faults: readonly string[]]>([
  ['an empty file', '', [NONE]],
  ['comments alone', '# later\n\n', [NONE]],
  ['a long one', 'x'.repeat(1001), ['line 1: must have at most 1000 characters']],
  ['a space in it', `# one\n${FIRST} \n`, ['line 2: must be printable ASCII without spaces']],
  ['a letter that is no ASCII', `ä${FIRST}`, ['line 1: must be printable ASCII without spaces']],
  ['the same twice', `${FIRST}\n\n${FIRST}\n`, ['line 3: is the same secret as line 1']],
  ['eleven', ELEVEN.join('\n'), ['holds 11 secrets; 10 are allowed: remove the old ones']],
  [
    'several faults',
    `short\n${FIRST}\n${FIRST}\n`,
    [
      'line 1: must have at least 32 characters: openssl rand -hex 32',
      'line 3: is the same secret as line 2',
    ],
  ],
])('refuses to start with %s, and stays with what it has when that comes later', async (...row) => {
  const [, text, found] = row;
  const faults = found.map((fault) => `PACKAGERDRMAPI_FLEET_SECRET_FILE: ${fault}`);
  write(text);
  expect(open).toThrow(new ConfigError(faults));
  write(FIRST);
  const secrets = open();
  write(text);
  await until(() => lines.length > 1);
  expect(secrets()).toEqual([FIRST]);
  expect(lines).toEqual([read(1), ['error', KEPT, { file, faults }]]);
  expect(changes).toBe(0);
  expect(JSON.stringify(lines)).not.toMatch(/1111|2222|short/);
});

test('takes what the file holds now, and logs it once', async () => {
  write(FIRST);
  const secrets = open();
  write(`${SECOND}\n${FIRST}\n`);
  await until(() => changes > 0);
  expect(secrets()).toEqual([SECOND, FIRST]);
  write(`# the same\n${SECOND}\n${FIRST}\n`);
  await until(() => lines.length > 2);
  expect(changes).toBe(1);
  expect(lines).toEqual([read(1), read(2), read(2)]);
});

test('warns of a file that every user of the machine can read', () => {
  write(FIRST, 0o644);
  open();
  expect(lines).toEqual([
    read(1),
    [
      'warn',
      'every user of this machine can read this secret',
      { variable: 'PACKAGERDRMAPI_FLEET_SECRET_FILE', file },
    ],
  ]);
});
