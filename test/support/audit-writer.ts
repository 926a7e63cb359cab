// Audits changes through the sidecar's audit. Arguments: what to do, and the target of the audit.
//   forever   until it is killed
//   exit      a thousand, or the third argument, and ends without waiting for anything
import { openAudit } from '../../src/sidecar/observe/audit';

const [task, target = '', last = '1000'] = process.argv.slice(2);
const log = { error() {}, warn() {}, info() {}, debug() {} };
const { audit } = openAudit(target, { log, clock: () => new Date(), stdout: process.stdout });
let count = 0;

function change() {
  audit({
    action: 'put',
    key: 'operations',
    address: '192.0.2.7',
    streamId: 'live/channel-1',
    result: 'changed',
    oldKeyId: undefined,
    newKeyId: undefined,
    requestId: String(count),
  });
  count += 1;
}

if (task === 'exit') {
  while (count < Number(last)) change();
  process.exit(0);
}

setInterval(() => {
  for (let times = 0; times < 100; times += 1) change();
}, 1);
