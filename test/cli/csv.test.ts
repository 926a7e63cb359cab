import { parse } from 'csv-parse/sync';
import { csvRow } from '../../src/cli/output';
import { type FakeUpstream, startFakeUpstream } from '../support/fake-upstream';
import { cli } from '../support/run-cli';
import { install } from './doctor/installation';
import { runDoctor } from './doctor/run-doctor';

test.each<[string, string]>([
  ['plain', 'plain'],
  ['a,b', '"a,b"'],
  ['a "b"', '"a ""b"""'],
  ['a\nb', '"a\nb"'],
  ['a;=1+1', '"a;=1+1"'],
  [' a', '" a"'],
  ['=1+1', `"'=1+1"`],
  ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
  ['+49', `"'+49"`],
  ['-1', `"'-1"`],
  ['@SUM(A1)', `"'@SUM(A1)"`],
  ['\t=1', `"'�=1"`],
  ['＝1', `"'＝1"`],
  ['\u001b[2J', '�[2J'],
  ['', ''],
])('writes the cell %j as %j', (cell, text) => {
  expect(csvRow([cell, 'x'])).toBe(`${text},x\r\n`);
});

describe('list --csv', () => {
  const NEWS = {
    streamid: 'live/news',
    modified: '2025-01-31T14:02:11.123Z',
    size: 1234,
    parts: ['cenc', 'widevine'],
    key_id: '44da52ef-4523-098e-6854-777ee322681d',
    content_id: '=cmd|calc',
    faults: [],
  };
  const fault = (severity: string, code: string) => ({ severity, code, description: `It is, as "${code}".` });
  const BAD = {
    ...NEWS,
    streamid: '@bad',
    key_id: null,
    content_id: null,
    faults: [fault('warning', 'w'), fault('error', 'e')],
  };
  let upstream: FakeUpstream;

  beforeEach(async () => {
    upstream = await startFakeUpstream();
  });

  const list = (...args: string[]) =>
    cli(['list', '--csv', ...args], {
      cwd: '/',
      env: { PACKAGERDRM_URL: upstream.url, PACKAGERDRM_APIKEY: 'k' },
    });

  test('prints a header and a row for each key file, of all pages', async () => {
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [NEWS], cursor: 'c' } });
    upstream.on('/api/keyfiles?limit=1000&cursor=c', { body: { keyfiles: [BAD], cursor: null } });
    const { code, stdout, stderr } = await list();
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: [
        'streamid,modified,size,parts,key_id,content_id,severity,faults,descriptions',
        `live/news,2025-01-31T14:02:11.123Z,1234,cenc widevine,44da52ef-4523-098e-6854-777ee322681d,"'=cmd|calc",,,`,
        `"'@bad",2025-01-31T14:02:11.123Z,1234,cenc widevine,,,error,w e,"It is, as ""w"".\nIt is, as ""e""."`,
        '',
      ].join('\r\n'),
      stderr: '2 key files, 1 of them with faults.\n',
    });
    expect((await list('--faulty')).code).toBe(1);
  });

  test('prints the header alone when there is no key file', async () => {
    upstream.on('/api/keyfiles?limit=1000', { body: { keyfiles: [], cursor: null } });
    expect((await list()).stdout).toBe(
      'streamid,modified,size,parts,key_id,content_id,severity,faults,descriptions\r\n',
    );
  });

  test('is refused together with --json', async () => {
    const { code, stdout } = await list('--json');
    expect({ code, document: JSON.parse(stdout), requests: upstream.received.length }).toEqual({
      code: 2,
      document: { errors: [{ code: 'usage', description: 'Give --csv or --json, not both.' }] },
      requests: 0,
    });
  });
});

describe('doctor --csv', () => {
  test('prints a header and a row for each finding, the same as --json has', async () => {
    const packager = await install({ 'keys/news_720p.key': undefined, 'conf/HTTPStreamers.xml': undefined });
    const { code, stdout } = await runDoctor(packager, ['--csv']);
    const rows: Record<string, string>[] = parse(stdout, { columns: true });
    const { sections } = JSON.parse((await runDoctor(packager, ['--json'])).stdout);
    const expected = sections.flatMap(
      ({ kind, subject, findings }: { kind: string; subject: string; findings: object[] }) =>
        findings.map((finding) => ({ kind, subject, todo: '', xml: '', command: '', ...finding })),
    );
    expect({ code, rows }).toEqual({ code: 1, rows: expected });
    expect(stdout.split('\r\n')[0]).toBe('kind,subject,severity,code,message,todo,xml,command');
  });

  test('is refused together with --json', async () => {
    expect((await runDoctor(await install(), ['--csv', '--json'])).problems).toEqual([
      'Give --csv or --json, not both.',
    ]);
  });
});
