import { swapKeyIdOrder } from '../../src/drm/bytes';
import { buildWidevinePsshData } from '../../src/drm/widevine';

import { POST_MANUAL, POST_MANUAL_FILE } from '../support/post-manual';
import {
  CENC_PATH,
  FAIRPLAY_PATH,
  PLAIN_CENC,
  PLAIN_FAIRPLAY,
  PROVIDED,
  sealed,
  startProvisioning,
} from '../support/start-provisioning';
import { startSidecar } from '../support/start-sidecar';

const PATH = '/api/keyfile/live';
const ZEROS = 'AAAAAAAAAAAAAAAAAAAAAA==';
const HEX_ZEROS = '0'.repeat(32);
const { cenc, fairplay } = POST_MANUAL;
const DASH = 'mpegdashstreaming-cenc';
const HLS = 'cupertinostreaming-aes128';

const SUPPLIED: [what: string, body: object, field: string][] = [
  ['content key', { cenc: { ...cenc, contentkey: ZEROS } }, 'cenc.contentkey'],
  ['key id', { cenc: { ...cenc, keyid: ZEROS } }, 'cenc.keyid'],
  ['FairPlay key', { fairplay: { ...fairplay, key: HEX_ZEROS } }, 'fairplay.key'],
];

const withLine = (name: string, value: string) =>
  POST_MANUAL_FILE.replace(new RegExp(`^${name}: .*$`, 'm'), `${name}: ${value}`);

const withoutSystems = (lines: string) => lines.replaceAll(/^mpegdash.*keyserver.*\n/gm, '');
const MANY_KEY_IDS = buildWidevinePsshData({
  // Each reads as a UUID in the other byte order alone, which is warned of.
  keyIds: Array.from({ length: 150 }, (_, index) => {
    const keyId = swapKeyIdOrder(Buffer.from('09d2a744a6f14ac5b5eb1c3ab3a0e4d1', 'hex'));
    keyId.writeUInt8(index, 15);
    return keyId;
  }),
}).toString('base64');

const IMPORTED: [what: string, lines: string, name: string][] = [
  ['content key', withoutSystems(withLine(`${DASH}-content-key`, ZEROS)), `${DASH}-content-key`],
  ['key id', withoutSystems(withLine(`${DASH}-key-id`, ZEROS)), `${DASH}-key-id`],
  [
    'key id as a UUID',
    withoutSystems(withLine(`${DASH}-key-id`, '00000000-0000-0000-0000-000000000000')),
    `${DASH}-key-id`,
  ],
  ['FairPlay key', withLine(`${HLS}-key`, HEX_ZEROS), `${HLS}-key`],
  [
    'content key of CMAF',
    withoutSystems(withLine(`${DASH}-content-key`, ZEROS)).replaceAll('mpegdash', 'cmaf'),
    'cmafstreaming-cenc-content-key',
  ],
  ['key of AES-128', `${HLS}-url: https://keys.example/a\n${HLS}-key: ${HEX_ZEROS}\n`, `${HLS}-key`],
  [
    'FairPlay key behind a hundred unknown lines',
    `${Array.from({ length: 120 }, (_, index) => `note-${String.fromCharCode(97 + (index % 20), 97 + index / 20)}: a\n`).join('')}${withLine(`${HLS}-key`, HEX_ZEROS)}`,
    `${HLS}-key`,
  ],
  [
    'FairPlay key behind Widevine data with a hundred warnings',
    withLine(`${HLS}-key`, HEX_ZEROS).replace(POST_MANUAL.widevine.psshdata, MANY_KEY_IDS),
    `${HLS}-key`,
  ],
];

describe.each(['strict', 'warn'] as const)('with checks that are %s, nothing is written', (checks) => {
  it.each(SUPPLIED)('and 400 tells of a %s of zeros in a body', async (_what, body, field) => {
    const sidecar = await startSidecar({ checks });
    const answer = await sidecar.api.post(PATH).send(body).expect(400);
    const [error] = answer.body.errors;
    expect(error).toEqual({
      code: 'all_zero',
      description: expect.stringMatching(`^${field} is all zeros; `),
    });
    expect(await sidecar.files()).toEqual({});
  });

  it.each(IMPORTED)('and 400 tells of a %s of zeros in lines', async (_what, lines, name) => {
    const sidecar = await startSidecar({ checks });
    for (const dryrun of [true, false]) {
      const answer = await sidecar.api
        .post(`${PATH}?keepunknown=true&dryrun=${dryrun}`)
        .set('content-type', 'text/plain')
        .send(lines)
        .expect(400);
      expect(answer.body.errors).toContainEqual({
        code: 'all_zero',
        description: expect.stringMatching(`^${name} is all zeros; `),
      });
    }
    expect(await sidecar.files()).toEqual({});
  });

  it.each([
    ['content key', CENC_PATH, { ...PLAIN_CENC, content_key: ZEROS }, 'cenc.contentkey'],
    ['key id', CENC_PATH, { ...PLAIN_CENC, key_id_big: ZEROS }, 'cenc.keyid'],
    ['FairPlay key', FAIRPLAY_PATH, { ...PLAIN_FAIRPLAY, key_hex: HEX_ZEROS }, 'fairplay.key'],
  ])("and 502 tells of a provider's %s of zeros", async (_what, path, keys, field) => {
    const { sidecar, upstream } = await startProvisioning({ checks });
    const { checksum: _, playready_checksum: __, ...rest } = keys as Record<string, string>;
    upstream.on(path, sealed(rest));
    const answer = await sidecar.api.post(PATH).send(PROVIDED).expect(502);
    expect(answer.body.errors).toEqual([
      {
        code: 'key_provider_failed',
        description: expect.stringMatching(
          `^The key provider's values can't be used: ${field} is all zeros; .*\\. No key file was changed\\.$`,
        ),
      },
    ]);
    expect(await sidecar.files()).toEqual({});
  });

  it('but an IV of zeros is a warning', async () => {
    const { api } = await startSidecar({ checks });
    const answer = await api
      .post(PATH)
      .send({ fairplay: { ...fairplay, iv: HEX_ZEROS } })
      .expect(200);
    expect(answer.headers.warning).toBe(
      '299 - "all_zero: fairplay.iv is all zeros, which license servers rarely use; check it."',
    );
  });
});
