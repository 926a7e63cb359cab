import { createHmac, createSecretKey } from 'node:crypto';
import jwt from 'jsonwebtoken';
import { type Notification, signNotification } from '../../../src/emulator/webhooks/notification';

const SECRET = '0123456789abcdefghijklmnopqrstuvwxyzABCD';
const HAPPENED = new Date('2030-01-02T03:04:05.678Z');

function sign(subject: Notification['subject'], event: Notification['event']) {
  const to = { webhookId: 'hook0001', key: createSecretKey(Buffer.from(SECRET)) };
  return signNotification({ event, siteId: 'demosite', subject }, to, HAPPENED);
}

test.each<[Notification['event'], Notification['subject'], string]>([
  ['channel_active', { channelId: 'channel1' }, '"channel_id":"channel1"'],
  ['media_available', { mediaId: 'media001' }, '"media_id":"media001"'],
])('writes the body of %s with its keys in order', (event, subject, id) => {
  expect(sign(subject, event).body).toBe(
    `{"event":"${event}",${id},"webhook_id":"hook0001","site_id":"demosite","event_time":"2030-01-02T03:04:05+00:00"}`,
  );
});

test('the payload of the token is the body, byte for byte, signed with the text of the secret', () => {
  const { body, token } = sign({ channelId: 'channel1' }, 'channel_created');
  const [header = '', payload = '', signature] = token.split('.');
  expect(Buffer.from(header, 'base64url').toString()).toBe('{"alg":"HS256","typ":"JWT"}');
  expect(Buffer.from(payload, 'base64url').toString()).toBe(body);
  expect(signature).toBe(createHmac('sha256', SECRET).update(`${header}.${payload}`).digest('base64url'));
});

test('a receiver that decodes the token gets the claims of the body and no other', () => {
  const { body, token } = sign({ mediaId: 'media001' }, 'media_deleted');
  const claims = jwt.verify(token, SECRET, { algorithms: ['HS256'] });
  expect(JSON.stringify(claims)).toBe(body);
});

test('a receiver with another secret refuses the token', () => {
  const { token } = sign({ mediaId: 'media001' }, 'media_deleted');
  expect(() => jwt.verify(token, `${SECRET}x`)).toThrow('invalid signature');
});
