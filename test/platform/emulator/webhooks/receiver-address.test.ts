import { mayCall, receiverUrlFaults } from '../../../../src/platform/emulator/webhooks/receiver-address';

const HTTPS_ONLY = { allowHttp: false };
const NOT_HTTPS =
  'must be an https address; http is for loopback, or for every host with EMULATOR_ALLOW_HTTP_WEBHOOKS=true';
const PRIVATE =
  'must not be an address of a private network, unless EMULATOR_ALLOW_HTTP_WEBHOOKS=true is set';
const NO_ADDRESS = 'must be an absolute https address';
const WITH_USER = 'must not hold a user name or password: the token is in the Authorization header';

test.each([
  'https://receiver.example/hook?a=1',
  'HTTPS://receiver.example',
  'https://receiver.example:8443/',
  'https://203.0.113.7/hook',
  'https://[2001:db8::7]/hook',
  'https://receiver',
  'https://receiver.invalid/',
  'https://localhost:3000/',
  'https://127.0.0.1/',
  'http://localhost:3000/hook',
  'http://receiver.localhost/',
  'http://127.0.0.1:3000/',
  'http://127.8.9.10/',
  'http://[::1]:3000/',
  'http://[::ffff:127.0.0.1]:3000/',
  'http://0x7f.1/',
  'https://[::ffff:203.0.113.7]/hook',
  'https://[2606:2800:220:1::7]/hook',
])('takes %s', (url) => {
  expect(receiverUrlFaults(url, HTTPS_ONLY)).toEqual([]);
});

test.each<[string, string[]]>([
  ['', [NO_ADDRESS]],
  ['/hook', [NO_ADDRESS]],
  ['receiver.example/hook', [NO_ADDRESS]],
  ['https://', [NO_ADDRESS]],
  [' https://receiver.example/', [NO_ADDRESS]],
  ['https://receiver.example/\nhook', [NO_ADDRESS]],
  ['https://receiver.example/ö', [NO_ADDRESS]],
  ['https://receiver.example:99999/', [NO_ADDRESS]],
  [`https://receiver.example/${'x'.repeat(1976)}`, ['is longer than 2000 characters']],
  ['ftp://receiver.example/', ['must be an https address']],
  ['javascript:alert(1)', ['must be an https address']],
  ['http://receiver.example/', [NOT_HTTPS]],
  ['http://localhost.example/', [NOT_HTTPS]],
  ['http://10.0.0.1/', [NOT_HTTPS]],
  ['http://203.0.113.7/', [NOT_HTTPS]],
  ['https://user@receiver.example/', [WITH_USER]],
  ['http://user:password@receiver.example/', [WITH_USER, NOT_HTTPS]],
  ['https://0.0.0.0/', [PRIVATE]],
  ['https://10.1.2.3/', [PRIVATE]],
  ['https://100.64.0.1/', [PRIVATE]],
  ['https://169.254.169.254/latest/meta-data', [PRIVATE]],
  ['https://172.31.255.255/', [PRIVATE]],
  ['https://192.168.1.1:8443/', [PRIVATE]],
  ['https://192.0.0.8/', [PRIVATE]],
  ['https://198.18.0.1/', [PRIVATE]],
  ['https://224.0.0.1/', [PRIVATE]],
  ['https://255.255.255.255/', [PRIVATE]],
  ['https://0xa.1/', [PRIVATE]],
  ['https://[::]/', [PRIVATE]],
  ['https://[fd00::1]/', [PRIVATE]],
  ['https://[fe80::1]/', [PRIVATE]],
  ['https://[ff02::1]/', [PRIVATE]],
  ['https://[::ffff:10.0.0.1]/', [PRIVATE]],
  ['https://192.88.99.1/', [PRIVATE]],
  ['https://[::10.0.0.1]/', [PRIVATE]],
  ['https://[::127.0.0.1]/', [PRIVATE]],
  ['https://[::ffff:0:10.0.0.1]/', [PRIVATE]],
  ['https://[64:ff9b::10.0.0.1]/', [PRIVATE]],
  ['https://[64:ff9b:1::10.0.0.1]/', [PRIVATE]],
  ['https://[100::1]/', [PRIVATE]],
  ['https://[2001:0:7f00:1::]/', [PRIVATE]],
  ['https://[2001:2::1]/', [PRIVATE]],
  ['https://[2001:10::1]/', [PRIVATE]],
  ['https://[2001:20::1]/', [PRIVATE]],
  ['https://[2002:a00:1::]/', [PRIVATE]],
  ['https://[5f00::1]/', [PRIVATE]],
  ['https://[fec0::1]/', [PRIVATE]],
  ['https://[4000::1]/', [PRIVATE]],
  ['http://[::127.0.0.1]/', [NOT_HTTPS]],
  ['http://[2002:7f00:1::]/', [NOT_HTTPS]],
])('refuses %j', (url, faults) => {
  expect(receiverUrlFaults(url, HTTPS_ONLY)).toEqual(faults);
});

test.each(['http://receiver:3000/hook', 'http://172.18.0.2/', 'https://192.168.1.1/', 'http://203.0.113.7/'])(
  'takes %s where http is allowed',
  (url) => {
    expect(receiverUrlFaults(url, { allowHttp: true })).toEqual([]);
  },
);

test.each(['ftp://receiver/', 'https://user@receiver/', 'receiver'])('refuses %s even there', (url) => {
  expect(receiverUrlFaults(url, { allowHttp: true })).toHaveLength(1);
});

test.each<[string, string, boolean]>([
  ['127.0.0.1', 'http:', true],
  ['203.0.113.7', 'http:', false],
  ['203.0.113.7', 'https:', true],
  ['172.15.255.255', 'https:', true],
  ['172.16.0.0', 'https:', false],
  ['::ffff:c0a8:1', 'https:', false],
  ['0:0:0:0:0:FFFF:192.168.0.1', 'https:', false],
  ['::ffff:203.0.113.7', 'http:', false],
  ['2001:200::1', 'https:', true],
  ['fe80::1%1', 'https:', false],
])('the address %s may be called over %s only by the rules: %s', (address, protocol, allowed) => {
  expect(mayCall(address, protocol, HTTPS_ONLY)).toBe(allowed);
  expect(mayCall(address, protocol, { allowHttp: true })).toBe(true);
});
