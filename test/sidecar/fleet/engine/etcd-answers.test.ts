import {
  faultOfAnswer,
  faultOfNoAnswer,
  faultOfText,
} from '../../../../src/sidecar/fleet/engine/etcd-answers';

describe('faults', () => {
  const row = ({ kind, canRetry, mayBeDone, signIn }: ReturnType<typeof faultOfText>) =>
    [kind, canRetry && 'again', mayBeDone && 'may be done', signIn && 'sign in'].filter(Boolean).join(', ');

  test.each<[sentence: string, code: number, fault: string]>([
    ['etcdserver: mvcc: database space exceeded', 8, 'full'],
    ['etcdserver: mvcc: required revision has been compacted', 11, 'compacted'],
    ['etcdserver: invalid auth token', 16, 'denied, sign in'],
    ['etcdserver: user name is empty', 3, 'denied, sign in'],
    ['etcdserver: revision of auth store is old', 3, 'denied, sign in'],
    ['etcdserver: permission denied', 7, 'denied'],
    ['etcdserver: authentication failed, invalid user ID or password', 3, 'denied'],
    ['CommonName of client sending a request against gateway will be ignored', 0, 'denied'],
    ['etcdserver: no leader', 14, 'unavailable, again'],
    ['etcdserver: too many requests', 8, 'unavailable, again'],
    ['etcdserver: rpc not supported for learner', 14, 'unavailable, again'],
    ['etcdserver: corrupt cluster', 15, 'unavailable'],
    ['something else', 7, 'denied'],
    ['something else', 16, 'denied, sign in'],
    ['context canceled', 1, 'unavailable, again, may be done'],
    ['context deadline exceeded', 4, 'unavailable, again, may be done'],
    ['etcdserver: request timed out', 14, 'unavailable, again, may be done'],
    ['etcdserver: key is not provided', 3, 'refused'],
  ])('%s (%i) is %s', (sentence, code, fault) => {
    expect(row(faultOfText(sentence, code))).toBe(fault);
  });

  test.each<[body: string, status: number, fault: string, why: string]>([
    ['{"error":"e","message":"etcdserver: permission denied","code":7}', 403, 'denied', 'permission denied'],
    ['{"error":"etcdserver: permission denied","code":7}', 403, 'denied', 'etcdserver: permission denied'],
    ['{"error":{"grpc_code":7,"message":"no"}}', 200, 'denied', 'no'],
    ['{}', 500, 'unavailable, again, may be done', 'answered 500'],
    ['{}', 400, 'refused', 'answered 400'],
    ['bad gateway', 502, 'unavailable, again, may be done', 'answered 502'],
    ['CommonName of client sending', 401, 'denied', 'must have no common name'],
    ['Not Found', 404, 'refused, again', 'is an etcd of version 3.4 or later there'],
    ['hello', 200, 'refused, again, may be done', 'answered 200, but not as'],
  ])('%s with the status %i is %s', (body, status, fault, why) => {
    const answered = faultOfAnswer(status, body);
    expect(row(answered)).toBe(fault);
    expect(answered.why).toContain(why);
  });

  test.each<[code: string, isSent: boolean, fault: string, why: string]>([
    ['ECONNREFUSED', false, 'unavailable, again', 'nothing listens there'],
    ['ECONNRESET', true, 'unavailable, again, may be done', 'cut'],
    ['TOO_LARGE', true, 'refused, again, may be done', 'more than any answer can be'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', true, 'denied, again', 'refuses the client certificate'],
    ['CERT_NOT_YET_VALID', false, 'unavailable, again', 'check the clock here'],
    ['CERT_HAS_EXPIRED', false, 'unavailable, again', 'its certificate has expired'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', false, 'unavailable, again', 'its certificate is for another name'],
    ['INVALID_PURPOSE', false, 'unavailable, again', 'serverAuth'],
    ['SELF_SIGNED_CERT_IN_CHAIN', false, 'unavailable, again', 'PACKAGERDRMAPI_FLEET_TLSCA'],
  ])('no answer for %s, sent: %s, is %s', (code, isSent, fault, why) => {
    const answered = faultOfNoAnswer(code, isSent);
    expect(row(answered)).toBe(fault);
    expect(answered.why).toContain(why);
  });
});
